/* SPDX-License-Identifier: MIT */
/*
 * tenure workload check FILE...
 */
#include "base.h"
#include "commands.h"
#include "reuse.h"
#include "workload.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: tenure workload check [--json | --runs] FILE...\n"
    "\n"
    "Validates workload files and prints for each its sizes, the reuse distance of its keys and\n"
    "the key bytes loaded per run when the program is repeated with a cache that holds 50, 75 and\n"
    "90 % of the key bytes, under LRU and under the offline optimum.\n"
    "\n"
    "  --json   one JSON object for all files\n"
    "  --runs   keys loaded in each run, exact\n"
    "  --help   this text\n"
    "\n"
    "Exit status: 0 all files valid, 2 some file invalid or wrong usage.\n";

/* Everything that is printed about one file. */
struct checked {
    struct workload *work;
    struct key_uses uses;
    struct reuse reuse;
    struct cache_row rows[CACHE_ROWS];
    uint64_t *sizes; /* distinct key sizes, ascending */
    size_t size_count;
};

static int compare_sizes(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static void find_sizes(struct checked *checked) {
    const struct key_uses *uses = &checked->uses;

    checked->sizes = memory_new(uses->key_count, sizeof *checked->sizes);
    memcpy(checked->sizes, uses->key_bytes, uses->key_count * sizeof *checked->sizes);
    qsort(checked->sizes, uses->key_count, sizeof *checked->sizes, compare_sizes);
    for (size_t i = 0; i < uses->key_count; i++) {
        if (checked->size_count == 0 ||
            checked->sizes[i] != checked->sizes[checked->size_count - 1]) {
            checked->sizes[checked->size_count++] = checked->sizes[i];
        }
    }
}

static void checked_init(struct checked *checked, struct workload *work) {
    *checked = (struct checked){.work = work};
    key_uses_init(&checked->uses, work);
    checked->reuse = reuse_distances(&checked->uses);
    cache_table(&checked->uses, checked->rows);
    find_sizes(checked);
}

static void checked_fini(struct checked *checked) {
    free(checked->sizes);
    key_uses_fini(&checked->uses);
    workload_destroy(checked->work);
}

/* 2*digits*(q+p)*N*w; false if it is above 64 bits. */
static bool formula_bytes(const struct workload_params *params, uint64_t *out_bytes) {
    uint64_t bytes = 0;
    bool over = __builtin_add_overflow(params->q_limbs, params->p_limbs, &bytes);

    over |= __builtin_mul_overflow(bytes, 2, &bytes);
    over |= __builtin_mul_overflow(bytes, params->digits, &bytes);
    over |= __builtin_mul_overflow(bytes, params->ring_dim, &bytes);
    over |= __builtin_mul_overflow(bytes, params->word_bytes, &bytes);
    *out_bytes = bytes;
    return !over;
}

static void print_key_sizes(const struct checked *checked) {
    uint64_t formula = 0;

    if (checked->size_count == 0) {
        return;
    }
    printf("  one key                ");
    for (size_t i = 0; i < checked->size_count && i < 16; i++) {
        printf("%s%" PRIu64, i == 0 ? "" : "/", checked->sizes[i]);
    }
    printf("%s bytes; 2*digits*(q+p)*N*w = ", checked->size_count > 16 ? "/..." : "");
    if (formula_bytes(&checked->work->params, &formula)) {
        printf("%" PRIu64 "\n", formula);
    } else {
        printf("above 64 bits\n");
    }
}

/* GiB, or a dash where the keys of one operation do not fit. */
static const char *gib_text(char *into, size_t size, const struct cache_result *result, bool all) {
    double bytes = all ? (double)cache_all_bytes(result) / CACHE_RUNS
                       : (double)cache_steady_bytes(result) / (CACHE_RUNS - 1);

    snprintf(into, size, result->fits ? "%.3f" : "-", bytes / GIB);
    return into;
}

static void print_cache(const struct checked *checked) {
    printf("  reuse distance         median %g, max %" PRIu64
           " other keys between two uses of a key\n",
           checked->reuse.median, checked->reuse.most);
    printf("  GiB of keys loaded per run; mean of runs 2 to %d, in brackets of runs 1 to %d:\n",
           CACHE_RUNS, CACHE_RUNS);
    for (size_t i = 0; i < CACHE_ROWS; i++) {
        const struct cache_row *row = &checked->rows[i];
        char cell[4][32];

        printf("    cache %2.0f %% (%.3f GiB)  LRU %s (%s)  optimum %s (%s)\n", 100 * row->fraction,
               (double)row->capacity_bytes / GIB, gib_text(cell[0], 32, &row->lru, false),
               gib_text(cell[1], 32, &row->lru, true), gib_text(cell[2], 32, &row->best, false),
               gib_text(cell[3], 32, &row->best, true));
    }
}

static void print_report(const struct checked *checked) {
    const struct workload *work = checked->work;
    const struct workload_figures *figures = &work->figures;

    printf("%s: valid\n  %s\n", work->path, work->name);
    printf("  values declared        %" PRIu64 "\n", figures->declared_count);
    printf("  values written         %" PRIu64 ", %.3f GiB in all\n",
           work->value_count - figures->declared_count, (double)figures->written_bytes / GIB);
    printf("  operations             %zu\n", work->op_count);
    printf("  distinct keys          %" PRIu64 ", %" PRIu64 " bytes in all (%.3f GiB)\n",
           figures->count[KIND_KEY], figures->bytes[KIND_KEY],
           (double)figures->bytes[KIND_KEY] / GIB);
    print_key_sizes(checked);
    printf("  key uses               %zu\n", checked->uses.use_count);
    printf("  plaintexts             %" PRIu64 ", %.3f GiB; read %" PRIu64 " times, %.3f GiB\n",
           figures->count[KIND_PLAINTEXT], (double)figures->bytes[KIND_PLAINTEXT] / GIB,
           figures->plaintext_reads, (double)figures->plaintext_read_bytes / GIB);
    printf("  peak live ciphertexts  %" PRIu64 " bytes\n", figures->peak_ciphertext_bytes);
    printf("  peak workspace         %" PRIu64 " bytes\n", figures->peak_workspace_bytes);
    printf("  peak of both together  %" PRIu64 " bytes\n", figures->peak_both_bytes);
    if (checked->uses.use_count > 0) {
        print_cache(checked);
    }
}

static void print_runs_of(const struct checked *checked, const struct cache_row *row,
                          const char *policy, const struct cache_result *result) {
    const char *slash = strrchr(checked->work->path, '/');

    printf("%s %2.0f %% capacity %" PRIu64 " %s keys per run:",
           slash == NULL ? checked->work->path : slash + 1, 100 * row->fraction,
           row->capacity_bytes, policy);
    for (size_t run = 0; result->fits && run < CACHE_RUNS; run++) {
        printf(" %" PRIu64, result->run_keys[run]);
    }
    if (result->fits) {
        printf("; bytes in runs 2 to %d: %" PRIu64 "\n", CACHE_RUNS, cache_steady_bytes(result));
    } else {
        printf(" does not fit; bytes in runs 2 to %d: -\n", CACHE_RUNS);
    }
}

static void print_runs(const struct checked *checked) {
    for (size_t i = 0; i < CACHE_ROWS; i++) {
        print_runs_of(checked, &checked->rows[i], "LRU", &checked->rows[i].lru);
        print_runs_of(checked, &checked->rows[i], "optimum", &checked->rows[i].best);
    }
}

static json_t *json_result(const struct cache_result *result) {
    if (!result->fits) {
        return json_null();
    }
    return json_pack("{s:f, s:f}", "steady_bytes_per_run",
                     (double)cache_steady_bytes(result) / (CACHE_RUNS - 1), "bytes_per_run",
                     (double)cache_all_bytes(result) / CACHE_RUNS);
}

static json_t *json_cache(const struct checked *checked) {
    json_t *rows = json_array();

    for (size_t i = 0; i < CACHE_ROWS; i++) {
        const struct cache_row *row = &checked->rows[i];

        json_array_append_new(rows, json_pack("{s:f, s:I, s:o, s:o}", "fraction", row->fraction,
                                              "capacity_bytes", (json_int_t)row->capacity_bytes,
                                              "lru", json_result(&row->lru), "optimum",
                                              json_result(&row->best)));
    }
    return rows;
}

static json_t *json_file(const struct checked *checked) {
    const struct workload *work = checked->work;
    const struct workload_figures *figures = &work->figures;
    json_t *file = json_pack(
        "{s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "file", work->path, "valid", 1,
        "name", work->name, "values_declared", (json_int_t)figures->declared_count,
        "values_written", (json_int_t)(work->value_count - figures->declared_count),
        "written_bytes", (json_int_t)figures->written_bytes, "operations",
        (json_int_t)work->op_count, "keys", (json_int_t)figures->count[KIND_KEY], "key_bytes",
        (json_int_t)figures->bytes[KIND_KEY], "key_uses", (json_int_t)checked->uses.use_count);
    json_t *more = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "plaintexts",
                             (json_int_t)figures->count[KIND_PLAINTEXT], "plaintext_bytes",
                             (json_int_t)figures->bytes[KIND_PLAINTEXT], "plaintext_reads",
                             (json_int_t)figures->plaintext_reads, "plaintext_read_bytes",
                             (json_int_t)figures->plaintext_read_bytes, "peak_ciphertext_bytes",
                             (json_int_t)figures->peak_ciphertext_bytes, "peak_workspace_bytes",
                             (json_int_t)figures->peak_workspace_bytes, "peak_both_bytes",
                             (json_int_t)figures->peak_both_bytes);

    json_object_update(file, more);
    json_decref(more);
    if (checked->uses.use_count > 0) {
        more = json_pack("{s:f, s:I, s:o}", "reuse_median", checked->reuse.median, "reuse_max",
                         (json_int_t)checked->reuse.most, "cache", json_cache(checked));
        json_object_update(file, more);
        json_decref(more);
    }
    return file;
}

