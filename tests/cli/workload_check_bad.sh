# SPDX-License-Identifier: MIT
# Every way in which a workload file can be wrong is refused with file, line and reason, exit 2.
. "$(dirname "$0")/shell_common.sh"

file=$dir/bad.jsonl
header='{"workload":1,"name":"n","origin":"o","params":{"ring_dim":1024,"q_limbs":2,"p_limbs":1,"digits":1,"word_bytes":8}}'
key='{"value":"k","kind":"key","bytes":64,"scope":"tenant","from":"source"}'
input='{"value":"x","kind":"ciphertext","bytes":32,"scope":"tenant","from":"input"}'
rotate='{"op":"rotate","reads":["k","x"],"writes":{"y":32},"frees":["x"],"workspace":8,"stage":"s"}'
outputs='{"outputs":["y"]}'

# good: the base that every case below breaks in one place
printf '%s\n' "$header" "$key" "$input" "$rotate" "$outputs" >"$file"
run 0 "$TENURE" workload check "$file"

# bad LINE TEXT JSON...: these lines are refused at LINE with TEXT; LINE 0 is "the file"
bad() {
    line=$1
    text=$2
    shift 2
    printf '%s\n' "$@" >"$file"
    refused "$line" "$text"
}

refused() {
    run 2 "$TENURE" workload check "$file"
    if [ "$1" -eq 0 ]; then
        says "$dir/err" "tenure: $file: $2"
    else
        says "$dir/err" "tenure: $file:$1: $2"
    fi
    [ ! -s "$dir/out" ] || fail "a report on an invalid file"
}

# op JSON: an operation with other members in place of the good ones
op() {
    printf '{"op":"o","reads":%s,"writes":%s,"frees":%s,"workspace":%s,"stage":"s"}' "$1" "$2" "$3" "$4"
}

# value ID KIND BYTES SCOPE FROM
value() {
    printf '{"value":"%s","kind":"%s","bytes":%s,"scope":"%s","from":"%s"}' "$1" "$2" "$3" "$4" "$5"
}

# No file, an empty one, a directory.
rm -f "$file"
refused 0 "No such file or directory"
: >"$file"
refused 0 "is empty"
file_before=$file
file=$dir/folder
mkdir "$file"
refused 0 "Is a directory"
file=$file_before

# Truncated: at a line end, in a line.
bad 0 "ends without an outputs line" "$header" "$key" "$input" "$rotate"
bad 0 "ends without an outputs line" "$header"
printf '%s\n%s\n%s\n' "$header" "$key" '{"value":"x","kind":"ciph' >"$file"
refused 3 "not JSON"

# Not JSON, or not what is expected.
bad 1 "not JSON" "hello"
bad 2 "not JSON" "$header" "" "$key"
bad 2 "not JSON" "$header" "$key $key"
bad 2 "not JSON" "$header" '{"value":"k","value":"k"}'
bad 1 "not a JSON object" "[1, 2]"
bad 2 "not a JSON object" "$header" "17"
bad 2 "neither value, op nor outputs" "$header" "{}"
bad 1 'has no "workload"' "$key" "$header"
printf '%s\n\000\n' "$header" >"$file"
refused 2 "not JSON"
printf '%s\n{"value":"\377"}\n' "$header" >"$file"
refused 2 "not JSON"

# The header.
bad 1 "unknown version 2" '{"workload":2,"name":"n","origin":"o","params":{"ring_dim":1,"q_limbs":2,"p_limbs":1,"digits":1,"word_bytes":8}}'
bad 1 'has no "digits"' '{"workload":1,"name":"n","origin":"o","params":{"ring_dim":1,"q_limbs":2,"p_limbs":1,"word_bytes":8}}'
bad 1 "params.q_limbs is not positive" '{"workload":1,"name":"n","origin":"o","params":{"ring_dim":1,"q_limbs":0,"p_limbs":1,"digits":1,"word_bytes":8}}'
bad 1 '"name" is not a string' '{"workload":1,"name":3,"origin":"o","params":{}}'
bad 2 "neither value, op nor outputs" "$header" "$header"

# Declarations.
bad 3 "k is declared twice" "$header" "$key" "$key"
bad 2 'unknown kind "lock"' "$header" "$(value a lock 8 tenant source)"
bad 2 'unknown scope "all"' "$header" "$(value a key 8 all source)"
bad 2 'unknown origin "disk"' "$header" "$(value a key 8 tenant disk)"
bad 2 "a has no bytes" "$header" "$(value a key 0 tenant source)"
bad 2 "a has no bytes" "$header" "$(value a key -8 tenant source)"
bad 2 '"bytes" is not a whole number' "$header" "$(value a key 8.5 tenant source)"
bad 2 '"bytes" is not a whole number' "$header" "$(value a key true tenant source)"
bad 2 'has no "from"' "$header" '{"value":"a","kind":"key","bytes":8,"scope":"tenant"}'
bad 2 'unknown member "colour"' "$header" '{"value":"a","kind":"key","bytes":8,"scope":"tenant","from":"source","colour":1}'
bad 5 "declares z after the first operation" "$header" "$key" "$input" "$rotate" "$(value z key 8 tenant source)"

