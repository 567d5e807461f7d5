# SPDX-License-Identifier: MIT
# Plan files: what is said about a plan that fits, and about each way in which one does not.
. "$(dirname "$0")/shell_common.sh"

example=$(cd "$(dirname "$0")" && pwd)/explain_rotate.json
file=$dir/plan.json

# explain CODE SCRIPT [OPTION...]: the example, changed by a sed script
explain() {
    wanted=$1
    sed "$2" "$example" >"$file"
    shift 2
    run "$wanted" "$TENURE" explain "$@" "$file"
    [ ! -s "$dir/err" ] || fail "something on standard error"
    tr -s ' ' <"$dir/out" >"$dir/words" # the columns are as wide as they must be
}

# ---- A plan that fits ----
explain 0 ""
says "$dir/words" 'tenure explain, plan "rotate by 1"' " feasible yes" " verdict fits now" \
    " reclaim 0 drop relin cuda:0 - 4096 runs" " reserve 0 reserve results - cuda:0 1024 runs" \
    " enter 0 ensure rot:1 pinned-host cuda:0 4096 runs" \
    " enter 1 ensure ct - cuda:0 2048 no-op: already resident" \
    " exit 0 discard ct - - 2048 runs" " cuda:0 7680 8192" " pinned-host 4096 1048576"
! grep -q "EXCEEDED\|REFUSED\|in the way\|first problem" "$dir/out" || fail "a problem"
! grep -q " $" "$dir/out" || fail "a line ends with blanks"

# The same in JSON.
explain 0 "" --json
says "$dir/words" '"plan": "rotate by 1"' '"feasible": true' '"verdict": "fits_now"' \
    '"problem": null' '"blockers": []' '"run": null' '"reason": "already_resident"'
[ "$(grep -c '"phase"' "$dir/out")" -eq 4 ] || fail "steps"
[ "$(number charged_bytes)" = 7680 ] || fail "peak"
[ "$(number budget_bytes)" = 8192 ] || fail "budget"
[ "$(number reached)" = true ] || fail "the reservation was not reached"

# Run: the same steps, done; the reservation has ended with the scope.
explain 0 "" --run
says "$dir/words" " run entered and closed, 4 transitions: 1 reclaim, 2 enter, 1 exit" \
    " drop relin cuda:0 - 4096 done" " ensure rot:1 pinned-host cuda:0 4096 done" \
    " ensure ct - cuda:0 2048 no-op: already resident" " discard ct - - 2048 done"
explain 0 "" --run --json
says "$dir/words" '"status": "TN_OK"' '"failed": null' '"transitions": ['
[ "$(number reclaim)$(number enter)$(number exit)" = 121 ] || fail "transitions"

# An empty plan fits; so does one on a machine without devices.
printf '{"plan_file": 1, "plan": {"name": "nothing"}}\n' >"$file"
run 0 "$TENURE" explain --run "$file"
says "$dir/out" "feasible             yes" "0 transitions: 0 reclaim, 0 enter, 0 exit"
printf '%s\n' '{"plan_file": 1, "devices": 0,' \
    '"values": [{"name": "v", "bytes": "1TiB", "source": "pageable-host"}],' \
    '"plan": {"name": "large", "enter": [{"ensure": "v", "at": "pageable-host"}]}}' >"$file"
run 0 "$TENURE" explain --run "$file"
says "$dir/out" "1099511627776  unlimited" "entered and closed, 1 transitions"

# Sums above 63 bits fit nowhere.
printf '%s\n' '{"plan_file": 1, "values": [' \
    '{"name": "a", "bytes": 9223372036854775807, "at": ["pageable-host"]},' \
    '{"name": "b", "bytes": 9223372036854775807, "source": "pageable-host"}],' \
    '"plan": {"name": "huge", "enter": [{"ensure": "b", "at": "pageable-host"}]}}' >"$file"
run 1 "$TENURE" explain --run "$file"
says "$dir/out" "18446744073709551614  unlimited  EXCEEDED"
run 1 "$TENURE" explain --json "$file"
says "$dir/out" '"charged_bytes": 1.844674407370955' '"within": false'

# A move, with a source that is named and one that is not.
explain 0 '19s/\[.*\]/[{"move": "ct", "to": "pinned-host", "from": "cuda:0"}, {"move": "rot:1", "to": "pinned-host"}, {"move": "rot:1", "to": "pinned-host"}]/'
says "$dir/words" " exit 0 move ct cuda:0 pinned-host 2048 runs" \
    " exit 1 move rot:1 cuda:0 pinned-host 4096 runs" \
    " exit 2 move rot:1 - pinned-host 4096 no-op: already at destination"

# ---- Bytes that are missing, and whom to wait for ----

# is_short VERDICT: at the second ensure of 4096 bytes
is_short() {
    says "$dir/words" " feasible NO" " verdict $1" " first problem enter 0: budget" \
        " TN_ERR_BUDGET: " "enter 0 ensure rot:1 pinned-host cuda:0 4096 REFUSED: budget" "EXCEEDED"
    ! grep -q "^ *exit" "$dir/out" || fail "steps after the problem"
}

