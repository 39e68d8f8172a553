#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports what is slower than in an earlier run.

    bench/compare.py [RESULTS.json [EARLIER.json]]

Without arguments: compares the last results of bench/run with the last of bench/history/. Two runs
may have different conditions or machines. Therefore each change is related to the change of the
lower limit (raw TCP, plain libfabric) in the same workload, which the code does not affect. A change
counts if it is larger than the variation of single runs.
"""

import json
import pathlib
import statistics
import sys

OURS = ("netio", "netio-stream", "netio-writes")
FLOOR = ("raw-coalesced", "raw-unbatched", "plain-libfabric", "ticks")
LARGER_IS_BETTER = ("messages_per_s", "gbit_per_s")
# Metrics that repeat others, or are too rare to be stable.
LEFT_OUT = ("gbit_per_s", "p999_us", "publisher_cpu_s_per_million")
LEAST_NOISE = 0.05  # between two runs on one quiet machine


def key(row):
    parameters = tuple(sorted((name, str(value)) for name, value in row["parameters"].items()))
    return row["workload"], row["subject"], parameters, row["metric"]


def gain(metric, earlier, now):
    """The factor by which it is better now."""
    return now / earlier if metric in LARGER_IS_BETTER else earlier / now


def spread(row):
    """Half of the range of the runs, relative to their median."""
    return (row["max"] - row["min"]) / 2 / row["median"]


def usable(row):
    return row["runs"] > 0 and row["median"] > 0


class Comparison:
    def __init__(self, rows, earlier):
        self.now = {key(row): row for row in rows if usable(row)}
        self.earlier = {key(row): row for row in earlier if usable(row)}

    def both(self, subjects):
        for name, row in self.now.items():
            if row["subject"] in subjects and name in self.earlier:
                yield row, self.earlier[name]

    def drift(self, workload, metric):
        """The gain of the lower limit, in this workload if it is measured there, else in all; its noise."""
        pairs = [pair for pair in self.both(FLOOR) if pair[0]["metric"] == metric]
        here = [pair for pair in pairs if pair[0]["workload"] == workload] or pairs
        if not here:
            return 1.0, 0.0
        gains = [gain(metric, old["median"], row["median"]) for row, old in here]
        return statistics.median(gains), statistics.median(spread(row) + spread(old) for row, old in here)

    def changes(self):
        """(row, earlier row, gain relative to the lower limit, noise), the worst first."""
        found = []
        for row, old in self.both(OURS):
            if row["metric"] in LEFT_OUT:
                continue
            # Counted metrics, unlike times, are the same on every machine.
            counted = row["parameters"].get("counted")
            drift, noise = (1.0, 0.0) if counted else self.drift(row["workload"], row["metric"])
            by = gain(row["metric"], old["median"], row["median"]) / drift
            found.append((row, old, by, max(LEAST_NOISE, noise + spread(row) + spread(old))))
        return sorted(found, key=lambda change: change[2])

    def missing(self):
        return [row for name, row in self.earlier.items()
                if row["subject"] in OURS and row["metric"] not in LEFT_OUT and name not in self.now]


def name_of(row):
    words = [row["workload"], row["subject"], *(f"{k}={v}" for k, v in row["parameters"].items())]
    return " ".join([*words, row["metric"]])


def line(row, old, by, noise):
    return (f"  {100 * (by - 1):+.0f} % (noise {100 * noise:.0f} %)  {name_of(row)}: "
            f"{old['median']:.4g} -> {row['median']:.4g}")


def text(rows, earlier):
    """Lines for people."""
    if earlier is None:
        return ["compare: bench/history/ holds no release yet"]
    comparison = Comparison(rows, earlier["rows"])
    changes = comparison.changes()
    slower = [change for change in changes if change[2] < 1 - change[3]]
    faster = [change for change in changes if change[2] > 1 + change[3]]
    same = len(changes) - len(slower) - len(faster)
    lines = [f"beside {earlier['version']} ({earlier['machine']}), what the floor gained taken off:"]
    lines += [f"slower: {len(slower)}", *(line(*change) for change in slower)]
    lines += [f"faster: {len(faster)}", *(line(*change) for change in reversed(faster))]
    lines += [f"within noise: {same}"]
    missing = comparison.missing()
    if missing:
        lines.append(f"not measured now: {len(missing)}")
    return lines


def main():
    here = pathlib.Path(__file__).resolve().parent
    sys.dont_write_bytecode = True
    import releases

    results = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here.parent / "build/bench/results.json"
    earlier = json.loads(pathlib.Path(sys.argv[2]).read_text()) if len(sys.argv) > 2 else releases.last()
    if earlier is not None:
        earlier = {"version": "the earlier", "machine": "of an unknown machine", **earlier}
    print("\n".join(text(json.loads(results.read_text())["rows"], earlier)))


if __name__ == "__main__":
    main()
