# SPDX-License-Identifier: MIT
"""The places that the drill breaks: found in the sources, and switched in a copy of them.

Orderings: each ordered operation, as tools/check_ordering.py finds them. Claims: each call in
FILES of a function of GIVES_BACK. A place is one call; in the copy it becomes
TN__DRILL(number, broken, as it is), see drill.h.
"""
import collections
import fnmatch
import pathlib
import re
import sys
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import c_text  # noqa: E402
import check_ordering  # noqa: E402

# What an operation becomes: `{}` stands for its arguments.
WEAKER = {
    "tn__load_acq": "tn__load_rlx({})",
    "tn__store_rel": "tn__store_rlx({})",
    "tn__swap_acq": "tn__swap_rlx({})",
    "tn__swap_sc": "tn__swap_acq_rel({})",
    "tn__sub_acq_rel": "tn__sub_rlx({})",
    "tn__cas_rel": "tn__cas_rlx({})",
    "tn__cas_acq_rel": "tn__cas_rlx({})",
    "tn__pair_cas_acq_rel": "tn__pair_cas_rlx({})",
    "tn__fence_acq": "(void)0",
    "tn__fence_rel": "(void)0",
    "tn__fence_sc": "(void)0",
    "tn__fence_compiler": "(void)0",
    "tn__light_fence": "(void)0",
    "tn__heavy_fence": "TN_OK",
}

# Claims and charges that end: given back, settled, or told to who waits for them.
GIVES_BACK = """
    tn__ledger_unclaim tn__ledger_uncharge tn__ledger_reclaim tn__ledger_settle
    tn__need_unclaim tn__need_settle unclaim_all charge_to_claim bytes_back settle_rest give_back
    tn__claims_return tn__claims_step tn__owners_release tn__ticket_frees
    tn__flow_leave tn__flow_load_done tn__flow_wake tn__cond_broadcast
    tn__ring_give tn__ring_leave tn__life_take_end tn__life_guard_lower
    tn__removal_end tn__removal_commit tn__decision_outcome
""".split()
FILES = """
    placement/* transition/* lifetime/reserve.c lifetime/hot.c lifetime/release.c
    lifetime/close.c lifetime/acquire.c value/ring.c value/source_upload.c
""".split()


class Place(NamedTuple):
    number: int
    name: str
    file: str  # below the root
    line: int
    at: int  # offset
    call: str
    broken: str


class Finder(check_ordering.Checker):
    """The checker, which also says which comment covers which operation."""

    def __init__(self, root):
        super().__init__(root)
        self.found = []  # (file, line, operation, tag)

    def operation(self, name, line, op, comment):
        super().operation(name, line, op, comment)
        tags = sorted(set(check_ordering.TAG.findall(comment.text)) - {check_ordering.NO_ORDER})
        own = [t for t in tags if t != "fence"] if op.startswith("tn__store") else tags
        self.found.append((str(name), line, op, (own or tags)[0]))


def sources(root):
    for path in sorted((root / "src").rglob("*.[ch]")):
        if path.name not in ("atomic.h", "schedule.h"):
            yield path


def where(code, functions, line):
    scope = check_ordering.scope_of(functions, line)
    return scope.name if scope else "-"


def offsets(code, line, op):
    """Offsets of the calls of `op` on a line."""
    begin = 0
    for _ in range(line - 1):
        begin = code.index("\n", begin) + 1
    end = code.find("\n", begin)
    return [m.start() for m in re.finditer(rf"\b{op}\s*\(", code[begin:end])], begin


def orderings(root):
    finder = Finder(root)
    for path in sources(root):
        finder.read(path)
    seen = collections.Counter()
    for file, line, op, tag in finder.found:
        code, _ = c_text.split((root / file).read_text())
        at, begin = offsets(code, line, op)
        nth = seen[file, line, op]
        seen[file, line, op] += 1
        function = where(code, c_text.functions(code), line)
        yield f"{tag}/{pathlib.Path(file).stem}.{function}", file, line, begin + at[nth], op, WEAKER[op]


def claims(root):
    call = re.compile(r"\b(" + "|".join(GIVES_BACK) + r")\s*\(")
    for path in sources(root):
        file = str(path.relative_to(root))
        if not any(fnmatch.fnmatch(file, "src/" + f) for f in FILES):
            continue
        code, _ = c_text.split(path.read_text())
        functions = c_text.functions(code)
        for m in call.finditer(code):
            line = code.count("\n", 0, m.start()) + 1
            function = where(code, functions, line)
            if function in ("-", m.group(1)):  # a declaration, or its own definition
                continue
            name = f"{path.stem}.{function}.{m.group(1).removeprefix('tn__')}"
            yield name, file, line, m.start(), m.group(1), "(void)0"


def places(root, kinds="oc"):
    """All places of these kinds, numbered from 1; the same name twice has a `#2`."""
    names = collections.Counter()
    out = []
    every = (list(orderings(root)) if "o" in kinds else []) + (
        list(claims(root)) if "c" in kinds else []
    )
    for name, *rest in every:
        names[name] += 1
        name += f"#{names[name]}" if names[name] > 1 else ""
        out.append(Place(len(out) + 1, name, *rest))
    return out


def closing(code, at):
    """Offset behind the parenthesis that closes the first one from `at` on."""
    depth = 0
    for i in range(code.index("(", at), len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i + 1
    raise ValueError("unbalanced")


def switch(tree, every):
    """Put the switches into a copy of the tree."""
    by_file = collections.defaultdict(list)
    for p in every:
        by_file[p.file].append(p)
    for file, some in by_file.items():
        path = pathlib.Path(tree, file)
        text = path.read_text()
        for p in sorted(some, key=lambda p: -p.at):  # inner calls stand behind outer ones
            code, _ = c_text.split(text)
            end = closing(code, p.at)
            whole = text[p.at : end]
            arguments = whole[whole.index("(") + 1 : -1]
            broken = p.broken.format(arguments)
            text = f"{text[: p.at]}TN__DRILL({p.number}, {broken}, {whole}){text[end:]}"
        if file.endswith(".c"):
            text = '#include "base/atomic.h"\n#line 1\n' + text
        path.write_text(text)
    base = pathlib.Path(tree, "src/base")
    header = base / "atomic.h"
    header.write_text(header.read_text() + (HERE / "drill.h").read_text())
    (base / "drill.c").write_text((HERE / "switch.c").read_text())


if __name__ == "__main__":
    for place in places(ROOT, sys.argv[1] if len(sys.argv) > 1 else "oc"):
        print(f"{place.number:4} {place.name:60} {place.file}:{place.line} {place.call}")
