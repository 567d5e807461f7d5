# SPDX-License-Identifier: MIT
# SIGINT with several workers, some of them serving, queueing or not started: the table so far,
# everything closed, exit 130.
. "$(dirname "$0")/shell_common.sh"

# The files first, so that the signal comes while requests are served.
run 0 "$TENURE" serve --cache "$dir/cache" --scale 1/256 --requests 1 "$matvec"

# interrupted OPTION...: in the background, until it has certainly begun; then the signal
interrupted() {
    echo "serve $*" >"$dir/command"
    "$TENURE" serve --cache "$dir/cache" --requests 1000000 "$@" >"$dir/out" 2>"$dir/err" &
    served=$!
    sleep 3
    kill -0 $served 2>/dev/null || fail "it ended by itself"
    kill -INT $served
    code=0
    wait $served || code=$?
    [ $code -eq 130 ] || fail "exit $code instead of 130"
    [ ! -s "$dir/err" ] || fail "errors on the way out"
}

# is_clean: the table
is_clean() {
    says "$dir/out" "of 1000000 done, 0 failed, interrupted" "corruptions          0" \
        "machine violations   0"
    ! grep -q "requests             0 of" "$dir/out" || fail "nothing was served before the signal"
    ! grep -q EXCEEDED "$dir/out" || fail "a peak exceeds its budget"
}

interrupted --scale 1/256 --workers 4 --stagger 50ms "$matvec"
is_clean
says "$dir/out" "4 workers" "worker 3"

# Three of them have not started yet.
interrupted --scale 1/256 --workers 4 --stagger 1000s "$matvec"
is_clean
says "$dir/out" "at most 1 at once" "0.000 s of "

# Some queue. These files are made first, too.
run 2 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --workers 6 --device-budget 1 "$matvec" \
    "$boot"
need=$(sed -n 's/.* is below the \([0-9]*\) bytes that 6 workers need.*/\1/p' "$dir/err")
run 0 "$TENURE" serve --cache "$dir/cache" --scale 1/1024 --requests 1 "$matvec" "$boot"
interrupted --scale 1/1024 --workers 6 --stagger 0 --device-budget "$need" "$matvec" "$boot"
is_clean

interrupted --scale 1/256 --workers 3 --stagger 10ms --json "$matvec"
[ "$(number interrupted)" = true ] || fail "interrupted in JSON"
[ "$(number corruptions)" = 0 ] || fail "corruptions"
