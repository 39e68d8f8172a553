# SPDX-License-Identifier: Apache-2.0
"""Queries metrics of running programs."""

import json
import subprocess
import time
import urllib.request

from program_case import DEADLINE, PROGRAM, Case


def scrape(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=DEADLINE) as answer:
        return answer.read().decode()


def figures(address):
    """name -> {labels: value}"""
    table = {}
    for line in scrape(address).splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            name, _, labels = name.partition("{")
            of_name = table.setdefault(name, {})
            assert labels.rstrip("}") not in of_name, f"twice: {line}"
            of_name[labels.rstrip("}")] = float(value)
    return table


def metrics_of(process):
    return process.wait_for(r"metrics at http://(\S+)/metrics").group(1)


class Asking(Case):
    def until(self, condition, what):
        """Repeats the query until it has a result."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            found = condition()
            if found:
                return found
        raise AssertionError(f"never: {what}")

    @staticmethod
    def top(*arguments):
        """kind and name -> row, of the last program."""
        shown = subprocess.run([PROGRAM, "top", *arguments, "--once", "--json", "--interval", "1ms"],
                               capture_output=True, text=True, check=True)
        return {(row["kind"], row["name"]): row for row in json.loads(shown.stdout)["programs"][-1]["rows"]}
