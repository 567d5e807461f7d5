#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare two builds of tenure_bench on a machine that other work shares.

    compare.py BASE NEW [--filter REGEX] [--rounds N] [--min-time SECONDS]

Runs the two programs in turn, N times each, so that what disturbs one disturbs the other, and
compares the least CPU time of each benchmark: disturbance only ever adds. `spread` is the greater
of the two programs' (second least / least - 1): a difference within it says nothing.
"""
import argparse
import json
import subprocess


def once(program, options):
    out = subprocess.run([program, "--benchmark_format=json", f"--benchmark_filter={options.filter}",
                          f"--benchmark_min_time={options.min_time}"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    rows = json.loads(out)["benchmarks"]
    assert all(row["time_unit"] == "ns" for row in rows)
    return {row["name"]: row["cpu_time"] for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("new")
    parser.add_argument("--filter", default=".", help="as --benchmark_filter")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--min-time", type=float, default=0.05)
    options = parser.parse_args()
    times = {}
    for _ in range(max(options.rounds, 2)):
        for which, program in enumerate((options.base, options.new)):
            for name, ns in once(program, options).items():
                times.setdefault(name, ([], []))[which].append(ns)
    print(f"{'base ns':>10} {'new ns':>10} {'change':>8} {'spread':>8}  CPU time, benchmark")
    for name, both in times.items():
        if not all(both):
            continue
        base, new = (sorted(one) for one in both)
        spread = max(one[1] / one[0] - 1 for one in (base, new))
        print(f"{base[0]:10.1f} {new[0]:10.1f} {100 * (new[0] / base[0] - 1):+7.1f}% "
              f"{100 * spread:7.1f}%  {name}")


if __name__ == "__main__":
    main()
