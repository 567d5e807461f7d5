#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The drill: break each place of places.py, one at a time, and say which test notices.

    drill.py [OPTION...] [GLOB...]     all places, or those whose names match

    -k KINDS   `o`: orderings, `c`: claims, `oc`: both (default)
    -l         list the places and what is run for them; nothing is built
    -a         run all tests of a place, not only up to the first that notices
    -t TEST    run this instead: tests as in tests.txt
    -d FOLDER  where to build; kept afterwards, and used again if the tree is the same
    -j JOBS    compile jobs, and mutants at once (default: all processors)

Each kind of build is made once, with a switch at each place (drill.h); the environment chooses the
mutant, so that a mutant costs only the run of its tests. What is run for which place stands in
tests.txt. Every test must pass with no place broken, and has eight times as long with one.
Ends with a line for each detector and the survivors. Exit status 1: a survivor that tests.txt does not
name, or a named one that was caught.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import places

HERE = pathlib.Path(__file__).resolve().parent
ROOT = places.ROOT
BUILDS = {"plain": "", "weak": "", "tsan": "thread", "asan": "address+undefined"}
OPTIONS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1:history_size=4",
    "TN_STOP": "1",
    "TN_PROPERTY_SHRINK": "0",
}
DEFAULTS = {"TN_TORTURE_SECONDS": "2", "TN_PROPERTY_SEQUENCES": "2000", "TN_SCHEDULES": "20000"}


class Test(NamedTuple):
    kind: str  # of build, or `model`
    name: str  # unit.lease; of a model: lease:no_heavy_fence
    only: str  # TN_TEST
    more: tuple  # NAME=VALUE

    def __str__(self):
        text = f"{self.kind}/{self.name}"
        return text + (f":{self.only}" if self.only else "") + "".join(f",{m}" for m in self.more)


def parse(token):
    kind, _, rest = token.partition("/")
    if kind == "model":
        return Test(kind, rest, "", ())
    rest, *more = rest.split(",")
    name, _, only = rest.partition(":")
    if kind not in BUILDS:
        raise SystemExit(f"drill: no such build in {token}")
    return Test(kind, name, only, tuple(more))


class Plan:
    """tests.txt: `NAMES: TEST...` adds tests, `! NAMES` names survivors."""

    def __init__(self):
        self.lines, self.survivors = [], []
        for line in (HERE / "tests.txt").read_text().split("\n"):
            line = line.split(" #")[0].strip()
            if line.startswith("!"):
                self.survivors.append(line[1:].strip())
            elif line and not line.startswith("#"):
                names, _, tests = line.partition(": ")
                self.lines.append((names.split(), [parse(t) for t in tests.split()]))

    def tests(self, place):
        out = []
        for names, tests in self.lines:
            if any(fnmatch.fnmatch(place.name, n) for n in names):
                out += [t for t in tests if t not in out]
        return out

    def may_survive(self, place):
        return any(fnmatch.fnmatch(place.name, s) for s in self.survivors)


# ---- Builds ---------------------------------------------------------------------------------


def tracked(root):
    """Files of the tree."""
    git = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"]
    out = subprocess.run(git, capture_output=True, text=True, check=False)
    if out.returncode == 0:
        return [f for f in out.stdout.split("\n") if (root / f).is_file()]
    return [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()]


