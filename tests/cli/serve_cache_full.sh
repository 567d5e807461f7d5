# SPDX-License-Identifier: MIT
# A full cache directory: a clear error, exit 2, nothing half-made left. Needs a tiny file system of
# its own, so it mounts one: as root, or in a name space where we are.
. "$(dirname "$0")/shell_common.sh"

if [ "${1:-}" != "inside" ]; then
    if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
        exec unshare -m sh "$0" inside
    elif unshare -rm true 2>/dev/null; then
        exec unshare -rm sh "$0" inside
    fi
    skip "neither root nor user name spaces: no tiny file system can be mounted"
fi

mkdir "$dir/tiny"
mount -t tmpfs -o size=256k tmpfs "$dir/tiny" 2>/dev/null || skip "tmpfs cannot be mounted here"

run 2 "$TENURE" serve --cache "$dir/tiny" --scale 1/1024 --clock virtual --requests 2 "$matvec"
says "$dir/err" "$dir/tiny/" "No space left on device" "bytes for "
[ ! -s "$dir/out" ] || fail "a table without files"
! ls "$dir/tiny" | grep -q part || fail "a half-made file was left"

# With room enough the files that are there are used.
mount -o remount,size=64m "$dir/tiny" || skip "tmpfs cannot be enlarged here"
run 0 "$TENURE" serve --cache "$dir/tiny" --scale 1/1024 --clock virtual --requests 2 "$matvec"
umount "$dir/tiny"
