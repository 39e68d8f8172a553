#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks Promela models with SPIN, in the runs listed in their comments:

    run NAME VERDICT [-DOPTION...]

VERDICT is the required result: `holds` (no assertion fails, nothing stops before the end, and
every ltl formula is true), or how SPIN must notice a flaw: `violates` an assertion, `stops` before
the end, `loops` (an execution for which a formula is never true).

    tests/model/spin.py FOLDER MODEL...    FOLDER: output of SPIN and the compiler

Prints a line for each run; exits with 0 if all runs have the required result.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

REPORTS = {"assertion violated": "violates", "invalid end state": "stops", "acceptance cycle": "loops"}
FORMULA = re.compile(r"^ltl +(\w+)", re.MULTILINE)
RUN = re.compile(r"^ \* run +(\w+) +(holds|violates|stops|loops)\b *(.*)$", re.MULTILINE)


class Failure(Exception):
    pass


def command(folder, *words):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def explore(folder, name, compiler_options, checker_options):
    """Gives the verdict, the number of states and SPIN's reason."""
    command(folder, "cc", "-w", "-o", name, *compiler_options, "pan.c")
    report = command(folder, f"./{name}", "-m1000000", *checker_options)
    (folder / f"{name}.log").write_text(report)
    states = re.search(r"(\d+) states, stored", report)
    error = re.search(r"^pan:1: (.*?)(?: \(at depth \d+\))?$", report, re.MULTILINE)
    if not states or "search depth too small" in report or "out of memory" in report:
        raise Failure(f"the search is not complete, see {folder}/{name}.log")
    if not error:
        if "errors: 0\n" not in report:
            raise Failure(f"no verdict, see {folder}/{name}.log")
        return "holds", int(states[1]), ""
    verdict = next((v for text, v in REPORTS.items() if text in error[1]), "fails")
    return verdict, int(states[1]), error[1]


def check(folder, model, run, expected, options):
    folder = folder / model.stem / run
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    try:
        command(folder, "spin", "-a", *options.split(), str(model.resolve()))
        # A fast compiler is worth more here than a fast checker.
        verdict, states, reason = explore(folder, "safety", ["-O0", "-DSAFETY", "-DNOCLAIM"], [])
        proven = []
        for formula in FORMULA.findall(model.read_text()):
            if verdict == "holds" and expected in ("holds", "loops"):
                verdict, states, reason = explore(folder, formula, ["-O0"], ["-a", "-N", formula])
                proven.append(formula)
    except Failure as failure:
        verdict, states, reason, proven = "fails", 0, str(failure), []
    is_right = verdict == expected
    what = reason[:72] or ", ".join(["no assertion fails, nothing stops", *proven])
    mark = "" if is_right else f"  MUST BE '{expected}'"
    seconds = time.monotonic() - begin
    print(f"  {run:<24} {verdict:<8} {states:>9} states {seconds:>5.1f} s  {what}{mark}", flush=True)
    return is_right


def main():
    folder = pathlib.Path(sys.argv[1])
    all_right = True
    for model in map(pathlib.Path, sys.argv[2:]):
        runs = RUN.findall(model.read_text())
        if not any(expected == "holds" for _, expected, _ in runs):
            sys.exit(f"{model}: names no run that holds; see {sys.argv[0]}")
        print(f"{model}:", flush=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda run, model=model: check(folder, model, *run), runs))
        print(f"{model}: {sum(results)} of {len(results)} runs came out as they must")
        all_right &= all(results)
    sys.exit(not all_right)


if __name__ == "__main__":
    main()
