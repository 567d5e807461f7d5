#!/bin/sh
# SPDX-License-Identifier: MIT
# The example of README.md against the installed tree, by find_package: shared, static, C++, and
# what the package refuses.
set -eu
. "$(dirname "$0")/package_common.sh"

languages="C"
if have_cxx; then languages="C;CXX"; else echo "no C++ compiler, so not tried as C++"; fi
configure() { # configure BUILD OPTION...
    build=$1
    shift
    "$CMAKE" -S "$here/consumer" -B "$dir/$build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DEXAMPLE="$TN_EXAMPLE" -DLANGUAGES="$languages" "$@"
}

quietly configure build -DVERSION=0.1
quietly "$CMAKE" --build "$dir/build"
for program in shared static shared_cxx static_cxx; do
    case $program in *_cxx) have_cxx || continue ;; esac
    lends "$dir/build/$program"
done
readelf -d "$dir/build/shared" | grep -q 'NEEDED.*libtenure\.so\.0' || fail "shared: not linked to it"
if readelf -d "$dir/build/static" | grep 'NEEDED.*libtenure'; then fail "static: needs it"; fi
if readelf -d "$dir/build/shared" | grep -E 'NEEDED.*lib(urcu|xxhash)'; then
    fail "shared: linked to what only the library needs"
fi

quietly configure exact -DVERSION="$TN_VERSION" "-DCOMPONENTS=shared;static"
for version in 0.2 1.0 0.0.9; do
    refused configure "version-$version" -DVERSION=$version
    grep -q "tenure" "$dir/out" || fail "version $version: $(cat "$dir/out")"
done
refused configure component -DVERSION=0.1 "-DCOMPONENTS=shared;quantum"
tr '\n' ' ' <"$dir/out" | grep -q "no component quantum" || fail "component: $(cat "$dir/out")"

# A machine without the development files of what the static library needs (no libraries found).
where=$(readlink -f "$(dirname "$("$CC" -print-file-name=libxxhash.so)")")
refused configure missing -DVERSION=0.1 "-DCOMPONENTS=static" \
    "-DCMAKE_IGNORE_PATH=$where;${where#/usr}"
tr '\n' ' ' <"$dir/out" | grep -q "tenure::static needs the library" || fail "missing: $(cat "$dir/out")"
quietly configure shared_only -DVERSION=0.1 "-DCOMPONENTS=shared" \
    "-DCMAKE_IGNORE_PATH=$where;${where#/usr}"
echo "ok: versions and components"
