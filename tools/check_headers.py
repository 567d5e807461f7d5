#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Headers, layering and sizes.

  1. Each public header compiles alone, twice included, as C11 and as C++17 (if there is a C++
     compiler); each internal header as GNU C11. All with -Wall -Wextra -Werror.
  2. Includes between the folders of src/ go one way only:
     base < driver < value < placement < lifetime < transition < plan, snapshot < controller <
     manager. A `_priv.h` stays in its folder. Public headers include public and system ones.
  3. A .c file has at most 600 lines, a function at most 120, CMakeLists.txt fewer than 250.
  4. Each exported function (TN_API) of a public header has a doc comment with `Threads:` and
     `Blocks:`.
"""

import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import c_text

RANKS = {
    "base": 0,
    "driver": 1,
    "value": 2,
    "placement": 3,
    "lifetime": 4,
    "plan": 5,
    "transition": 6,
    "snapshot": 6,
    "controller": 7,
    "manager": 8,
}
FILE_LINES, FUNCTION_LINES, CMAKE_LINES = 600, 120, 250
FILE_REVIEW, FUNCTION_REVIEW = 450, 60
WARN = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only"]
ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/../..").resolve()
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)

problems = []
reviews = []


def problem(path, line, text):
    problems.append((str(path.relative_to(ROOT)), line, text))


def command(variable, *names):
    if os.environ.get(variable):
        return shlex.split(os.environ[variable])
    return next(([n] for n in names if shutil.which(n)), None)


def pkg_config(*modules):
    out = subprocess.run(["pkg-config", "--cflags", *modules], capture_output=True, text=True)
    return shlex.split(out.stdout) if out.returncode == 0 else []


def compile_alone(path, name, compiler, flags, language):
    text = f'#include "{name}"\n#include "{name}"\n'
    done = subprocess.run(
        [*compiler, *flags, *WARN, "-x", language, "-"],
        input=text, capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        return path, f"does not compile alone ({flags[0]}):\n{done.stderr.rstrip()}"
    return None


def check_alone(public, internal):
    cc, cxx = command("CC", "cc", "gcc", "clang"), command("CXX", "c++", "g++", "clang++")
    flags = pkg_config("liburcu", "libxxhash", "jansson", "cmocka")
    jobs = []
    for p in public:
        name = str(p.relative_to(ROOT / "include"))
        jobs.append((p, name, cc, ["-std=c11", "-Wpedantic", "-Iinclude"], "c"))
        if cxx:
            jobs.append((p, name, cxx, ["-std=c++17", "-Wpedantic", "-Iinclude"], "c++"))
    for p in internal:
        if "cuda" in p.parts:  # needs the Toolkit; the build itself compiles it where there is one
            continue
        machine = ["-mcx16"] if os.uname().machine == "x86_64" else []
        gnu = ["-std=gnu11", "-D_GNU_SOURCE", "-DTN_BUILDING=1", "-Iinclude", "-Isrc"]
        jobs.append((p, str(p), cc, [*gnu, *machine, "-Itests/support", *flags], "c"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for failed in pool.map(lambda j: compile_alone(*j), jobs):
            if failed:
                problem(failed[0], 1, failed[1])
    if not cxx:
        print("headers: no C++ compiler, so not compiled as C++17")
    return len(jobs)


def includes(path):
    source = path.read_text()
    for m in INCLUDE.finditer(source):
        yield source.count("\n", 0, m.start()) + 1, m.group(1), m.group(2)


def check_arrows(path):
    folder = path.relative_to(ROOT / "src").parts[0]
    if path.parent == ROOT / "src":
        problem(path, 1, "belongs in a folder of src/")
        return
    if folder not in RANKS:
        problem(path, 1, f"folder {folder}/ has no place in the layering")
        return
    for line, quote, name in includes(path):
        if quote == "<" or name.startswith("tenure/"):
            continue
        target = ROOT / "src" / name
        if not target.exists():
            if not (path.parent / name).exists():
                problem(path, line, f'"{name}" is neither src/{name} nor in this folder')
            continue
        other = target.relative_to(ROOT / "src").parts[0]
        if other == folder:
            continue
        if RANKS.get(other, 99) >= RANKS[folder]:
            problem(path, line, f"{folder}/ must not include {other}/ ({name})")
        if name.endswith("_priv.h"):
            problem(path, line, f"{name} is private to {other}/")


def check_public_includes(path):
    for line, _, name in includes(path):
        if name in ("cuda.h", "urcu.h", "jansson.h", "xxhash.h") or name.startswith("urcu/"):
            problem(path, line, f"a public header must not include {name}")
        if (ROOT / "src" / name).exists():
            problem(path, line, f"a public header must not include src/{name}")


def check_sizes(path):
    source = path.read_text()
    name = path.relative_to(ROOT)
    lines = source.count("\n")
    if path.suffix == ".c" and lines > FILE_LINES:
        problem(path, lines, f"{lines} lines; the cap is {FILE_LINES}")
    elif path.suffix == ".c" and lines > FILE_REVIEW:
        reviews.append(f"{name}: {lines} lines")
    code, _ = c_text.split(source)
    for f in c_text.functions(code):
        size = f.last - f.first + 1
        if size > FUNCTION_LINES:
            problem(path, f.first, f"{f.name}(): {size} lines; the cap is {FUNCTION_LINES}")
        elif size > FUNCTION_REVIEW:
            reviews.append(f"{name}:{f.first}: {f.name}(): {size} lines")


def check_docs(path):
    source = path.read_text()
    code, comments = c_text.split(source)
    code = c_text.without_directives(code)
    count = 0
    for m in re.finditer(r"[^;{}]*\bTN_API\b[^;{}]*", code):
        head = m.group()
        called = re.search(r"\b(tn_\w+)\s*\(", head)
        if not called:
            continue
        count += 1
        start = m.start() + len(head) - len(head.lstrip())
        first = code.count("\n", 0, start) + 1
        above = next((c for c in comments if c.last in (first - 1, first) and c.first < first), None)
        if above is None or not above.text.startswith("/**"):
            problem(path, first, f"{called.group(1)}(): no doc comment just above")
            continue
        for word in ("Threads:", "Blocks:"):
            if word not in above.text:
                problem(path, first, f"{called.group(1)}(): the doc comment has no `{word}` line")
    return count


def main():
    public = sorted((ROOT / "include").rglob("*.h"))
    sources = sorted((ROOT / "src").rglob("*.[ch]"))
    rest = [p for d in ("tests", "tools") for p in sorted((ROOT / d).rglob("*.[ch]"))]
    internal = [p for p in sources if p.suffix == ".h"]
    compiled = check_alone(public, internal + sorted((ROOT / "tests/support").glob("*.h")))
    documented = 0
    for p in public:
        check_public_includes(p)
        documented += check_docs(p)
    for p in sources:
        check_arrows(p)
    for p in [*public, *sources, *rest]:
        check_sizes(p)
    cmake = ROOT / "CMakeLists.txt"
    if cmake.exists() and cmake.read_text().count("\n") >= CMAKE_LINES:
        problem(cmake, 1, f"{CMAKE_LINES} lines or more")
    for text in reviews:
        print(f"review: {text}")
    for path, line, text in sorted(problems):
        print(f"{path}:{line}: {text}")
    print(
        f"headers: {compiled} compilations, {len(sources)} source files, "
        f"{documented} public functions, {len(problems)} problems"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
