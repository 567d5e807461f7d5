# SPDX-License-Identifier: MIT
# A million values load in reasonable time: the tables grow, nothing is quadratic.
. "$(dirname "$0")/shell_common.sh"

# As many operations as keys, every key read twice far apart.
awk 'BEGIN {
    print "{\"workload\":1,\"name\":\"million\",\"origin\":\"made\",\"params\":{\"ring_dim\":1,\"q_limbs\":1,\"p_limbs\":1,\"digits\":1,\"word_bytes\":8}}"
    for (i = 0; i < 500000; i++) {
        printf "{\"value\":\"k%d\",\"kind\":\"key\",\"bytes\":%d,\"scope\":\"tenant\",\"from\":\"source\"}\n", i, 8 + i % 5 * 8
        printf "{\"value\":\"p%d\",\"kind\":\"plaintext\",\"bytes\":8,\"scope\":\"shared\",\"from\":\"source\"}\n", i
    }
    for (i = 0; i < 250000; i++)
        printf "{\"op\":\"o\",\"reads\":[\"k%d\",\"k%d\"],\"writes\":{\"c%d\":8},\"frees\":[\"c%d\"],\"workspace\":8,\"stage\":\"s%d\"}\n", i, i + 250000, i, i, i / 1000
    for (i = 0; i < 10; i++)
        printf "{\"op\":\"o\",\"reads\":[\"k%d\"],\"writes\":{},\"frees\":[],\"workspace\":0,\"stage\":\"t\"}\n", i
    print "{\"outputs\":[]}"
}' >"$dir/million.jsonl"

began=$(date +%s)
run 0 "$TENURE" workload check "$dir/million.jsonl"
took=$(($(date +%s) - began))
says "$dir/out" \
    "values declared        1000000" \
    "values written         250000" \
    "operations             250010" \
    "distinct keys          500000, 12000000 bytes" \
    "key uses               500010"
echo "took $took s"
[ "$took" -le 90 ] || fail "$took seconds for a million values"

# The same with one value too many at the very end.
sed '$d' "$dir/million.jsonl" >"$dir/bad.jsonl"
printf '%s\n' '{"outputs":["c249999"]}' >>"$dir/bad.jsonl"
run 2 "$TENURE" workload check "$dir/bad.jsonl"
says "$dir/err" "bad.jsonl:1250012: the output c249999 does not exist at the end"
