#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repeats the 2014 study of the stream protocol (Figures 11 to 14 of the talk), with tables and plots.

    bench/study.py NETIO FOLDER [--computed PROGRAM] [--delay PROGRAM] [--bytes N] [--size N] [--provider NAME]
                   [--remote-writes WORD] [--experiments NAME,...] [--sends N,...]
                   [--repetitions N]

Throughput, processor use and the share of direct bytes and of direct transfers, between two processes of NETIO, for
the two baselines (direct, indirect), the published policy and the current one. The experiments:

    half      receives = 2 x sends, 1 to 32 sends
    equal     receives = sends
    fixed     32 receives, 1 to 32 sends
    sizes     16 sends, 32 receives, messages from 4 KiB to 4 MiB
    distance  32 sends, 32 receives, a round trip of 48 ms (with --delay build-bench/bench/delay)

Each point is the run with the median throughput. With the program of bench/study.cpp, rows are computed for links that are not available. On the tcp provider,
`--remote-writes trusted` uses its remote writes; otherwise the transfers travel in frames. The last table compares
what was measured with what the protocol promises.
"""

import argparse
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys

SUBJECTS = ("direct", "indirect", "published", "improved")
SENDS = (1, 2, 4, 8, 16, 32)
SIZES = tuple(4096 << (2 * n) for n in range(6))
DISTANT_SIZES = (65536, 1 << 20, 4 << 20)
ROUND_TRIP_MS = 48
HEADING = ("link,subject,message_bytes,sends,receives,gbit_per_s,"
           "sender_processor_share,receiver_processor_share,direct_share,direct_transfers_share,experiment")
PANELS = (("throughput, Gb/s", "6"), ("receiver, % of a core", "(100*$8)"), ("direct, % of the transfers", "(100*$10)"))
# Experiment: the column on the x axis, and its label.
AXES = {"half": (4, "sends outstanding, receives = 2 x sends"), "equal": (4, "sends outstanding, receives = sends"),
        "fixed": (4, "sends outstanding, 32 receives"), "sizes": (3, "message bytes, 16 sends, 32 receives"),
        "distance": (3, f"message bytes, 32 sends, 32 receives, {ROUND_TRIP_MS} ms")}


def points(size, all_sends, far):
    """(experiment, message bytes, sends, receives)."""
    for sends in all_sends:
        yield "half", size, sends, 2 * sends
        yield "equal", size, sends, sends
        yield "fixed", size, sends, 32
    for bytes_ in SIZES:
        yield "sizes", bytes_, 16, 32
    for bytes_ in DISTANT_SIZES if far else ():
        yield "distance", bytes_, 32, 32


def mode_of(subject):
    """The options of `netio pump`."""
    return {"improved": [], "published": ["--policy", "published"]}.get(subject, ["--mode", subject])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Path:
    """From an address to the server: direct, or through the delay process."""

    def __init__(self, address, delay):
        self.process = None
        self.address = address
        if delay:
            port = free_port()
            self.address = f"127.0.0.1:{port}"
            self.process = subprocess.Popen([delay, "--listen", str(port), "--to", address.rsplit(":", 1)[1],
                                             "--delay-ms", str(ROUND_TRIP_MS // 2), "--room-mib", "256"])
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def measured(arguments, subject, experiment, size, sends, receives):
    common = [*mode_of(subject), "--receives", str(receives), "--provider", arguments.provider,
              "--remote-writes", arguments.remote_writes]
    # The connection that finds out whether the delay process listens is a client of the server.
    server = subprocess.Popen([arguments.netio, "pump", "--serve", "--listen", "127.0.0.1:0", "--json", *common],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    path = None
    try:
        address = next(found[1] for found in (re.search(r"listening at (\S+)", line) for line in server.stderr) if found)
        path = Path(address, arguments.delay if experiment == "distance" else None)
        # Small messages and long round trips are slow; the figures settle within a second.
        count = min(arguments.bytes, size * 40_000) // (2 if experiment == "distance" else 1)
        client = subprocess.run([arguments.netio, "pump", path.address, "--json", "--bytes", str(count),
                                 "--size", str(size), "--sends", str(sends), *common],
                                capture_output=True, text=True, check=True)
    finally:
        server.kill()
        server.wait()
        server.stderr.close()
        if path:
            path.close()
    report = json.loads(client.stdout)
    sent = report["sent"]
    transfers = sent["direct_transfers"] + sent["indirect_transfers"]
    link = f"{ROUND_TRIP_MS} ms" if experiment == "distance" else "measured"
    return (f"{link},{subject},{size},{sends},{receives},{report['server']['gbit_per_s']:.4f},"
            f"{report['processor_share']:.4f},{report['server']['processor_share']:.4f},"
            f"{report['direct_share_sent']:.4f},{sent['direct_transfers'] / max(transfers, 1):.4f},{experiment}")


def plot_script(rows, table, folder):
    """A gnuplot script that makes an SVG file per link."""
    script = ("set datafile separator ','\nset logscale x 2\nset grid\nset yrange [0:*]\nset key bottom right\n")
    for link in sorted({row.split(",")[0] for row in rows}):
        experiments = sorted({row.split(",")[10] for row in rows if row.split(",")[0] == link}, key=list(AXES).index)
        name = re.sub(r"[^0-9A-Za-z]", "-", link)
        script += (f"set terminal svg size 1200,{400 * len(experiments)} background 'white'\nset output '{folder}/{name}.svg'\n"
                   f"set multiplot layout {len(experiments)},3 title '{link}'\n")
        for experiment in experiments:
            axis, label = AXES[experiment]
            for title, column in PANELS:
                lines = [f"'{table}' using ((strcol(1) eq '{link}' && strcol(2) eq '{subject}' && strcol(11) eq '{experiment}') "
                         f"? ${axis} : NaN):{column} with linespoints title '{subject}'" for subject in SUBJECTS]
                script += f"set title '{title}'\nset xlabel '{label}'\nplot {', '.join(lines)}\n"
        script += "unset multiplot\n"
    return script


def computed(program):
    """Their share of direct transfers is not computed; the share of the bytes stands for it: all have one size."""
    for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
        fields = line.split(",")
        sends, receives = int(fields[3]), int(fields[4])
        yield ",".join([*fields, fields[8], "equal" if sends == receives else "half"])


class Judge:
    """What the protocol promises, compared with the rows of the experiments that were made."""

    def __init__(self, rows):
        self.found = {}
        for row in rows:
            link, subject, size, sends, receives, rate, _, receiver, _, transfers, experiment = row.split(",")
            if link in ("measured", f"{ROUND_TRIP_MS} ms"):
                self.found[experiment, subject, int(size), int(sends), int(receives)] = {
                    "rate": float(rate), "receiver": float(receiver), "transfers": float(transfers)}

    def of(self, experiment, subject, metric):
        """By (message bytes, sends, receives)."""
        return {key[2:]: row[metric] for key, row in self.found.items() if key[:2] == (experiment, subject)}

    def share_of_the_better_baseline(self, experiment, subject):
        direct, indirect, ours = (self.of(experiment, name, "rate") for name in ("direct", "indirect", subject))
        return {at: ours[at] / max(direct[at], indirect[at], 1e-9) for at in ours}

    def verdicts(self):
        """(promise, what was measured, whether it holds)."""
        for subject in ("published", "improved"):
            for experiment, what in (("half", "half as many sends as receives"), ("distance", f"over {ROUND_TRIP_MS} ms")):
                shares = self.share_of_the_better_baseline(experiment, subject)
                if shares and (subject, experiment) != ("published", "distance"):
                    yield f"{what}: {subject} keeps up with the better baseline", f"{min(shares.values()):.2f} of it at worst", min(shares.values()) >= 0.9
            direct = self.of("half", subject, "transfers")
            if direct:
                yield f"half as many sends as receives: {subject} is direct", f"{min(direct.values()):.0%} of the transfers at least", min(direct.values()) >= 0.9
        published = {at[1]: share for at, share in self.of("fixed", "published", "transfers").items()}
        if published:
            few, many = published[min(published)], published[max(published)]
            yield ("32 receives: with more sends fewer transfers of published are direct",
                   f"{few:.0%} with {min(published)} sends, {many:.0%} with {max(published)}", many <= few)
        direct = self.of("fixed", "improved", "transfers")
        if direct:
            yield "32 receives: improved stays direct", f"{min(direct.values()):.0%} of the transfers at least", min(direct.values()) >= 0.9
        costs = {subject: {at: receiver / max(self.of("half", subject, "rate")[at], 1e-9)
                           for at, receiver in self.of("half", subject, "receiver").items()}
                 for subject in ("direct", "indirect")}
        if costs["direct"]:
            at = max(costs["direct"])
            ratio = costs["direct"][at] / max(costs["indirect"][at], 1e-9)
            yield f"{at[1]} sends: a direct receiver uses less of its processor for a byte than one that copies", f"{ratio:.2f} of it", ratio < 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("netio")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--computed")
    parser.add_argument("--delay")
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--size", type=int, default=262144)
    parser.add_argument("--provider", default="auto")
    parser.add_argument("--remote-writes", default="guarded")
    parser.add_argument("--experiments", default=",".join(AXES))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--sends", default=",".join(map(str, SENDS)))
    arguments = parser.parse_args()
    rows = []
    chosen = arguments.experiments.split(",")
    for point in points(arguments.size, list(map(int, arguments.sends.split(","))), arguments.delay):
        if point[0] not in chosen:
            continue
        # The subjects take turns, so that noise of the machine affects all alike.
        runs = {subject: [] for subject in SUBJECTS}
        for _ in range(arguments.repetitions):
            for subject in SUBJECTS:
                runs[subject].append(measured(arguments, subject, *point))
        for of_subject in runs.values():
            of_subject.sort(key=lambda row: float(row.split(",")[5]))
            rows.append(of_subject[len(of_subject) // 2])
            print(rows[-1], file=sys.stderr)
    if arguments.computed:
        rows += computed(arguments.computed)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    table, script = arguments.folder / "study.csv", arguments.folder / "study.gnuplot"
    table.write_text("\n".join([HEADING, *rows]) + "\n")
    script.write_text(plot_script(rows, table, arguments.folder))
    for promise, value, holds in Judge(rows).verdicts():
        print(f"{'as promised' if holds else 'NOT as promised'}: {promise}: {value}")
    print(table, script, sep="\n")
    if not shutil.which("gnuplot"):
        print(f"no plots: install gnuplot, then: gnuplot {script}", file=sys.stderr)
        return 0
    return subprocess.run(["gnuplot", script], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
