#!/bin/sh
# SPDX-License-Identifier: MIT
# Install what is missing to build (`setup.sh run`), also to test (`setup.sh test`, the default), to
# test and fuzz (`setup.sh fuzz`), or to build and measure (`setup.sh bench`).
# Does nothing, quickly, when nothing is missing. TN_JEMALLOC=OFF: jemalloc is not missed.
set -eu
unset CDPATH

want=${1:-test}
case $want in
run | test | fuzz | bench) ;;
*)
    echo "usage: setup.sh [run|test|fuzz|bench]" >&2
    exit 2
    ;;
esac

packages= # Debian and Ubuntu names of what is missing
plain=    # the same in words, for everybody else

missing() { # missing PACKAGE WORDS
    packages="$packages $1"
    plain="$plain
  - $2"
}

have() { command -v "$1" >/dev/null 2>&1; }

look() {
    packages=
    plain=
    if ! have cc && ! have gcc; then
        missing "gcc libc6-dev" "a C11 compiler (gcc >= 9 or clang)"
    elif ! echo '#include <stdio.h>' | ${CC:-cc} -E - >/dev/null 2>&1; then
        missing "gcc libc6-dev" "the C library's headers"
    fi
    have make || missing make "make"
    have cmake || missing cmake "cmake >= 3.22"
    have pkg-config || missing pkg-config "pkg-config"
    library liburcu liburcu-dev "liburcu (userspace-rcu) with headers"
    library libxxhash libxxhash-dev "libxxhash with headers"
    library jansson libjansson-dev "jansson with headers"
    [ "${TN_JEMALLOC:-}" = OFF ] || library jemalloc libjemalloc-dev "jemalloc with headers"
    if [ "$want" = test ] || [ "$want" = fuzz ]; then
        have c++ || have g++ || missing g++ "a C++17 compiler"
        have python3 || missing python3 "python3 >= 3.9"
        have valgrind || missing valgrind "valgrind (exact instruction counts)"
        have spin || missing spin "spin (models of the protocols)"
        have help2man || missing help2man "help2man (manual pages)"
        library cmocka libcmocka-dev "cmocka >= 1.1.5 with headers"
    fi
    if [ "$want" = fuzz ]; then
        run_time= # a package of its own on Debian, a part of clang on Ubuntu 22.04
        ! apt-cache show libclang-rt-dev >/dev/null 2>&1 || run_time=" libclang-rt-dev"
        fuzzes || missing "clang$run_time" "clang with libFuzzer and sanitizers"
    fi
    if [ "$want" = bench ]; then
        have c++ || have g++ || missing g++ "a C++17 compiler"
        have python3 || missing python3 "python3 >= 3.9"
        have valgrind || missing valgrind "valgrind (exact instruction counts)"
        library benchmark libbenchmark-dev "Google Benchmark with headers"
    fi
}

fuzzes() { # clang can link its fuzzer
    have clang && echo 'int LLVMFuzzerTestOneInput(const char *d, __SIZE_TYPE__ n) { return !d && n; }' |
        clang -fsanitize=fuzzer,address -x c -o /dev/null - 2>/dev/null
}

library() { # library MODULE PACKAGE WORDS
    if ! have pkg-config || ! pkg-config --exists "$1"; then
        missing "$2" "$3"
    fi
}

look
[ -n "$packages" ] || exit 0

if ! have apt-get || ! have dpkg; then
    echo "setup: not Debian or Ubuntu. Install this, then run the same command again:$plain" >&2
    exit 1
fi

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! have sudo; then
        echo "setup: not root, and there is no sudo. As root:" >&2
        echo "    apt-get update && apt-get install --no-install-recommends$packages" >&2
        exit 1
    fi
    as_root=sudo
fi

echo "setup: installing$packages"
quiet="-qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0"
# shellcheck disable=SC2086 # lists of words
$as_root apt-get $quiet update || echo "setup: apt-get update failed; trying with the old lists" >&2
# shellcheck disable=SC2086
if ! $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get $quiet install -y --no-install-recommends $packages >/dev/null; then
    echo "setup: apt-get could not install:$packages" >&2
    exit 1
fi

look
if [ -n "$packages" ]; then
    echo "setup: still missing after the installation:$plain" >&2
    exit 1
fi
