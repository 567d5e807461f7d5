/* SPDX-License-Identifier: MIT */
/*
 * The disk of a simulated machine behind file sources: what they open, size up, read and close is
 * a file of tn_sim_file_put(), in the machine's time and with its faults. One machine at a time,
 * while no thread loads.
 */
#ifndef TN_TEST_SIM_FILES_H
#define TN_TEST_SIM_FILES_H

#include <tenure/sim.h>

/** File sources read from this machine from now on; NULL: from the real file system again. */
void sim_files_use(tn_sim *sim);

#endif
