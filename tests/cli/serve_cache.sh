# SPDX-License-Identifier: MIT
# The cache directory: made once, healed where it can be, refused where it cannot be used.
. "$(dirname "$0")/shell_common.sh"

serve() {
    wanted=$1
    shift
    run "$wanted" "$TENURE" serve --scale 1/1024 --clock virtual --requests 2 "$@" "$matvec"
}

cache=$dir/a/b/cache # its parents are made too
serve 0 --cache "$cache"
files=$(ls "$cache" | wc -l)
[ "$files" -eq 172 ] || fail "$files files for 2 x 22 keys and 128 plaintexts"
ls "$cache" | grep -v '\.value$' && fail "something else was left in the cache"

# A second run makes nothing: the files are those of the first.
(cd "$cache" && ls -li | awk '{print $1, $NF}' | sort) >"$dir/before"
serve 0 --cache "$cache"
(cd "$cache" && ls -li | awk '{print $1, $NF}' | sort) >"$dir/after"
cmp -s "$dir/before" "$dir/after" || fail "files were made again"

# A missing, a short, a long file, and headers that do not fit, are made again.
victim=$cache/$(ls "$cache" | head -n 1)
other=$cache/$(ls "$cache" | tail -n 1)
cp "$victim" "$dir/good"
heals() {
    serve 0 --cache "$cache"
    cmp -s "$victim" "$dir/good" || fail "the file was not made again"
}
rm "$victim"
heals
: >"$victim"
heals
head -c 100 "$dir/good" >"$victim"
heals
printf x >>"$victim"
heals
cp "$other" "$victim" # whole, but another value
heals
printf 'X' | dd of="$victim" bs=1 seek=0 conv=notrunc 2>/dev/null # magic
heals
printf 'X' | dd of="$victim" bs=1 seek=40 conv=notrunc 2>/dev/null # name
heals

# Damaged content is found by the checksum when it is loaded: requests fail, the file is named.
for file in "$cache"/*.value; do
    printf 'damaged!' | dd of="$file" bs=1 seek=80 conv=notrunc 2>/dev/null
done
serve 1 --cache "$cache"
says "$dir/out" "0 of 2 done, 2 failed"
says "$dir/err" "TN_ERR_MATERIALIZATION" "loading rot:1 of $cache/"
rm -r "$cache"
serve 0 --cache "$cache"

# A file that cannot be made, because a directory has its name.
rm "$victim"
mkdir "$victim"
serve 2 --cache "$cache"
says "$dir/err" "Is a directory"
rmdir "$victim"

# Directories that cannot be used.
: >"$dir/file"
serve 2 --cache "$dir/file"
says "$dir/err" "cache directory $dir/file: Not a directory"
serve 2 --cache "$dir/file/below"
says "$dir/err" "Not a directory"
serve 2 --cache ""
if [ -d /proc/self ]; then
    serve 2 --cache /proc/tenure
    says "$dir/err" "cache directory /proc/tenure"
fi

# Directories without permission. Root has all of them, so root asks as somebody else, where it can.
as_other=
if [ "$(id -u)" -eq 0 ]; then
    as_other="setpriv --reuid=65534 --regid=65534 --clear-groups"
fi
# shellcheck disable=SC2086 # several words, or none
if $as_other sh -c 'test -r "$1" && "$2" --help >/dev/null' - "$matvec" "$TENURE" 2>/dev/null; then
    mkdir "$dir/closed"
    chmod 000 "$dir/closed"
    run 2 $as_other "$TENURE" serve --scale 1/1024 --cache "$dir/closed" "$matvec"
    says "$dir/err" "cache directory $dir/closed: Permission denied"
    chmod 700 "$dir/closed"
    run 2 $as_other "$TENURE" serve --scale 1/1024 --cache /tenure-cache "$matvec"
    says "$dir/err" "cache directory /tenure-cache: Permission denied"
else
    echo "not checked: no other user can run the program here"
fi

# Where it is by default.
serve_home() {
    run 0 env XDG_CACHE_HOME="$1" HOME="$2" "$TENURE" serve --scale 1/1024 --clock virtual \
        --requests 1 "$matvec"
}
serve_home "$dir/xdg" "$dir/home"
[ -d "$dir/xdg/tenure" ] || fail "XDG_CACHE_HOME is not used"
serve_home "" "$dir/home"
[ -d "$dir/home/.cache/tenure" ] || fail "HOME is not used"
