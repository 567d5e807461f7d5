# SPDX-License-Identifier: MIT
# SIGINT during `serve`: the table so far, everything closed, exit 130. And files that vanish.
. "$(dirname "$0")/shell_common.sh"

serve() { "$TENURE" serve --cache "$dir/cache" --scale 1/256 --clock real "$@" "$matvec"; }

# The files first, so that the signal comes while requests are served.
run 0 serve --requests 1

# start OPTION...: in the background, until it has certainly begun
start() {
    echo "serve $*" >"$dir/command"
    "$TENURE" serve --cache "$dir/cache" --scale 1/256 --clock real "$@" "$matvec" \
        >"$dir/out" 2>"$dir/err" &
    served=$!
    sleep 3
    kill -0 $served 2>/dev/null || fail "it ended by itself"
}

finish() {
    code=0
    wait $served || code=$?
    [ $code -eq "$1" ] || fail "exit $code instead of $1"
}

start --requests 1000000
kill -INT $served
finish 130
says "$dir/out" "of 1000000 done, 0 failed, interrupted" "corruptions          0" \
    "machine violations   0"
! grep -q "requests             0 of" "$dir/out" || fail "nothing was served before the signal"
! grep -q EXCEEDED "$dir/out" || fail "a peak exceeds its budget"
[ ! -s "$dir/err" ] || fail "errors on the way out"

start --requests 1000000 --json
kill -INT $served
finish 130
[ "$(number interrupted)" = true ] || fail "interrupted in JSON"
[ "$(number corruptions)" = 0 ] || fail "corruptions"

# Files that vanish under a running server: requests fail, say why, and the rest is closed cleanly.
start --requests 1500 --pinned-budget 0
rm -r "$dir/cache"
finish 1
says "$dir/err" "TN_ERR_SOURCE" "(native code 2)" "more errors are not shown"
[ "$(wc -l <"$dir/err")" -le 12 ] || fail "too many error lines"
says "$dir/out" "corruptions          0"
