# SPDX-License-Identifier: MIT
# `tenure serve --device cuda` over the test driver with a machine of its own: it does not run the
# kernels' PTX but their arithmetic compiled for the host. EVALUATOR is 1 where the program has
# kernels; WITHOUT is the program without them, as a build without nvcc has it.
. "$(dirname "$0")/../cli/shell_common.sh"
: "${SHIM:?set SHIM to the folder of the test drivers}"
: "${WITHOUT:?set WITHOUT to the program without kernels}"

serve() { # serve CODE OPTION...
    wanted=$1
    shift
    run "$wanted" env LD_LIBRARY_PATH="$SHIM/machine${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        "$program" serve --cache "$dir/cache" --scale 1/1024 "$@"
    if grep "^test driver" "$dir/err"; then fail "misuse"; fi
}

one_line() { [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "not one line"; }

good() { # good REQUESTS
    [ "$(number done)" = "$1" ] && [ "$(number failed)" = 0 ] || fail "not all requests"
    [ "$(number digests_compared)" = "$1" ] && [ "$(number digests_equal)" = "$1" ] || fail "digests"
    [ "$(number corruptions)" = 0 ] && [ "$(number good)" = true ] || fail "corruptions"
}

# Neither a device nor kernels: the device is what is said.
program=$TENURE
serve 3 --device cuda "$matvec"
says "$dir/err" "no CUDA device: there is no CUDA device here (CUDA error 100)"
one_line
program=$WITHOUT
serve 3 --device cuda "$matvec"
says "$dir/err" "no CUDA device: there is no CUDA device here (CUDA error 100)"
one_line

# A device, but no kernels.
export TN_SHIM_MACHINE="dev:2 mem=64MiB clock=threads"
serve 3 --device cuda:1 "$matvec"
says "$dir/err" "cuda:1: no evaluator: this program was built without nvcc"
one_line
[ ! -s "$dir/out" ] && [ ! -e "$dir/cache" ] || fail "something was made"
run 0 "$WITHOUT" serve --cache "$dir/cache" --scale 1/1024 --requests 1 --clock virtual "$matvec"
[ "${EVALUATOR:-0}" = 1 ] || exit 0
program=$TENURE

# The driver refuses them.
rm -rf "$dir/cache"
export TN_SHIM_MODULE_CODE=222
serve 3 --device cuda "$matvec"
says "$dir/err" "cuda:0: no evaluator: the CUDA driver does not take the kernels: ptxas application ptx" \
    "not today (CUDA error 222)"
one_line
[ ! -e "$dir/cache" ] || fail "files were made for nothing"
unset TN_SHIM_MODULE_CODE

# What a real device does not have.
serve 2 --device cuda:2 --link 1GBps "$matvec"
says "$dir/err" "--link, --latency and --clock describe a simulated machine, not cuda:2"
serve 2 --device cuda --machine "dev:1" "$matvec"
for fault in flip torn-copy early-free; do
    serve 2 --device cuda --inject $fault "$matvec"
    says "$dir/err" "--inject $fault needs a simulated machine; on cuda:0 there is swap"
    one_line
done
serve 3 --device cuda:2 "$matvec"
says "$dir/err" "cuda:2: no such device; this machine has 2"

# The digests are those of the plain replay, with evictions, on either device, with several workers.
serve 0 --device cuda --requests 4 --json "$matvec"
good 4
[ "$(number values_verified)" = null ] && [ "$(number machine_violations)" = null ] ||
    fail "figures that nobody has"
[ "$(sed -n 's/^ *"key_evictions": \([0-9]*\).*/\1/p' "$dir/out" | sort -n | tail -n 1)" -gt 0 ] ||
    fail "nothing was evicted"
serve 0 --device cuda:1 --workers 3 --stagger 2ms --requests 6 --json "$boot" "$conv"
good 6
serve 0 --device cuda --requests 1 --device-budget unlimited "$sparse"
says "$dir/out" "device               cuda:0" "values verified      by the digests only" "  -  within" \
    "digests              1 of 1 equal to the plain replay: yes"
if grep -qE "link busy|violations" "$dir/out"; then fail "a figure that nobody has"; fi

# A defect is found.
serve 1 --device cuda --inject swap --requests 2 "$matvec"
says "$dir/out" "equal to the plain replay: no"

# A launch that fails, early, late, between a result's kernels: the request fails, nothing is left,
# and the others are right.
for n in 1 2 3 17 100 101 102 103 104 105; do
    export TN_SHIM_LAUNCH_FAILS=$n
    serve 1 --device cuda --requests 3 --json "$matvec"
    says "$dir/err" "launching the arithmetic: kernel_" "CUDA error 719"
    [ "$(number done)" = 2 ] && [ "$(number failed)" = 1 ] || fail "launch $n: not one request"
    [ "$(number digests_equal)" = 2 ] || fail "launch $n: a wrong digest"
done
