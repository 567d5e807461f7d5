# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154 # the variables come from gpu-check.sh
# The steps of gpu-check.sh, which sources this; each runs with a time limit and may write one line
# to $note.

gpu_build() {
    jobs=${TN_JOBS:-$(nproc 2>/dev/null || echo 2)}
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTN_BUILD_TESTS=ON || return 1
    targets="tenure_tool cuda_bandwidth"
    for file in "$root"/tests/conformance/conf_*.c; do
        stem=$(basename "$file" .c)
        targets="$targets conformance_cuda_${stem#conf_}"
    done
    # shellcheck disable=SC2086 # several words
    cmake --build "$build" --parallel "$jobs" --target $targets
}

gpu_programs() {
    count=0
    for file in "$root"/tests/conformance/conf_*.c; do
        stem=$(basename "$file" .c)
        [ -x "$build/tests/conformance_cuda_${stem#conf_}" ] || {
            echo "no $build/tests/conformance_cuda_${stem#conf_}: was the CUDA Toolkit found?"
            return 1
        }
        count=$((count + 1))
    done
    for program in "$build/bin/tenure" "$build/tests/cuda_bandwidth"; do
        [ -x "$program" ] || {
            echo "no $program"
            return 1
        }
    done
    grep -q kernel_expand "$build/bin/tenure" || {
        echo "$build/bin/tenure has no kernels: was nvcc found?"
        return 1
    }
    for name in openfhe-matvec-n32768-128 openfhe-boot-n65536-44; do
        "$build/bin/tenure" workload check "$workloads/$name.jsonl" || return 1
    done
    echo "$count conformance programs, bandwidth, tenure with kernels" >"$note"
}

# The driver and its first device.
gpu_device() {
    "$build/bin/tenure" info | tee "$note.info"
    ! grep -q "driver cuda *none" "$note.info" || return 1
    sed -n '/driver cuda/,$s/^ *device 0 */device 0: /p' "$note.info" >"$note"
    name=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    [ -z "$name" ] || sed -i "1s|^|$name; |" "$note"
    [ -s "$note" ]
}

gpu_conformance() {
    passed=0
    driver=cuda
    [ -z "$rehearsal" ] || driver=
    for program in "$build"/tests/conformance_cuda_*; do
        TN_REQUIRE_GPU=1 TN_TEST_DRIVER=$driver "$program" >"$note.one" 2>&1 || {
            cat "$note.one"
            echo "$program failed"
            return 1
        }
        cat "$note.one"
        passed=$((passed + $(grep -c '^\[ *OK \]' "$note.one")))
    done
    echo "$passed tests on the real driver" >"$note"
    [ -z "$rehearsal" ] || echo "$passed tests, not on a real driver" >"$note"
    [ "$passed" -gt 0 ]
}

# 16 values of the size of a bootstrap's key.
gpu_copies() {
    mib=132
    [ -z "$rehearsal" ] || mib=1
    "$build/tests/cuda_bandwidth" $mib 16 5 | tee "$note.figures"
    awk '{ at[$1] = $2 }
        END {
            if (!at["ensure"] || !at["bare_each"] || !at["bare_queued"]) exit 1
            printf "pinned to device, GB/s: ensure %s, bare %s, bare and queued %s; ensure is %.1f %% of bare\n",
                at["ensure"], at["bare_each"], at["bare_queued"], 100 * at["ensure"] / at["bare_each"]
        }' "$note.figures" >"$note"
}

# gpu_served OPTION...: serves, then one line about it.
gpu_served() {
    "$build/bin/tenure" serve --device cuda --cache "$cache" "$@" >"$note.out"
    code=$?
    cat "$note.out"
    awk '/^  requests / { requests = $2 "/" $4 }
        /^  throughput / { rate = $2; seconds = $5 }
        /^  stall / { stall = $2 }
        /^  evictions, device/ { evictions = $3 + 0 }
        /^  digests / { digests = $2 "/" $4 }
        END {
            printf "%s requests, %s/s in %s s, stalled %s s, %d evictions, %s digests equal\n",
                requests, rate, seconds, stall, evictions, digests
        }' "$note.out" >"$note"
    return "$code"
}

# Two tenants whose keys do not fit, four workers.
gpu_serve_small() {
    of=1
    [ -z "$rehearsal" ] || of=1/256
    gpu_served --scale $of --tenants 2 --workers 4 --stagger 20ms --requests 12 \
        "$workloads/openfhe-matvec-n32768-128.jsonl"
}

# One bootstrap: 10.2 GiB of keys and 3.5 GiB of plaintexts; a quarter of the keys does not fit.
gpu_serve_large() {
    df -h "$(dirname "$cache")"
    gpu_served --scale "$1" --tenants 1 --workers 1 --requests 1 \
        "$workloads/openfhe-boot-n65536-44.jsonl" || return 1
    sed -i "1s|\$|; files $(du -sh "$cache" | cut -f 1)|" "$note"
}
