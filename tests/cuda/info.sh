# SPDX-License-Identifier: MIT
# The program says why there is no CUDA device: too old a driver, one that does not start, none
# found. SHIM is the folder with the variants of the test driver.
. "$(dirname "$0")/../cli/shell_common.sh"
: "${SHIM:?set SHIM to the folder of the test drivers}"

with() { # with VARIANT COMMAND...
    variant=$1
    shift
    LD_LIBRARY_PATH=$SHIM/$variant${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}

run 0 with ancient "$TENURE" info
says "$dir/out" "driver cuda" "none: the CUDA driver is too old: it has no cuStreamIsCapturing"
run 0 with broken "$TENURE" info
says "$dir/out" "none: the CUDA driver cannot be initialised (cuInit failed) (CUDA error 999)"
run 0 with full "$TENURE" info
says "$dir/out" "none: there is no CUDA device here (CUDA error 100)"
run 0 with broken "$TENURE" info --json
says "$dir/out" '"why_not": "the CUDA driver cannot be initialised' '"native_code": 999'
run 3 with ancient "$TENURE" serve --device cuda:0 "$matvec"
says "$dir/err" "no CUDA device" "cuStreamIsCapturing"
