/* SPDX-License-Identifier: MIT */
/*
 * Plan files: one JSON object that describes a machine, the state of a manager, and a plan. The
 * members are told by tools/tenure/README.md.
 */
#ifndef TENURE_PLAN_FILE_H
#define TENURE_PLAN_FILE_H

#include "scene.h"

/**
 * Reads a file and puts a scene into the state that it describes.
 *
 * @param scene  all zero; end with scene_close() either way.
 * @return false after an error line with the place in the file.
 */
bool plan_file_open(struct scene *scene, const char *path);

#endif
