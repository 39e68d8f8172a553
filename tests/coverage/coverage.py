#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports what the tests reach of netio/, pubsub/ and stream/, by folder, and what they do not
reach.

    coverage.py BUILD    of a build of the preset `coverage` whose tests have run

Not counted are: branches taken only by an exception, unreachable branches, the failure branch of
NETIO_CHECK (it ends the program), compiler-generated branches, and the code listed in excluded.txt.
Fails if the coverage is below the required minimum.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDERS = ("netio", "pubsub", "stream")
NO_BRANCHES = re.compile(r"NETIO_CHECK|= default;")
LEAST_LINES = 95.0
LEAST_BRANCHES = 85.0


def measure(build):
    out = build / "coverage.json"
    command = ["gcovr", "--root", ROOT, "--object-directory", build, "--json", out, "-j", str(os.cpu_count())]
    command += ["--exclude-throw-branches", "--exclude-unreachable-branches"]
    for folder in FOLDERS:
        command += ["--filter", f"{folder}/"]
    subprocess.run([*map(str, command), str(build)], check=True, cwd=ROOT)
    return json.loads(out.read_text("utf-8"))["files"]


def block_at(lines, begin):
    """The numbers of the lines from `begin` to the brace that ends its block."""
    indent = lines[begin][: len(lines[begin]) - len(lines[begin].lstrip())]
    for end in range(begin, len(lines)):
        if lines[end].startswith(indent + "}"):
            return range(begin + 1, end + 2)
        if end == begin and lines[end].rstrip().endswith((";", "}")):
            return range(begin + 1, begin + 2)
    return range(begin + 1, len(lines) + 1)


def excluded():
    """{path: numbers of lines, or None for all of them}"""
    found = {}
    for entry in (HERE / "excluded.txt").read_text("utf-8").split("\n"):
        if not entry or entry.startswith("#"):
            continue
        path, _, pattern = entry.partition(": ")
        if not (ROOT / path).is_file():
            sys.exit(f"coverage: excluded.txt names {path}, which is not there")
        if not pattern:
            found[path] = None
            continue
        lines = (ROOT / path).read_text("utf-8").split("\n")
        begins = [i for i, line in enumerate(lines) if re.search(pattern, line)]
        if not begins:
            sys.exit(f"coverage: excluded.txt: nothing in {path} matches {pattern}")
        for begin in begins:
            if found.setdefault(path, set()) is not None:
                found[path].update(block_at(lines, begin))
    return found


class Tally:
    def __init__(self):
        self.lines = self.lines_hit = self.branches = self.branches_hit = 0

    def add(self, line):
        self.lines += 1
        self.lines_hit += line["count"] > 0
        taken = [branch["count"] > 0 for branch in line["branches"]]
        self.branches += len(taken)
        self.branches_hit += sum(taken)

    def percent(self):
        return (
            100 * self.lines_hit / self.lines if self.lines else 100.0,
            100 * self.branches_hit / self.branches if self.branches else 100.0,
        )

    def __str__(self):
        lines, branches = self.percent()
        return f"lines {self.lines_hit:5}/{self.lines:5} {lines:5.1f} %  branches {self.branches_hit:5}/{self.branches:5} {branches:5.1f} %"


def ranges(numbers):
    """Formats [3, 4, 5, 9] as "3-5 9"."""
    text, begin, last = [], None, None
    for number in [*sorted(numbers), None]:
        if begin is not None and number != last + 1 if number is not None else begin is not None:
            text.append(str(begin) if begin == last else f"{begin}-{last}")
            begin = None
        if begin is None:
            begin = number
        last = number
    return " ".join(text)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    leave_out = excluded()
    tallies, missing = {}, []
    for file in measure(build):
        path = file["file"]
        numbers = leave_out.get(path, set())
        if numbers is None:
            continue
        lines = [
            line for line in file["lines"] if not line.get("gcovr/noncode") and line["line_number"] not in numbers
        ]
        text = (ROOT / path).read_text("utf-8").split("\n")
        for line in lines:
            if NO_BRANCHES.search(text[line["line_number"] - 1]):
                line["branches"] = []
        for folder in {str(pathlib.PurePosixPath(path).parent), path.split("/")[0] + " in all", "everything"}:
            tally = tallies.setdefault(folder, Tally())
            for line in lines:
                tally.add(line)
        not_reached = {line["line_number"] for line in lines if line["count"] == 0}
        half = {
            line["line_number"]
            for line in lines
            if line["count"] and any(not branch["count"] for branch in line["branches"])
        }
        if not_reached or half:
            missing.append(f"{path}\n  lines    {ranges(not_reached) or 'all'}\n  branches {ranges(half) or 'all'}")
    report = build / "coverage.txt"
    report.write_text("\n".join([*missing, ""]), "utf-8")
    print("\n".join(missing))
    for folder, tally in sorted(tallies.items(), key=lambda item: (item[0] == "everything", item[0])):
        print(f"{folder:20} {tally}")
    lines, branches = tallies["everything"].percent()
    print(f"coverage: what is not reached is in {report}")
    return 0 if lines >= LEAST_LINES and branches >= LEAST_BRANCHES else 1


if __name__ == "__main__":
    sys.exit(main())
