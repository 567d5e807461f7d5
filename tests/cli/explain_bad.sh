# SPDX-License-Identifier: MIT
# Every way in which a plan file can be wrong is refused with file, line and column, exit 2.
. "$(dirname "$0")/shell_common.sh"

example=$(cd "$(dirname "$0")" && pwd)/explain_rotate.json
file=$dir/plan.json

# good: the base that the cases below break in one place
run 0 "$TENURE" explain "$example"

# refused PLACE TEXT: the file is refused at PLACE (LINE or LINE:COLUMN, or "" for the file)
refused() {
    run 2 "$TENURE" explain "$file"
    says "$dir/err" "tenure: $file:${1:+$1:} " "$2"
    [ ! -s "$dir/out" ] || fail "a report on an invalid file"
    [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "more than one error line"
}

# broken LINE TEXT: not even JSON; which column is for its reader to say
broken() {
    run 2 "$TENURE" explain "$file"
    grep -qE "^tenure: $file:$1:[0-9]+: " "$dir/err" || fail "not at line $1"
    says "$dir/err" "$2"
    [ ! -s "$dir/out" ] || fail "a report on an invalid file"
}

# bad PLACE TEXT SCRIPT: the example, changed by a sed script
bad() {
    sed "$3" "$example" >"$file"
    ! cmp -s "$example" "$file" || fail "the script $3 changes nothing"
    refused "$1" "$2"
}

# whole PLACE TEXT JSON: a file of its own
whole() {
    printf '%s\n' "$3" >"$file"
    refused "$1" "$2"
}

# No file, an empty one, a directory.
rm -f "$file"
refused "" "No such file or directory"
: >"$file"
refused "" "is empty"
file_before=$file
file=$dir/folder
mkdir "$file"
refused "" "Is a directory"
file=$file_before

# Not JSON.
printf ' \n' >"$file"
broken 2 "not JSON"
printf 'hello\n' >"$file"
broken 1 "not JSON"
printf '{} and\n' >"$file"
broken 1 "not JSON"
printf '{"plan_file": 1, "plan": {"name": "\377"}}\n' >"$file"
broken 1 "not JSON"
printf '{"plan_file": 1, "plan": {"name": "\\u0000"}}\n' >"$file"
broken 1 "not JSON"
printf '{"plan_file": 1}\n\000\n' >"$file"
broken 2 "not JSON"
sed '4s/,$//' "$example" >"$file"
broken 5 "not JSON"
sed '6s/"bytes"/"name": "a", "bytes"/' "$example" >"$file"
broken 6 "duplicate"
sed '6s/4096/99999999999999999999/' "$example" >"$file"
broken 6 "a number above 64 bits"
sed '6s/4096/1e400/' "$example" >"$file"
broken 6 "a number above 64 bits"

# Truncated anywhere: an error, never a report.
bytes=$(wc -c <"$example")
at=1
while [ "$at" -lt $((bytes - 2)) ]; do
    head -c "$at" "$example" >"$file"
    broken '[0-9]+' "not JSON"
    at=$((at + 23))
done

# Deep nesting: of what is JSON, and beyond what its reader takes.
deep() {
    awk -v n="$1" 'BEGIN { while (i++ < n) printf "["; while (n-- > 0) printf "]" }'
}
whole 1:1 "is not an object" "$(deep 1000)"
whole 1:12 "values: is not a list" "{\"values\": {\"x\": $(deep 1000)}, \"plan_file\": 1, \"plan\": {}}"
deep 100000 >"$file"
broken 1 "not JSON"

# Brackets in a string are none.
whole 1:94 'plan: has no "name"' \
    '{"values": [{"name": "a\"]},", "bytes": 1, "source": "pinned-host"}], "plan_file":1, "plan": {}}'

# The root.
whole 1:1 "is not an object" "[1, 2]"
whole 1:1 'has no "plan_file"' '{"plan": {"name": "p"}}'
whole 1:1 'has no "plan"' '{"plan_file": 1}'
bad 2:16 "plan_file: unknown version 2" '2s/1/2/'
bad 2:16 "plan_file: is not a whole number" '2s/1/"1"/'
bad 3:3 'unknown member "gpus"' '3s/devices/gpus/'
bad 3:14 "devices: 129 is not from 0 to 128" '3s/1/129/'
bad 3:14 "devices: -1 is not from 0 to 128" '3s/1/-1/'
bad 3:14 "devices: is not a whole number" '3s/1/1.5/'

# Budgets.
bad 4:25 "budgets.cuda:1: no such device; this machine has 1" '4s/cuda:0/cuda:1/'
bad 4:22 'budgets.gpu: "gpu" is not pageable-host, pinned-host or cuda:N' '4s/cuda:0/gpu/'
bad 4:25 "budgets.cuda:0: -1 bytes are negative" '4s/8192/-1/'
bad 4:25 "budgets.cuda:0: is not a number of bytes" '4s/8192/null/'
bad 4:46 'budgets.pinned-host: "1 mile" is not a number of bytes' '4s/1MiB/1 mile/'
bad 4:14 "budgets: is not an object" '4s/{.*}/[8192]/'

# Values. The second is after a character of two bytes, which is one column.
bad 6:5 'values[0]: has no "name"' '6s/"name": "relin", //'
bad 6:5 'values[0]: has no "bytes"' '6s/"bytes": 4096, //'
bad 6:5 "values[0]: is not an object" '6s/{.*}/"relin"/'
bad 6:38 'values[0]: unknown member "from"' '6s/"source"/"from"/'
bad 6:32 "values[0].bytes: -4096 bytes are negative" '6s/relin/élin!/;6s/4096/-4096/'
bad 6:32 "values[0].bytes: is not a number of bytes" '6s/4096/40.5/'
bad 7:14 'values[1].name: a second value "relin"' '7s/rot:1/relin/'
bad 7:14 'values[1].name: a second value "relin"' '7s/rot:1/r\\u0065lin/'
bad 7:14 "values[1].name: is blank" '7s/rot:1/ \\t /'
bad 7:14 "values[1].name: is longer than 255 bytes" "7s/rot:1/$(printf '%0256d' 0)/"
bad 7:14 "values[1].name: is not a string" '7s/"rot:1"/17/'
bad 8:47 'values[2].replicas: "many" is not replicable or exclusive' '8s/exclusive/many/'
bad 8:5 'values[2]: has neither a "source" nor a location' '8s/, "at".*\]//'
bad 8:5 'values[2]: has neither a "source" nor a location' '8s/\["cuda:0"\]/[]/'
bad 8:67 "values[2].at[0]: cannot be adopted there: TN_ERR_BUDGET" '8s/2048/9000/'
bad 8:77 "values[2].at[1]: cannot be made resident there: TN_ERR_OWNERSHIP" \
    '8s/"cuda:0"/"cuda:0", "pinned-host"/'
bad 8:91 "values[2].discarded: is not true or false" '8s/}$/, "discarded": 1}/'
bad 6:48 'values[0].source: "disk" is not pageable-host' '6s/pageable-host/disk/'
bad 6:72 "values[0].at[0]: cannot be made resident there: TN_ERR_BUDGET" '6s/4096/9000/'
bad 6:72 'values[0].at[0]: "cuda:01" is not' '6s/cuda:0/cuda:01/'
bad 6:72 "values[0].at[0]: cannot be made resident there: TN_ERR_VALUE" '6s/cuda:0/cuda:1/'

# Lifetimes.
bad 9:28 'leases[0].values[0]: unknown value "c"' \
    '9s/$/"leases": [{"values": ["c"], "at": "cuda:0"}],/'
bad 9:27 "leases[0].values: names no value" '9s/$/"leases": [{"values": [], "at": "cuda:0"}],/'
bad 9:62 "leases[0].pending: is not true or false" \
    '9s/$/"leases": [{"values": ["ct"], "at": "cuda:0", "pending": 1}],/'
bad 9:67 "leases[0].pending: a lease on a host location is never pending" \
    '9s/$/"leases": [{"values": ["ct"], "at": "pinned-host", "pending": true}],/'
bad 9:15 "holds[0]: cannot be had: TN_ERR_UNAVAILABLE" \
    '9s/$/"holds": [{"values": ["ct"], "at": "pinned-host"}],/'
bad 9:50 'holds[0]: unknown member "pending"' \
    '9s/$/"holds": [{"values": ["ct"], "at": "cuda:0", "pending": true}],/'
bad 9:14 'holds: is not a list' '9s/$/"holds": {"values": ["ct"], "at": "cuda:0"},/'
bad 10:20 "reservations[0]: cannot be had: TN_ERR_BUDGET" '10s/512/9000/'
bad 10:20 "reservations[0]: cannot be had: TN_ERR_VALUE" '10s/cuda:0/cuda:3/'
bad 10:46 "reservations[0].bytes: -5 bytes are negative" '10s/512/-5/'
bad 10:60 "reservations[0].label: is blank" '10s/other request/ /'
bad 8:91 "values[2].discarded: cannot be discarded: TN_ERR_IN_USE" \
    '8s/}$/, "discarded": true}/;9s/$/"holds": [{"values": ["ct"], "at": "cuda:0"}],/'

# The plan.
bad 12:13 "plan.name: is blank" '12s/rotate by 1//'
bad 13:5 'plan: unknown member "evict"' '13s/reclaim/evict/'
bad 13:17 "plan.reclaim[0]: is no action" '13s/drop/drip/'
bad 13:26 'plan.reclaim[0].drop: unknown value "rolin"' '13s/relin/rolin/'
bad 13:35 'plan.reclaim[0]: unknown member "to"' '13s/"at"/"to"/'
bad 13:17 'plan.reclaim[0]: has no "at"' '13s/, "at".*0"//'
bad 14:48 "plan.reservations[0].bytes: is not a number of bytes" '14s/1024/true/'
bad 14:63 "plan.reservations[0].label: is longer than 255 bytes" \
    "14s/results/$(printf '%0256d' 0)/"
bad 16:28 'plan.enter[0]: unknown member "at"' '16s/"ensure"/"discard"/'
bad 16:33 "plan.enter[0].at: is not a string" '16s/"cuda:0"/7/'
bad 16:33 'plan.enter[0].at: "nowhere" is not pageable-host' '16s/cuda:0/nowhere/'
bad 16:7 "plan.enter[0]: is no action" '16s/{.*}/[]/'
bad 19:14 'plan.exit[0]: has no "to"' '19s/discard/move/'
bad 19:13 "plan.exit: is not a list" '19s/\[.*\]/{}/'

# What is printed holds no control character of the file.
sed '13s/relin/\\u001b[31m/' "$example" >"$file"
refused 13:26 'unknown value "?[31m"'
