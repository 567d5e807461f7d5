# SPDX-License-Identifier: MIT
# Several workers at once: right digests, strict budgets, figures that add up over threads, requests
# that queue, and a program made so that workers take each other's room all the time.
. "$(dirname "$0")/shell_common.sh"

serve() { run 0 "$TENURE" serve --cache "$dir/cache" --json "$@"; }

# bytes PATH: of one way in the JSON
bytes() { grep -A2 "\"$1\": {" "$dir/out" | sed -n 's/.*"bytes": \([0-9]*\).*/\1/p'; }

# over_workers NAME: the sum over the workers
over_workers() {
    sed -n '/"per_worker"/,/\]/p' "$dir/out" |
        awk -v name="\"$1\":" '$1 == name { sum += $2 } END { printf "%.0f\n", sum }'
}

# is_right REQUESTS: all served and verified, nothing exceeded, and every sum is one
is_right() {
    [ "$(number done)" = "$1" ] || fail "not all requests"
    [ "$(number failed)" = 0 ] || fail "failed requests"
    [ "$(number corruptions)" = 0 ] || fail "corruptions"
    [ "$(number machine_violations)" = 0 ] || fail "violations"
    [ "$(number digests_equal)" = "$1" ] || fail "digests differ from the plain replay"
    [ "$(number good)" = true ] || fail "not good"
    ! grep -q '"within": false' "$dir/out" || fail "a peak exceeds its budget"
    [ "$(over_workers done)" = "$1" ] || fail "the requests do not add up"
    [ "$(over_workers stall_ns)" = "$(number stall_ns)" ] || fail "the stalls do not add up"
    # The machine counts what its link carried; the program counts what each worker moved. A use that
    # decides again after it has moved something, as a value was taken from it, reports its last plan
    # only: then there is a little more on the link.
    moved=$(($(bytes pinned_device) + $(bytes file_device) + $(bytes host_device)))
    carried=$(number machine_bytes_to_device)
    if [ "$(number redecisions)" = 0 ] || ! grep -q '"kind": "lru"' "$dir/out"; then
        [ "$moved" = "$carried" ] || fail "bytes to the device: $moved"
        [ "$(bytes device_host)" = "$(number machine_bytes_to_host)" ] || fail "bytes to the host"
    fi
    [ "$moved" -le "$carried" ] && [ $((moved / 99 * 100)) -ge "$carried" ] ||
        fail "bytes to the device: $moved of $carried"
}

# 150 keys and plaintexts and 557 operands in all are read by each request.
for how in "2 lru" "5 lru" "5 explicit"; do
    workers=${how% *}
    serve --scale 1/1024 --workers "$workers" --stagger 10ms --requests 20 \
        --control "${how#* }" "$matvec"
    is_right 20
    [ "$(number workers)" = "$workers" ] || fail "workers"
    [ "$(number most_at_once)" -le "$workers" ] || fail "more requests at once than workers"
    [ $(($(number hits) + $(number misses))) = 3000 ] || fail "reads"
    [ "$(number values_verified)" = 11140 ] || fail "values verified"
    [ "$(number queued)" = 0 ] || fail "a request queued though all fit"
    [ "$(number median_ns)" -le "$(number max_ns)" ] || fail "p50 above max"
done

# The table says the same.
run 0 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --workers 3 --stagger 5ms --requests 9 \
    "$matvec"
says "$dir/out" "3 workers" "9 of 9 done, 0 failed" "worker 0" "worker 2" "of keys" \
    "room taken" "9 of 9 equal to the plain replay: yes"
! grep -q EXCEEDED "$dir/out" || fail "a peak exceeds its budget"

# More workers than requests, and one tenant: all of them want the same keys.
serve --scale 1/1024 --workers 6 --stagger 0 --tenants 1 --requests 4 "$matvec"
is_right 4
serve --scale 1/1024 --workers 4 --stagger 0 --tenants 1 --requests 16 "$matvec"
is_right 16

# Workers that have not started when the requests are over do not start.
serve --scale 1/1024 --workers 3 --stagger 10000s --requests 4 "$matvec"
is_right 4

# No pinned memory at all.
serve --scale 1/1024 --workers 3 --stagger 5ms --requests 9 --pinned-budget 0 "$matvec"
is_right 9
[ "$(bytes file_pinned)" = 0 ] || fail "something went file -> pinned"
[ "$(bytes file_device)" -gt 0 ] || fail "nothing went file -> device"

# The least that three workers need: one bootstrap and two products. Two bootstraps do not fit
# together, so one of them queues.
run 2 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --workers 3 --device-budget 1 "$matvec" \
    "$boot"
need=$(sed -n 's/.* is below the \([0-9]*\) bytes that 3 workers need.*/\1/p' "$dir/err")
serve --scale 1/1024 --workers 3 --stagger 0 --requests 6 --device-budget "$need" "$matvec" "$boot"
is_right 6
[ "$(number queued)" -gt 0 ] || fail "nothing queued"
[ "$(number queued_ns)" -gt 0 ] || fail "it queued for no time"

# Many small operations, a different key for each, and as little memory as four workers need.
awk 'BEGIN {
    print "{\"workload\":1,\"name\":\"churn\",\"origin\":\"made\",\"params\":{\"ring_dim\":1,\"q_limbs\":1,\"p_limbs\":1,\"digits\":1,\"word_bytes\":8}}"
    for (i = 0; i < 24; i++)
        printf "{\"value\":\"k%d\",\"kind\":\"key\",\"bytes\":16384,\"scope\":\"tenant\",\"from\":\"source\"}\n", i
    for (i = 0; i < 40; i++)
        printf "{\"value\":\"p%d\",\"kind\":\"plaintext\",\"bytes\":8192,\"scope\":\"shared\",\"from\":\"source\"}\n", i
    print "{\"value\":\"in\",\"kind\":\"ciphertext\",\"bytes\":4096,\"scope\":\"tenant\",\"from\":\"input\"}"
    last = "in"
    for (i = 0; i < 200; i++) {
        printf "{\"op\":\"o\",\"reads\":[\"%s\",\"k%d\",\"p%d\"],\"writes\":{\"c%d\":4096},\"frees\":[\"%s\"],\"workspace\":8192,\"stage\":\"s%d\"}\n", last, i * 7 % 24, i * 11 % 40, i, last, i / 20
        last = "c" i
    }
    printf "{\"outputs\":[\"%s\"]}\n", last
}' >"$dir/churn.jsonl"
run 2 "$TENURE" serve --cache "$dir/cache" --scale 1 --workers 4 --device-budget 1 \
    "$dir/churn.jsonl"
need=$(sed -n 's/.* is below the \([0-9]*\) bytes that 4 workers need.*/\1/p' "$dir/err")
for how in "1 lru" "4 lru" "4 explicit"; do
    serve --scale 1 --workers 4 --stagger 3ms --control "${how#* }" --tenants "${how% *}" --requests 16 --link 100GBps \
        --latency 0 --device-budget "$need" --pinned-budget 40% "$dir/churn.jsonl"
    is_right 16
    grep -A1 '"evictions"' "$dir/out" | grep -q '"count": [1-9]' || fail "no evictions"
done
