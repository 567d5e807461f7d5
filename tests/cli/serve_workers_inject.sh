# SPDX-License-Identifier: MIT
# Every defect that can be injected is found with several workers too, and the others go on.
. "$(dirname "$0")/shell_common.sh"

for how in "1 lru" "3 lru" "3 explicit"; do
    for defect in flip swap early-free torn-copy; do
        run 1 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --workers 3 --stagger 5ms \
            --control "${how#* }" --tenants "${how% *}" --requests 9 --inject $defect --json "$matvec"
        found=$(number corruptions)
        [ "${found:-0}" -gt 0 ] || fail "$defect, $how, was not found"
        [ "$(number equal_to_plain_replay)" = false ] || fail "$defect did not reach a digest"
        [ "$(number good)" = false ] || fail "$defect is good"
        [ "$(number done)" = 9 ] || fail "$defect: other requests were not served"
        says "$dir/err" "has wrong bytes"
        if [ $defect = early-free ]; then
            [ "$(number machine_violations)" -gt 0 ] || fail "the machine did not notice early-free"
        fi
    done
done

# Without the defect the same files are right.
run 0 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --workers 3 --stagger 5ms --requests 9 \
    "$matvec"
