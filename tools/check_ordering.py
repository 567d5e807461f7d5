#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every ordered atomic operation in src/ says what it pairs with.

Ordered operations are calls of the helpers of src/base/atomic.h whose name carries an order
(`tn__*_acq`, `_rel`, `_acq_rel`, `_ar`, `_sc`, also before a type suffix) or starts with
`tn__fence_`, and of `tn__light_fence` and `tn__heavy_fence`. For each, outside that header:

  1. a tag `[name]` stands in a comment on its line, or in the nearest tagged comment that ends at
     most 12 lines above it in the same function (or just above the function);
  2. some comment in the code explains the tag: it has the words `Orders` and `Without`;
  3. the tag has two or more sides: comments that carry it, or operations it covers;
  4. it has one row in src/README.md: `| [name] | sides | orders | caught by |`, no cell empty;
  5. where a covered operation is seq_cst or a fence, some comment of the tag says why acquire and
     release are not enough (a sentence with "cannot", "not enough", "total order" or "because").

`[no-order]` marks deliberate absence: such a comment needs a reason and nothing else. Orders
spelled out (memory_order_acquire ..., __atomic_*, __sync_*, atomic_thread_fence) and implicitly
seq_cst operations (atomic_load() ...) belong in src/base/atomic.h only.
"""

import argparse
import collections
import pathlib
import re
import sys

import c_text

REACH = 12  # lines between a comment's end and the operation it covers
NAME = r"tn__\w+?_(?:acq_rel|acq|rel|ar|sc)(?:_(?:\w*\d+|p|ptr|int|uint|bool|size))?"
OP = re.compile(rf"\b(?P<name>{NAME}|tn__fence_\w+|tn__light_fence|tn__heavy_fence)\s*\(")
STRONG = re.compile(r"_sc(_\w+)?$|^tn__fence_|^tn__light_fence$|^tn__heavy_fence$")
RAW = re.compile(
    r"\bmemory_order_(?:acquire|release|acq_rel|seq_cst|consume)\b|\b__ATOMIC_(?:ACQ|REL|SEQ)\w*"
    r"|\b__sync_\w+|\batomic_(?:thread|signal)_fence\b"
    r"|\batomic_(?:load|store|exchange|flag_test_and_set|flag_clear"
    r"|compare_exchange_(?:weak|strong)|fetch_\w+(?<!_explicit))\s*\("
)
TAG = re.compile(r"(?<![\w\])])\[([a-z][a-z0-9]*(?:-[a-z0-9]+)*)\]")
REASON = re.compile(r"\bcannot\b|\bcan not\b|not enough|insufficient|total order|\bbecause\b", re.I)
NO_ORDER = "no-order"


class Tag:
    def __init__(self):
        self.comments = []  # (file, line, text)
        self.ops = []  # (file, line, name)


def declared_helpers(root):
    """Names with an order in them that atomic.h defines; None when there is no such file."""
    header = root / "src/base/atomic.h"
    if not header.exists():
        return None
    code, _ = c_text.split(header.read_text())
    return {m.group("name") for m in OP.finditer(code)}


def scope_of(functions, line):
    for f in functions:
        if f.first <= line <= f.last:
            return f
    return None


def covering(line, comments, functions):
    """The comment that covers an operation on `line`, or None."""
    scope = scope_of(functions, line)
    best = None
    for c in comments:
        if c.first > line:
            break
        tags = set(TAG.findall(c.text))
        if not tags:
            continue
        if c.first <= line <= c.last:
            return c
        if tags == {NO_ORDER}:  # speaks of its own relaxed operation, not of the ones below
            continue
        if line - c.last > REACH:
            continue
        if scope and c.last < scope.first - 1:
            continue  # not in this function, and not just above it
        best = c
    return best


def is_call(op, line, text, functions):
    """Not a declaration, nor the head of the helper's own definition."""
    scope = scope_of(functions, line)
    if scope is None:
        return text.lstrip().startswith("#") or text.rstrip().endswith("\\")  # in a macro
    return scope.name != op


