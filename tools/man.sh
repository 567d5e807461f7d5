#!/bin/sh
# SPDX-License-Identifier: MIT
# man.sh HELP2MAN PROGRAM VERSION DESCRIPTION FOLDER
# The manual pages of the program, from what it prints with --help: tenure(1), and tenure-serve(1)
# and so on for each command that tenure --help names. help2man does it; what is done here is to
# call the program by its name, and to write "Usage:" as help2man expects it.
set -eu
help2man=$1
program=$2
version=$3
description=$4
folder=$5

rm -rf "$folder"
mkdir -p "$folder/help"
trap 'rm -rf "$folder/help"' EXIT

commands=$("$program" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[ -n "$commands" ] || {
    echo "man: tenure --help names no command" >&2
    exit 1
}

page() { # page NAME TEXT [COMMAND]
    # help2man calls the page after the program that it runs.
    printf '#!/bin/sh\n"%s" %s --help | sed "1s/^usage:/Usage:/"\n' "$program" "${3:-}" \
        >"$folder/help/$1"
    chmod +x "$folder/help/$1"
    {
        echo "[SEE ALSO]"
        comma=
        for other in $pages; do
            [ "$other" != "$1" ] || continue
            [ -z "$comma" ] || echo " ,"
            printf '.BR %s (1)' "$other"
            comma=yes
        done
        echo
    } >"$folder/help/include"
    "$help2man" --no-info --locale=C --section=1 --name="$2" --source="tenure $version" \
        --version-string="$version" --include="$folder/help/include" --output="$folder/$1.1" \
        "$folder/help/$1"
}

pages=tenure
for command in $commands; do
    pages="$pages tenure-$command"
done
for command in $commands; do
    text=$("$program" --help | sed -n "s/^  $command .*  \([^ ].*\)/\1/p")
    page "tenure-$command" "$text" "$command"
done
page tenure "$description"
