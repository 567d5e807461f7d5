#!/bin/sh
# SPDX-License-Identifier: MIT
# Mutants: each patch beside this file breaks one rule of the protocol. They are applied one at a
# time to a copy of the tree, which is built and tested; a mutant that no test notices has survived.
#
#   tests/mutants/run.sh [OPTION...] [MUTANT...]     all mutants, or the named ones
#
#   -r         the mutants of rules/list.txt instead: rules of the specification, one line each
#   -o         the drill of orderings instead: each ordered atomic operation of src/, weakened
#   -c         the drill of claims instead: each place where a claim or a charge ends, left out.
#              Both (-oc) print what caught which place, and a sum by detector (test, torture,
#              schedule, weak memory, TSan, ASan, model); see drill/drill.py, which takes -a, -d, -j and
#              globs over the names of places; -l lists them
#   -a         all tests, and the names of those that notice; default: the tests that the patch
#              names in its line `Caught-by:` (`spec.`: all of that folder), in this order, up to the
#              first one that notices; of the torture tests the functions of its line `Torture:` (a
#              glob), if it has one
#   -t REGEX   the tests that match (of CTest), with all their functions
#   -n SEEDS   run the torture tests that often, with the seeds 1, 2, ...; how many noticed
#   -s WHAT    TN_SANITIZE of the build: `thread` or `address+undefined`
#   -d FOLDER  where to build; kept afterwards (default: a temporary folder)
#   -j JOBS    compile and test jobs (default: all processors)
#
# Compiles through ccache where there is one. A program ends with its first failure, which the
# property tests do not shrink. TN_TORTURE_SECONDS (default 10, with -n 3) is the longest that a
# torture test function may look for a fault: one that notices nothing takes all of it.
# Exit status 1: a mutant survived, did not apply, or did not build.
set -eu
unset CDPATH
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
jobs=$(nproc 2>/dev/null || echo 2)
all=0
regex=
seeds=0
sanitize=
folder=
rules=0
drill=
list=
patches=$here

usage() {
    sed -n '3,27s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

while getopts rocalt:n:s:d:j: option; do
    case $option in
    r) rules=1 ;;
    o | c) drill=$drill$option ;;
    l) list=-l ;;
    a) all=1 ;;
    t) regex=$OPTARG ;;
    n) seeds=$OPTARG ;;
    s) sanitize=$OPTARG ;;
    d) folder=$OPTARG ;;
    j) jobs=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
if [ -n "$drill" ]; then
    [ $all = 0 ] || list="$list -a"
    # shellcheck disable=SC2086 # options
    exec python3 "$here/drill/drill.py" -k "$drill" -j "$jobs" ${folder:+-d "$folder"} $list "$@"
fi

if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM
fi
mkdir -p "$folder/tree" "$folder/build"
if [ $rules = 1 ]; then
    patches=$folder/patches
    rm -rf "$patches"
    mkdir "$patches"
    python3 "$here/rules/patches.py" "$patches" "$@"
fi
if [ $# -eq 0 ]; then
    for patch in "$patches"/*.patch; do
        set -- "$@" "$(basename "$patch" .patch)"
    done
fi
tree=$folder/tree
build=$folder/build
[ "$seeds" = 0 ] && seconds=10 || seconds=3
export TN_TORTURE_SECONDS="${TN_TORTURE_SECONDS:-$seconds}" TN_STOP=1 TN_PROPERTY_SHRINK=0
export TN_PROPERTY_SEQUENCES="${TN_PROPERTY_SEQUENCES:-5000}"
launcher=$(command -v ccache || true)

# With new times, so that a folder that is used again has no object of an earlier mutant.
copy_tree() {
    if git -C "$root" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        (cd "$root" && git ls-files -co --exclude-standard | while read -r file; do
            [ ! -f "$file" ] || echo "$file"
        done | tar -cf - -T -) | tar -xmf - -C "$tree"
    else
        cp -R "$root"/. "$tree"
    fi
}

configure() {
    cmake -S "$tree" -B "$build" -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        "-DCMAKE_C_COMPILER_LAUNCHER=$launcher" -DTN_CHECKS=ON -DTN_BUILD_TESTS=ON \
        -DTN_BUILD_TOOL=OFF "-DTN_SANITIZE=$sanitize" >"$folder/configure.log" 2>&1
}

# names PATCH: the tests to run, one a line, as regular expressions.
names() {
    if [ -n "$regex" ]; then
        echo "$regex"
    elif [ $all = 1 ]; then
        echo '^(unit|spec|property|fault|torture|schedule)\.'
    else
        sed -n '/^Caught-by:/{s/^Caught-by: *//;p;q;}' "$1" | tr -s ' ,' '[\n*]' |
            sed 's/\./\\./g;/\.$/!s/$/$/;s/^/^/'
    fi
}

