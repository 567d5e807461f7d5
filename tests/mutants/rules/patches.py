#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Make a patch of each mutant in list.txt, for run.sh: patches.py OUT [NAME...]

Each entry's texts must be found exactly once in its file; anything else ends this with status 1, so
that a list that no longer fits the sources is noticed.
"""
import difflib
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
TESTS = "property.manager property.control spec."
CONTROLLER_TESTS = "property.control spec. property.manager"


def entries(lines):
    """Yield (name, file, what, [(old, new)], argument, tests), texts as lists of lines."""
    entry = None
    for line in lines:
        kind, text = line[:1], line[2:].rstrip("\n")
        if kind == "@":
            if entry:
                yield entry
            name, file = text.split()
            tests = CONTROLLER_TESTS if file.startswith("controller/") else TESTS
            entry = [name, file, "", [], "", tests]
        elif kind == "=":
            entry[2] = text
        elif kind == "-":
            if not entry[3] or entry[3][-1][1]:
                entry[3].append(([], []))
            entry[3][-1][0].append(text)
        elif kind == "+":
            entry[3][-1][1].append(text)
        elif kind == "!":
            entry[4] = text
        elif kind == ":":
            entry[5] = text
    if entry:
        yield entry


def pattern(lines):
    """The old lines, whatever their indentation."""
    return r"\s*\n\s*".join(re.escape(line.strip()) for line in lines)


def mutate(name, source, pairs):
    for old, new in pairs:
        found = list(re.finditer(pattern(old), source))
        if len(found) != 1:
            raise ValueError(f"{name}: found {len(found)} times: {' / '.join(old)}")
        at = found[0]
        source = source[: at.start()] + "\n".join(new) + source[at.end() :]
    return source


def main():
    out, wanted = sys.argv[1], set(sys.argv[2:])
    with open(os.path.join(HERE, "list.txt"), encoding="utf-8") as f:
        every = list(entries(f))
    bad = [f"no mutant {name}" for name in wanted - {e[0] for e in every}]
    for name, file, what, pairs, argument, tests in every:
        if wanted and name not in wanted:
            continue
        path = os.path.join("src", file)
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            before = f.read()
        try:
            after = mutate(name, before, pairs)
        except ValueError as e:
            bad.append(str(e))
            continue
        if argument:
            continue
        diff = difflib.unified_diff(
            before.splitlines(True), after.splitlines(True), "a/" + path, "b/" + path
        )
        with open(os.path.join(out, name + ".patch"), "w", encoding="utf-8") as f:
            f.write(f"{what}\nCaught-by: {tests}\n\n")
            f.writelines(diff)
    for text in bad:
        print(text, file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
