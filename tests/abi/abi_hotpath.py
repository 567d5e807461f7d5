#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The hot path costs what the design says: instructions, calls, atomics, placement of cold code.

    abi_hotpath.py BUILD [--update]      BUILD: where it builds its own Release library

What is checked, on the Release shared library, out of line, for a thread that has been here before:

 1. Instructions per pair (tools/hotpath/hotpath.py: exact, by callgrind) are at most 10 % above
    the figures in hotpath.json, per compiler, the simulated driver's share not counted; and at
    most 10 % above GOAL with gcc, whatever is stored (clang 14 has no TLS descriptors, see TLS).
 2. Host cases: nothing that a pair calls is a mutex, liburcu, malloc or free, and the functions
    called through the PLT are those of hotpath.json (none for one value).
 3. Host cases: the instructions that a pair *executes* (addresses counted by callgrind, looked up
    in the disassembly) hold the stored number of locked read-modify-writes, no fence and no system
    call. For the leaf path (LEAF) it is one, the release's cmpxchg, and none in the acquire.
 4. Leaf path: the same for the whole bodies of the functions executed, taken or not; their
    out-of-line rest (NAME.cold) is not part of them.
 5. Leaf path: these functions are in .text of their object files, and the object file that holds
    tn_manager_acquire() keeps its cold code in .text.unlikely.

 6. OVER: a use that hits, with one reservation, costs at most so much more than its bare lease.

--update stores the present figures of this compiler. Exit 77: not possible on this machine.
"""
import ctypes
import glob
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "hotpath"))
import hotpath  # noqa: E402  pylint: disable=wrong-import-position

FIGURES = os.path.join(HERE, "hotpath.json")
TOLERANCE = 1.10
GOAL = {"gcc": {"lease_host_1": 190, "lease_host_8": 705}, "clang": {}}
OVER = (("use_host_4", "lease_host_4", 400),)
LEAF = ("lease_host_1",)
FORBIDDEN = re.compile(r"^_*(pthread_|sem_|futex|urcu|rcu_|cds_|malloc|calloc|realloc|free|cfree|"
                       r"memalign|posix_memalign|aligned_alloc|int_malloc|int_free|mmap|munmap)")
LOCKED = re.compile(r"^lock |^xchg .*\(")
FENCE = re.compile(r"^[lms]fence|^syscall|^sysenter|^int ")
# How a thread finds its block, per compiler: the one thing outside the library that it may call.
TLS = {"gcc": re.compile(r"_dl_tlsdesc"), "clang": re.compile(r"_dl_tlsdesc|__tls_get_addr")}
PLT = re.compile(r"^(?:bnd )?(?:call|jmp)q? .*<([^>@]+)(?:@[^>]*)?@plt>")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def requirements():
    machine = os.uname()
    if machine.sysname != "Linux" or machine.machine != "x86_64":
        skip("the instruction counts are for x86-64 Linux")
    try:
        for tool in ("valgrind", "objdump", "cmake"):
            hotpath.need(tool)
    except hotpath.Missing as missing:
        skip(str(missing))
    # Without membarrier the library takes another path (a fence on each side), with other figures.
    private_expedited = ctypes.CDLL(None, use_errno=True).syscall(324, 0, 0)
    if private_expedited < 0 or not private_expedited & (1 << 3):
        skip("no private expedited membarrier here")


def compiler(folder):
    """`gcc` or `clang`: what the figures are stored under."""
    version = hotpath.run([hotpath.compiler(folder), "--version"])
    return "clang" if "clang" in version else "gcc"


def executed(measured, code):
    """(function, instruction, times) of the library's instructions of one pair."""
    for address, times in measured["executed"].items():
        if times >= 0.005 and address in code:
            function, instruction = code[address]
            yield function, instruction, times


def look(measured, code):
    """What hotpath.json stores of a case."""
    host = measured["driver"] == 0
    facts = {"instructions": round(measured["inside"] - measured["driver"], 1)}
    if host:
        rows = list(executed(measured, code))
        facts["locked"] = round(sum(n for _, i, n in rows if LOCKED.search(i)), 1)
        facts["plt"] = sorted({PLT.search(i)[1] for _, i, _ in rows if PLT.search(i)})
    return facts


