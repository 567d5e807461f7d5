# SPDX-License-Identifier: MIT
# ptx.sh PTX PTXAS: the kernels' PTX, as it is built into the program, is PTX 6.3 that assembles for
# old and new devices. PTXAS is empty where there is none: skipped.
ptx=$1
ptxas=$2
out=${TMPDIR:-/tmp}/tenure-ptx-$$
trap 'rm -f "$out"' EXIT

[ -n "$ptxas" ] || {
    echo "there is no ptxas beside nvcc"
    exit 77
}
grep -qx '\.version 6\.3' "$ptx" && grep -qx '\.target sm_75' "$ptx" || {
    echo "$ptx is not PTX 6.3 for sm_75"
    exit 1
}
count=0
for arch in 75 80 86 89 90 100 120; do
    if ! "$ptxas" --help | grep -q "sm_$arch"; then
        continue # another Toolkit
    fi
    "$ptxas" -arch=sm_$arch -o "$out" "$ptx" || exit 1
    count=$((count + 1))
done
echo "assembled for $count kinds of devices"
[ "$count" -ge 2 ]
