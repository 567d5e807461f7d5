# SPDX-License-Identifier: MIT
# A million values load in reasonable time: the tables grow, nothing is quadratic.
. "$(dirname "$0")/shell_common.sh"

# A hundred thousand keys, each read; operations that write and free.
awk 'BEGIN {
    print "{\"workload\":1,\"name\":\"million\",\"origin\":\"made\",\"params\":{\"ring_dim\":1,\"q_limbs\":1,\"p_limbs\":1,\"digits\":1,\"word_bytes\":8}}"
    for (i = 0; i < 1000000; i++)
        printf "{\"value\":\"v%d\",\"kind\":\"%s\",\"bytes\":%d,\"scope\":\"shared\",\"from\":\"source\"}\n", i, i < 100000 ? "key" : "plaintext", 8 + i % 5 * 8
    for (i = 0; i < 100000; i++)
        printf "{\"op\":\"o\",\"reads\":[\"v%d\",\"v%d\"],\"writes\":{\"c%d\":8},\"frees\":[\"c%d\"],\"workspace\":8,\"stage\":\"s%d\"}\n", i, i + 800000, i, i, i / 1000
    print "{\"outputs\":[]}"
}' >"$dir/million.jsonl"

ulimit -t 90 # of CPU time
run 0 "$TENURE" workload check "$dir/million.jsonl"
says "$dir/out" \
    "values declared        1000000" \
    "values written         100000" \
    "operations             100000" \
    "distinct keys          100000, 2400000 bytes" \
    "key uses               100000" \
    "plaintexts             900000" \
    "reuse distance         median 99999, max 99999 other"

# The same with one value too many at the very end.
sed '$d' "$dir/million.jsonl" >"$dir/bad.jsonl"
printf '%s\n' '{"outputs":["c99999"]}' >>"$dir/bad.jsonl"
run 2 "$TENURE" workload check "$dir/bad.jsonl"
says "$dir/err" "bad.jsonl:1100002: the output c99999 does not exist at the end"
