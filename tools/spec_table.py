#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which test ran for each case and rule of the two specifications.

Reads the result files that the test programs wrote (TN_RESULTS_DIR), not the sources, and the lists
of cases in tests/spec/: rules.tsv (manager: tests mcNNN_..., cases MCn, rules Mn) and
control_rules.tsv (controller: ccNNN_..., CCn, Cn). Fails when a case has neither a passed test nor
a reason in the third column of its list, or when any of its tests failed.
"""

import argparse
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


# Letter of the rules, and the file in tests/spec; a case is named by the letter and a C.
SPECIFICATIONS = (("M", "rules.tsv"), ("C", "control_rules.tsv"))


def read_results(folder):
    """{(letter, case): [(test, outcome)]} and the number of tests, from all result files."""
    cases = collections.defaultdict(list)
    count = 0
    for path in sorted(folder.glob("*.xml")):
        for test in ElementTree.parse(path).getroot().iter("testcase"):
            count += 1
            outcome = "pass"
            if test.find("failure") is not None or test.find("error") is not None:
                outcome = "FAIL"
            elif test.find("skipped") is not None:
                outcome = "skip"
            m = re.match(r"([mc])c(\d{3})_", test.get("name", ""))
            if m:
                case = (m.group(1).upper(), int(m.group(2)))
                cases[case].append((f"{test.get('classname')}:{test.get('name')}", outcome))
    return cases, count


def read_rules(path, letter):
    """[(case, [rule numbers], reason)] in file order."""
    rows = []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = line.split("\t")
        if not re.fullmatch(rf"{letter}C\d+", cells[0]) or len(cells) > 3:
            sys.exit(f"{path}:{number}: expected `{letter}Cn<TAB>rules<TAB>reason or nothing`")
        reason = cells[2].strip() if len(cells) == 3 else ""
        if reason and not re.match(r"(later|n/a): \S", reason):
            sys.exit(f"{path}:{number}: the third column starts with `later: ` or `n/a: `")
        rules = [int(r) for r in re.findall(rf"{letter}(\d+)", cells[1])] if len(cells) > 1 else []
        rows.append((int(cells[0][2:]), rules, reason))
    return rows


def verdict(tests, reason):
    """One word for a case."""
    outcomes = {o for _, o in tests}
    if "FAIL" in outcomes:
        return "FAIL"
    if "pass" in outcomes:
        return "pass"
    if reason:
        return reason.split(":")[0]
    return "skip" if tests else "MISSING"


def print_rules(rows, verdicts, letter):
    cases = collections.defaultdict(list)
    for case, rules, _ in rows:
        for rule in rules:
            cases[rule].append(case)
    print("\n| rule | cases with a passed test | other cases |\n|---|---|---|")
    for rule in sorted(cases):
        good = [f"{letter}C{c}" for c in cases[rule] if verdicts[c] == "pass"]
        other = [f"{letter}C{c} {verdicts[c]}" for c in cases[rule] if verdicts[c] != "pass"]
        print(f"| {letter}{rule} | {' '.join(good) or '-'} | {', '.join(other) or '-'} |")
    named = sum(1 for r in cases if any(verdicts[c] == "pass" for c in cases[r]))
    print(f"\nspec: {named} of {len(cases)} rules named by cases have a passed test")


def print_specification(letter, rows, results, brief):
    """Print one table, take its cases out of `results`; how many verdicts there are of each kind."""
    verdicts = {}
    tally = collections.Counter()
    if not brief:
        print("\n| case | rules | result | test, or why there is none |\n|---|---|---|---|")
    for case, rules, reason in rows:
        tests = results.pop((letter, case), [])
        word = verdicts[case] = verdict(tests, reason)
        tally[word] += 1
        where = ", ".join(t if o == word else f"{t} ({o})" for t, o in tests) or reason or "-"
        if not brief or word in ("FAIL", "skip", "MISSING"):
            print(f"| {letter}C{case} | {' '.join(f'{letter}{r}' for r in rules)} | {word} | {where} |")
    if not brief:
        print_rules(rows, verdicts, letter)
    return tally


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", type=pathlib.Path, help="the folder that was TN_RESULTS_DIR")
    parser.add_argument("--rules", type=pathlib.Path, default=root / "tests/spec",
                        help="the folder with the lists of cases")
    parser.add_argument("--brief", action="store_true", help="only what is wrong, and the totals")
    args = parser.parse_args()
    if not args.results.is_dir():
        sys.exit(f"no results in {args.results}; run the tests with TN_RESULTS_DIR={args.results}")
    results, count = read_results(args.results)
    bad = 0
    for letter, name in SPECIFICATIONS:
        rows = read_rules(args.rules / name, letter)
        tally = print_specification(letter, rows, results, args.brief)
        totals = ", ".join(f"{n} {w}" for w, n in sorted(tally.items()))
        print(f"spec: {name}: {len(rows)} cases: {totals}")
        bad += tally["FAIL"] + tally["skip"] + tally["MISSING"]
    for (letter, case), tests in sorted(results.items()):
        print(f"spec: {tests[0][0]}: there is no case {letter}C{case} in its list")
    bad += len(results)
    print(f"spec: {count} test results; {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