explain 1 '13s/\[.*\]/[]/' # nothing is reclaimed
is_short "after eviction"
says "$dir/words" " missing 3584 bytes; 6144 bytes there can be evicted" " cuda:0 11776 8192 EXCEEDED"
explain 1 '13s/\[.*\]/[]/' --json
says "$dir/words" '"feasible": false' '"verdict": "after_eviction"' '"status": "TN_ERR_BUDGET"' \
    '"reason": "budget"' '"within": false' '"executable": false'
[ "$(number missing_bytes)" = 3584 ] || fail "missing bytes"
[ "$(number evictable_bytes)" = 6144 ] || fail "evictable bytes"

both='{"values": ["relin", "ct"], "at": "cuda:0"}'
explain 1 "13s/\\[.*\\]/[]/;9s/\$/\"leases\": [$both],/"
is_short "after leases"
says "$dir/words" " lease relin cuda:0 1 4096" " lease ct cuda:0 1 2048" " 0 bytes there can be evicted"
explain 1 "13s/\\[.*\\]/[]/;9s/\$/\"leases\": [{\"values\": [\"relin\", \"ct\"], \"at\": \"cuda:0\", \"pending\": true}],/"
is_short "after leases"
says "$dir/words" " pending lease relin cuda:0 1 4096" " pending lease ct cuda:0 1 2048"
explain 1 "13s/\\[.*\\]/[]/;9s/\$/\"holds\": [$both, $both],/"
is_short "blocked"
says "$dir/words" " hold relin cuda:0 2 4096" " hold ct cuda:0 2 2048" " reservation other request cuda:0 1 512"
explain 1 "13s/\\[.*\\]/[]/;9s/\$/\"holds\": [$both],/" --json
says "$dir/words" '"verdict": "blocked"' '"kind": "hold"' '"value": "relin"' '"kind": "reservation"' \
    '"label": "other request"'

# More than the budget can ever give.
explain 1 '7s/4KiB/9KiB/'
says "$dir/words" " verdict never" " first problem enter 0: budget"

# A reservation: which, and that the rest was not reached.
explain 1 '14s/1024/8192/;14s/\]/, {"at": "pinned-host", "bytes": 0, "label": "second"}]/'
says "$dir/words" " feasible NO" " first problem reserve 0: reservation budget" \
    " reserve 0 reserve results - cuda:0 8192 REFUSED: reservation budget" \
    " reserve 1 reserve second - pinned-host 0 not reached" " reclaim 0 drop relin cuda:0 - 4096 runs"
! grep -q "^ *enter" "$dir/out" || fail "steps after the problem"
explain 1 '14s/1024/8192/;14s/\]/, {"at": "pinned-host", "bytes": 0, "label": "second"}]/' --json
says "$dir/words" '"refused": true' '"reached": false' '"phase": "reserve"'

# ---- Everything else that can be wrong with an action ----

# problem VERDICT REASON SCRIPT
problem() {
    explain 1 "$3"
    says "$dir/words" " feasible NO" " verdict $1" ": $2" "REFUSED: $2"
    explain 1 "$3" --run
    says "$dir/words" " run failed, 0 transitions" " entering it: TN_ERR_PLAN"
}

held='9s/$/"holds": [{"values": ["relin"], "at": "cuda:0"}],/'
leased='9s/$/"leases": [{"values": ["relin"], "at": "cuda:0"}],/'
problem blocked protected "$held"
problem "after leases" protected "$leased"
problem blocked "discard protected" '9s/$/"holds": [{"values": ["ct"], "at": "cuda:0"}],/'
says "$dir/words" " protected cuda:0" " hold ct cuda:0 1 2048"
problem none "last copy" '13s/relin/ct/'
problem none "handle discarded" '6s/}/, "discarded": true}/'
problem none "location invalid" '16s/cuda:0/cuda:5/'
problem none "exclusive" '17s/cuda:0/pinned-host/'
problem none "source not resident" \
    '16s/{.*}/{"move": "rot:1", "to": "cuda:0", "from": "pageable-host"}/'
problem blocked "source protected" \
    "$held;13s/{.*}/{\"move\": \"relin\", \"to\": \"pinned-host\", \"from\": \"cuda:0\"}/"

# Names are printed as they are, but for control characters; labels may be cut within a character.
explain 0 's/rot:1/schlüssel\\u0007/'
says "$dir/words" " ensure schlüssel? pinned-host"
label=$(printf 'é%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
explain 1 "13s/\\[.*\\]/[]/;9s/\$/\"holds\": [$both],/;10s/other request/a$label/" --json
says "$dir/words" '"label": "aéééé'
explain 1 "13s/\\[.*\\]/[]/;9s/\$/\"holds\": [$both],/;10s/other request/$label/" --json
says "$dir/words" '"label": "éééé'
