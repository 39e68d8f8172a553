#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults into the libraries, one at a time, and checks that a seed of the world finds each.

    plant.py BUILD [--seeds N] [--only REGEX]

A checker that has never failed is not known to work. Prints a table: fault, the first seed that
found it, and the rule. Fails if a fault is not found within N seeds (2000).
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mutate"))
import table  # noqa: E402
from rebuild import Build, DoesNotBuild  # noqa: E402

AT_ONCE = 100  # seeds
LIMIT_S = 120  # time limit for this many seeds, and a sixth of it for one


def run(program, first, count):
    """The first finding from this seed on: (seed, rule), or None."""
    for begin in range(first, first + count, AT_ONCE):
        found = run_some(program, begin, min(AT_ONCE, first + count - begin), LIMIT_S)
        if found:
            return found
    return None


def run_some(program, first, count, limit_s):
    command = [str(program), "--seed", str(first), "--seeds", str(count), "--stop"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        if count == 1:
            return first, "it does not end"
        each = (run_some(program, seed, 1, LIMIT_S / 6) for seed in range(first, first + count))
        return next((found for found in each if found), None)
    found = re.search(r"^seed (\d+): at \d+ us, ([^:]+):", done.stdout, re.M)
    if found:
        return int(found[1]), found[2]
    if done.returncode in (0, 1):
        return None
    if count > 1:
        each = (run_some(program, seed, 1, LIMIT_S / 6) for seed in range(first, first + count))
        return next((found for found in each if found), None)
    words = done.stderr.strip().split("\n")[-1][:60] or f"signal {-done.returncode}"
    return first, f"died: {words}"


def first_finding(program, sound, seeds):
    """The same, ignoring findings that also occur without a fault."""
    first = 1
    while first <= seeds:
        found = run(program, first, seeds - first + 1)
        if found is None or found[1].startswith(("died", "it does")):
            return found
        if run(sound, found[0], 1) is None:
            return found
        first = found[0] + 1
    return None


def plant(build, fault, overlay, seeds):
    """(finding or None, additional text)"""
    shutil.rmtree(overlay, ignore_errors=True)
    overlay.mkdir(parents=True)
    try:
        files = table.mutated_files(ROOT, fault.changes)
        program = build.program("world_run", files, overlay, build.affected("world_run", files))
        return first_finding(program, build.folder / "bin" / "world_run", seeds), ""
    except (table.TableError, DoesNotBuild) as error:
        return None, f"  {error}"[:300]
    finally:
        shutil.rmtree(overlay, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    folder = arguments.build.resolve()
    build = Build(ROOT, folder)
    faults = [fault for fault in table.read_table(HERE) if re.search(arguments.only, fault.name)]
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        tasks = {
            pool.submit(plant, build, fault, folder / "world-faults" / str(number), arguments.seeds): fault
            for number, fault in enumerate(faults)
        }
        for task in concurrent.futures.as_completed(tasks):
            found, words = task.result()
            missed += found is None
            seed, rule = found or ("-", "NOT FOUND")
            print(f"{seed:>6}  {rule:32}  {tasks[task].name}{words}", flush=True)
    print(f"world: {len(faults)} planted, {len(faults) - missed} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
