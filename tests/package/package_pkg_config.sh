#!/bin/sh
# SPDX-License-Identifier: MIT
# The example of README.md against the installed tree, by pkg-config: shared, static, C++.
set -eu
. "$(dirname "$0")/package_common.sh"

pc=$(dirname "$(find "$prefix" -name tenure.pc)")
libdir=$(dirname "$pc")
export PKG_CONFIG_PATH="$pc"
strict="-Wall -Wextra -Wpedantic -Werror"

quietly pkg-config --exists --print-errors "tenure = $TN_VERSION"
case $(pkg-config --libs tenure) in
*urcu* | *xxhash*) fail "a program linked to the shared library would need: $(pkg-config --libs tenure)" ;;
esac

# shellcheck disable=SC2046,SC2086 # lists of words
{
    quietly "$CC" -std=c11 $strict "$TN_EXAMPLE" -o "$dir/shared" \
        $(pkg-config --cflags --libs tenure) "-Wl,-rpath,$libdir"
    lends "$dir/shared"
    # The archive, with everything else as it comes.
    quietly "$CC" -std=c11 $strict $(pkg-config --cflags tenure) "$TN_EXAMPLE" -o "$dir/archive" \
        $(pkg-config --static --libs tenure | sed 's/-ltenure/-l:libtenure.a/')
    lends "$dir/archive"
    if readelf -d "$dir/archive" | grep 'NEEDED.*libtenure'; then fail "archive: needs the library"; fi
    # Nothing shared at all.
    quietly "$CC" -static -std=c11 $strict $(pkg-config --cflags tenure) "$TN_EXAMPLE" \
        -o "$dir/static" $(pkg-config --static --libs tenure)
    lends "$dir/static"
    if readelf -d "$dir/static" 2>/dev/null | grep NEEDED; then fail "static: needs libraries"; fi
    if have_cxx; then
        cp "$TN_EXAMPLE" "$dir/example.cpp"
        quietly "${CXX:-c++}" -std=c++17 $strict "$dir/example.cpp" -o "$dir/shared_cxx" \
            $(pkg-config --cflags --libs tenure) "-Wl,-rpath,$libdir"
        lends "$dir/shared_cxx"
    else
        echo "no C++ compiler, so not tried as C++"
    fi
}
