#!/bin/sh
# SPDX-License-Identifier: MIT
# Check the models of this folder: each must hold, and each of its mutants must fail.
#
#   sh tests/model/run.sh [--deep] [MODEL[:RUN]...]   all runs, or those of a model, or one
#   sh tests/model/run.sh --trail MODEL:RUN           one run; prints its failing interleaving
#
#   --deep  also the runs marked `deep`, with larger bounds (minutes; several GiB of memory)
#
# The runs stand in the head of each model, one a line:
#   holds NAME [FLAGS]        no assertion fails, and no state but a final one is without successor
#   deep  NAME [FLAGS]        the same, only with --deep
#   live  NAME [FLAGS]        the model's `ltl` claims hold, under weak fairness
#   fails NAME KIND [FLAGS]   a mutant: must end in KIND: assertion, stuck, or cycle
# A run that is not `deep` may have STATES_MAX states at most.
#
# Exit: 0 all as it must be; 1 not; 2 usage; 77 spin is not installed.
set -u
unset CDPATH
here=$(cd "$(dirname "$0")" && pwd) || exit 1
STATES_MAX=1000000
MEMORY_MIB=2000
DEEP_MEMORY_MIB=8000

deep=no
trail=no
while [ $# -gt 0 ]; do
    case $1 in
    --deep) deep=yes ;;
    --trail) trail=yes ;;
    -h | --help)
        sed -n '3,19s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*)
        echo "run.sh: unknown option $1" >&2
        exit 2
        ;;
    *) break ;;
    esac
    shift
done
if [ $trail = yes ] && [ $# -ne 1 ]; then
    echo "run.sh: --trail takes one MODEL:RUN" >&2
    exit 2
fi
for tool in spin "${CC:-cc}"; do
    if ! command -v "$tool" >/dev/null 2>&1; then
        echo "skipped: $tool is not installed"
        exit 77
    fi
done

work=$(mktemp -d "${TMPDIR:-/tmp}/tenure-model.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1
selected="$*"
failures=0
runs=0

# wanted MODEL RUN
wanted() {
    [ -z "$selected" ] && return 0
    for one in $selected; do
        case $one in
        "$1" | "$1.pml" | "$1:$2") return 0 ;;
        esac
    done
    return 1
}

# check MODEL HOW NAME KIND FLAGS...: build the checker and run it; its text is in $work/out.
check() {
    file=$here/$1.pml
    how=$2
    kind=$4
    shift 4
    memory=$MEMORY_MIB
    [ "$how" = deep ] && memory=$DEEP_MEMORY_MIB
    build="-O0 -w -DVECTORSZ=2048 -DMEMLIM=$memory" # compiling takes longer than most searches
    search="-m20000 -w20"
    if [ "$how" = live ] || [ "$kind" = cycle ]; then
        build="$build -DNFAIR=4"
        search="$search -a -f"
    else
        build="$build -DSAFETY"
    fi
    [ "$how" = deep ] && build="$build -O2" && search="-m1000000 -w26"
    rm -f ./*.trail ./*out pan ./pan.*
    # shellcheck disable=SC2086 # lists of options
    spin "$@" -a "$file" >spin.out 2>&1 && "${CC:-cc}" $build -o pan pan.c >cc.out 2>&1 &&
        ./pan $search >out 2>&1
    [ -s out ] && return 0 # pan's exit status says little
    cat spin.out cc.out 2>/dev/null
    return 1
}

states() { sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out 2>/dev/null | head -n 1; }

# What the checker found: holds, assertion, stuck, cycle, or why there is no answer.
verdict() {
    if grep -q 'invalid array index' out; then
        echo "broken model"
    elif grep -q '^pan:[0-9]*: assertion violated' out; then
        echo assertion
    elif grep -q '^pan:[0-9]*: invalid end state' out; then
        echo stuck
    elif grep -q '^pan:[0-9]*: \(acceptance\|non-progress\) cycle' out; then
        echo cycle
    elif grep -q 'search depth too small\|MEMLIM\|out of memory\|Search not completed' out; then
        echo incomplete
    elif grep -q 'errors: 0' out; then
        echo holds
    else
        echo unknown
    fi
}

# The assertion that failed, shortened.
violated() {
    sed -n 's/^pan:[0-9]*: assertion violated *\(.*\) (at depth.*/\1/p' out |
        head -n 1 | cut -c 1-60
}

# judge HOW KIND: "ok" or why not.
judge() {
    found=$(verdict)
    must=holds
    [ "$1" = fails ] && must=$2
    if [ "$found" != "$must" ]; then
        echo "WRONG: $found, must be $must"
    elif [ "$1" != deep ] && awk "BEGIN { exit !($(states) > $STATES_MAX) }"; then
        echo "WRONG: more than $STATES_MAX states"
    elif [ "$1" = fails ]; then
        echo "mutant, fails: $found $(violated)"
    else
        echo "holds"
    fi
}

# one MODEL HOW NAME [KIND] FLAGS...
one() {
    model=$1
    how=$2
    name=$3
    shift 3
    kind=-
    if [ "$how" = fails ]; then
        kind=$1
        shift
    fi
    runs=$((runs + 1))
    if check "$model" "$how" "$name" "$kind" "$@"; then
        result=$(judge "$how" "$kind")
    else
        result="WRONG: no checker"
    fi
    printf '%-10s %-26s %9s  %s\n' "$model" "$name" "$(states)" "$result"
    case $result in
    WRONG*)
        failures=$((failures + 1))
        echo "           see: sh tests/model/run.sh --trail $model:$name"
        ;;
    esac
    if [ $trail = yes ] && [ -f "$model.pml.trail" ]; then
        cp "$here/$model.pml" . && spin "$@" -t -p -g -l "$model.pml"
    fi
}

# runs_of MODEL: the lines of its head, without the comment's decoration.
runs_of() {
    sed -n 's/^ \*   \(\(holds\|deep\|live\|fails\) .*\)/\1/p' "$here/$1.pml"
}

started=$(date +%s)
for path in "$here"/*.pml; do
    model=$(basename "$path" .pml)
    runs_of "$model" >"$work/runs.$model"
    if [ ! -s "$work/runs.$model" ]; then
        echo "$model: no runs in its head"
        failures=$((failures + 1))
    fi
    while read -r how name flags; do
        wanted "$model" "$name" || continue
        if [ "$how" = deep ] && [ $deep = no ] && [ $trail = no ]; then
            continue
        fi
        # shellcheck disable=SC2086 # a list of flags
        one "$model" "$how" "$name" $flags
    done <"$work/runs.$model"
done
if [ $runs -eq 0 ]; then
    echo "run.sh: no run matches $selected" >&2
    exit 2
fi
echo "$runs runs, $failures wrong, $(($(date +%s) - started)) s"
[ $failures -eq 0 ]
