#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants faults into the libraries, one at a time, and checks that a test notices each.

    mutate.py BUILD                    every fault of the tables (faults/*.toml)
    mutate.py BUILD --only REGEX       those whose name matches
    mutate.py BUILD --draw N --seed S  N generic faults at random lines
    mutate.py --check                  only check that the tables name functions and tests that exist
    mutate.py --programs               print the test programs that this needs

Fails if a fault survives, if the place of a fault is not found, or if a test fails without a fault.
"""

import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import draw  # noqa: E402
import table  # noqa: E402
from rebuild import Build, DoesNotBuild  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TABLES = HERE / "faults"
ROOT = HERE.parents[1]
# Limit for one test program, in processor time, so that a busy machine ends no program early; the
# limit in real time is three times as long.
RUN_LIMIT_S = 120
# Programs tried against a drawn fault, the quickest first; a program that does not use the file is
# left out.
PROGRAMS = (
    *("netio_unit_test", "access_unit_test", "stream_unit_test", "pubsub_unit_test", "gate_model_test",
      "exchange_model_test", "stream_socket_unit_test"),
    *("access_scenario_test", "messages_scenario_test", "messages_sender_test",
      "stream_scenario_test", "world_test", "pubsub_scenario_test", "pubsub_front_door_test", "pubsub_loops_test"),
    *("stream_random_test", "stream_exhaustive_test"),
)
# Drawn worlds may notice faults that no test program notices: they combine more than any test.
WORLDS = "world_run"
WORLD_SEEDS = 300
# The same scenarios over a real fabric notice the same, but later.
SIMULATED = "-*/fabric_*"


def run_test(program, arguments, folder):
    """(status, output, tests run); status None: it did not end in time."""
    environment = {**os.environ, "GTEST_FAIL_FAST": "1", "GTEST_BRIEF": "1"}
    words = ["prlimit", f"--cpu={RUN_LIMIT_S}", str(program), *arguments]
    with subprocess.Popen(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as done:
        try:
            said, _ = done.communicate(timeout=3 * RUN_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(done.pid, signal.SIGKILL)  # with its children, which would keep the pipe open
            return None, done.communicate()[0].decode(errors="replace"), 0
    output = said.decode(errors="replace")
    if done.returncode == -signal.SIGXCPU:
        return None, output, 0
    ran = re.search(r"(\d+) tests? from", output)
    return done.returncode, output, int(ran[1]) if ran else 0


def steps(near, affected):
    """What to compile first: only the nearest tests if the file is a widely used header."""
    return [near, affected] if 0 < len(near) < len(affected) - 3 else [affected]


class Planter:
    def __init__(self, build, folder):
        self.build = build
        self.folder = folder

    def baseline(self, test, pattern):
        """The error of a test without any fault; empty if there is none."""
        program = self.build.folder / "bin" / test
        if not program.exists():
            return f"{test} is not built"
        status, output, ran = run_test(program, [f"--gtest_filter={pattern}"], self.build.folder)
        if status != 0:
            return f"{test} {pattern} fails without any fault:\n{output[-1500:]}"
        return "" if ran else f"{test} has no test {pattern}"

    def try_fault(self, fault, overlay):
        """(verdict, explanation)"""
        files = table.mutated_files(ROOT, fault.changes)
        affected = self.build.affected(fault.test, files)
        if not affected:
            return "error", f"no object of {fault.test} sees {', '.join(files)}"
        suites = {max(part.split("*"), key=len) for part in re.split(r"[.:/-]", fault.filter) if len(part) > 3}
        near = [each for each in affected if self._mentions(each, suites)]
        for objects in steps(near, affected):
            program = self.build.program(fault.test, files, overlay, objects)
            arguments = [f"--gtest_filter={fault.filter}"]
            status, output, _ = run_test(program, arguments, self.build.folder)
            if status != 0:
                if fault.says and fault.says not in output:
                    return "error", f"noticed, but not by '{fault.says}':\n{output[-1500:]}"
                return "killed", "" if status is not None else "did not end"
        return "SURVIVED", "; ".join(change.replacement.strip() for change in fault.changes)

    def _mentions(self, output, suites):
        source = self.build.source_of(output)
        if not source.startswith("tests/"):
            return False
        text = (ROOT / source).read_text("utf-8")
        return any(re.search(rf"\b{re.escape(suite)}", text) for suite in suites)

    def _is_beside(self, output, file):
        """Whether the object belongs to the file itself or to a test in its folder."""
        source = self.build.source_of(output)
        folder = file.rsplit("/", 1)[0]
        return source.startswith((folder + "/", f"tests/unit/{folder}/"))

    def try_drawn(self, change, overlay):
        files = table.mutated_files(ROOT, [change])
        tried = []
        for test in PROGRAMS:
            if not (self.build.folder / "bin" / test).exists():
                continue
            affected = self.build.affected(test, files)
            if not affected:
                continue
            tried.append(test)
            near = [each for each in affected if self._is_beside(each, change.file)]
            for objects in steps(near, affected):
                program = self.build.program(test, files, overlay, objects)
                arguments = [f"--gtest_filter={SIMULATED}"] if "scenario" in test else []
                status, _, _ = run_test(program, arguments, self.build.folder)
                program.unlink()
                if status != 0:
                    return "killed", test + ("" if status is not None else ", did not end")
        if self._found_in_worlds(files, overlay):
            return "killed", WORLDS
        return ("SURVIVED", ", ".join(tried)) if tried else ("unseen", "no test program sees it")

    def _found_in_worlds(self, files, overlay):
        if not (self.build.folder / "bin" / WORLDS).exists():
            return False
        affected = self.build.affected(WORLDS, files)
        if not affected:
            return False
        program = self.build.program(WORLDS, files, overlay, affected)
        status, _, _ = run_test(program, ["--seed", "1", "--seeds", str(WORLD_SEEDS), "--stop"], self.build.folder)
        program.unlink()
        return status != 0

    def guarded(self, attempt, subject, number):
        overlay = self.folder / str(number)
        shutil.rmtree(overlay, ignore_errors=True)
        overlay.mkdir(parents=True)
        begin = time.monotonic()
        try:
            verdict, words = attempt(subject, overlay)
        except (table.TableError, DoesNotBuild) as error:
            verdict, words = "error", str(error)
        shutil.rmtree(overlay, ignore_errors=True)
        return verdict, words, time.monotonic() - begin


def planter_of(build):
    folder = build.resolve()
    return Planter(Build(ROOT, folder), folder / "mutants")


def report(verdict, seconds, name, words):
    print(f"{verdict:9}{seconds:6.1f} s  {name}{'  ' + words if words else ''}", flush=True)


def plant_table(planter, faults, jobs):
    complaints = table.check_table(ROOT, faults)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tests = sorted({(fault.test, fault.filter) for fault in faults})
        baselines = pool.map(lambda each: planter.baseline(*each), tests)
        complaints += [bad for bad in baselines if bad]
        for complaint in complaints:
            print(f"mutate: {complaint}", file=sys.stderr)
        if complaints:
            return 1
        counts = {}
        tasks = {}
        for number, fault in enumerate(faults):
            tasks[pool.submit(planter.guarded, planter.try_fault, fault, number)] = fault
        for task in concurrent.futures.as_completed(tasks):
            verdict, words, seconds = task.result()
            counts[verdict] = counts.get(verdict, 0) + 1
            report(verdict, seconds, tasks[task].name, words)
    print(f"mutate: {len(faults)} planted, {counts.get('killed', 0)} killed")
    return 0 if counts.get("killed", 0) == len(faults) else 1


def plant_drawn(planter, count, seed, skip, jobs, least_percent, folders):
    leave_out = (HERE / "not_drawn.txt").read_text("utf-8").split("\n")
    leave_out = [line.split("#")[0].strip() for line in leave_out]
    supply = itertools.islice(draw.drawn(ROOT, seed, folders, [line for line in leave_out if line]), skip, None)
    known = table.read_survivors(HERE)
    counts, serial = {"killed": 0, "SURVIVED": 0}, 0
    print(f"mutate: seed {seed}")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        while sum(counts.values()) < count:
            batch = [item for item, _ in zip(supply, range(count - sum(counts.values())))]
            if not batch:
                break
            tasks = {}
            for kind, path, number, line, replacement in batch:
                change = table.DrawnChange(path, number, line, replacement)
                place = f"{path}:{number}: {kind}: {line.strip()}  ->  {replacement.strip()}"
                if why := known.get((path, line.strip(), replacement.strip())):
                    counts["SURVIVED"] += 1
                    report("known", 0, place, why)
                    continue
                task = pool.submit(planter.guarded, planter.try_drawn, change, serial)
                tasks[task] = place
                serial += 1
            for task in concurrent.futures.as_completed(tasks):
                verdict, words, seconds = task.result()
                if verdict in counts:  # if it does not compile, it is not a fault
                    counts[verdict] += 1
                    report(verdict, seconds, tasks[task], words)
    percent = 100 * counts["killed"] // max(1, sum(counts.values()))
    print(f"mutate: {sum(counts.values())} drawn with seed {seed}, {counts['killed']} killed: {percent} %")
    return 0 if percent >= least_percent else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--draw", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, metavar="K", help="of the drawn, tried before")
    parser.add_argument("--in", dest="folders", nargs="+", metavar="FOLDER", help="draw there alone")
    parser.add_argument("--least", type=int, default=90, metavar="PERCENT", help="of the drawn that must die")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--programs", action="store_true")
    options = parser.parse_args()
    faults = [fault for fault in table.read_table(TABLES) if re.search(options.only, fault.name)]
    if options.programs:
        wanted = sorted({fault.test for fault in faults})
        if options.draw:
            listed = "\n".join(path.read_text("utf-8") for path in ROOT.glob("tests/**/CMakeLists.txt"))
            wanted = [name for name in PROGRAMS if re.search(rf"NAME {name}\b", listed)] + [WORLDS]
        print(" ".join(wanted))
        return 0
    if options.check:
        complaints = table.check_table(ROOT, faults + table.read_table(ROOT / "tests" / "world" / "faults"))
        complaints += table.check_filters(ROOT, faults)
        print("\n".join([*complaints, f"mutate: {len(faults)} faults, {len(complaints)} complaints"]))
        return 1 if complaints else 0
    if options.build is None:
        parser.error("which build?")
    if options.draw:
        return plant_drawn(planter_of(options.build), options.draw, options.seed, options.skip, options.jobs,
                           options.least, options.folders or draw.FOLDERS)
    return plant_table(planter_of(options.build), faults, options.jobs)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except table.TableError as error:
        sys.exit(f"mutate: {error}")
