# SPDX-License-Identifier: MIT
"""The public headers, and the compilers to try them with."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
sys.path.insert(0, str(ROOT / "tools"))
import c_text  # noqa: E402  pylint: disable=wrong-import-position


def headers():
    """The public headers, as they are included."""
    return sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h"))


def code(header):
    """A header without comments and preprocessor lines."""
    return c_text.without_directives(c_text.split((INCLUDE / header).read_text())[0])


def compilers(variable, *names):
    """[command]: the one that the environment names, then others that are installed."""
    found = [shlex.split(os.environ[variable])] if os.environ.get(variable) else []
    return found + [[n] for n in names if shutil.which(n) and [n] not in found]


def compile_text(compiler, options, text):
    """(succeeded, what it says)"""
    done = subprocess.run([*compiler, f"-I{INCLUDE}", *options, "-"], input=text, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode == 0, done.stdout


def init_macros():
    """{macro: type} of TN_..._INIT."""
    names = set()
    for header in headers():
        names |= set(re.findall(r"^#define (TN_\w+_INIT)\b", (INCLUDE / header).read_text(), re.M))
    return {name: name[:-len("_INIT")].lower() for name in sorted(names)}


def report(problems, again):
    for problem in problems:
        print(f"FAILED {problem}")
    if problems:
        print(f"again: python3 {again}")
    sys.exit(1 if problems else 0)
