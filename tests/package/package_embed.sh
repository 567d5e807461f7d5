#!/bin/sh
# SPDX-License-Identifier: MIT
# The source tree inside another project: add_subdirectory built and run, FetchContent configured.
set -eu
. "$(dirname "$0")/package_common.sh"

configure() { # configure HOW
    "$CMAKE" -S "$here/embed" -B "$dir/$1" -DEXAMPLE="$TN_EXAMPLE" -DTENURE="$TN_SOURCE_DIR" -DHOW="$1"
}

quietly configure subdirectory
quietly "$CMAKE" --build "$dir/subdirectory" --parallel 2
lends "$dir/subdirectory/shared"
lends "$dir/subdirectory/static"
quietly "$CMAKE" --install "$dir/subdirectory" --prefix "$dir/installed"
[ "$(cd "$dir/installed" && find . -type f -o -type l)" = ./bin/static ] ||
    fail "installed with the parent: $(find "$dir/installed")"
quietly configure fetchcontent
echo "ok: FetchContent"
