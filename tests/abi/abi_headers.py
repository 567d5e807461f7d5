#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each public header compiles alone, included twice, as C11 and as C++17, with all warnings as
errors, under each compiler that is installed; and so do all TN_..._INIT macros.

    abi_headers.py
"""
import concurrent.futures
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import abi_common as abi  # noqa: E402  pylint: disable=wrong-import-position

WARN = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-fsyntax-only"]
LANGUAGES = (
    ("CC", ("cc", "gcc", "clang"), ["-xc", "-std=c11", "-Wstrict-prototypes"]),
    ("CXX", ("c++", "g++", "clang++"), ["-xc++", "-std=c++17", "-Wold-style-cast"]),
)


def texts():
    for header in abi.headers():
        yield header, f"#include <{header}>\n#include <{header}>\n"
    variables = [f"{kind} a_{kind} = {name};" for name, kind in abi.init_macros().items()]
    yield "TN_..._INIT", "\n".join(["#include <tenure/tenure.h>", *variables, ""])


def main():
    jobs = [(compiler, options, what, text)
            for variable, names, options in LANGUAGES
            for compiler in abi.compilers(variable, *names)
            for what, text in texts()]
    if not any(options[0] == "-xc++" for _, options, _, _ in jobs):
        print("no C++ compiler is installed, so not compiled as C++17")
    problems = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda j: abi.compile_text(j[0], [*j[1], *WARN], j[3]), jobs)
        for (compiler, options, what, _), (good, said) in zip(jobs, done):
            if not good:
                problems.append(f"{what} with {' '.join(compiler)} {options[1]}:\n{said.rstrip()}")
    print(f"{len(jobs)} compilations of {len(abi.headers())} headers")
    abi.report(problems, os.path.relpath(__file__))


if __name__ == "__main__":
    main()
