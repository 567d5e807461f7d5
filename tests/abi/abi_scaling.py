#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A use that hits costs each of several workers what it costs one alone: instructions by callgrind.

    abi_scaling.py BUILD      BUILD: where tools/hotpath/hotpath.py builds its own Release library

Workers share the manager, the controller, the values and the budget that their reservations charge;
everything is resident. With 2 and 4 of them an operation (enter, exit, reset; 4 values and one
reservation) may cost at most 10 % more than with one. What instructions do not show is the time that
cache lines need: see bench/README.md. Exit 77: not possible on this machine.
"""
import os
import sys

sys.dont_write_bytecode = True
import abi_hotpath  # noqa: E402  pylint: disable=wrong-import-position
from abi_hotpath import hotpath  # noqa: E402  pylint: disable=wrong-import-position

TOLERANCE = 1.10


def main():
    abi_hotpath.requirements()
    _, program = hotpath.build(os.path.abspath(sys.argv[1]))
    alone, failed = None, False
    for workers in (1, 2, 4):
        measured = hotpath.measure(program, f"use_workers_{workers}")
        each = measured["inside"] / workers
        alone = alone or each
        print(f"{workers} workers: {each:8.1f} instructions an operation ({each / alone:.3f} x)")
        failed |= each > alone * TOLERANCE
    if failed:
        print(f"FAILED more than {TOLERANCE} times the instructions of one worker")
    sys.exit(failed)


if __name__ == "__main__":
    main()
