#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual pages hold every option that the program's help holds.
set -eu
. "$(dirname "$0")/package_common.sh"

[ -x "$prefix/bin/tenure" ] || skip "the program is not built"
command -v help2man >/dev/null 2>&1 || skip "help2man is not installed"
man=$prefix/share/man/man1
[ -f "$man/tenure.1" ] || skip "built before help2man was installed"

count=0
for command in "" $("$prefix/bin/tenure" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    page=$man/tenure${command:+-$command}.1
    [ -f "$page" ] || fail "no page $page"
    grep -q "^tenure${command:+-$command} .- ." "$page" || fail "$page: no name line"
    grep -q '^\.SH SYNOPSIS' "$page" || fail "$page: no synopsis"
    # shellcheck disable=SC2086 # none or one
    for option in $("$prefix/bin/tenure" $command --help | sed -n 's/^  \(--[a-z-]*\) .*/\1/p'); do
        sed 's/\\-/-/g' "$page" | grep -qF -- "$option" || fail "$page: no $option"
        count=$((count + 1))
    done
done
[ "$count" -gt 20 ] || fail "only $count options found"
echo "ok: $count options"
