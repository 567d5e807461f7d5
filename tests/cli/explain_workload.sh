# SPDX-License-Identifier: MIT
# Operations of a workload: the plan that explicit control has for each, against what serve does.
. "$(dirname "$0")/shell_common.sh"

# Out of range, and wrong usage.
run 2 "$TENURE" explain --control explicit --op 280 "$matvec"
says "$dir/err" "tenure: explain: --op: $matvec has operations 1 to 279, not 280"
run 2 "$TENURE" explain --control explicit --op 18446744073709551615 "$matvec"
says "$dir/err" "has operations 1 to 279"
run 2 "$TENURE" explain --control explicit --op 1 "$dir/none.jsonl"
says "$dir/err" "$dir/none.jsonl: No such file"
run 2 "$TENURE" explain --control explicit --op 1 "$(dirname "$0")/explain_rotate.json"
says "$dir/err" "explain_rotate.json:1: not JSON"
run 2 "$TENURE" explain "$matvec" # a workload is no plan file
says "$dir/err" "$matvec:2:" "not JSON"
run 2 "$TENURE" explain --control explicit --op 1 --scale 4000000000 "$boot"
says "$dir/err" "at this scale its bytes do not fit in 64 bits"

# The first and the last operation; real sizes cost no more than small ones.
run 0 "$TENURE" explain --control explicit --op 1 "$boot"
says "$dir/out" 'plan "openfhe-boot-n65536-44: operation 1, '
run 0 "$TENURE" explain --control explicit --op 1095 --scale 1 --requests 3 "$boot"
says "$dir/out" 'plan "openfhe-boot-n65536-44: operation 1095, ' "feasible             yes"
run 0 "$TENURE" explain --control explicit --op 1095 --device-budget unlimited --pinned-budget unlimited --run --json "$boot"
says "$dir/out" '"feasible": true' '"status": "TN_OK"' '"budget_bytes": null'

# Keys of several tenants are told apart; a second request of the same one finds its keys there.
op=2 # reads rot:1
run 0 "$TENURE" explain --control explicit --op "$op" "$matvec"
says "$dir/out" "@1 "
grep -E "^ +enter .*@1 +pinned-host +cuda:0 .*runs" "$dir/out" >/dev/null || fail "the key is not loaded"
run 0 "$TENURE" explain --control explicit --op "$op" --requests 1 "$matvec"
says "$dir/out" "@2 "
run 0 "$TENURE" explain --control explicit --op "$op" --requests 1 --tenants 1 --device-budget unlimited "$matvec"
! grep -q "@" "$dir/out" || fail "a tenant is named where there is one"
grep -E "^ +enter .* cuda:0 .*no-op: already resident" "$dir/out" >/dev/null || fail "no key is resident"

# A device that is 8 bytes short of what the program needs: explicit control never moves ciphertexts,
# so the first operation that lacks the bytes has no plan, and nothing after it can be reached.
run 2 "$TENURE" serve --cache "$dir/cache" --device-budget 1 --tenants 1 "$matvec"
need=$(sed -n 's/.* is below the \([0-9]*\) bytes .*/\1/p' "$dir/err")
fits=0
op=279
while [ $((op - fits)) -gt 1 ]; do
    middle=$(((fits + op) / 2))
    if "$TENURE" explain --control explicit --op "$middle" --device-budget $((need - 8)) "$matvec" >"$dir/out" 2>&1; then
        fits=$middle
    else
        op=$middle
    fi
done
run 1 "$TENURE" explain --control explicit --op "$op" --device-budget $((need - 8)) "$matvec"
says "$dir/out" "feasible             NO" "verdict              after eviction" \
    "missing              8 bytes;"
run 1 "$TENURE" explain --control explicit --op "$op" --device-budget $((need - 8)) --run --json "$matvec"
says "$dir/out" '"status": "TN_ERR_PLAN"' '"missing_bytes": 8,'
run 0 "$TENURE" explain --control explicit --op "$op" --device-budget "$need" --run "$matvec"
run 2 "$TENURE" explain --control explicit --op $((op + 1)) --device-budget $((need - 8)) "$matvec"
says "$dir/err" "the program cannot be replayed: operation $op (" "TN_ERR_BUDGET"
run 2 "$TENURE" explain --control explicit --op 1 --device-budget 0 "$matvec"
says "$dir/err" "the program cannot be replayed: operation 1 (mod_up): moving ct:1: TN_ERR_BUDGET"

# Without pinned memory from the file to the device.
run 0 "$TENURE" explain --control explicit --op 2 --pinned-budget 0 "$matvec"
grep -qE "^ +enter +0 +ensure +rot:1@1 +pageable-host +cuda:0 .* runs$" "$dir/out" || fail "the way"
