#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exact instructions of one pair of lifetime operations, and the functions that it calls.

    hotpath.py [--build DIR] [--n SMALL LARGE] [--json] [CASE ...]

Builds the library (shared, Release, no sanitizer, whatever the caller's flags) and bench/hotpath.c
in DIR, runs each case under `valgrind --tool=callgrind` for two values of N, and divides the
difference of the two profiles by the difference of N: what start-up, warm-up and shutdown cost is
the same in both and drops out, to the instruction. `inside` is what the exported functions cost,
`with loop` adds the caller's loop. Functions are shown with calls, exclusive and inclusive
instructions per pair.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = ("lease_host_1 lease_host_8 hold_host_1 hold_host_8 reserve_host lease_cuda_1 lease_cuda_8 "
         "hold_cuda_1 reserve_cuda state_version").split()
SMALL, LARGE = 1024, 3072  # both multiples of hotpath.c's STEP_EVERY


class Missing(Exception):
    """A tool that is not installed."""


def need(tool):
    path = shutil.which(tool)
    if not path:
        raise Missing(f"{tool} is not installed")
    return path


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise SystemExit(f"hotpath: failed ({done.returncode}): {' '.join(command)}\n{done.stdout}")
    return done.stdout


def build(folder):
    """The Release library and the program, up to date, in `folder`; returns both paths."""
    cc = os.environ.get("CC") or "cc"
    flags = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "LDFLAGS", "MAKEFLAGS")}
    if not os.path.exists(os.path.join(folder, "CMakeCache.txt")):
        run([need("cmake"), "-S", SOURCE, "-B", folder, "-DCMAKE_BUILD_TYPE=Release",
             "-DTN_BUILD_TOOL=OFF", "-DTN_BUILD_TESTS=OFF", "-DTN_BUILD_BENCH=OFF"], env=flags)
    run([need("cmake"), "--build", folder, "--target", "tenure", "--parallel", "2"], env=flags)
    program = os.path.join(folder, "hotpath")
    # No PLT in the program either: the caller's loop should show the library, not the linker.
    run([*cc.split(), "-std=gnu11", "-O2", "-g", "-fno-plt", "-I" + os.path.join(SOURCE, "include"),
         os.path.join(SOURCE, "bench", "hotpath.c"), "-o", program, "-L" + folder, "-ltenure",
         "-Wl,-rpath," + folder], env=flags)
    return os.path.join(folder, "libtenure.so"), program


def parse(path):
    """{(object, function): [calls, exclusive, inclusive]} and {(caller, callee): calls}."""
    functions, edges = {}, {}
    ob = fn = cob = cfn = None
    called = 0
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line.startswith("ob="):
                ob = os.path.basename(line[3:])
            elif line.startswith("fn="):
                fn, cob = (ob, line[3:]), None
                functions.setdefault(fn, [0, 0, 0])
            elif line.startswith("cob="):
                cob = os.path.basename(line[4:])
            elif line.startswith("cfn="):
                cfn = (cob or ob, line[4:])
            elif line.startswith("calls="):
                called = int(line[6:].split()[0])
            elif line[:1].isdigit():
                cost = int(line.split()[1]) if len(line.split()) > 1 else 0
                if called:
                    callee = functions.setdefault(cfn, [0, 0, 0])
                    callee[0] += called
                    edges[fn, cfn] = edges.get((fn, cfn), 0) + called
                    if fn != cfn:
                        functions[fn][2] += cost
                    called, cob = 0, None
                else:
                    functions[fn][1] += cost
                    functions[fn][2] += cost
    return functions, edges


def profile(program, case, n):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        # Binding at start-up keeps the dynamic linker out; PLT entries are shown, not hidden.
        run([need("valgrind"), "-q", "--tool=callgrind", "--callgrind-out-file=" + out,
             "--skip-plt=no", "--compress-strings=no", "--compress-pos=no", program, case, f"{n:08}"],
            env={**os.environ, "LD_BIND_NOW": "1", "LC_ALL": "C"})
        return name_plt(*parse(out))


def name_plt(functions, edges):
    """Names PLT entries, which are addresses in the profile, after what they lead to."""
    names = {a: (a[0], "PLT " + b[1]) for a, b in edges if a[1].endswith("[PLT]")}
    merged, renamed = {}, {}
    for key, figures in functions.items():
        sums = merged.setdefault(names.get(key, key), [0, 0, 0])
        for i, figure in enumerate(figures):
            sums[i] += figure
    for (a, b), calls in edges.items():
        edge = names.get(a, a), names.get(b, b)
        renamed[edge] = renamed.get(edge, 0) + calls
    return merged, renamed


def measure(program, case, small=SMALL, large=LARGE):
    """Figures of one pair: see the keys below."""
    (before, edges_before), (after, edges_after) = (profile(program, case, n)
                                                    for n in (small, large))
    n = large - small
    functions = []
    loop = 0.0
    for key, figures in after.items():
        calls, own, all_ = (b - a for a, b in zip(before.get(key, (0, 0, 0)), figures))
        if own <= 0 and calls <= 0:
            continue
        if key[1].startswith("pairs_"):
            loop += own / n
            continue
        functions.append({"object": key[0], "name": key[1], "calls": calls / n,
                          "exclusive": own / n, "inclusive": all_ / n})
    functions = [f for f in functions if f["name"] not in ("main", "(below main)")]
    functions.sort(key=lambda f: (-f["exclusive"], f["name"]))
    edges = [{"from": a[1], "to": b[1], "object": b[0], "calls": (c - edges_before.get((a, b), 0)) / n}
             for (a, b), c in edges_after.items() if c > edges_before.get((a, b), 0)]
    inside = sum(f["exclusive"] for f in functions)
    return {"case": case, "inside": inside, "with_loop": inside + loop, "functions": functions,
            "edges": sorted(edges, key=lambda e: (e["from"], e["to"]))}


def number(x):
    return f"{x:.0f}" if abs(x - round(x)) < 0.005 else f"{x:.2f}"


def show(m):
    print(f"{m['case']}: {number(m['inside'])} instructions a pair inside, "
          f"{number(m['with_loop'])} with the caller's loop")
    print(f"    {'exclusive':>9} {'inclusive':>9} {'calls':>6}  function")
    for f in m["functions"]:
        where = "" if f["object"].startswith("libtenure") else f"  ({f['object']})"
        print(f"    {number(f['exclusive']):>9} {number(f['inclusive']):>9} "
              f"{number(f['calls']):>6}  {f['name']}{where}")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(SOURCE, "build", "hotpath"))
    parser.add_argument("--n", nargs=2, type=int, default=(SMALL, LARGE), metavar=("SMALL", "LARGE"))
    parser.add_argument("--json", action="store_true", help="all figures as JSON")
    parser.add_argument("--short", action="store_true", help="one line a case")
    parser.add_argument("case", nargs="*", help=" ".join(CASES))
    options = parser.parse_args()
    for case in options.case:
        if case not in CASES:
            parser.error(f"no case {case}")
    try:
        _, program = build(os.path.abspath(options.build))
        results = [measure(program, case, *options.n) for case in options.case or CASES]
    except Missing as missing:
        sys.exit(f"hotpath: {missing}")
    if options.json:
        json.dump(results, sys.stdout, indent=2)
        print()
    elif options.short:
        for m in results:
            print(f"{m['case']:14} {number(m['inside']):>8} {number(m['with_loop']):>8}")
    else:
        for m in results:
            show(m)


if __name__ == "__main__":
    main()
