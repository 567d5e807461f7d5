#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2317 # the rows are called by name
# All checks. Installs what is missing, builds out of tree, runs; ends with one line per row.
#
#   tools/test.sh [ROW...]     the first six rows, or the named ones, in the order given
#   tools/test.sh --long       the rest, which takes hours
#
#   plain     warnings are errors, internal checks on: all tests
#   asan      AddressSanitizer and UndefinedBehaviorSanitizer: all tests
#   tsan      ThreadSanitizer: all tests with threads
#   spec      the tables case -> rules -> test that ran, from the results of `plain`
#   coverage  branch coverage of the core's folders
#   checks    ordering comments, headers, layers, sizes
#
#   soak        everything at once for a minute, in the builds of plain, asan and tsan
#   properties  more random sequences
#   field       the larger numbers of the field cases: five to ten minutes
#   schedules   more seeds of the order among what completes at the same time, and a million
#               schedules in each program that explores them: about half an hour
#   models      the models with the larger bounds too
#   mutants     each broken step of the protocol is noticed, and each broken rule
#   drill       each weakened ordering and each claim that does not end is noticed
#
#   TN_BUILD_DIR           where to build (default: build/test)
#   TN_JOBS                compile and test jobs (default: all processors)
#   TN_PROPERTY_SEQUENCES  length of the property tests, in every row
#   TN_SOAK_SECONDS        length of the row soak, in each build (default: 60)
#   TN_SCHEDULES           how many schedules each program tries in the row schedules
#   TN_COVERAGE_MIN        per cent (default: 90)
#   TN_JEMALLOC            OFF: without jemalloc, which is not installed either
#   TN_CUDA                OFF: without the CUDA backend, also where the Toolkit is
#   TN_FAIL_ON_SKIP        1: a row that cannot run on this machine fails
set -eu
unset CDPATH
root=$(cd "$(dirname "$0")/.." && pwd)
base=${TN_BUILD_DIR:-$root/build/test}
jobs=${TN_JOBS:-$(nproc 2>/dev/null || echo 2)}
sequences=${TN_PROPERTY_SEQUENCES:-}
sequences_plain=20000
sequences_long=200000
sequences_slow=2000 # under sanitizers and without optimisation
coverage_min=${TN_COVERAGE_MIN:-90}
coverage_folders="transition placement lifetime"
coverage_labels="unit|spec|fault|property"

usage() {
    sed -n '4,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//p;}' "$0"
    exit "$1"
}

# build ROW OPTION...: configure (again only when the options changed) and build, quietly.
build() {
    dir=$base/$1
    shift
    [ "${TN_JEMALLOC:-}" != OFF ] || set -- "$@" -DTN_JEMALLOC=OFF
    [ "${TN_CUDA:-}" != OFF ] || set -- "$@" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
    mkdir -p "$dir"
    rm -f "$dir/ctest.log"
    if [ ! -f "$dir/Makefile" ] || [ "$(cat "$dir/options" 2>/dev/null)" != "$*" ]; then
        cmake -S "$root" -B "$dir" -G "Unix Makefiles" -DTN_BUILD_TESTS=ON "$@" \
            >"$dir/configure.log" 2>&1 || {
            cat "$dir/configure.log"
            return 1
        }
        echo "$*" >"$dir/options"
    fi
    cmake --build "$dir" --parallel "$jobs" >"$dir/build.log" 2>&1 || {
        grep -v '^\[ *[0-9]*%\] ' "$dir/build.log"
        return 1
    }
    grep 'warning:' "$dir/build.log" || :
}

# tests ROW SEQUENCES ARGUMENT...: run ctest there, keep its closing lines for the end.
tests() {
    dir=$base/$1
    length=$2
    seconds=${TN_TORTURE_SECONDS:-} # none: each test's own
    case $1 in
    asan | tsan) seconds=${seconds:-1} ;;
    esac
    shift 2
    rm -rf "$dir/results"
    mkdir -p "$dir/results"
    {
        TN_RESULTS_DIR=$dir/results TN_PROPERTY_SEQUENCES=$length TN_TORTURE_SECONDS=$seconds \
            ctest --test-dir "$dir" --output-on-failure --no-tests=error -j "$jobs" "$@" 2>&1 ||
            echo $? >"$dir/ctest.rc"
    } | tee "$dir/ctest.log"
    if [ -f "$dir/ctest.rc" ]; then
        rm -f "$dir/ctest.rc"
        return 1
    fi
}

build_plain() {
    build plain -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTN_WERROR=ON -DTN_CHECKS=ON
}

build_asan() {
    if [ ! -r /proc/self/task ]; then
        echo "asan: AddressSanitizer needs /proc, which is not mounted here: mount -t proc proc /proc"
        return 77
    fi
    build asan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTN_CHECKS=ON -DTN_SANITIZE=address+undefined
}

build_tsan() {
    build tsan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTN_CHECKS=ON -DTN_SANITIZE=thread
}

row_plain() {
    build_plain && tests plain "${sequences:-$sequences_plain}"
}

row_asan() {
    build_asan && tests asan "${sequences:-$sequences_slow}"
}

