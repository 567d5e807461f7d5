# SPDX-License-Identifier: MIT
# What the controller decides for an operation: the same that serve enters, told in full.
. "$(dirname "$0")/shell_common.sh"

budgets="--device-budget 60% --pinned-budget 20%"
run 0 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --clock virtual --tenants 2 --requests 2 \
    $budgets --log-decisions "$dir/log" "$boot"

# without_blanks FILE
flat() { tr -d ' \n' <"$1"; }

# logged OPERATION MEMBER: of the decision for that operation of the second request
logged() {
    grep "^{\"request\":1,\"tenant\":2,\"operation\":$1,\"name\":\"[^\"]*: operation $1, " "$dir/log" |
        sed -n "s/.*\"$2\":\\([0-9]*\\).*/\\1/p"
}

# Operations with decisions, here and there in the second request.
evictions=0
for op in $(sed -n 's/^{"request":1,.*"operation":\([0-9]*\),"name":"[^"]*: operation .*"evictions":\[{.*/\1/p' \
    "$dir/log" | awk 'NR % 25 == 1'); do
    run 0 "$TENURE" explain --op "$op" --requests 1 --scale 1/1024 $budgets --json "$boot"
    [ "$(number explored_states)" = "$(logged "$op" explored)" ] || fail "operation $op: states"
    flat "$dir/out" | sed -n 's/.*"evictions":\(\[.*\]\)}}.*/\1/p' | grep -o '"[a-z_]*":"\{0,1\}[^",}]*' |
        sed 's/released_bytes/bytes/; s/_\([a-z]*\)$/ \1/' | tr -d '"' | sort >"$dir/explained"
    grep "^{\"request\":1,.*: operation $op, " "$dir/log" |
        sed -n 's/.*"evictions":\(\[.*\]\),"plan".*/\1/p' | grep -o '"[a-z_]*":"\{0,1\}[^",}]*' |
        tr -d '"' | sort >"$dir/entered"
    [ -s "$dir/entered" ] || fail "operation $op: nothing entered"
    cmp -s "$dir/explained" "$dir/entered" ||
        fail "operation $op: $(diff "$dir/explained" "$dir/entered")"
    evictions=$((evictions + $(grep -c rank "$dir/entered")))
done
[ "$evictions" -gt 5 ] || fail "hardly any evictions"

# The table; --run does what was decided.
run 0 "$TENURE" explain --op "$op" --requests 1 --scale 1/1024 $budgets --run "$boot"
says "$dir/out" ": operation $op, " "policy               deterministic-tiered-lru" \
    "fallback_tiers     []" "explored states      $(logged "$op" explored)" "predicted peaks" \
    "entered and closed" "required"
grep -qE "^ +0 +drop .* cuda:0|pinned-host .*(replica remains|source rebuilds)$" "$dir/out" ||
    fail "no victim"
grep -qE "^ +reclaim +0 +drop " "$dir/out" || fail "no reclaim step"

# By way of pinned memory, or without it.
run 0 "$TENURE" explain --op 2 --tenants 1 "$matvec"
grep -qE "^ +enter +0 +ensure +rot:1 +pageable-host +pinned-host .* runs$" "$dir/out" || fail "pinned"
grep -qE "^ +enter +1 +ensure +rot:1 +pinned-host +cuda:0 .* runs$" "$dir/out" || fail "device"
run 0 "$TENURE" explain --op 2 --tenants 1 --pinned-budget 0 "$matvec"
grep -qE "^ +enter +0 +ensure +rot:1 +pageable-host +cuda:0 .* runs$" "$dir/out" || fail "the way"

# A device 8 bytes short of what the program needs: the first operation that lacks them has no
# decision, and nothing after it can be reached.
run 2 "$TENURE" serve --cache "$dir/cache" --device-budget 1 --tenants 1 "$matvec"
need=$(sed -n 's/.* is below the \([0-9]*\) bytes .*/\1/p' "$dir/err")
fits=0
op=279
while [ $((op - fits)) -gt 1 ]; do
    middle=$(((fits + op) / 2))
    if "$TENURE" explain --op "$middle" --device-budget $((need - 8)) "$matvec" >"$dir/out" 2>&1; then
        fits=$middle
    else
        op=$middle
    fi
done
run 1 "$TENURE" explain --op "$op" --device-budget $((need - 8)) "$matvec"
says "$dir/out" "feasible             NO" "no sequence of valid victims" "TN_ERR_PLAN"
run 1 "$TENURE" explain --op "$op" --device-budget $((need - 8)) --json "$matvec"
says "$dir/out" '"feasible": false' '"decision": null' "\"budget_bytes\": $((need - 8))," \
    '"at": "cuda:0"'
run 0 "$TENURE" explain --op "$op" --device-budget "$need" --run "$matvec"
run 2 "$TENURE" explain --op $((op + 1)) --device-budget $((need - 8)) "$matvec"
says "$dir/err" "the program cannot be replayed: operation $op (" "TN_ERR_PLAN (TN_ERR_BUDGET)"

# Wrong usage.
run 2 "$TENURE" explain --control magic --op 1 "$matvec"
says "$dir/err" 'explain: --control: "magic" is not lru or explicit'
run 2 "$TENURE" explain --control lru "$(dirname "$0")/explain_rotate.json"
says "$dir/err" "--control is for a workload, with --op"
