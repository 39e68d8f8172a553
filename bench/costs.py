# SPDX-License-Identifier: Apache-2.0
"""The costs of a message on the buffered path other than time: allocations, locks, system calls."""

import pathlib
import shutil
import tempfile

from cases import Case

PARAMETERS = {"size": 40, "fids": 64, "form": "buffered"}


def case(seconds, **more):
    arguments = {**PARAMETERS, "seconds": seconds}
    return Case("W1", "netio", "netio", PARAMETERS, arguments, **more)


def published(reports):
    return next(report["messages"] for report in reports if report["role"] == "publish")


def calls(folder):
    """System calls of all processes, from strace's summaries: the calls in the total row."""
    total = 0
    for summary in pathlib.Path(folder).iterdir():
        for line in summary.read_text().splitlines():
            if line.endswith(" total"):
                total += int(line.split()[3])
    return total


def traced(runner, seconds):
    with tempfile.TemporaryDirectory() as folder:
        prefix = ("strace", "-f", "-c", "-o", f"{folder}/{{role}}")
        reports = runner.run(case(seconds, prefix=prefix))
        return published(reports), calls(folder)


def row(metric, value):
    head = {"workload": "W1", "subject": "netio", "parameters": {**PARAMETERS, "counted": True}}
    return {**head, "metric": metric, "median": value, "min": value, "max": value, "runs": 1}


def rows(runner):
    """Per million messages, both sides together."""
    found = []
    library = runner.programs / "count.so"
    reports = runner.run(case(1, environment={"LD_PRELOAD": str(library)}))
    for what in ("allocations", "locks"):
        total = sum(report[what] for report in reports if report["role"] == "count")
        found.append(row(f"{what}_per_million", total / published(reports) * 1e6))
    if shutil.which("strace") is None:
        return found
    # The difference of two runs of different length does not have the cost of the set-up.
    short, long = traced(runner, 0.5), traced(runner, 2.5)
    found.append(row("system_calls_per_million", (long[1] - short[1]) / (long[0] - short[0]) * 1e6))
    return found
