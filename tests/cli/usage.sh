# SPDX-License-Identifier: MIT
# Help, wrong usage, output that cannot be written.
. "$(dirname "$0")/shell_common.sh"

run 0 "$TENURE" --help
says "$dir/out" "usage: tenure COMMAND" "serve" "explain" "info" "workload check"
for command in serve explain info "workload check"; do
    # shellcheck disable=SC2086 # two words
    run 0 "$TENURE" $command --help
    says "$dir/out" "usage: tenure $command" "--json" "Exit status"
    # shellcheck disable=SC2086
    run 2 "$TENURE" $command --paint
    says "$dir/err" "tenure $command: unrecognized option"
done
run 0 "$TENURE" --version
grep -qx 'tenure [0-9]*\.[0-9]*\.[0-9]*' "$dir/out" || fail "no version"
run 2 "$TENURE"
says "$dir/err" "usage: tenure COMMAND"
run 2 "$TENURE" paint
says "$dir/err" 'unknown command "paint"'
run 2 "$TENURE" serve
says "$dir/err" "no workload file"
run 2 "$TENURE" info something

# serve LINE...: each option with a value that it must refuse
refuses() {
    option=$1
    shift
    for value in "$@"; do
        run 2 "$TENURE" serve "$option" "$value" "$matvec"
        says "$dir/err" "tenure: serve: $option:"
    done
}
refuses --tenants 0 -1 x "" 1.5 "2 " 99999999999999999999999
refuses --requests 0 many
refuses --seed -1 18446744073709551616
refuses --scale 0 1/0 0/1 a/b 1/2/3 -1 "" 1/99999999999
refuses --device-budget x 75%% -5% 5x "" %
refuses --pinned-budget ten 1e300
refuses --link 0Bps 25 25GB fast
refuses --latency 10 -1us 5min
refuses --clock atomic
refuses --inject rot
refuses --control automatic
refuses --workers 0 -1 257 many
refuses --stagger 5 -1s soon
run 2 "$TENURE" serve --machine dev:1 --link 1GBps "$matvec"
says "$dir/err" "--machine stands instead of"
run 2 "$TENURE" serve "$matvec" "$dir/none.jsonl"
says "$dir/err" "$dir/none.jsonl: No such file"

# explain: the same, and options that do not go together
refuses_of_explain() {
    option=$1
    shift
    for value in "$@"; do
        run 2 "$TENURE" explain --op 1 "$option" "$value" "$matvec"
        says "$dir/err" "tenure: explain: $option:"
    done
}
refuses_of_explain --op 0 -1 x "" 1.5 18446744073709551616
refuses_of_explain --requests -1 many 1000001
refuses_of_explain --tenants 0 4097
refuses_of_explain --scale 0 1/0 a/b
refuses_of_explain --device-budget x -5% ""
refuses_of_explain --pinned-budget ten 1e300
run 2 "$TENURE" explain
says "$dir/err" "no plan file or workload"
run 2 "$TENURE" explain one two
says "$dir/err" "one plan file or workload at a time"
run 2 "$TENURE" explain --scale 1/2 plan.json
says "$dir/err" "--scale is for a workload, with --op"
run 2 "$TENURE" explain --op
says "$dir/err" "tenure explain: option '--op' requires an argument"

if [ -w /dev/full ]; then
    code=0
    "$TENURE" workload check "$matvec" >/dev/full 2>"$dir/err" || code=$?
    [ "$code" -eq 2 ] || fail "exit $code on a full disk"
    says "$dir/err" "standard output: No space left on device"
    code=0
    "$TENURE" explain --op 1 "$matvec" >/dev/full 2>"$dir/err" || code=$?
    [ "$code" -eq 2 ] || fail "explain: exit $code on a full disk"
    says "$dir/err" "standard output: No space left on device"
fi
