#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which test ran for each field case.

Reads the result files that the test programs wrote (TN_RESULTS_DIR), not the sources, and
tests/field/cases.tsv. A test named f_c01_... belongs to case F-C01. Fails when a case that needs a
test has none that passed, when any of its tests failed, or when a test belongs to no case.
"""

import argparse
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def read_results(folder):
    """{case: [(test, outcome)]} from all result files."""
    cases = collections.defaultdict(list)
    for path in sorted(folder.glob("*.xml")):
        for test in ElementTree.parse(path).getroot().iter("testcase"):
            outcome = "pass"
            if test.find("failure") is not None or test.find("error") is not None:
                outcome = "FAIL"
            elif test.find("skipped") is not None:
                outcome = "skip"
            m = re.match(r"f_([a-z])(\d\d)_", test.get("name", ""))
            if m:
                case = f"F-{m.group(1).upper()}{m.group(2)}"
                cases[case].append((f"{test.get('classname')}:{test.get('name')}", outcome))
    return cases


def read_cases(path):
    """[(case, title, reason)] in file order."""
    rows = []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if not re.fullmatch(r"F-[A-Z]\d\d", cells[0]) or len(cells) != 3:
            sys.exit(f"{path}:{number}: expected `F-Xnn<TAB>title<TAB>reason or nothing`")
        if cells[2] and not re.match(r"(part|later|open|other): \S", cells[2]):
            sys.exit(f"{path}:{number}: the third column starts with part, later, open or other")
        rows.append(tuple(cells))
    return rows


def verdict(tests, reason):
    """One word for a case; upper case is wrong."""
    outcomes = {outcome for _, outcome in tests}
    word = reason.split(":")[0]
    if "FAIL" in outcomes:
        return "FAIL"
    if not tests and word in ("later", "open", "other"):
        return word
    if "pass" in outcomes:
        return word if word == "part" else "pass"
    return "SKIP" if tests else "MISSING"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=pathlib.Path, help="the folder that was TN_RESULTS_DIR")
    parser.add_argument("--cases", type=pathlib.Path, default=root / "tests/field/cases.tsv")
    parser.add_argument("--brief", action="store_true", help="only what is wrong, and the totals")
    args = parser.parse_args()
    if not args.results.is_dir():
        sys.exit(f"no results in {args.results}; run the tests with TN_RESULTS_DIR={args.results}")
    results = read_results(args.results)
    rows = read_cases(args.cases)
    tally = collections.Counter()
    bad = 0
    if not args.brief:
        print("| case | about | result | tests, or why there is none |\n|---|---|---|---|")
    for case, title, reason in rows:
        tests = results.pop(case, [])
        word = verdict(tests, reason)
        tally[word] += 1
        bad += word.isupper()
        if tests and reason and word == "pass":
            print(f"field: {case} has tests now: its third column should be empty, or `part: ...`")
        where = ", ".join(t if o == "pass" else f"{t} ({o})" for t, o in tests)
        text = "; ".join(part for part in (where, reason) if part) or "-"
        if not args.brief or word.isupper():
            print(f"| {case} | {title} | {word} | {text} |")
    for case, tests in sorted(results.items()):
        bad += 1
        print(f"field: {tests[0][0]}: there is no case {case} in {args.cases.name}")
    totals = ", ".join(f"{n} {w}" for w, n in sorted(tally.items()))
    print(f"field: {len(rows)} cases: {totals}; {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
