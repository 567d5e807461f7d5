/* SPDX-License-Identifier: MIT */
/*
 * JSON Lines to facts: one object a line, its members checked for presence and type, then handed
 * to the checks in workload_build.c.
 */
#include "base.h"
#include "intern.h"
#include "workload_build.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
    const char *name;
    json_type type;
};

static const char *type_name(json_type type) {
    switch (type) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    default:
        return "a whole number";
    }
}

/* Exactly these members, each of its type. */
static bool has_members(struct build *build, json_t *object, const struct member *members,
                        size_t count) {
    const char *name = NULL;
    json_t *value = NULL;

    for (size_t i = 0; i < count; i++) {
        value = json_object_get(object, members[i].name);
        if (value == NULL) {
            return build_fail(build, "has no \"%s\"", members[i].name);
        }
        if (json_typeof(value) != members[i].type) {
            return build_fail(build, "\"%s\" is not %s", members[i].name,
                              type_name(members[i].type));
        }
    }
    if (json_object_size(object) == count) {
        return true;
    }
    json_object_foreach(object, name, value) {
        size_t i = 0;

        while (i < count && strcmp(name, members[i].name) != 0) {
            i++;
        }
        if (i == count) {
            return build_fail(build, "unknown member \"%s\"", name);
        }
    }
    return true;
}

#define HAS_MEMBERS(build, object, members)                                                        \
    has_members(build, object, members, sizeof(members) / sizeof(members)[0])

static json_int_t integer_of(json_t *object, const char *name) {
    return json_integer_value(json_object_get(object, name));
}

static const char *string_of(json_t *object, const char *name) {
    return json_string_value(json_object_get(object, name));
}

static bool read_params(struct build *build, json_t *params) {
    static const struct member members[] = {{"ring_dim", JSON_INTEGER},
                                            {"q_limbs", JSON_INTEGER},
                                            {"p_limbs", JSON_INTEGER},
                                            {"digits", JSON_INTEGER},
                                            {"word_bytes", JSON_INTEGER}};
    struct workload_params *into = &build->work->params;
    uint64_t *const fields[] = {&into->ring_dim, &into->q_limbs, &into->p_limbs, &into->digits,
                                &into->word_bytes};

    if (!HAS_MEMBERS(build, params, members)) {
        return false;
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        json_int_t value = integer_of(params, members[i].name);

        if (value <= 0) {
            return build_fail(build, "params.%s is not positive", members[i].name);
        }
        *fields[i] = (uint64_t)value;
    }
    return true;
}

static bool read_header(struct build *build, json_t *line) {
    static const struct member members[] = {{"workload", JSON_INTEGER},
                                            {"name", JSON_STRING},
                                            {"origin", JSON_STRING},
                                            {"params", JSON_OBJECT}};

    if (!HAS_MEMBERS(build, line, members)) {
        return false;
    }
    if (integer_of(line, "workload") != 1) {
        return build_fail(build, "unknown version %lld", (long long)integer_of(line, "workload"));
    }
    build->work->name = text_printable(string_of(line, "name"));
    build->work->origin = text_printable(string_of(line, "origin"));
    return read_params(build, json_object_get(line, "params"));
}

static bool read_kind(struct build *build, const char *name, enum value_kind *out_kind) {
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        if (strcmp(name, workload_kind_name((enum value_kind)kind)) == 0) {
            *out_kind = (enum value_kind)kind;
            return true;
        }
    }
    return build_fail(build, "unknown kind \"%s\"", name);
}

static bool read_value(struct build *build, json_t *line) {
    static const struct member members[] = {{"value", JSON_STRING},
                                            {"kind", JSON_STRING},
                                            {"bytes", JSON_INTEGER},
                                            {"scope", JSON_STRING},
                                            {"from", JSON_STRING}};
    struct workload_value value = {.kind = KIND_KEY};
    json_t *id = NULL;
    const char *scope = NULL;
    const char *from = NULL;

    if (!HAS_MEMBERS(build, line, members)) {
        return false;
    }
    id = json_object_get(line, "value");
    scope = string_of(line, "scope");
    from = string_of(line, "from");
    if (!read_kind(build, string_of(line, "kind"), &value.kind)) {
        return false;
    }
    if (strcmp(scope, "tenant") != 0 && strcmp(scope, "shared") != 0) {
        return build_fail(build, "unknown scope \"%s\"", scope);
    }
    if (strcmp(from, "source") != 0 && strcmp(from, "input") != 0) {
        return build_fail(build, "unknown origin \"%s\"", from);
    }
    if (integer_of(line, "bytes") <= 0) {
        return build_fail(build, "%s has no bytes", json_string_value(id));
    }
    value.bytes = (uint64_t)integer_of(line, "bytes");
    value.shared = scope[0] == 's';
    value.input = from[0] == 'i';
    return build_value(build, json_string_value(id), json_string_length(id), value);
}

