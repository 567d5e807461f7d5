# SPDX-License-Identifier: MIT
"""Just enough C for the checkers: comments and strings taken apart from the code, functions found."""

import re
from typing import NamedTuple


class Comment(NamedTuple):
    first: int  # line numbers, from 1
    last: int
    text: str
    alone: bool  # nothing but white space before it on its first line


class Function(NamedTuple):
    name: str
    first: int  # line of the opening brace's statement
    last: int


_TOKEN = re.compile(
    r"""(?P<block>/\*.*?\*/)|(?P<line>//[^\n]*)"""
    r"""|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<char>'(?:\\.|[^'\\\n])*')""",
    re.S,
)


def split(source):
    """Return (code, comments): `code` has the layout of `source`, comments and literals blanked."""
    comments = []
    code = []
    at = 0
    for m in _TOKEN.finditer(source):
        code.append(source[at : m.start()])
        text = m.group()
        if m.lastgroup in ("block", "line"):
            first = source.count("\n", 0, m.start()) + 1
            begin = source.rfind("\n", 0, m.start()) + 1
            alone = not source[begin : m.start()].strip()
            comments.append(Comment(first, first + text.count("\n"), text, alone))
            code.append(re.sub(r"[^\n]", " ", text))
        else:
            code.append(text[0] + re.sub(r"[^\n]", "_", text[1:-1]) + text[-1])
        at = m.end()
    code.append(source[at:])
    return "".join(code), _joined(comments)


def _joined(comments):
    """Make one comment of comments that stand alone on directly following lines."""
    out = []
    for c in comments:
        if out and c.alone and out[-1].alone and c.first == out[-1].last + 1:
            p = out.pop()
            c = Comment(p.first, c.last, p.text + "\n" + c.text, True)
        out.append(c)
    return out


def without_directives(code):
    """Blank preprocessor lines, continued ones included."""

    def blank(m):
        return re.sub(r"[^\n]", " ", m.group())

    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, code, flags=re.M)


def functions(code):
    """Function bodies in blanked code, whatever the brace style."""
    code = without_directives(code)
    found = []
    depth = 0
    statement = 0  # offset where the current top-level statement began
    open_name = None
    for m in re.finditer(r"[{};]", code):
        c = m.group()
        if c == "{":
            if depth == 0:
                head = code[statement : m.start()]
                open_name = _function_name(head)
                begin = statement + len(head) - len(head.lstrip())
                first = code.count("\n", 0, begin) + 1
            depth += 1
        elif c == "}":
            depth = max(0, depth - 1)
            if depth == 0:
                if open_name:
                    found.append(Function(open_name, first, code.count("\n", 0, m.start()) + 1))
                    open_name = None
                statement = m.end()
        elif depth == 0:
            statement = m.end()
    return found


def _function_name(head):
    head = re.sub(r"__attribute__\s*\(\(.*?\)\)", " ", head, flags=re.S)
    if "=" in head or not head.rstrip().endswith(")"):
        return None
    m = re.search(r"(\w+)\s*\(", head)
    return m.group(1) if m else None
