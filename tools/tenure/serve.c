/* SPDX-License-Identifier: MIT */
/*
 * tenure serve: the command, from the options to the exit code.
 */
#include "base.h"
#include "commands.h"
#include "figures.h"
#include "server.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ERRORS_SHOWN = 10 };

/* Written by the signal handler, read by all; relaxed: nothing else is passed along. */
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

void server_show_error(const char *format, ...) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static int shown; /* guarded by it */
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&mutex);
    if (shown < ERRORS_SHOWN) {
        complain("%s", text);
    } else if (shown == ERRORS_SHOWN) {
        complain("more errors are not shown");
    }
    shown += shown <= ERRORS_SHOWN;
    pthread_mutex_unlock(&mutex);
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
