#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repeats the 2014 study of the stream protocol (Figures 11 to 14 of the talk), with tables and plots.

    bench/study.py NETIO FOLDER [--computed PROGRAM] [--bytes N] [--size N] [--provider NAME]

Throughput, processor use and share of direct bytes as functions of the outstanding sends and receives, for the
three modes, the published policy and the current one: measured between two processes of NETIO, and, with the
program of bench/study.cpp, computed for links that are not available.
"""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

SUBJECTS = ("direct", "indirect", "published", "improved")
SENDS = (1, 2, 4, 8, 16, 32)
RECEIVES_PER_SEND = (1, 2)
HEADING = ("link,subject,message_bytes,sends,receives,gbit_per_s,"
           "sender_processor_share,receiver_processor_share,direct_share")
PANELS = (("throughput, Gb/s", "6"), ("receiver, % of a core", "(100*$8)"), ("direct, % of the bytes", "(100*$9)"))


def mode_of(subject):
    """The options of `netio pump`."""
    return {"improved": [], "published": ["--policy", "published"]}.get(subject, ["--mode", subject])


def measured(netio, subject, sends, receives, arguments):
    common = [*mode_of(subject), "--receives", str(receives), "--provider", arguments.provider]
    server = subprocess.Popen([netio, "pump", "--serve", "--once", "--listen", "127.0.0.1:0", *common],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        address = next(found[1] for found in (re.search(r"listening at (\S+)", line) for line in server.stderr) if found)
        client = subprocess.run([netio, "pump", address, "--json", "--bytes", arguments.bytes, "--size", arguments.size,
                                 "--sends", str(sends), *common], capture_output=True, text=True, check=True)
        server.communicate()
    finally:
        server.kill()
    report = json.loads(client.stdout)
    return (f"measured,{subject},{arguments.size},{sends},{receives},{report['server']['gbit_per_s']:.4f},"
            f"{report['processor_share']:.4f},{report['server']['processor_share']:.4f},"
            f"{report['direct_share_sent']:.4f}")


def plot_script(rows, table, folder):
    """A gnuplot script that makes an SVG file per link."""
    script = ("set datafile separator ','\nset logscale x 2\nset grid\n"
              "set xlabel 'sends outstanding'\nset yrange [0:*]\nset key bottom right\n")
    for link in sorted({row.split(",")[0] for row in rows}):
        name = re.sub(r"[^0-9A-Za-z]", "-", link)
        script += (f"set terminal svg size 1200,800 background 'white'\nset output '{folder}/{name}.svg'\n"
                   f"set multiplot layout 2,3 title '{link}'\n")
        for factor in RECEIVES_PER_SEND:
            for title, column in PANELS:
                lines = [f"'{table}' using ((strcol(1) eq '{link}' && strcol(2) eq '{subject}' && $5 == {factor}*$4) "
                         f"? $4 : NaN):{column} with linespoints title '{subject}'" for subject in SUBJECTS]
                script += f"set title '{title} (receives = {factor} x sends)'\nplot {', '.join(lines)}\n"
        script += "unset multiplot\n"
    return script


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("netio")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--computed")
    parser.add_argument("--bytes", default="1G")
    parser.add_argument("--size", default="262144")
    parser.add_argument("--provider", default="auto")
    arguments = parser.parse_args()
    rows = []
    for factor in RECEIVES_PER_SEND:
        for sends in SENDS:
            for subject in SUBJECTS:
                rows.append(measured(arguments.netio, subject, sends, factor * sends, arguments))
                print(rows[-1], file=sys.stderr)
    if arguments.computed:
        rows += subprocess.run([arguments.computed], capture_output=True, text=True, check=True).stdout.splitlines()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    table, script = arguments.folder / "study.csv", arguments.folder / "study.gnuplot"
    table.write_text("\n".join([HEADING, *rows]) + "\n")
    script.write_text(plot_script(rows, table, arguments.folder))
    print(table, script, sep="\n")
    if not shutil.which("gnuplot"):
        print(f"no plots: install gnuplot, then: gnuplot {script}", file=sys.stderr)
        return 0
    return subprocess.run(["gnuplot", script], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