struct form {
    bool json, runs;
    json_t *files;
};

static int check_file(const char *path, struct form *form) {
    struct checked checked = {0};
    char *error = NULL;
    struct workload *work = workload_load(path, &error);

    if (work == NULL) {
        complain("%s", error);
        if (form->json) {
            json_array_append_new(form->files, json_pack("{s:s+, s:b, s:s+}", "file", path, "",
                                                         "valid", 0, "error", error, ""));
        }
        free(error);
        return EXIT_USAGE;
    }
    checked_init(&checked, work);
    if (form->json) {
        json_array_append_new(form->files, json_file(&checked));
    } else if (form->runs) {
        print_runs(&checked);
    } else {
        print_report(&checked);
    }
    checked_fini(&checked);
    return EXIT_GOOD;
}

static int check_files(char **paths, struct form *form) {
    int code = EXIT_GOOD;

    form->files = json_array();
    for (size_t i = 0; paths[i] != NULL; i++) {
        if (check_file(paths[i], form) != EXIT_GOOD) {
            code = EXIT_USAGE;
        }
    }
    if (form->json) {
        json_t *all = json_pack("{s:O}", "files", form->files);

        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(all);
    }
    json_decref(form->files);
    return code != EXIT_GOOD ? code : output_finish();
}

static int command_check(int argc, char **argv) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"runs", no_argument, NULL, 'r'},
                                            {NULL, 0, NULL, 0}};
    struct form form = {0};
    int option = 0;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'h':
            fputs(usage, stdout);
            return output_finish();
        case 'j':
            form.json = true;
            break;
        case 'r':
            form.runs = true;
            break;
        default:
            return EXIT_USAGE; /* getopt has said why */
        }
    }
    if (optind == argc || (form.json && form.runs)) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    return check_files(argv + optind, &form);
}

int command_workload(int argc, char **argv) {
    static char name[] = "tenure workload check"; /* what getopt's messages begin with */

    if (argc > 1 && strcmp(argv[1], "check") == 0) {
        argv[1] = name;
        return command_check(argc - 1, argv + 1);
    }
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return output_finish();
    }
    fputs(usage, stderr);
    return EXIT_USAGE;
}
