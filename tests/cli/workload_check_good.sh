# SPDX-License-Identifier: MIT
# `tenure workload check` on the recorded programs prints their known figures.
. "$(dirname "$0")/shell_common.sh"

run 0 "$TENURE" workload check "$boot" "$sparse" "$matvec" "$conv"

# The {4,4} bootstrap.
says "$dir/out" \
    "openfhe-boot-n65536-44.jsonl: valid" \
    "values declared        296" \
    "values written         747, 18.202 GiB in all" \
    "operations             1095" \
    "distinct keys          79, 10934550528 bytes in all (10.184 GiB)" \
    "one key                138412032 bytes; 2*digits*(q+p)*N*w = 138412032" \
    "key uses               159" \
    "plaintexts             216, 3.504 GiB; read 216 times, 3.504 GiB" \
    "peak live ciphertexts  645922816 bytes" \
    "peak workspace         941096960 bytes" \
    "peak of both together  1041760256 bytes" \
    "reuse distance         median 42, max 78 other keys between two uses of a key" \
    "cache 50 % (5.092 GiB)  LRU 10.570 (10.667)  optimum 5.244 (5.491)" \
    "cache 75 % (7.638 GiB)  LRU 9.023 (9.172)  optimum 2.578 (2.958)" \
    "cache 90 % (9.165 GiB)  LRU 6.961 (7.167)  optimum 1.031 (1.489)"
# Sparse packing, the matrix-vector product, the convolution.
says "$dir/out" \
    "reuse distance         median 62, max 62 other" \
    "cache 75 % (6.091 GiB)  LRU 7.863 (7.883)  optimum 2.062 (2.365)" \
    "reuse distance         median 21, max 21 other" \
    "cache 75 % (0.363 GiB)  LRU 0.483 (0.483)  optimum 0.136 (0.154)" \
    "reuse distance         median 0, max 4 other" \
    "cache 90 % (0.461 GiB)  LRU 0.410 (0.415)  optimum 0.151 (0.169)"

run 0 "$TENURE" workload check --json "$matvec"
[ "$(number operations)" = 279 ] || fail "operations in JSON"
[ "$(number key_bytes)" = 519045120 ] || fail "key bytes in JSON"
[ "$(number peak_both_bytes)" = 129236992 ] || fail "peak in JSON"
[ "$(number valid)" = true ] || fail "valid in JSON"

run 0 "$TENURE" workload check --runs "$matvec"
says "$dir/out" "optimum keys per run: 22 6 6"
