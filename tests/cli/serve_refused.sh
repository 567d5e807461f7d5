# SPDX-License-Identifier: MIT
# Budgets below what the workers need, machines that do not exist: refused before anything starts.
. "$(dirname "$0")/shell_common.sh"

serve() {
    wanted=$1
    shift
    run "$wanted" "$TENURE" serve --cache "$dir/cache" --scale 1/1024 "$@"
    [ "$wanted" -eq 0 ] || [ ! -s "$dir/out" ] || fail "a table of a run that was refused"
}

# Budgets: the numbers, and nothing made.
serve 2 --device-budget 1000 "$boot"
says "$dir/err" "the device budget of 1000 bytes is below the " " bytes that 1 worker needs" \
    "ciphertexts and workspace alone: " "largest key: 135168"
[ ! -e "$dir/cache" ] || fail "a cache was made for a run that was refused"
need=$(sed -n 's/.* is below the \([0-9]*\) bytes .*/\1/p' "$dir/err")
serve 2 --device-budget $((need - 1)) "$boot"
says "$dir/err" "the device budget of $((need - 1)) bytes"
serve 0 --device-budget "$need" --requests 1 --clock virtual "$boot"
serve 2 --device-budget 0 "$matvec"

# The same for several workers; when programs differ, one request is the neediest.
serve 2 --workers 5 --device-budget $((5 * need - 1)) "$boot"
says "$dir/err" "the device budget of $((5 * need - 1)) bytes is below the $((5 * need)) bytes that" \
    "that 5 workers need: $need for the neediest request" ", $need for each other one"
serve 0 --workers 2 --stagger 0 --device-budget $((2 * need)) --requests 2 "$boot"
serve 2 --device-budget 1 "$matvec"
less=$(sed -n 's/.* is below the \([0-9]*\) bytes .*/\1/p' "$dir/err")
serve 2 --workers 3 --device-budget $((need + 2 * less - 1)) "$boot" "$matvec"
says "$dir/err" "is below the $((need + 2 * less)) bytes that 3 workers need: $need for the" \
    ", $less for each other one"

# Virtual time is for one worker, however it was asked for.
serve 2 --workers 2 --clock virtual "$matvec"
says "$dir/err" "2 workers need real time"
serve 2 --workers 2 --machine "dev:1 mem=64MiB" "$matvec"
says "$dir/err" "2 workers need real time" "clock=threads"
serve 0 --workers 2 --stagger 0 --machine "dev:1 mem=64MiB clock=threads" --requests 2 "$matvec"

# Devices.
serve 3 --device sim:1 "$matvec"
says "$dir/err" "sim:1: no such device"
serve 3 --device cuda:99 "$matvec"
if [ ! -e /dev/nvidia0 ]; then
    for device in cuda cuda:0; do
        serve 3 --device $device "$matvec"
        says "$dir/err" "no CUDA device: "
        [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "not one line"
    done
fi
for device in gpu sim: sim:x sim:01 cuda:-1 cuda:128 cpu:0; do
    serve 2 --device $device "$matvec"
    says "$dir/err" "device \"$device\" is not sim:N or cuda:N"
done
serve 2 --device cuda:0 --machine "dev:1" "$matvec"
says "$dir/err" "describe a simulated machine, not cuda:0"
serve 2 --device cuda --inject flip "$matvec"
says "$dir/err" "--inject flip needs a simulated machine; on cuda:0 there is swap"
serve 0 --machine "dev:2 mem=64MiB link=host:12GBps latency=2us" --device sim:1 --requests 2 "$matvec"

# Machine strings say where they are wrong.
serve 2 --machine "dev:1 bogus=3" "$matvec"
says "$dir/err" 'machine "dev:1 bogus=3": column 7'
serve 2 --machine "dev:1 mem=64MiB link=host:fast" "$matvec"
says "$dir/err" "column 27"
serve 2 --machine "latency=2parsecs" "$matvec"
says "$dir/err" "column"

# A machine with less memory than the budget says: the device refuses, the request fails.
serve_fails() {
    run 1 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --requests 1 "$@"
    says "$dir/out" "0 of 1 done, 1 failed"
    says "$dir/err" "TN_ERR_DEVICE_MEMORY"
}
serve_fails --machine "mem=64KiB" "$matvec"

# A million bytes short of 64 bits: the scale is too large.
serve 2 --scale 4000000000 --device-budget unlimited "$boot"
says "$dir/err" "at this scale its bytes do not fit in 64 bits"
