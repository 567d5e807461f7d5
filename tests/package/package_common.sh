# SPDX-License-Identifier: MIT
# Sourced by the tests of the package. From CTest they get
#   TN_SOURCE_DIR, TN_BUILD_DIR   the source tree, and the build tree that is installed
#   TN_PACKAGE_DIR                a folder for all of them; package.install puts a tree in `prefix`
#   TN_EXAMPLE                    the example of README.md
#   TN_VERSION, CMAKE, CC
#
#   quietly COMMAND...   runs it; shows its output only if it fails, and then ends the test
#   refused COMMAND...   the same for one that must fail; its output is in $dir/out
#   lends PROGRAM        runs a build of the example
#   fail TEXT, skip TEXT end the test

: "${TN_SOURCE_DIR:?}" "${TN_BUILD_DIR:?}" "${TN_PACKAGE_DIR:?}" "${TN_EXAMPLE:?}" "${TN_VERSION:?}"
: "${CMAKE:=cmake}" "${CC:=cc}"
[ -n "${CMAKE_C_COMPILER_LAUNCHER:-}" ] || unset CMAKE_C_COMPILER_LAUNCHER
here=$(cd "$(dirname "$0")" && pwd)
prefix=$TN_PACKAGE_DIR/prefix
dir=$TN_PACKAGE_DIR/$(basename "$0" .sh)
rm -rf "$dir"
mkdir -p "$dir"
# What the test builds is the package's, not the surroundings'.
unset CFLAGS CXXFLAGS CPPFLAGS LDFLAGS CPATH LIBRARY_PATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH

fail() {
    echo "FAIL: $*"
    exit 1
}

skip() {
    echo "SKIP: $*"
    exit 77
}

quietly() {
    "$@" >"$dir/out" 2>&1 || {
        cat "$dir/out"
        fail "$*"
    }
}

refused() {
    if "$@" >"$dir/out" 2>&1; then
        cat "$dir/out"
        fail "was not refused: $*"
    fi
}

lends() {
    quietly "$@"
    grep -q '^lent and returned$' "$dir/out" || fail "$1 says $(cat "$dir/out")"
    echo "ok: $1"
}

have_cxx() { command -v "${CXX:-c++}" >/dev/null 2>&1; }
