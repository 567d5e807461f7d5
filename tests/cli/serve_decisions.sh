# SPDX-License-Identifier: MIT
# The library's controller serves: its decisions are the same each time with one worker, down to the
# byte, and the figures add up to them; with several workers the guarantees stay.
. "$(dirname "$0")/shell_common.sh"

serve() { run 0 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --json "$@"; }

# count PATTERN: how often it occurs in the log
count() { grep -o "$1" "$dir/log" | wc -l; }

# adds_up: the figures and the log are about the same decisions
adds_up() {
    [ "$(wc -l <"$dir/log")" = "$(number decisions)" ] || fail "decisions and lines"
    [ $(($(number use_hits) + $(number use_misses))) = "$(number uses)" ] || fail "hits and misses"
    [ "$(count '"reason":"replica remains"')" = "$(number replica_remains)" ] || fail "replicas"
    [ "$(count '"reason":"source rebuilds"')" = "$(number source_rebuilds)" ] || fail "sources"
    [ "$(number moved_to_required)" = 0 ] || fail "moved"
    [ "$(number moved_to_tier)" = 0 ] || fail "moved"
    [ "$(number good)" = true ] || fail "not good"
    [ "$(number corruptions)" = 0 ] || fail "corruptions"
}

for clock in virtual real; do
    for workload in "$matvec" "$boot"; do
        serve --clock $clock --requests 3 --tenants 2 --log-decisions "$dir/log" "$workload"
        says "$dir/out" '"kind": "lru"' '"policy": "deterministic-tiered-lru"'
        adds_up
        [ "$(number redecisions)" = 0 ] || fail "one worker decided again"
        [ "$(number source_rebuilds)" -gt 0 ] || fail "nothing was evicted"
        cp "$dir/log" "$dir/first-$clock"
        serve --clock $clock --requests 3 --tenants 2 --log-decisions "$dir/log" "$workload"
        [ -s "$dir/log" ] || fail "the log is empty"
        cmp -s "$dir/log" "$dir/first-$clock" || fail "another run, other decisions"
    done
done
# Time plays no part either.
cmp -s "$dir/first-virtual" "$dir/first-real" || fail "other decisions in real time"

# Every line says what was asked for, for which state, and what was decided.
for member in decision request tenant operation name required version explored redecisions \
    evictions plan peaks; do
    [ "$(grep -c "\"$member\":" "$dir/log")" = "$(wc -l <"$dir/log")" ] || fail "no $member"
done

# Several workers: decisions go stale and are made again, and nothing else changes. Different
# controls load the same in virtual time.
serve --workers 5 --stagger 5ms --requests 20 --log-decisions "$dir/log" "$matvec"
adds_up
[ "$(number digests_equal)" = 20 ] || fail "digests"
! grep -q '"within": false' "$dir/out" || fail "a peak exceeds its budget"
for control in explicit lru; do
    serve --control $control --clock virtual --requests 6 "$boot"
    sed -n '/"moved"/,/^  }/p' "$dir/out" >"$dir/moved-$control"
done
[ "$(number uses)" -gt 0 ] || fail "no uses"
cmp -s "$dir/moved-explicit" "$dir/moved-lru" ||
    fail "the controls moved different values: $(diff "$dir/moved-explicit" "$dir/moved-lru")"

# A machine with less memory than the budget, or with no budget at all: more goes until it fits, and
# what a plan did before it failed is counted.
for budget in 75% unlimited; do
    serve --machine "dev:1 mem=400KiB" --device-budget $budget --requests 4 "$matvec"
    [ "$(number digests_equal)" = 4 ] || fail "digests"
    [ "$(number corruptions)" = 0 ] || fail "corruptions"
    [ $(($(number hits) + $(number misses))) = 600 ] || fail "reads"
    short=$(number machine_short)
    case $budget in
    unlimited) [ "$short" = 0 ] || fail "the controller does not know the machine's size" ;;
    *) [ "$short" -gt 0 ] || fail "the machine was never short" ;;
    esac
    moved=$(sed -n '/"pinned_device"/,/}/s/.*"bytes": \([0-9]*\).*/\1/p;
        /"file_device"/,/}/s/.*"bytes": \([0-9]*\).*/\1/p;
        /"host_device"/,/}/s/.*"bytes": \([0-9]*\).*/\1/p' "$dir/out" |
        awk '{ sum += $1 } END { printf "%.0f\n", sum }')
    [ "$moved" = "$(number machine_bytes_to_device)" ] || fail "bytes to the device: $moved"
done

# Wrong usage.
run 2 "$TENURE" serve --control explicit --log-decisions "$dir/log" "$matvec"
says "$dir/err" "--log-decisions: only --control lru decides"
run 2 "$TENURE" serve --cache "$dir/cache" --log-decisions "$dir/none/log" "$matvec"
says "$dir/err" "$dir/none/log: No such file"
run 2 "$TENURE" serve --control magic "$matvec"
says "$dir/err" 'serve: --control: "magic" is not lru or explicit'
if [ -e /dev/full ]; then
    run 1 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --clock virtual --requests 1 \
        --log-decisions /dev/full "$matvec"
    says "$dir/err" "/dev/full: not everything could be written"
fi
