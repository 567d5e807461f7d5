# SPDX-License-Identifier: MIT
# bandwidth.sh PROGRAM SHIM: the program that measures copies ends well over the test driver, all its
# bytes are right, and without a device it says so. Its figures mean nothing here.
program=$1
out=$(mktemp "${TMPDIR:-/tmp}/tenure-bandwidth-XXXXXX") || exit 1
trap 'rm -f "$out"' EXIT
LD_LIBRARY_PATH=$2/machine${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH

"$program" 1 3 2 >"$out" 2>&1
[ $? -eq 3 ] && grep -q "^bandwidth: no CUDA device: " "$out" || {
    cat "$out"
    echo "not refused without a device"
    exit 1
}
TN_SHIM_MACHINE="dev:1 mem=64MiB clock=threads" "$program" 1 3 2 >"$out" 2>&1 || {
    cat "$out"
    exit 1
}
for name in ensure bare_each bare_queued; do
    grep -qE "^$name [0-9]+\.[0-9]{3}\$" "$out" || {
        cat "$out"
        echo "no figure for $name"
        exit 1
    }
done
