#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the shared library shows the dynamic linker.

    abi_library.py BUILD [--update]      BUILD: where it builds its own Release library

 1. Exported: exactly the names of exports.txt, all beginning with tn_ and none with tn__, and
    nothing but functions, so that no data layout is part of the ABI. Each has the symbol version
    of the library's own name (libtenure.so.N: TENURE_N).
 2. No static TLS (the library can be loaded by dlopen at any time), and a TLS segment of at most
    64 bytes.
 3. Needs the C library and what README.md names, no allocator: jemalloc is the program's choice.
 4. Stays loaded (NODELETE), takes no text relocations, and has no executable stack.
 5. Runs nothing at exit: no destructors, no exit handlers.

--update stores the present exports. Exit 77: not possible on this machine.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "..", "..", "tools", "hotpath"))
import hotpath  # noqa: E402  pylint: disable=wrong-import-position

EXPORTS = os.path.join(HERE, "exports.txt")
TLS_BYTES_MAX = 64
NEEDED = re.compile(r"lib(urcu(-memb|-common)?|xxhash|c|m|pthread|dl|gcc_s)\.so\.|ld-linux")


def exports(library):
    """[(kind, name)] without the version nodes."""
    table = hotpath.run(["nm", "-D", "--defined-only", library])
    rows = [line.split() for line in table.splitlines()]
    return sorted((kind, name.split("@")[0]) for _, kind, name in rows if kind != "A")


def check_exports(library, problem):
    rows = exports(library)
    with open(EXPORTS, encoding="utf-8") as file:
        listed = file.read().split()
    names = [name for _, name in rows]
    for kind, name in rows:
        if not re.match(r"tn_(?!_)", name):
            problem(f"exports {name}, which is not a tn_ name")
        if kind != "T":
            problem(f"exports {name}, which is not a function ({kind})")
    for name in sorted(set(names) - set(listed)):
        problem(f"exports {name}, which exports.txt does not list")
    for name in sorted(set(listed) - set(names)):
        problem(f"does not export {name}, which exports.txt lists")
    print(f"{len(names)} functions exported")
    dynamic = hotpath.run(["readelf", "-dW", library])
    soname = re.search(r"\(SONAME\).*\[libtenure\.so\.(\d+)\]", dynamic)
    if not soname:
        problem("has no name libtenure.so.N")
        return
    table = hotpath.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library])
    for name in re.findall(r" T (\S+)$", table, re.M):
        if not name.endswith(f"@@TENURE_{soname[1]}"):
            problem(f"exports {name}, not of version TENURE_{soname[1]}")


def check_dynamic(library, problem):
    dynamic = hotpath.run(["readelf", "-dW", library])
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    print("needs " + " ".join(needed))
    for name in needed:
        if "jemalloc" in name or not NEEDED.match(name):
            problem(f"needs {name}")
    if "STATIC_TLS" in dynamic:
        problem("uses static TLS: dlopen may fail")
    if "TEXTREL" in dynamic:
        problem("has text relocations")
    if not re.search(r"FLAGS_1.*NODELETE", dynamic):
        problem("can be unloaded while threads still run our destructors")


def check_exit(library, problem):
    """A process may end with open managers: nothing of ours runs then (F-G06)."""
    size = re.search(r"\(FINI_ARRAYSZ\)\s+(\d+)", hotpath.run(["readelf", "-dW", library]))
    if size and int(size[1]) > 8:  # one pointer: the start-up code's own
        problem("has destructors that run at exit")
    wanted = hotpath.run(["nm", "-D", "--undefined-only", library])
    for name in re.findall(r"\b(?:__cxa_)?(?:atexit|at_quick_exit)\b", wanted):
        problem(f"calls {name}")


def check_segments(library, problem):
    segments = hotpath.run(["readelf", "-lW", library])
    tls = re.search(r"^\s*TLS(?:\s+0x[0-9a-f]+){4}\s+0x([0-9a-f]+)", segments, re.M)
    tls_bytes = int(tls[1], 16) if tls else 0
    print(f"TLS segment: {tls_bytes} bytes")
    if tls_bytes > TLS_BYTES_MAX:
        problem(f"TLS segment of {tls_bytes} bytes, at most {TLS_BYTES_MAX} allowed")
    stack = re.search(r"^\s*GNU_STACK.*$", segments, re.M)
    if not stack or "E" in stack[0].split("GNU_STACK")[1]:
        problem("executable stack")


def main():
    try:
        for tool in ("nm", "readelf", "cmake"):
            hotpath.need(tool)
    except hotpath.Missing as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    library, _ = hotpath.build(os.path.abspath(sys.argv[1]))
    if sys.argv[2:] == ["--update"]:
        with open(EXPORTS, "w", encoding="utf-8") as file:
            file.writelines(name + "\n" for _, name in exports(library))
    problems = []
    check_exports(library, problems.append)
    check_dynamic(library, problems.append)
    check_exit(library, problems.append)
    check_segments(library, problems.append)
    for problem in problems:
        print(f"FAILED libtenure.so {problem}")
    if problems:
        print(f"again: python3 {os.path.relpath(__file__)} {sys.argv[1]}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
