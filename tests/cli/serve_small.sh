# SPDX-License-Identifier: MIT
# Small programs served in virtual time: right digests, strict budgets, the same figures each time.
. "$(dirname "$0")/shell_common.sh"

serve() { run 0 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --clock virtual "$@"; }

# is_right: the JSON says that everything was verified and nothing exceeded
is_right() {
    [ "$(number corruptions)" = 0 ] || fail "corruptions"
    [ "$(number machine_violations)" = 0 ] || fail "violations"
    [ "$(number equal_to_plain_replay)" = true ] || fail "digests differ from the plain replay"
    [ "$(number failed)" = 0 ] || fail "failed requests"
    [ "$(number good)" = true ] || fail "not good"
    ! grep -q '"within": false' "$dir/out" || fail "a peak exceeds its budget"
}

serve --requests 6 "$matvec"
says "$dir/out" "requests             6 of 6 done, 0 failed" "corruptions          0" \
    "6 of 6 equal to the plain replay: yes" "machine violations   0"
! grep -q EXCEEDED "$dir/out" || fail "a peak exceeds its budget"

serve --requests 6 --json "$matvec"
is_right
[ "$(number digests_compared)" = 6 ] || fail "digests compared"
# 278 written, 1 input, 279 operations: each operand of each is verified, and the output.
[ "$(number values_verified)" -gt 1674 ] || fail "values verified"
grep -A1 '"evictions"' "$dir/out" | grep -q '"count": [1-9]' || fail "no evictions"
cp "$dir/out" "$dir/first"

# Virtual time and one worker: every figure again.
serve --requests 6 --json "$matvec"
cmp -s "$dir/first" "$dir/out" || fail "another run, other figures: $(diff "$dir/first" "$dir/out")"

# Another seed is other content: nothing in the cache fits it, and the digests are right again.
files=$(ls "$dir/cache" | wc -l)
serve --requests 2 --seed 2 --json "$matvec"
is_right
[ "$(ls "$dir/cache" | wc -l)" -eq $((2 * files)) ] || fail "the cache of another seed"

# Without limits nothing is evicted, and everything is loaded once.
serve --requests 6 --json --device-budget unlimited --pinned-budget unlimited "$conv"
is_right
! grep -A1 '"evictions"' "$dir/out" | grep -q '"count": [1-9]' || fail "evictions without limits"

# No pinned memory at all: from the file to the device.
serve --requests 4 --json --pinned-budget 0 "$matvec"
is_right
grep -A1 '"file_device"' "$dir/out" | grep -q '"count": [1-9]' || fail "nothing went file -> device"
grep -A1 '"file_pinned"' "$dir/out" | grep -q '"count": 0' || fail "something went file -> pinned"

# Several programs and many tenants at once.
serve --requests 12 --tenants 3 --json "$matvec" "$conv"
is_right

# A bootstrap, with eviction all the time; as little as one worker needs, exactly.
serve --requests 2 --json --device-budget 60% "$boot"
is_right
run 2 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --device-budget 1 "$boot"
need=$(sed -n 's/.* is below the \([0-9]*\) bytes .*/\1/p' "$dir/err")
serve --requests 1 --json --device-budget "$need" "$boot"
is_right

# In real time.
run 0 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --clock real --requests 6 --json "$matvec"
is_right
