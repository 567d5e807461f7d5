# SPDX-License-Identifier: MIT
# tools/gpu-check.sh with what BUILD has: refused without a GPU, and rehearsed over the test driver.
. "$(dirname "$0")/../cli/shell_common.sh"
: "${BUILD:?set BUILD to the build folder}" "${SHIM:?set SHIM to the folder of the test drivers}"
script=$(dirname "$0")/../../tools/gpu-check.sh
TMPDIR=$dir
export TMPDIR

check() { # check CODE OPTION...
    wanted=$1
    shift
    run "$wanted" env LD_LIBRARY_PATH="$SHIM/machine${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
        sh "$script" --build "$BUILD" --no-build "$@"
    [ -z "$(ls -d "$dir"/tenure-gpu-check-* 2>/dev/null)" ] || fail "files were left"
}

check 2 --fast
check 2 --scale
check 0 --help
says "$dir/out" "--dry-run" "Exit status: "
if ! ls /dev/nvidia[0-9]* /dev/dxg >/dev/null 2>&1; then
    check 3
    [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq 1 ] || fail "not one line"
    says "$dir/err" "there is no GPU here"
fi
if [ "${EVALUATOR:-0}" != 1 ]; then
    check 1 --dry-run
    says "$dir/err" "has no kernels: was nvcc found?"
    exit 0
fi
check 0 --dry-run
says "$dir/out" "programs               passed"

export TN_SHIM_MACHINE="dev:1 mem=2GiB clock=threads"
check 0 --scale 1/1024
says "$dir/out" "no figure is a device's" "device                 passed" "conformance            passed" \
    "copies                 passed" "serve, evicting        passed" "12/12 digests equal" \
    "serve, scale 1/1024    passed" "1/1 digests equal"
export TN_SHIM_LAUNCH_FAILS=50
check 1 --scale 1/1024
says "$dir/out" "conformance            passed" "serve, evicting        FAILED (1)" \
    "serve, scale 1/1024    FAILED (1)"