class Case:
    """The checks of one case; problems are gathered."""

    def __init__(self, measured, figures, name, code):
        self.m, self.code, self.problems = measured, code, []
        self.stored = figures[name][measured["case"]]
        self.goal = GOAL[name].get(measured["case"])
        self.tls = TLS[name]
        self.facts = look(measured, code)

    def problem(self, text):
        self.problems.append(f"{self.m['case']}: {text}")

    def instructions(self):
        now, then = self.facts["instructions"], self.stored["instructions"]
        print(f"{self.m['case']:14} {now:8.1f} instructions a pair, stored {then:8.1f} "
              f"({100 * (now / then - 1):+.1f} %)" + (f", goal {self.goal}" if self.goal else ""))
        if now > then * TOLERANCE:
            self.problem(f"{now} instructions a pair, more than {TOLERANCE} times the {then} stored")
        if self.goal and now > self.goal * TOLERANCE:
            self.problem(f"{now} instructions a pair, more than {TOLERANCE} times the goal {self.goal}")

    def host(self):
        for f in self.m["functions"]:
            if f["calls"] >= 0.005 and FORBIDDEN.search(f["name"].removeprefix("PLT ")):
                self.problem(f"a pair calls {f['name']} ({f['calls']:.2f} times)")
        if extra := set(self.facts["plt"]) - set(self.stored["plt"]):
            self.problem(f"new calls through the PLT: {', '.join(sorted(extra))}")
        if self.facts["locked"] > self.stored["locked"]:
            self.problem(f"{self.facts['locked']} locked read-modify-writes a pair, "
                         f"stored {self.stored['locked']}")
        for function, instruction, _ in executed(self.m, self.code):
            if FENCE.search(instruction):
                self.problem(f"executes `{instruction}` in {function}")

    def leaf(self, objects):
        rows = list(executed(self.m, self.code))
        bodies = {function for function, _, _ in rows}
        self.one_cas("executed", rows)
        self.one_cas("in the bodies", [(f, i, 1) for f, i in self.code.values() if f in bodies])
        for f in self.m["functions"]:
            if f["calls"] >= 0.005 and not f["object"].startswith("libtenure.so") and \
                    not self.tls.search(f["name"]):
                self.problem(f"a pair leaves the library: {f['name']} ({f['object']})")
        sections = {}
        for path in objects:
            sections.update(symbols(path))
        for body in bodies:
            if sections.get(body) not in (".text", ".text.hot", ".text." + body):
                self.problem(f"{body} is in section {sections.get(body)}")
        home = [path for path in objects if "tn_manager_acquire" in symbols(path)]
        if not any(s.startswith(".text.unlikely") for s in symbols(home[0]).values()):
            self.problem(f"no cold section in {home[0]}")

    def one_cas(self, where, rows):
        locked = [(f, i, n) for f, i, n in rows if LOCKED.search(i)]
        if [(i.split()[:2], n) for _, i, n in locked] != [(["lock", "cmpxchg"], 1)]:
            self.problem(f"not one locked cmpxchg {where}: {locked}")
        for f, _, _ in locked:
            if "acquire" in f:
                self.problem(f"a locked instruction {where} on the acquire side: {f}")
        for f, i, _ in rows:
            if FENCE.search(i) or (PLT.search(i) and not self.tls.search(i)):
                self.problem(f"{where}: `{i}` in {f}")


def symbols(path):
    """{function: section} of an object file."""
    table = hotpath.run(["objdump", "-t", path], env={**os.environ, "LC_ALL": "C"})
    return {row[2]: row[1] for row in
            re.findall(r"^[0-9a-f]+ (.{7}) (\S+)\s+[0-9a-f]+ (?:\.hidden )?(\S+)$", table, re.M)
            if "F" in row[0] or row[2].endswith(".cold")}


def main():
    requirements()
    folder = os.path.abspath(sys.argv[1])
    update = sys.argv[2:] == ["--update"]
    library, program = hotpath.build(folder)
    code = hotpath.disassemble(library)
    measured = [hotpath.measure(program, case) for case in hotpath.CASES]
    with open(FIGURES, encoding="utf-8") as file:
        figures = json.load(file)
    name = compiler(folder)
    if update:
        figures[name] = {m["case"]: look(m, code) for m in measured}
        with open(FIGURES, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=2, sort_keys=True)
            file.write("\n")
    if name not in figures:
        skip(f"no figures are stored for {name}")
    objects = glob.glob(folder + "/CMakeFiles/tenure_objects.dir/**/*.o", recursive=True)
    problems = []
    for m in measured:
        case = Case(m, figures, name, code)
        case.instructions()
        if m["driver"] == 0:
            case.host()
        if m["case"] in LEAF:
            case.leaf(objects)
        problems += case.problems
    inside = {m["case"]: m["inside"] for m in measured}
    for case, base, most in OVER:
        print(f"{case} over {base}: {inside[case] - inside[base]:.0f}, at most {most}")
        if inside[case] > inside[base] + most:
            problems.append(f"{case}: more than {most} instructions over {base}")
    for problem in problems:
        print(f"FAILED {problem}")
    if problems:
        print(f"again: python3 {os.path.relpath(__file__)} {sys.argv[1]}\n"
              f"where they go: python3 tools/hotpath/hotpath.py --build {sys.argv[1]} [--listing] CASE")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