class Checker:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.tags = collections.defaultdict(Tag)
        self.operations = 0
        self.helpers = declared_helpers(root)

    def problem(self, path, line, text):
        self.problems.append((str(path), line, text))

    def read(self, path):
        name = path.relative_to(self.root)
        code, comments = c_text.split(path.read_text())
        functions = c_text.functions(code)
        for c in comments:
            for tag in set(TAG.findall(c.text)):
                if tag != NO_ORDER:
                    self.tags[tag].comments.append((name, c.first, c.text))
                elif len(re.sub(r"\[no-order\]|[^A-Za-z]", "", c.text)) < 10:
                    self.problem(name, c.first, "[no-order] without a reason")
        for number, text in enumerate(code.split("\n"), 1):
            for m in RAW.finditer(text):
                self.problem(
                    name, number, f"{m.group().rstrip('( ')}: use a helper of src/base/atomic.h"
                )
            for m in OP.finditer(text):
                op = m.group("name")
                if self.is_ordered(op) and is_call(op, number, text, functions):
                    self.operation(name, number, op, covering(number, comments, functions))

    def is_ordered(self, op):
        pair = op in ("tn__light_fence", "tn__heavy_fence")
        return pair or self.helpers is None or op in self.helpers

    def operation(self, name, line, op, comment):
        self.operations += 1
        if comment is None:
            self.problem(name, line, f"{op}: no comment with a [tag] above it")
            return
        tags = set(TAG.findall(comment.text))
        if tags == {NO_ORDER}:
            self.problem(name, line, f"{op}: is ordered, but its comment says [no-order]")
        for tag in tags - {NO_ORDER}:
            self.tags[tag].ops.append((name, line, op))

    def judge(self):
        rows = self.table()
        for tag, t in sorted(self.tags.items()):
            if not t.ops:
                if tag in rows:
                    self.problem(*t.comments[0][:2], f"[{tag}] covers no ordered operation")
                continue
            where = t.ops[0][:2]
            texts = [text for _, _, text in t.comments]
            if not any("Orders" in x and "Without" in x for x in texts):
                self.problem(*where, f"[{tag}] is explained nowhere (Orders: ... Without: ...)")
            if len(t.comments) < 2 and len(t.ops) < 2 and "acq_rel" not in t.ops[0][2]:
                self.problem(*where, f"[{tag}] has only one side")
            if tag not in rows:
                self.problem(*where, f"[{tag}] has no row in src/README.md")
            strong = next((o for o in t.ops if STRONG.search(o[2])), None)
            if strong and not any(REASON.search(x) for x in texts):
                self.problem(
                    *strong[:2],
                    f"[{tag}] {strong[2]}: does not say why acquire and release are not enough",
                )
        for tag, line in rows.items():
            if tag not in self.tags:
                self.problem("src/README.md", line, f"[{tag}] is not in the code")

    def table(self):
        rows = {}
        path = self.root / "src/README.md"
        if not path.exists():
            return rows
        for number, line in enumerate(path.read_text().split("\n"), 1):
            m = re.match(r"\|\s*`?\[([a-z0-9-]+)\]`?\s*\|(.*)\|\s*$", line)
            if not m:
                continue
            tag, rest = m.groups()
            cells = [c.strip() for c in rest.split("|")]
            if len(cells) != 3 or not all(cells):
                self.problem("src/README.md", number, f"[{tag}]: wants sides, orders, caught by")
            if tag in rows:
                self.problem("src/README.md", number, f"[{tag}] has a second row")
            rows[tag] = number
        return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--list", action="store_true", help="print each tag with its sides")
    args = parser.parse_args()
    root = pathlib.Path(args.root).resolve()
    checker = Checker(root)
    for path in sorted((root / "src").rglob("*.[ch]")):
        # the second: the same helpers for schedule exploration
        if path not in (root / "src/base/atomic.h", root / "src/base/schedule.h"):
            checker.read(path)
    checker.judge()
    if args.list:
        for tag, t in sorted(checker.tags.items()):
            if t.ops:
                print(f"[{tag}]", *(f"{f}:{n}:{o}" for f, n, o in t.ops), sep="\n    ")
    for path, line, text in sorted(checker.problems):
        print(f"{path}:{line}: {text}")
    covered = sum(1 for t in checker.tags.values() if t.ops)
    print(
        f"ordering: {checker.operations} ordered operations, {covered} tags, "
        f"{len(checker.problems)} problems"
    )
    return 1 if checker.problems else 0


if __name__ == "__main__":
    sys.exit(main())
