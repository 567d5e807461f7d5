#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What programs compiled against the headers have built in: sizes and members of the public
structs, and the numbers of enumerators. Compared with layout.txt, line by line.

    abi_layout.py [--update]      --update stores the present layout

What may change between releases of one major version is only growth: a struct that begins with
`size` gets members at its end, an enum gets new numbers. Exit 77: not possible on this machine.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import abi_common as abi  # noqa: E402  pylint: disable=wrong-import-position

STORED = os.path.join(HERE, "layout.txt")
STRUCT = re.compile(r"\bstruct\s+(tn_\w+)\s*\{([^{}]*)\}\s*(\w*)\s*;")
ENUM = re.compile(r"\benum\s+tn_\w+\s*\{([^{}]*)\}")
MEMBER = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*\(|(\w+)\s*(?:\[[^\]]*\])?\s*$")


def structs():
    """[(type, [member])] of all headers."""
    for header in abi.headers():
        for name, body, alias in STRUCT.findall(abi.code(header)):
            if any("," in part.split("(")[0] for part in body.split(";")):
                raise SystemExit(f"{header}: {name}: one member a declaration, please")
            members = [MEMBER.search(part.strip()) for part in body.split(";") if part.strip()]
            yield (alias or f"struct {name}"), [m[1] or m[2] for m in members]


def enumerators():
    for header in abi.headers():
        for body in ENUM.findall(abi.code(header)):
            yield from re.findall(r"\b(TN_[A-Z0-9_]+)\s*(?:=[^,]*)?(?:,|$)", body.strip())


def program():
    yield "#include <stddef.h>\n#include <stdio.h>\n#include <tenure/tenure.h>\nint main(void) {"
    for name, members in structs():
        yield f'printf("{name} %zu\\n", sizeof({name}));'
        for m in members:
            yield (f'printf("{name}.{m} %zu+%zu\\n", offsetof({name}, {m}), '
                   f"sizeof((({name} *)0)->{m}));")
    for name in enumerators():
        if name != "TN_STATUS_MAP":
            yield f'printf("{name} %lld\\n", (long long){name});'
    yield '#define TN_PRINT(name, number, text, advice) printf("TN_" #name " %d\\n", (int)TN_##name);'
    yield "TN_STATUS_MAP(TN_PRINT)\nreturn 0; }"


def present():
    compilers = abi.compilers("CC", "cc", "gcc", "clang")
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "layout")
        good, said = abi.compile_text(compilers[0], ["-xc", "-std=c11", "-o", out],
                                      "\n".join(program()) + "\n")
        if not good:
            raise SystemExit(said)
        return subprocess.run([out], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def main():
    if struct.calcsize("P") != 8 or os.uname().machine not in ("x86_64", "aarch64"):
        print("skipped: the layout stored is that of 64-bit Linux")
        sys.exit(77)
    lines = present()
    if sys.argv[1:] == ["--update"]:
        with open(STORED, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in lines)
    with open(STORED, encoding="utf-8") as file:
        stored = file.read().splitlines()
    now, then = (dict(line.rsplit(" ", 1) for line in text) for text in (lines, stored))
    problems = [f"{name} was {then[name]}, is {now[name]}" for name in then
                if name in now and now[name] != then[name]]
    problems += [f"{name} is gone" for name in then if name not in now]
    problems += [f"{name} {now[name]} is not in layout.txt" for name in now if name not in then]
    print(f"{sum(1 for _ in structs())} structs, {len(now)} lines")
    abi.report(problems, os.path.relpath(__file__))


if __name__ == "__main__":
    main()