class Builder:
    def __init__(self, folder, jobs):
        self.folder, self.jobs = pathlib.Path(folder), jobs
        self.tree = self.folder / "tree"

    def copy(self, every):
        """A copy with switches; files that are the same keep their times."""
        fresh = self.folder / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        for file in tracked(ROOT):
            (fresh / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, fresh / file)
        places.switch(fresh, every)
        new = {p.relative_to(fresh) for p in fresh.rglob("*") if p.is_file()}
        for p in [p for p in self.tree.rglob("*") if p.is_file()]:
            if p.relative_to(self.tree) not in new:
                p.unlink()
        for file in new:
            to = self.tree / file
            if not to.exists() or to.read_bytes() != (fresh / file).read_bytes():
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(fresh / file, to)
        shutil.rmtree(fresh)

    def where(self, kind):
        return self.folder / ("build-" + ("plain" if kind == "weak" else kind))

    def build(self, kind, targets):
        where = self.where(kind)
        log = self.folder / f"{where.name}.log"
        launcher = shutil.which("ccache")
        commands = [
            ["cmake", "-S", self.tree, "-B", where, "-G", "Unix Makefiles"]
            + ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DTN_CHECKS=ON", "-DTN_BUILD_TESTS=ON"]
            + ["-DTN_BUILD_TOOL=OFF", f"-DTN_SANITIZE={BUILDS[kind]}"]
            + ([f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}"] if launcher else []),
            ["cmake", "--build", where, "--parallel", str(self.jobs), "--target"]
            + sorted(targets),
        ]
        with open(log, "w", encoding="utf-8") as out:
            for command in commands:
                if subprocess.run(command, stdout=out, stderr=out, check=False).returncode:
                    sys.exit(f"drill: {where.name} does not build: {log}")


# ---- Runs -----------------------------------------------------------------------------------


class Runner:
    def __init__(self, builder):
        self.builder = builder
        self.seconds = {}  # of a test with nothing broken
        self.models = {}
        self.lock = threading.Lock()
        self.wrapper = []
        probe = subprocess.run(["setarch", "-R", "true"], capture_output=True, check=False)
        if shutil.which("setarch") and probe.returncode == 0:
            self.wrapper = ["setarch", "-R"]

    def model(self, name):
        """Whether this mutant of a model fails as it must. Once each."""
        with self.lock:
            if name not in self.models:
                command = ["sh", ROOT / "tests/model/run.sh", name]
                out = subprocess.run(command, capture_output=True, text=True, check=False)
                self.models[name] = out.returncode == 0 and "mutant, fails" in out.stdout
            return self.models[name]

    def run(self, test, number, met=None):
        """(exit status, output); the status is None if it did not end."""
        program = self.builder.where(test.kind) / "tests" / test.name.replace(".", "_", 1)
        env = {**DEFAULTS, **os.environ, **OPTIONS, "TN_DRILL": str(number)}
        env["TN_SOURCE_DIR"] = str(self.builder.tree)
        env.update(m.split("=", 1) for m in test.more)
        if test.only:
            env["TN_TEST"] = test.only
        if met:
            env["TN_DRILL_MET"] = met
        if test.kind == "weak":
            env["TN_SCHEDULE_MEMORY"] = "weak"
        command = (self.wrapper if test.kind == "tsan" else []) + [str(program)]
        limit = 10 + 8 * self.seconds[test] if test in self.seconds else 600
        with tempfile.TemporaryFile(mode="w+", errors="replace") as out:
            child = subprocess.Popen(command, env=env, stdout=out, stderr=out,
                                     start_new_session=True)
            try:
                status = child.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)
                child.wait()
                status = None
            out.seek(0)
            return status, out.read()

    def baseline(self, test):
        began = time.monotonic()
        status, text = self.run(test, 0)
        self.seconds[test] = time.monotonic() - began
        if status not in (0, 77):
            print(f"{test} fails with nothing broken:\n{text[-3000:]}", flush=True)
        return status in (0, 77)


def detector(test, text):
    if test.kind == "model":
        return "model"
    if "WARNING: ThreadSanitizer" in text:
        return "TSan"
    if "ERROR: AddressSanitizer" in text or "runtime error:" in text:
        return "ASan"
    if test.name.startswith("schedule."):
        return "weak memory" if test.kind == "weak" else "schedule"
    return "torture" if test.name.startswith("torture.") else "test"


def function(text):
    """The test function that failed."""
    m = re.search(r"^\[  FAILED  \] (\w+)", text, re.M) or re.search(r"TN_TEST='(\w+)'", text)
    m = m or re.search(r"^\[ RUN      \] (\w+)(?![\s\S]*^\[ RUN )", text, re.M)
    return ":" + m.group(1) if m else ""


