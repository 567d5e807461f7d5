# SPDX-License-Identifier: MIT
# Over all operations of a workload together, the plans load, evict and retire what serve does.
. "$(dirname "$0")/shell_common.sh"

# like_serve OPTION...
like_serve() {
    : >"$dir/all"
    for op in $(seq 1 279); do
        run 0 "$TENURE" explain --control explicit --op "$op" --tenants 1 --scale 1/1024 "$@" "$matvec"
        cat "$dir/out" >>"$dir/all"
    done
    run 0 "$TENURE" serve --control explicit --cache "$dir/cache" --clock virtual --requests 1 --tenants 1 \
        --scale 1/1024 --json "$@" "$matvec"
    counts '^ *enter .* pageable-host  *pinned-host .* runs$' '"file_pinned"' 1
    counts '^ *enter .* pinned-host  *cuda:0 .* runs$' '"pinned_device"' 1
    counts '^ *enter .* pageable-host  *cuda:0 .* runs$' '"file_device"' 1
    counts '^ *reclaim .* drop .* cuda:0 .* runs$' '"device": {' 9
    counts '^ *reclaim .* drop .* pinned-host .* runs$' '"pinned": {' 9
    counts '^ *exit .* drop .* runs$' '"plaintexts_retired"' 1
}

# counts STEPS MEMBER LINES: as many such steps as the "count" within LINES after MEMBER
counts() {
    planned=$(grep -c "$1" "$dir/all") || :
    served=$(grep -A"$3" "$2" "$dir/out" | sed -n 's/.*"count": \([0-9]*\).*/\1/p' | head -n 1)
    [ "$planned" = "$served" ] || fail "$2: $planned planned, $served served"
}

like_serve --device-budget 40% --pinned-budget 30%
[ "$(grep -c '^ *reclaim' "$dir/all")" -gt 20 ] || fail "hardly anything was reclaimed"