# Not the programs of one thread: AddressSanitizer's row has them.
row_tsan() {
    build_tsan && tests tsan "${sequences:-$sequences_slow}" \
        -LE '^(property|fault|package|abi|tool|readme|fuzz)$'
}

row_spec() {
    if [ ! -f "$base/plain/ctest.log" ]; then
        case " $rows " in
        *" plain "*) # and it did not get as far as running
            echo "spec: there are no results of the row plain"
            return 1
            ;;
        esac
        row_plain || return 1
    fi
    python3 "$root/tools/spec_table.py" "$base/plain/results" &&
        python3 "$root/tools/field_table.py" "$base/plain/results"
}

# Checks off: an internal check has a branch that no test can take.
row_coverage() {
    build coverage -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O0 -g" -DTN_CHECKS=OFF \
        -DTN_COVERAGE=ON -DTN_BUILD_TOOL=OFF || return 1
    find "$base/coverage" -name '*.gcda' -exec rm -f {} +
    tests coverage "${sequences:-$sequences_slow}" -L "^($coverage_labels)\$" || return 1
    # shellcheck disable=SC2086 # a list
    python3 "$root/tools/coverage" "$base/coverage" --min "$coverage_min" $coverage_folders
}

row_checks() {
    good=0
    python3 "$root/tools/check_ordering.py" || good=1
    python3 "$root/tools/check_headers.py" || good=1
    return "$good"
}

# program KIND NAME: run one test program of a build, without CTest and its time limits.
program() {
    set -- "$base/$1/tests/$2" "$1"
    if [ "$2" = tsan ] && setarch -R true 2>/dev/null; then
        setarch -R "$1"
    else
        UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 "$1"
    fi
}

row_soak() {
    good=0
    for kind in plain asan tsan; do
        echo "soak, $kind:"
        { "build_$kind" && TN_SOAK_SECONDS=${TN_SOAK_SECONDS:-60} program "$kind" torture_soak; } ||
            good=1
    done
    return "$good"
}

row_properties() {
    build_plain || return 1
    good=0
    for name in "$root"/tests/property/prop_*.c; do
        name=$(basename "$name" .c)
        TN_PROPERTY_SEQUENCES=${sequences:-$sequences_long} program plain \
            "property_${name#prop_}" || good=1
    done
    return "$good"
}

# All programs with a case that has a soak.
row_field() {
    build_plain || return 1
    good=0
    for name in "$root"/tests/field/field_*.c; do
        case $name in *_common.c) continue ;; esac
        grep -qE 'field_(soak|number)\(' "$name" || continue
        TN_FIELD_SOAK=1 program plain "$(basename "$name" .c)" || good=1
    done
    return "$good"
}

row_schedules() {
    build_plain || return 1
    good=0
    TN_TEST='f_g10*' TN_FIELD_SOAK=1 program plain field_races || good=1
    for name in "$root"/tests/schedule/test_*.c; do
        name=$(basename "$name" .c)
        TN_SCHEDULES=${TN_SCHEDULES:-1000000} program plain "schedule_${name#test_}" || good=1
    done
    return "$good"
}

row_models() {
    sh "$root/tests/model/run.sh" --deep
}

row_mutants() {
    good=0
    sh "$root/tests/mutants/run.sh" -j "$jobs" || good=1
    sh "$root/tests/mutants/run.sh" -r -j "$jobs" || good=1
    return "$good"
}

row_drill() {
    sh "$root/tests/mutants/run.sh" -oc -j "$jobs"
}

case ${1:-} in
-h | --help) usage 0 ;;
--long)
    shift
    [ $# -gt 0 ] || set -- soak properties field schedules models mutants drill
    ;;
esac
[ $# -gt 0 ] || set -- plain asan tsan spec coverage checks
for row in "$@"; do
    case $row in
    plain | asan | tsan | spec | coverage | checks) ;;
    soak | properties | field | schedules | models | mutants | drill) ;;
    *)
        echo "test: no such row: $row" >&2
        usage 2 >&2
        ;;
    esac
done

rows=$*

sh "$root/tools/setup.sh" test
mkdir -p "$base"
export PYTHONDONTWRITEBYTECODE=1
summary=
failed=0
start=$(date +%s)
for row in "$@"; do
    echo
    echo "== $row"
    began=$(date +%s)
    rc=0
    "row_$row" || rc=$?
    if [ $rc = 0 ]; then
        result=ok
    elif [ $rc = 77 ] && [ "${TN_FAIL_ON_SKIP:-0}" != 1 ]; then
        result=SKIPPED
    else
        result=FAILED
        failed=1
    fi
    summary="$summary
$(printf '%-10s %-7s %4d s' "$row" $result $(($(date +%s) - began)))"
done

# CTest's own closing lines once more, so that the end of a long log says it all.
for row in "$@"; do
    case $row in
    plain | asan | tsan | coverage)
        echo
        echo "== $row, CTest's result:"
        sed -n '/tests passed/p; /^The following tests/,/^$/p; /^Total Test time/p' \
            "$base/$row/ctest.log" 2>/dev/null || echo "did not run"
        ;;
    esac
done
echo
echo "== summary ($(($(date +%s) - start)) s in all)$summary"
exit $failed
