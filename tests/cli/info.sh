# SPDX-License-Identifier: MIT
# `tenure info` describes both drivers and, if there is none, says why not.
. "$(dirname "$0")/shell_common.sh"

run 0 "$TENURE" info
says "$dir/out" "tenure 0." "host memory" "driver sim" "driver cuda" "pinned memory" "idle 0.0 MiB"
# The allocator of pageable values is the one that the program is linked with.
allocator="C library"
if ldd "$TENURE" 2>/dev/null | grep -q jemalloc; then allocator=jemalloc; fi
says "$dir/out" "pageable memory      $allocator "
if [ ! -e /dev/nvidia0 ]; then
    grep -q "driver cuda *none: ." "$dir/out" || fail "no reason why there is no CUDA"
fi

run 0 "$TENURE" info --machine "dev:3 mem=64MiB"
says "$dir/out" "3 devices" "device 2" "64.0 MiB"

run 0 "$TENURE" info --json
says "$dir/out" "\"allocator\": \"$allocator\"" '"chunk_bytes": 67108864' '"ring_bytes": 0' \
    '"retained_bytes"'
says "$dir/out" '"driver": "sim"' '"driver": "cuda"' '"total_bytes": 1073741824'
[ "$(number api_version)" = "$(number built_for_api_version)" ] || fail "API versions differ"

# Machine strings with errors: where, and what.
run 2 "$TENURE" info --machine "dev:2 mem=64MiB bogus=1"
says "$dir/err" "column 17"
run 2 "$TENURE" info --machine "dev:x"
says "$dir/err" "column 5"
run 2 "$TENURE" info --machine "mem=64MiB mem=32MiB"
says "$dir/err" "column 11"
run 2 "$TENURE" info --machine "link=host:12furlongs"
says "$dir/err" "column"
