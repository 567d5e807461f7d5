# SPDX-License-Identifier: MIT
# Every defect that can be injected is found: corruptions above 0, exit 1.
. "$(dirname "$0")/shell_common.sh"

for how in "virtual lru" "real lru" "virtual explicit" "real explicit"; do
    clock=${how% *}
    for defect in flip swap early-free torn-copy; do
        run 1 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --clock $clock --requests 4 \
            --control "${how#* }" --inject $defect --json "$matvec"
        found=$(number corruptions)
        [ "${found:-0}" -gt 0 ] || fail "$defect, $how, was not found"
        [ "$(number equal_to_plain_replay)" = false ] || fail "$defect did not reach a digest"
        [ "$(number good)" = false ] || fail "$defect is good"
        says "$dir/err" "has wrong bytes"
        if [ $defect = early-free ]; then
            [ "$(number machine_violations)" -gt 0 ] || fail "the machine did not notice early-free"
        fi
    done
done

# The table says it too.
run 1 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --clock virtual --requests 2 \
    --inject flip "$matvec"
says "$dir/out" "equal to the plain replay: no" "the first that differs: request 0"

# Without the defect the same files are right.
run 0 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --clock virtual --requests 4 "$matvec"
