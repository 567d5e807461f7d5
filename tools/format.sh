#!/bin/sh
# SPDX-License-Identifier: MIT
# Format the C sources in place; `format.sh --check` changes nothing and fails on a difference.
# Another version of clang-format lays out some lines differently, so the version is pinned.
set -eu
unset CDPATH
pinned=14
cd "$(dirname "$0")/.."

tool=
for candidate in "clang-format-$pinned" clang-format; do
    if command -v "$candidate" >/dev/null 2>&1 &&
        "$candidate" --version | grep -q "version $pinned\."; then
        tool=$candidate
        break
    fi
done
if [ -z "$tool" ]; then
    echo "format: needs clang-format $pinned (Debian 12 and Ubuntu 22.04: apt-get install clang-format-$pinned)" >&2
    exit 1
fi

case ${1:-} in
--check) mode="--dry-run -Werror" ;;
'') mode=-i ;;
*)
    echo "usage: format.sh [--check]" >&2
    exit 2
    ;;
esac
# shellcheck disable=SC2086 # two words
find include src tests tools bench -name '*.[ch]' -type f 2>/dev/null | sort |
    xargs "$tool" --style=file $mode