def drill(runner, place, tests, every):
    """[(detector, what noticed)], whether the place was met."""
    caught, met = [], False
    for test in tests:
        if test.kind == "model":
            noticed, text, status = runner.model(test.name), "", 1
        else:
            with tempfile.NamedTemporaryFile() as page:
                page.write(b"\0")
                page.flush()
                status, text = runner.run(test, place.number, page.name)
                page.seek(0)
                met |= page.read() == b"\1"
            noticed = status not in (0, 77)
        if not noticed:
            continue
        what = f"{test.kind}/{test.name}" + ("" if test.kind == "model" else function(text))
        caught.append((detector(test, text), what + (" (does not end)" if status is None else "")))
        if not every:
            break
    return caught, met


def select(globs, every):
    if not globs:
        return every
    out = [p for p in every if any(fnmatch.fnmatch(p.name, g) for g in globs)]
    if not out:
        sys.exit("drill: no place matches")
    return out


def prepare(builder, runner, every, tests):
    builder.copy(every)
    by_build = collections.defaultdict(set)
    for t in tests:
        if t.kind != "model":
            by_build["plain" if t.kind == "weak" else t.kind].add(t.name.replace(".", "_", 1))
    for kind, targets in by_build.items():
        builder.build(kind, targets)
    with concurrent.futures.ThreadPoolExecutor(builder.jobs) as pool:
        real = [t for t in tests if t.kind != "model"]
        good = list(pool.map(runner.baseline, real))
    bad = [str(t) for t, ok in zip(real, good) if not ok]
    if bad:
        sys.exit("drill: fail with nothing broken: " + " ".join(bad))


def main():
    parser = argparse.ArgumentParser(add_help=False, usage=__doc__)
    parser.add_argument("-k", default="oc")
    parser.add_argument("-l", action="store_true")
    parser.add_argument("-a", action="store_true")
    parser.add_argument("-t", action="append")
    parser.add_argument("-d")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("globs", nargs="*")
    args = parser.parse_args()
    plan = Plan()
    every = places.places(ROOT)
    orders = len(places.places(ROOT, "o"))
    wanted = [p for p in every if ("o" if p.number <= orders else "c") in args.k]
    wanted = select(args.globs, wanted)
    tests_of = {p: [parse(t) for t in args.t] if args.t else plan.tests(p) for p in wanted}
    if args.l:
        for p in wanted:
            print(f"{p.name:50} {p.file}:{p.line} {p.call}")
            print("      ", *tests_of[p])
        return 0
    began = time.monotonic()
    folder = args.d or tempfile.mkdtemp()
    try:
        builder = Builder(folder, args.j)
        runner = Runner(builder)
        used = list(dict.fromkeys(t for tests in tests_of.values() for t in tests))
        prepare(builder, runner, every, used)
        print(f"ready after {time.monotonic() - began:.0f} s", flush=True)
        return report(runner, plan, wanted, tests_of, args, began)
    finally:
        if not args.d:
            shutil.rmtree(folder, ignore_errors=True)


def report(runner, plan, wanted, tests_of, args, began):
    by, survivors, wrong = collections.Counter(), [], []
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        jobs = {pool.submit(drill, runner, p, tests_of[p], args.a): p for p in wanted}
        for job in concurrent.futures.as_completed(jobs):
            p = jobs[job]
            caught, met = job.result()
            if caught:
                by[caught[0][0]] += 1
                text = "  ".join(f"{d}: {what}" for d, what in caught)
            else:
                survivors.append(p)
                text = "SURVIVED" + ("" if met else ", and no test came by")
            if bool(caught) == plan.may_survive(p):
                wrong.append(p)
            print(f"{p.name:50} {text}", flush=True)
    total = len(wanted)
    print(f"\n{total - len(survivors)} of {total} caught, {time.monotonic() - began:.0f} s")
    for name, count in by.most_common():
        print(f"  {name:12} {count:4}")
    for p in survivors:
        print(f"  survived: {p.name} ({p.file}:{p.line})")
    for p in wrong:
        print(f"  WRONG: {p.name} " + ("survived" if p in survivors else "is named a survivor"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
