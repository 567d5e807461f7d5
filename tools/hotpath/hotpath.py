#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exact instructions of one pair of lifetime operations, and the functions that it calls.

    hotpath.py [--build DIR] [--n SMALL LARGE] [--short | --listing | --json] [CASE ...]

Builds the library (shared, Release, no sanitizer, whatever the caller's flags) and bench/hotpath.c
in DIR, runs each case under `valgrind --tool=callgrind` for two values of N, and divides the
difference of the two profiles by the difference of N: what start-up, warm-up and shutdown cost is
the same in both and drops out, to the instruction. Shown per pair:

    inside     what the exported functions cost, all callees included
    driver     the part of it spent in the simulated driver
    with loop  `inside` and the caller's own loop (16 to 20 instructions)

and for every function its calls, exclusive and inclusive instructions. "PLT f" is the linkage
table's entry through which f was called. --listing shows the instructions themselves.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CASES = ("lease_host_1 lease_host_4 lease_host_8 use_host_4 hold_host_1 hold_host_8 reserve_host "
         "lease_cuda_1 lease_cuda_8 hold_cuda_1 reserve_cuda state_version").split()
MORE = ["decide_host_4"]  # to look at; tests/abi does not keep them
SMALL, LARGE = 1024, 3072  # both multiples of hotpath.c's STEP_EVERY
LIBRARY = "libtenure.so"
SIMULATOR = "/src/driver/sim/"

Function = collections.namedtuple("Function", "object file name")


class Missing(Exception):
    """A tool that is not installed."""


def need(tool):
    path = shutil.which(tool)
    if not path:
        raise Missing(f"{tool} is not installed")
    return path


def run(command, **options):
    """The output of a command that has to succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise SystemExit(f"hotpath: failed ({done.returncode}): {' '.join(command)}\n{done.stdout}")
    return done.stdout


def build(folder):
    """The Release library and the program, up to date, in `folder`; returns both paths."""
    clean = {k: v for k, v in os.environ.items()
             if k not in ("CFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "MFLAGS")}
    if not os.path.exists(os.path.join(folder, "Makefile")):
        # -g changes no code; it names the source files in the profile (DWARF 4 for old valgrinds).
        run([need("cmake"), "-S", SOURCE, "-B", folder, "-G", "Unix Makefiles",
             "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O3 -DNDEBUG -gdwarf-4",
             "-DTN_BUILD_TOOL=OFF", "-DTN_BUILD_TESTS=OFF", "-DTN_BUILD_BENCH=OFF"], env=clean)
    run([need("cmake"), "--build", folder, "--target", "tenure", "--parallel", "2"], env=clean)
    program = os.path.join(folder, "hotpath")
    # No PLT in the program either: the caller's loop should show the library, not the linker.
    run([compiler(folder), "-std=gnu11", "-O2", "-gdwarf-4", "-fno-plt",
         "-I" + os.path.join(SOURCE, "include"), os.path.join(SOURCE, "bench", "hotpath.c"),
         "-o", program, "-pthread", "-L" + folder, "-ltenure", "-Wl,-rpath," + folder], env=clean)
    return os.path.join(folder, LIBRARY), program


def compiler(folder):
    """The C compiler that `folder` was configured with (CC when it was made)."""
    with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as cache:
        return re.search(r"^CMAKE_C_COMPILER:\w+=(.*)$", cache.read(), re.M)[1]


class Profile:
    """What callgrind counted: costs of functions, of calls between them, of instructions."""

    def __init__(self):
        self.functions = collections.defaultdict(lambda: [0, 0, 0])  # calls, exclusive, inclusive
        self.edges = collections.defaultdict(lambda: [0, 0])  # (from, to): calls, inclusive
        self.addresses = collections.Counter()  # (object, address): executions

    def read(self, path):
        ob = file = fn = cob = cfile = callee = None
        called = 0
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                key, _, value = line.rstrip("\n").partition("=")
                if key == "ob":
                    ob = value
                elif key in ("fl", "fi", "fe"):
                    file = value
                elif key == "fn":
                    fn = Function(ob, file, value)
                elif key == "cob":
                    cob = value
                elif key in ("cfi", "cfl"):
                    cfile = value
                elif key == "cfn":
                    callee = Function(cob or ob, cfile or file, value)
                    cob = cfile = None
                elif key == "calls":
                    called = int(value.split()[0])
                elif key[:2] == "0x":
                    address, _, cost = key.split()
                    self.count(fn, callee, called, (ob, int(address, 16)), int(cost))
                    called = 0
        return self.name_plt()

    def count(self, fn, callee, called, address, cost):
        if called:
            self.functions[callee][0] += called
            self.edges[fn, callee][0] += called
            self.edges[fn, callee][1] += cost
            if fn != callee:
                self.functions[fn][2] += cost
        else:
            self.functions[fn][1] += cost
            self.functions[fn][2] += cost
            self.addresses[address] += cost

    def name_plt(self):
        """Call PLT entries, which are addresses in the profile, after what they lead to."""
        names = {a: Function(a.object, a.file, "PLT " + b.name)
                 for a, b in self.edges if a.name.endswith("[PLT]")}
        named = Profile()
        named.addresses = self.addresses
        for fn, figures in self.functions.items():
            sums = named.functions[names.get(fn, fn)]
            sums[:] = map(sum, zip(sums, figures))
        for (a, b), figures in self.edges.items():
            sums = named.edges[names.get(a, a), names.get(b, b)]
            sums[:] = map(sum, zip(sums, figures))
        return named


def profile(program, case, n):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        # Binding at start-up keeps the dynamic linker out; PLT entries are shown, not hidden.
        run([need("valgrind"), "-q", "--tool=callgrind", "--callgrind-out-file=" + out,
             "--dump-instr=yes", "--skip-plt=no", "--compress-strings=no", "--compress-pos=no",
             program, case, f"{n:08}"],
            env={**os.environ, "LD_BIND_NOW": "1", "LC_ALL": "C"})
        return Profile().read(out)


def measure(program, case, small=SMALL, large=LARGE):
    """Figures of one pair; `executed` counts the library's instructions by address."""
    before, after = (profile(program, case, n) for n in (small, large))
    pairs = large - small

    def per_pair(table, key):
        old = table(before).get(key) or [0] * len(table(after)[key])
        return [(b - a) / pairs for a, b in zip(old, table(after)[key])]

    functions, loop = [], 0.0
    for fn in after.functions:
        calls, own, all_ = per_pair(lambda p: p.functions, fn)
        if fn.name.startswith("pairs_"):
            loop += own
        elif own > 0 or calls > 0:
            functions.append({"name": fn.name, "object": os.path.basename(fn.object),
                              "file": fn.file, "calls": calls, "exclusive": own,
                              "inclusive": all_})
    functions.sort(key=lambda f: (-f["exclusive"], f["name"]))
    calls, driver = [], 0.0
    for a, b in after.edges:
        count, cost = per_pair(lambda p: p.edges, (a, b))
        if count > 0:
            calls.append({"from": a.name, "object": os.path.basename(a.object), "to": b.name,
                          "calls": count})
        if SIMULATOR in b.file and SIMULATOR not in a.file:
            driver += cost
    inside = sum(f["exclusive"] for f in functions)
    executed = {address: (n - before.addresses[ob, address]) / pairs
                for (ob, address), n in after.addresses.items()
                if os.path.basename(ob).startswith(LIBRARY) and n > before.addresses[ob, address]}
    return {"case": case, "inside": inside, "driver": driver, "with_loop": inside + loop,
            "functions": functions, "calls": calls, "executed": executed}


