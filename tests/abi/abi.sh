#!/bin/sh
# SPDX-License-Identifier: MIT
# abi.sh TEST.py BUILD: run it, or say that there is no python3.
if ! command -v python3 >/dev/null 2>&1; then
    echo "skipped: python3 is not installed"
    exit 77
fi
exec python3 "$@"
