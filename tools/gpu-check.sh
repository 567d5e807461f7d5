#!/bin/sh
# SPDX-License-Identifier: MIT
# All that needs a GPU, on one: builds, then runs the conformance suite on the real driver, measures
# copies, serves requests whose arithmetic runs on the device. Ends with a table. At most 8 minutes:
# every step has a limit of its own, and one that exceeds it fails.
#
#   tools/gpu-check.sh [OPTION...]
#
#   --dry-run      build, and check that what the steps run is there; needs no GPU
#   --build DIR    where to build (default: build/gpu)
#   --no-build     what DIR has is what is run, built elsewhere
#   --cache DIR    where files of values go (default: a new folder in $TMPDIR, removed in the end);
#                  13.7 GiB at full scale
#   --scale A/B    of the large step (default: 1)
#   --help         this text
#
# Exit status: 0 all steps ran and passed, 1 one failed, 2 usage, 3 there is no GPU.
#
# With TN_SHIM_MACHINE set it rehearses over the test driver (tests/cuda/shim_machine), which says
# nothing about a device.
set -u
unset CDPATH
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/gpu
workloads=$root/tools/workloads
scale=1 cache='' dry='' builds=1

usage() {
    sed -n '3,21s/^# \{0,1\}//p' "$0"
    exit "$1"
}

while [ $# -gt 0 ]; do
    case $1 in
    --dry-run) dry=1 ;;
    --no-build) builds='' ;;
    --build | --cache | --scale)
        [ $# -ge 2 ] || usage 2 >&2
        case $1 in
        --build) build=$2 ;;
        --cache) cache=$2 ;;
        --scale) scale=$2 ;;
        esac
        shift
        ;;
    --help) usage 0 ;;
    *) usage 2 >&2 ;;
    esac
    shift
done

there_is_a_device() {
    for node in /dev/nvidia[0-9]* /dev/dxg; do
        [ -e "$node" ] && return 0
    done
    return 1
}

rehearsal=${TN_SHIM_MACHINE:+1}
if [ -z "$dry$rehearsal" ] && ! there_is_a_device; then
    echo "gpu-check: there is no GPU here: no /dev/nvidia[0-9]*" >&2
    exit 3
fi

tmp=$(mktemp -d "${TMPDIR:-/tmp}/tenure-gpu-check-XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
cache=${cache:-$tmp/cache}
failed=0
: >"$tmp/table"

# step NAME SECONDS COMMAND...: its last lines when it fails; a line of the table either way. What the
# command writes to $note is told there.
note=$tmp/note
step() {
    name=$1 limit=$2
    shift 2
    : >"$note"
    began=$(date +%s)
    echo "gpu-check: $name (at most $limit s)" >&2
    code=0
    timeout -k 5 "$limit" "$@" >"$tmp/log" 2>&1 || code=$?
    spent=$(($(date +%s) - began))
    case $code in
    0) result=passed ;;
    124 | 137) result="TOO LONG" ;;
    *) result="FAILED ($code)" ;;
    esac
    if [ "$code" -ne 0 ]; then
        failed=1
        tail -n 40 "$tmp/log" >&2
    fi
    printf '  %-22s %-12s %4d s  %s\n' "$name" "$result" "$spent" "$(head -n 1 "$note")" >>"$tmp/table"
    return "$code"
}

# The steps run in a shell of their own, for timeout.
run_step() { # run_step NAME SECONDS FUNCTION ARGUMENT...
    step_name=$1 seconds=$2
    shift 2
    step "$step_name" "$seconds" env note="$note" build="$build" workloads="$workloads" \
        cache="$cache" root="$root" rehearsal="$rehearsal" \
        sh -c '. "$root/tools/gpu_steps.sh"; "$@"' sh "$@"
}

finish() {
    [ -z "$rehearsal" ] || echo "a rehearsal over the test driver: no figure is a device's"
    cat "$tmp/table"
    exit "$1"
}

if [ -n "$builds" ]; then
    seconds_to_build=150
    [ -z "$dry" ] || seconds_to_build=1800 # nobody waits for a GPU
    run_step build $seconds_to_build gpu_build || finish 1
fi
run_step programs 10 gpu_programs || finish 1
[ -z "$dry" ] || finish 0

run_step device 10 gpu_device || finish 3 # the system has one, its driver does not
run_step conformance 60 gpu_conformance
run_step "copies" 40 gpu_copies
run_step "serve, evicting" 30 gpu_serve_small
run_step "serve, scale $scale" 180 gpu_serve_large "$scale"
finish "$failed"
