#!/usr/bin/env python3
"""Builds a client of another SDK, for sdks.test.mjs: peer.py python|go INTO. Prints its command as JSON, or
{"missing": why} where its toolchain or registry is not here."""
import json
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tools"))
sys.dont_write_bytecode = True
import toolchains  # noqa: E402


class Missing(Exception):
    pass


built = toolchains.Toolchains(HERE, sys.argv[2], Missing)
try:
    print(json.dumps(built.python("login.py") if sys.argv[1] == "python" else built.go("login")))
except Missing as why:
    print(json.dumps({"missing": str(why)}))
