# SPDX-License-Identifier: MIT
# Sourced by the tests of the program. They get TENURE, the path of the program.
#
#   run CODE COMMAND...   runs it; output to $dir/out and $dir/err; fails on another exit code
#   says FILE TEXT...     FILE ($dir/out or $dir/err) must contain each TEXT
#   number NAME           the number of that name in the JSON on $dir/out
#   fail TEXT             ends the test; skip TEXT: likewise, as skipped

: "${TENURE:?set TENURE to the path of the program}"

workloads=$(cd "$(dirname "$0")/../.." && pwd)/tools/workloads
matvec=$workloads/openfhe-matvec-n32768-128.jsonl
boot=$workloads/openfhe-boot-n65536-44.jsonl
conv=$workloads/openfhe-conv16-n65536.jsonl
sparse=$workloads/openfhe-boot-n65536-44-sparse4096.jsonl

dir=$(mktemp -d "${TMPDIR:-/tmp}/tenure-test-XXXXXX") || exit 1
cleanup() { rm -rf "$dir"; }
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "FAIL: $*"
    echo "--- rerun: TENURE=$TENURE sh $0"
    if [ -f "$dir/command" ]; then
        echo "--- last command: $(cat "$dir/command")"
        echo "--- its output:"
        head -c 4000 "$dir/out"
        echo "--- its errors:"
        head -c 4000 "$dir/err"
    fi
    exit 1
}

skip() {
    echo "SKIP: $*"
    exit 77
}

run() {
    wanted=$1
    shift
    echo "$*" >"$dir/command"
    code=0
    "$@" >"$dir/out" 2>"$dir/err" || code=$?
    [ "$code" -eq "$wanted" ] || fail "exit $code instead of $wanted"
}

says() {
    in_file=$1
    shift
    for text in "$@"; do
        grep -qF -- "$text" "$in_file" || fail "no \"$text\" in $(basename "$in_file")"
    done
}

number() {
    sed -n "s/^ *\"$1\": \\([-0-9.a-z]*\\),\\{0,1\\}\$/\\1/p" "$dir/out" | head -n 1
}
