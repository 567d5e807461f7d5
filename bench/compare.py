#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measure tenure_bench, or compare two builds of it, on a machine that other work shares.

    compare.py PROGRAM [options]     a table: CPU ns for each number of values and of threads
    compare.py BASE NEW [options]    what changed

Runs the two programs in turn, N rounds each, so that what disturbs one disturbs the other, and
takes the least CPU time of each benchmark: disturbance only ever adds. `spread` is the greater of
the two programs' (second least / least - 1): a difference within it says nothing.
"""
import argparse
import json
import re
import subprocess


def once(program, options):
    out = subprocess.run([program, "--benchmark_format=json", f"--benchmark_filter={options.filter}",
                          f"--benchmark_min_time={options.min_time}"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    rows = json.loads(out)["benchmarks"]
    assert all(row["time_unit"] == "ns" for row in rows)
    return {row["name"]: row["cpu_time"] for row in rows}


def measure(programs, options):
    """{benchmark: [CPU times of each program, least first]}"""
    times = {}
    for _ in range(max(options.rounds, 2)):
        for which, program in enumerate(programs):
            for name, ns in once(program, options).items():
                times.setdefault(name, [[] for _ in programs])[which].append(ns)
    return {name: [sorted(one) for one in all_] for name, all_ in times.items() if all(all_)}


def compare(times):
    print(f"{'base ns':>10} {'new ns':>10} {'change':>8} {'spread':>8}  CPU time, benchmark")
    for name, (base, new) in times.items():
        spread = max(one[1] / one[0] - 1 for one in (base, new))
        print(f"{base[0]:10.1f} {new[0]:10.1f} {100 * (new[0] / base[0] - 1):+7.1f}% "
              f"{100 * spread:7.1f}%  {name}")


def table(times):
    """Markdown: a row for each benchmark, a column for each number of values and threads."""
    rows, columns = {}, []
    for name, ((ns, *_),) in times.items():
        row, values, threads = re.match(r"(.*)/values:(\d+)/threads:(\d+)$", name).groups()
        column = int(values), int(threads)
        rows.setdefault(row, {})[column] = ns
        if column not in columns:
            columns.append(column)
    columns.sort()
    heads = [f"1e{len(str(values)) - 1}, {threads} thr." for values, threads in columns]
    print("| CPU ns | " + " | ".join(heads) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for row, cells in rows.items():
        figures = (cells.get(column) for column in columns)
        print(f"| {row} | " + " | ".join("" if ns is None else f"{ns:,.0f}" if ns >= 100 else f"{ns:.1f}"
                                         for ns in figures) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="+", help="one, or two to compare")
    parser.add_argument("--filter", default=".", help="as --benchmark_filter")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--min-time", type=float, default=0.05)
    options = parser.parse_args()
    if len(options.program) > 2:
        parser.error("at most two programs")
    times = measure(options.program, options)
    if len(options.program) == 2:
        compare(times)
    else:
        table(times)


if __name__ == "__main__":
    main()
