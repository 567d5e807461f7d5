/* SPDX-License-Identifier: MIT */
/*
 * Sequences of calls against the reference model: the bytes are the numbers that the property test
 * draws (tests/property/manager_property.h). A failure prints the sequence as TN_PROPERTY_CALLS has it.
 */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "manager_property.h"

static uint16_t two(const uint8_t *data) { return (uint16_t)(data[0] | data[1] << 8); }

enum { SETUP_BYTES = 2 * PROGRAM_SETUP, CALL_BYTES = 6 + 2 * CALL_ARGS };

static void decode(program *p, const uint8_t *data, size_t size) {
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < PROGRAM_SETUP && 2 * i + 1 < size; i++)
        p->setup[i] = two(data + 2 * i);
    for (size_t at = SETUP_BYTES; at + CALL_BYTES <= size && p->count < PROGRAM_CALLS;
         at += CALL_BYTES) {
        const uint8_t *from = data + at;
        call *c = &p->calls[p->count++];
        *c = (call){.op = from[0] % OP_COUNT,
                    .which = from[1],
                    .wrong = {from[2], from[3]},
                    .fault = from[4],
                    .quiet = from[5] % 2};
        for (size_t k = 0; k < CALL_ARGS; k++)
            c->arg[k] = two(from + 6 + 2 * k);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static program p;
    static tally t;
    static char failure[FAILURE_TEXT], calls[8192], text[FAILURE_TEXT + sizeof calls + 64];
    static bool warm;
    if (!warm) { /* the first run makes records that are kept */
        memset(&p, 0, sizeof p);
        warm = program_run(&p, &t, false, failure);
    }
    decode(&p, data, size);
    if (program_run(&p, &t, false, failure))
        return 0;
    program_write(&p, calls, sizeof calls);
    snprintf(text, sizeof text, "%s\nTN_PROPERTY_CALLS='%s' build/tests/property_manager", failure,
             calls);
    fuzz_found(text);
}