/* Hands each string of an array to `take`. */
static bool each_id(struct build *build, json_t *array, const char *name,
                    bool (*take)(struct build *, const char *, size_t)) {
    size_t index = 0;
    json_t *item = NULL;

    json_array_foreach(array, index, item) {
        if (!json_is_string(item)) {
            return build_fail(build, "\"%s\" holds something that is not a string", name);
        }
        if (!take(build, json_string_value(item), json_string_length(item))) {
            return false;
        }
    }
    return true;
}

static bool read_writes(struct build *build, json_t *writes) {
    const char *id = NULL;
    json_t *bytes = NULL;

    json_object_foreach(writes, id, bytes) {
        if (!json_is_integer(bytes) || json_integer_value(bytes) <= 0) {
            return build_fail(build, "writes %s without bytes", id);
        }
        if (!build_write(build, id, strlen(id), (uint64_t)json_integer_value(bytes))) {
            return false;
        }
    }
    return true;
}

static bool read_op(struct build *build, json_t *line) {
    static const struct member members[] = {{"op", JSON_STRING},     {"reads", JSON_ARRAY},
                                            {"writes", JSON_OBJECT}, {"frees", JSON_ARRAY},
                                            {"stage", JSON_STRING},  {"workspace", JSON_INTEGER}};

    if (!HAS_MEMBERS(build, line, members)) {
        return false;
    }
    if (integer_of(line, "workspace") < 0) {
        return build_fail(build, "negative workspace");
    }
    if (!build_op(build, string_of(line, "op"), string_of(line, "stage"),
                  (uint64_t)integer_of(line, "workspace")) ||
        !each_id(build, json_object_get(line, "reads"), "reads", build_read) ||
        !read_writes(build, json_object_get(line, "writes")) || !build_peak(build) ||
        !each_id(build, json_object_get(line, "frees"), "frees", build_free)) {
        return false;
    }
    build_op_end(build);
    return true;
}

static bool read_outputs(struct build *build, json_t *line) {
    static const struct member members[] = {{"outputs", JSON_ARRAY}};

    if (!HAS_MEMBERS(build, line, members)) {
        return false;
    }
    build->has_outputs = true;
    return each_id(build, json_object_get(line, "outputs"), "outputs", build_output);
}

static bool read_record(struct build *build, json_t *line) {
    if (!json_is_object(line)) {
        return build_fail(build, "not a JSON object");
    }
    if (build->has_outputs) {
        return build_fail(build, "something follows the outputs line");
    }
    if (build->line == 1) {
        return read_header(build, line);
    }
    if (json_object_get(line, "value") != NULL) {
        return read_value(build, line);
    }
    if (json_object_get(line, "op") != NULL) {
        return read_op(build, line);
    }
    if (json_object_get(line, "outputs") != NULL) {
        return read_outputs(build, line);
    }
    return build_fail(build, "neither value, op nor outputs");
}

static bool read_line(struct build *build, const char *text, size_t length) {
    json_error_t error;
    json_t *line = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    bool good = false;

    if (line == NULL) {
        if (json_error_code(&error) == json_error_numeric_overflow) {
            return build_fail(build, "a number above 64 bits: %s", error.text);
        }
        return build_fail(build, "not JSON: %s, column %d", error.text, error.column);
    }
    good = read_record(build, line);
    json_decref(line);
    return good;
}

static bool read_lines(struct build *build, FILE *file) {
    char *text = NULL;
    size_t capacity = 0;
    ssize_t length = 0;
    bool good = true;

    errno = 0;
    while (good && (length = getline(&text, &capacity, file)) >= 0) {
        build->line++;
        good = read_line(build, text, (size_t)length);
    }
    if (good && !feof(file)) {
        build->line = 0;
        good = build_fail(build, "%s", strerror(errno));
    } else if (good && build->line == 0) {
        good = build_fail(build, "is empty");
    }
    free(text);
    return good && build_end(build);
}

static void build_fini(struct build *build) {
    free(build->state);
    free(build->key_read);
    free(build->last_op);
    free(build->is_output);
}

struct workload *workload_load(const char *path, char **out_error) {
    struct build build = {.work = memory_new(1, sizeof *build.work)};
    FILE *file = fopen(path, "r");
    bool good = false;

    build.work->path = text_copy(path);
    build.work->ids = intern_create();
    build.work->names = intern_create();
    if (file == NULL) {
        build_fail(&build, "%s", strerror(errno));
    } else {
        good = read_lines(&build, file);
        fclose(file);
    }
    if (!good) {
        *out_error = build.line == 0 ? text_format("%s: %s", path, build.error)
                                     : text_format("%s:%zu: %s", path, build.line, build.error);
        workload_destroy(build.work);
        build.work = NULL;
    }
    build_fini(&build);
    return build.work;
}
