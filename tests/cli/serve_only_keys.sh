# SPDX-License-Identifier: MIT
# Key reads alone, one at a time: every run loads exactly the keys that an LRU cache of that size
# does, by the model of `workload check`, for every recorded program.
. "$(dirname "$0")/shell_common.sh"

# keys LIST: the numbers of a JSON list, in one line
keys() { tr -d ' \n' <"$dir/out" | sed -n "s/.*\"$1\":\\[\\([0-9,]*\\)\\].*/\\1/p" | tr , ' '; }

for file in "$workloads"/*.jsonl; do
    run 0 "$TENURE" workload check --runs "$file"
    cp "$dir/out" "$dir/runs"
    for percent in 50 75 90; do
        model=$(sed -n "s/.* $percent % capacity [0-9]* LRU keys per run: \\([0-9 ]*\\);.*/\\1/p" \
            "$dir/runs")
        [ "$(echo "$model" | wc -w)" = 20 ] || fail "$file: no model for $percent %"
        controls=lru
        [ $percent != 75 ] || controls="lru explicit"
        for control in $controls; do
            run 0 "$TENURE" serve --cache "$dir/cache" --scale 1/4096 --clock virtual --only keys \
                --workers 1 --tenants 1 --requests 20 --device-budget $percent% \
                --control $control --json "$file"
            [ "$(keys keys_loaded_by_request)" = "$model" ] ||
                fail "$control, $percent %: loaded $(keys keys_loaded_by_request), model $model"
            [ "$(number digests_equal)" = 20 ] || fail "digests"
            [ "$(number corruptions)" = 0 ] || fail "corruptions"
            ! grep -q '"within": false' "$dir/out" || fail "a peak exceeds its budget"
        done
        # Nothing but keys was made, moved or reserved.
        [ "$(grep -c '"key"' "$file")" = "$(find "$dir/cache" -type f | wc -l)" ] || fail "files"
        grep -A1 '"host_device"' "$dir/out" | grep -q '"count": 0' || fail "an input"
    done
    rm -rf "$dir/cache"
done

run 2 "$TENURE" serve --only values "$matvec"
says "$dir/err" 'serve: --only: "values" is not keys'
