/* SPDX-License-Identifier: MIT */
/*
 * tenure serve: the run itself.
 */
#include "base.h"
#include "commands.h"
#include "figures.h"
#include "request.h"
#include "server.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ERRORS_SHOWN = 10 };

/* Written by the signal handler, read by the worker; relaxed: nothing else is passed along. */
static atomic_bool stopped;

static void on_interrupt(int number) {
    (void)number;
    atomic_store_explicit(&stopped, true, memory_order_relaxed);
}

void server_catch_interrupt(void) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

bool server_is_stopped(void) { return atomic_load_explicit(&stopped, memory_order_relaxed); }

void server_show_error(struct server *server, const char *format, ...) {
    char text[512];
    va_list arguments;

    if (server->tally.errors_shown++ >= ERRORS_SHOWN) {
        if (server->tally.errors_shown == ERRORS_SHOWN + 1) {
            complain("more errors are not shown");
        }
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    complain("%s", text);
}

static uint64_t wall_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void show_tier(const tn_location_info *info) {
    double filled = (double)(info->used_bytes + info->reserved_bytes) / MIB;
    char name[TN_LOCATION_NAME_MAX] = "";

    if (info->at.kind == TN_LOCATION_PAGEABLE ||
        tn_location_name(info->at, name, sizeof name) != TN_OK) {
        return; /* values only pass through pageable memory */
    }
    if (info->has_budget) {
        fprintf(stderr, "  %s %.0f of %.0f MiB", name, filled, (double)info->budget_bytes / MIB);
    } else {
        fprintf(stderr, "  %s %.0f MiB", name, filled);
    }
}

static void show_occupancy(struct server *server) {
    tn_location_info info[8] = {{.size = sizeof info[0]}};
    size_t count = sizeof info / sizeof info[0];
    tn_snapshot *snapshot = NULL;

    if (tn_snapshot_take(server->manager, &snapshot) != TN_OK) {
        return;
    }
    if (tn_snapshot_locations(snapshot, info, &count) == TN_OK) {
        for (size_t i = 0; i < count && i < sizeof info / sizeof info[0]; i++) {
            show_tier(&info[i]);
        }
    }
    tn_snapshot_drop(snapshot);
}

void server_show_progress(struct server *server) {
    uint64_t now_ms = 0;

    if (server->options.json || !isatty(STDERR_FILENO)) {
        return;
    }
    now_ms = wall_ms();
    if (now_ms - server->shown_at_ms < 200) {
        return;
    }
    server->shown_at_ms = now_ms;
    fprintf(stderr, "\r\033[K%" PRIu64 " of %" PRIu64 " requests", server->tally.done,
            server->options.requests);
    show_occupancy(server);
}

static void end_progress(struct server *server) {
    if (server->shown_at_ms != 0) {
        fprintf(stderr, "\r\033[K");
    }
}

/* Requests go round the tenants, then round the programs. */
static bool serve_one(struct server *server, uint64_t number, tn_stream stream) {
    uint64_t tenant = 1 + number % server->options.tenants;
    size_t program = (size_t)(number / server->options.tenants % server->program_count);
    uint64_t began_ns = machine_now_ns(&server->machine);
    uint64_t digest = 0;

    switch (request_serve(server, program, tenant, number, stream, &digest)) {
    case REQUEST_DONE:
        tally_add_latency(&server->tally, machine_now_ns(&server->machine) - began_ns);
        verifier_submit(server->verifier, program, tenant, number, digest);
        return true;
    case REQUEST_FAILED:
        server->tally.failed++;
        return true;
    default:
        return false;
    }
}

bool server_run(struct server *server) {
    const struct machine *machine = &server->machine;
    uint64_t began_ns = machine_now_ns(machine);
    tn_stream stream = NULL;
    tn_status status = machine->ops->stream_create(machine->self, machine->at.index, &stream);

    if (status != TN_OK) {
        complain("serve: no stream: %s", tn_status_text(status));
        return false;
    }
    for (uint64_t i = 0; i < server->options.requests && !server_is_stopped(); i++) {
        if (!serve_one(server, i, stream)) {
            break;
        }
        server_show_progress(server);
    }
    server->tally.elapsed_ns = machine_now_ns(machine) - began_ns;
    end_progress(server);
    status = machine->ops->stream_destroy(machine->self, stream);
    if (status != TN_OK) {
        complain("serve: the stream cannot be destroyed: %s", tn_status_text(status));
    }
    return status == TN_OK;
}

static int report(struct server *server, struct verdict verdict) {
    struct figures figures;
    int code = EXIT_FAILED;

    if (!figures_collect(&figures, server)) {
        return EXIT_FAILED;
    }
    figures.verdict = verdict;
    figures.interrupted = server_is_stopped();
    if (server->options.json) {
        figures_print_json(&figures);
    } else {
        figures_print(&figures);
    }
    code = figures_verdict(&figures);
    if (inject_has_failed(&server->inject) && !figures.interrupted) {
        complain("serve: --inject: the defect found no occasion");
        code = EXIT_FAILED;
    }
    figures_fini(&figures);
    return code;
}

static int run(struct server *server) {
    struct verdict verdict;
    bool good = false;
    int code = EXIT_GOOD;

    server->verifier = verifier_create(server->programs, server->program_count,
                                       server->options.seed, server->options.tenants);
    if (server->verifier == NULL) {
        return EXIT_FAILED;
    }
    good = server_run(server);
    verdict = verifier_finish(server->verifier, server_is_stopped());
    code = report(server, verdict);
    return good || code != EXIT_GOOD ? code : EXIT_FAILED;
}

int command_serve(int argc, char **argv) {
    static char name[] = "tenure serve"; /* what getopt's messages begin with */
    struct server server = {0};
    int code = EXIT_GOOD;
    int output = EXIT_GOOD;

    argv[0] = name;
    code = serve_options_read(&server.options, argc, argv);
    if (code != EXIT_GOOD) {
        return code == -1 ? output_finish() : code;
    }
    server_catch_interrupt();
    code = server_open(&server);
    if (code == EXIT_GOOD) {
        code = run(&server);
    }
    if (!server_close(&server) && code == EXIT_GOOD) {
        code = EXIT_FAILED;
    }
    output = output_finish();
    return code == EXIT_GOOD ? output : code;
}
