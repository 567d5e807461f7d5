#!/bin/sh
# SPDX-License-Identifier: MIT
# The main job: 4 workers serve 40 requests of a recorded OpenFHE bootstrap to 2 tenants, with a
# device budget smaller than one tenant's keys, so that keys are evicted all the time.
# Installs what is missing, builds the program once, runs it. Arguments go to `tenure serve`.
#   TN_BUILD_DIR   where to build (default: build/run)
#   TN_JOBS        compile jobs (default: all processors)
set -eu
unset CDPATH
root=$(cd "$(dirname "$0")/.." && pwd)
build=${TN_BUILD_DIR:-$root/build/run}
jobs=${TN_JOBS:-$(nproc 2>/dev/null || echo 2)}

sh "$root/tools/setup.sh" run

log=$build/build.log
mkdir -p "$build"
quietly() { # the output matters only when it fails
    if ! "$@" >>"$log" 2>&1; then
        cat "$log" >&2
        echo "run: failed: $*" >&2
        exit 1
    fi
}
: >"$log"
if [ ! -f "$build/Makefile" ]; then
    echo "run: building tenure in $build (only this first time)" >&2
    quietly cmake -S "$root" -B "$build" -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Release \
        -DTN_BUILD_TESTS=OFF
fi
quietly cmake --build "$build" --target tenure_tool --parallel "$jobs"

# The device holds 75 % of one tenant's keys and, for each worker, the ciphertexts and workspace of
# a request and two keys: 200.8 MiB. Pinned memory holds 75 % of both tenants' keys.
exec "$build/bin/tenure" serve "$root/tools/workloads/openfhe-boot-n65536-44.jsonl" \
    --scale 1/64 --tenants 2 --workers 4 --stagger 700ms --requests 40 \
    --device-budget 75% --pinned-budget 75% --link 25GBps --latency 10us "$@"