# Reads, writes, frees.
bad 3 "reads q, which was never made" "$header" "$key" "$(op '["q"]' '{"y":8}' '[]' 0)"
bad 5 "reads x after it was freed" "$header" "$key" "$input" "$rotate" "$(op '["x"]' '{}' '[]' 0)"
bad 4 "reads x twice" "$header" "$key" "$input" "$(op '["x","x"]' '{}' '[]' 0)"
bad 4 '"reads" holds something that is not a string' "$header" "$key" "$input" "$(op '[1]' '{}' '[]' 0)"
bad 4 "writes x, which exists already" "$header" "$key" "$input" "$(op '["k"]' '{"x":8}' '[]' 0)"
bad 5 "writes x, which exists already" "$header" "$key" "$input" "$rotate" "$(op '["k"]' '{"x":8}' '[]' 0)"
bad 4 "writes y without bytes" "$header" "$key" "$input" "$(op '["k"]' '{"y":0}' '[]' 0)"
bad 4 "writes y without bytes" "$header" "$key" "$input" "$(op '["k"]' '{"y":"8"}' '[]' 0)"
bad 4 "frees q, which was never made" "$header" "$key" "$input" "$(op '["k"]' '{}' '["q"]' 0)"
bad 4 "frees k, which is a key" "$header" "$key" "$input" "$(op '["k"]' '{}' '["k"]' 0)"
bad 4 "frees x twice" "$header" "$key" "$input" "$(op '["k"]' '{}' '["x","x"]' 0)"
bad 4 "negative workspace" "$header" "$key" "$input" "$(op '["k"]' '{}' '[]' -1)"
bad 4 '"workspace" is not a whole number' "$header" "$key" "$input" "$(op '["k"]' '{}' '[]' 1.5)"
bad 4 '"reads" is not an array' "$header" "$key" "$input" "$(op '"k"' '{}' '[]' 0)"
bad 4 '"writes" is not an object' "$header" "$key" "$input" "$(op '["k"]' '[]' '[]' 0)"

# The end.
bad 5 "the output x does not exist at the end" "$header" "$key" "$input" "$rotate" '{"outputs":["x"]}'
bad 5 "the output q does not exist at the end" "$header" "$key" "$input" "$rotate" '{"outputs":["q"]}'
bad 5 "the output y is named twice" "$header" "$key" "$input" "$rotate" '{"outputs":["y","y"]}'
bad 6 "something follows the outputs line" "$header" "$key" "$input" "$rotate" "$outputs" "$key"
bad 0 "y is neither freed nor an output" "$header" "$key" "$input" "$rotate" '{"outputs":[]}'
bad 0 "declares the key k2, which no operation reads" "$header" "$key" "$(value k2 key 8 tenant source)" "$input" "$rotate" "$outputs"

# Sizes that overflow 64 bits: one number, and sums.
most=9223372036854775807
bad 2 "a number above 64 bits" "$header" "$(value a key 18446744073709551616 tenant source)"
bad 2 "a number above 64 bits" "$header" "$(value a key 9223372036854775808 tenant source)"
bad 3 "the bytes of the keys add up to more than 64 bits hold" "$header" "$(value a key $most tenant source)" "$(value b key 1 tenant source)"
bad 3 "the bytes of the plaintexts add up to more" "$header" "$(value a plaintext $most shared source)" "$(value b plaintext 1 shared source)"
bad 4 "the bytes of the ciphertexts add up to more" "$header" "$key" "$(value a ciphertext $most tenant input)" "$(op '["k"]' '{"y":1}' '[]' 0)"
bad 4 "the bytes of live ciphertexts and workspace add up to more" "$header" "$key" "$input" "$(op '["k"]' '{"y":8}' '[]' $most)"
bad 4 "the bytes of the plaintexts read add up to more" "$header" "$(value p plaintext $most shared source)" "$(op '["p"]' '{}' '[]' 0)" "$(op '["p"]' '{}' '[]' 0)"
# The largest that fits is fine.
printf '%s\n' "$header" "$(value k key $most tenant source)" "$(op '["k"]' '{"y":8}' '[]' 0)" "$outputs" >"$file"
run 0 "$TENURE" workload check "$file"

# One bad file among good ones: the good ones are reported, the exit code is that of the bad one.
printf 'x\n' >"$file"
run 2 "$TENURE" workload check "$matvec" "$file" "$conv"
says "$dir/out" "openfhe-matvec-n32768-128.jsonl: valid" "openfhe-conv16-n65536.jsonl: valid"
run 2 "$TENURE" workload check --json "$file"
says "$dir/out" '"valid": false' 'bad.jsonl:1: not JSON'

# `serve` refuses it before it starts anything.
run 2 "$TENURE" serve --cache "$dir/cache" "$file"
says "$dir/err" "$file:1: not JSON"
[ ! -e "$dir/cache" ] || fail "serve made a cache for a file that it refused"

# Usage.
run 2 "$TENURE" workload check
run 2 "$TENURE" workload
run 2 "$TENURE" workload paint "$matvec"
run 2 "$TENURE" workload check --paint "$matvec"
run 0 "$TENURE" workload check --help
says "$dir/out" "usage: tenure workload check"
