#!/bin/sh
# SPDX-License-Identifier: MIT
# What is installed, that the tree can be moved, and that its program runs where it is moved to.
set -eu
. "$(dirname "$0")/package_common.sh"

quietly "$CMAKE" --install "$TN_BUILD_DIR" --prefix "$dir/first"
rm -rf "$prefix"
mv "$dir/first" "$prefix"

cd "$prefix"
library=$(find . -name libtenure.so)
[ -n "$library" ] || fail "no libtenure.so"
libdir=$(dirname "$library")
for file in "$libdir/libtenure.a" "$libdir/libtenure.so.$TN_VERSION" "$libdir/pkgconfig/tenure.pc" \
    "$libdir/cmake/tenure/tenure-config.cmake" "$libdir/cmake/tenure/tenure-config-version.cmake" \
    share/doc/tenure/LICENSE; do
    [ -f "$file" ] || fail "$file is not installed"
done
for header in "$TN_SOURCE_DIR"/include/tenure/*.h; do
    cmp -s "$header" "include/tenure/$(basename "$header")" || fail "$(basename "$header") differs"
done
[ "$(find include -type f | wc -l)" = "$(find "$TN_SOURCE_DIR/include" -name '*.h' | wc -l)" ] ||
    fail "more headers than the public ones: $(find include -type f)"

# Nothing that is read by a consumer names a place of this machine's source or build tree.
if grep -rl -e "$TN_BUILD_DIR" -e "$TN_SOURCE_DIR" -e "$dir" "$libdir/cmake" "$libdir/pkgconfig"; then
    fail "the packages name the build"
fi
if [ -x bin/tenure ]; then
    quietly bin/tenure --version
    grep -qx "tenure $TN_VERSION" "$dir/out" || fail "tenure --version says $(cat "$dir/out")"
fi
echo "ok: $(find . -type f | wc -l) files"