def disassemble(library):
    """{address: (function, instruction)} of the whole library."""
    code, function = {}, ""
    for line in run([need("objdump"), "-d", "--no-show-raw-insn", library],
                    env={**os.environ, "LC_ALL": "C"}).splitlines():
        head = re.match(r"[0-9a-f]+ <(.+)>:$", line)
        if head:
            function = head[1]
            continue
        instruction = re.match(r"\s*([0-9a-f]+):\s+(\S.*)$", line)
        if instruction:
            code[int(instruction[1], 16)] = function, instruction[2].strip()
    return code


def number(x):
    return f"{x:.0f}" if abs(x - round(x)) < 0.005 else f"{x:.2f}"


def summary(m):
    text = f"{m['case']:14} {number(m['inside']):>8} inside"
    if m["driver"]:
        text += f" ({number(m['driver'])} in the driver, {number(m['inside'] - m['driver'])} ours)"
    return text + f", {number(m['with_loop'])} with loop"


def show(m):
    print(summary(m))
    print(f"    {'exclusive':>9} {'inclusive':>9} {'calls':>6}  function")
    for f in m["functions"]:
        if f["exclusive"] < 0.005 and f["calls"] < 0.005:
            continue
        where = f["object"].split(".so")[0]
        print(f"    {number(f['exclusive']):>9} {number(f['inclusive']):>9} "
              f"{number(f['calls']):>6}  {f['name']}"
              + ("" if where in ("libtenure", "???") else f"  ({where})"))
    print()


def listing(m, library):
    print(summary(m))
    code, last = disassemble(library), None
    for address, count in sorted(m["executed"].items()):
        if count < 0.005:
            continue
        function, instruction = code.get(address, ("?", "?"))
        if function != last:
            print(f"  {function}:")
        last = function
        print(f"    {number(count):>6}  {address:6x}  {instruction}")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(SOURCE, "build", "hotpath"))
    parser.add_argument("--n", nargs=2, type=int, default=(SMALL, LARGE), metavar=("SMALL", "LARGE"))
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.add_argument("--short", action="store_true", help="one line a case")
    parser.add_argument("--listing", action="store_true", help="instructions executed in a pair")
    parser.add_argument("case", nargs="*", help=" ".join(CASES))
    options = parser.parse_args()
    for case in options.case:
        if case not in CASES + MORE:
            parser.error(f"no case {case}")
    try:
        library, program = build(os.path.abspath(options.build))
        results = [measure(program, case, *options.n) for case in options.case or CASES]
    except Missing as missing:
        sys.exit(f"hotpath: {missing}")
    if options.json:
        json.dump(results, sys.stdout, indent=2)
        print()
    for m in results if not options.json else []:
        if options.short:
            print(summary(m))
        elif options.listing:
            listing(m, library)
        else:
            show(m)


if __name__ == "__main__":
    main()