# functions PATCH: the torture functions that notice, as TN_TEST; all with -a or -t.
functions() {
    [ $all = 1 ] || [ -n "$regex" ] || sed -n '/^Torture:/{s/^Torture: *//p;q;}' "$1"
}

# Programs of the tests that match: unit.lease is built as unit_lease.
programs() {
    ctest --test-dir "$build" -N -R "$1" |
        sed -n 's/^ *Test *#[0-9]*: \([a-z]*\)\.\([A-Za-z0-9_]*\).*/\1_\2/p' |
        sed 's/^schedule_weak_/schedule_/' | sort -u # the same program
}

# How many of the seeds 1..N make one of the torture programs fail: with_seeds TESTS PATCH.
with_seeds() {
    noticed=0
    seed=1
    only=${TN_TEST:-$(functions "$2")}
    while [ $seed -le "$seeds" ]; do
        for program in $(for test in $1; do programs "$test"; done | grep '^torture_'); do
            rc=0
            TN_SEED=$seed TN_TEST=$only timeout 300 "$build/tests/$program" >"$folder/run.log" 2>&1 ||
                rc=$?
            case $rc in
            0 | 2 | 77) ;; # passed, has no such test function, skipped
            *)
                noticed=$((noticed + 1))
                break
                ;;
            esac
        done
        seed=$((seed + 1))
    done
    echo "$noticed of $seeds seeds"
}

# build_tests TESTS
build_tests() {
    targets=$(for test in $1; do programs "$test"; done)
    if [ -z "$targets" ]; then
        echo "no test matches $1"
        return 1
    fi
    # shellcheck disable=SC2086 # a list
    if ! cmake --build "$build" --parallel "$jobs" --target $targets >"$folder/build.log" 2>&1; then
        echo "DOES NOT BUILD ($folder/build.log)"
        return 1
    fi
}

# try_tests TESTS PATCH: one after the other, up to the first that notices; with -a or -t all at
# once.
try_tests() {
    began=$(date +%s)
    [ $all = 1 ] || [ -n "$regex" ] && stop= || stop=--stop-on-failure
    for test in $1; do
        build_tests "$test" || return
        case $test in
        ^torture*) only=${TN_TEST:-$(functions "$2")} ;;
        *) only=${TN_TEST:-} ;;
        esac
        TN_TEST=$only ctest --test-dir "$build" -R "$test" -j "$jobs" --timeout 300 $stop \
            >"$folder/ctest.log" 2>&1 &&
            continue
        echo "caught by $(sed -n 's/^\t *[0-9]* - \([a-z]*\.[A-Za-z0-9_]*\) (.*/\1/p' \
            "$folder/ctest.log" | tr '\n' ' ')in $(($(date +%s) - began)) s"
        return 0
    done
    echo "SURVIVED $(for test in $1; do programs "$test"; done | tr '\n' ' ')"
    return 1
}

# try MUTANT: a line of what became of it.
try() {
    patch=$patches/$1.patch
    [ -f "$patch" ] || usage
    tests=$(names "$patch")
    if [ "$seeds" = 0 ]; then
        try_tests "$tests" "$patch"
        return
    fi
    build_tests "$tests" || return
    began=$(date +%s)
    result=$(with_seeds "$tests" "$patch")
    echo "$result, $(($(date +%s) - began)) s"
    case $result in
    0\ *) return 1 ;;
    esac
}

copy_tree
configure || {
    cat "$folder/configure.log"
    exit 1
}
bad=0
for mutant in "$@"; do
    if ! patch -d "$tree" -p1 -F3 -s <"$patches/$mutant.patch" >"$folder/patch.log" 2>&1; then
        printf '%-24s DOES NOT APPLY\n' "$mutant"
        bad=1
        copy_tree
        continue
    fi
    rc=0
    line=$(try "$mutant") || rc=$?
    printf '%-24s %s\n' "$mutant" "$line"
    [ $rc = 0 ] || bad=1
    patch -d "$tree" -p1 -F3 -s -R <"$patches/$mutant.patch"
done
exit $bad
