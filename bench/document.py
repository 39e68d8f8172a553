#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables in docs/ from the medians of the last release.

    bench/document.py [--check]
    bench/document.py --rows

A table is between two comments, `<!-- bench: NAME -->` and `<!-- bench: end -->`. --check only
checks whether every table is up to date. --rows prints all aims and results as tables.
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True

import releases  # noqa: E402
import tables  # noqa: E402
import targets  # noqa: E402
from tables import number, table  # noqa: E402

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
PAGES = ("performance.md", "measurements.md")
PART = re.compile(r"(<!-- bench: (\w+) -->\n)(.*?)(<!-- bench: end -->)", re.S)


def cell(value, unit=""):
    return "–" if value is None else number(value) + unit


def bytes_text(size):
    for factor, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size} B"


def throughput(rows):
    results = targets.Results(rows)

    def best(subjects, size, **parameters):
        return cell(results.best("W2", subjects, "gbit_per_s", size=size, **parameters))

    lines = [
        [bytes_text(size), best("netio", size, form="buffered"), best("netio", size, form="unbuffered"),
         best(targets.RAW, size), best(targets.PEERS, size)]
        for size in results.values("W2", "size")
    ]
    return table(("message", "buffered", "unbuffered", "raw TCP", "the best peer"), lines)


def latency(rows):
    results = targets.Results(rows)

    def both(subject, mode, **parameters):
        found = [results.least("W3", subject, metric, size=64, mode=mode, **parameters)
                 for metric in ("p50_us", "p99_us")]
        return " / ".join(cell(value) for value in found)

    lines = [
        [mode, both("netio", mode, form="session"), both("netio", mode, form="unbuffered"),
         both("raw-unbatched", mode), both("zeromq", mode), both("cyclonedds", mode)]
        for mode in ("blocking", "adaptive", "busy")
    ]
    lines = [[each if each != "– / –" else "–" for each in line] for line in lines]
    return table(("the loop waits", "one connection", "publish and subscribe", "raw TCP", "ZeroMQ",
                  "Cyclone DDS"), lines)


def small(rows):
    results = targets.Results(rows)
    lines = [
        [name, cell(results.best("W1", subject, "messages_per_s")),
         cell(results.least("W1", subject, "cpu_s_per_million"), " s")]
        for name, subject in (("buffered", "netio"), ("raw TCP, coalesced", "raw-coalesced"),
                              ("raw TCP, a call each", "raw-unbatched"), ("ZeroMQ", "zeromq"),
                              ("Cyclone DDS", "cyclonedds"), ("NNG", "nng"), ("UCX", "ucx"))
    ]
    lines = [line for line in lines if line[1] != "–"]
    return table(("40 bytes", "messages/s", "CPU of both sides for a million"), lines)


def missed(rows):
    """The aims that the release misses, and the number of those that it meets."""
    head, line, *lines = targets.markdown(rows)
    met = sum(each.endswith("| yes |") for each in lines)
    lines = [each for each in lines if "| **" in each]
    return "\n".join([f"{met} aims are met. These are not:", "", head, line, *lines])


def parts(release):
    rows = release["rows"]
    return {
        "origin": f"Measured with {release['version']} on {release['machine']}.",
        "throughput": throughput(rows),
        "latency": latency(rows),
        "small": small(rows),
        "targets": missed(rows),
    }


def rewritten(text, generated):
    return PART.sub(lambda match: f"{match[1]}{generated[match[2]]}\n{match[4]}", text)


def main():
    release = releases.last()
    if release is None:
        sys.exit("document: bench/history/ holds no release yet")
    if "--rows" in sys.argv:
        print("\n".join(targets.markdown(release["rows"])), tables.markdown(release["rows"]).strip(), sep="\n\n")
        return
    generated = parts(release)
    stale = []
    for page in PAGES:
        text = (DOCS / page).read_text()
        wanted = rewritten(text, generated)
        if wanted == text:
            continue
        stale.append(page)
        if "--check" not in sys.argv:
            (DOCS / page).write_text(wanted)
    if stale and "--check" in sys.argv:
        sys.exit(f"document: not what bench/document.py writes: {', '.join(stale)}")
    print(f"document: the tables of {len(PAGES)} pages are those of {release['version']}")


if __name__ == "__main__":
    main()
