#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets of a build; the targets share the time.

    fuzz.py BUILD SECONDS [TARGET...]  starts from tests/fuzz/corpus and the inputs of earlier runs
    fuzz.py BUILD --keep [TARGET...]   reduces these to a new tests/fuzz/corpus: few inputs, much coverage

A corpus is a file with one input per line, in hex; lines that begin with # are comments.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = HERE / "corpus"
LONGEST_BYTES = {"config": 3000, "copy": 2100, "keys": 1500, "recording": 1500, "stream_wire": 1310}
LONGEST_BYTES_OF_OTHERS = 600
KEPT_BYTES = 6_000  # approximate limit for the corpus of one target


def inputs_of(name):
    path = CORPUS / f"{name}.hex"
    lines = path.read_text("ascii").split("\n") if path.exists() else []
    return [bytes.fromhex(line) for line in lines if line and not line.startswith("#")]


def prepare(build, name):
    """The folder where a target's inputs are collected, with the corpus in it."""
    folder = build / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs_of(name)):
        (folder / f"kept-{number}").write_bytes(data)
    if name == "config":
        for path in (ROOT / "config").glob("*.yaml"):
            (folder / path.name).write_bytes(path.read_bytes())
    return folder


def options_of(name):
    longest = LONGEST_BYTES.get(name, LONGEST_BYTES_OF_OTHERS)
    return [f"-max_len={longest}", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"]


def fuzz(build, name, seconds):
    """(line to print, whether it is sound)"""
    folder = prepare(build, name)
    artifacts = build / "findings"
    artifacts.mkdir(exist_ok=True)
    log = build / f"fuzz-{name}.log"
    command = [build / "bin" / f"fuzz_{name}", f"-max_total_time={seconds}", *options_of(name)]
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.run(
            [*command, f"-artifact_prefix={artifacts}/{name}-", folder],
            stdout=out, stderr=subprocess.STDOUT, cwd=build,
        )  # fmt: skip
    text = log.read_text("utf-8", "replace")
    ran = re.search(r"stat::number_of_executed_units: *(\d+)", text)
    covered = re.findall(r"cov: (\d+)", text)
    line = f"{name:16} {int(ran[1]) if ran else 0:>10,} inputs, {covered[-1] if covered else '?'} edges"
    if done.returncode == 0:
        return line, True
    written = re.search(r"Test unit written to (\S+)", text)
    where = pathlib.Path(written[1]) if written else None
    line += f", FAILED, see {log}"
    if where and where.exists():
        line += f"\n    replay: {command[0]} {where}\n    for the corpus: {where.read_bytes().hex()}"
    return line, False


def keep(build, name):
    """Rewrites the corpus with the inputs that add coverage, short inputs first."""
    folder = prepare(build, name)
    with tempfile.TemporaryDirectory() as merged:
        command = [build / "bin" / f"fuzz_{name}", "-merge=1", *options_of(name), merged, folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=build)
        found = sorted((path.read_bytes() for path in pathlib.Path(merged).iterdir()), key=lambda d: (len(d), d))
    lines, total = [], 0
    old = CORPUS / f"{name}.hex"
    named = old.read_text("ascii").split("\n") if old.exists() else []
    for at, line in enumerate(named):  # an input with a comment stays
        if line.startswith("#"):
            lines += [line, named[at + 1]]
    for data in found:
        if data and data.hex() not in lines and total + len(data) <= KEPT_BYTES:
            lines.append(data.hex())
            total += len(data)
    old.write_text("".join(f"{line}\n" for line in lines), "ascii")
    return f"{name:16} {len(lines)} of {len(found)} inputs kept"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("seconds", nargs="?", type=int, default=300)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_intermixed_args()
    build = options.build.resolve()
    known = sorted(path.name.removeprefix("fuzz_") for path in (build / "bin").glob("fuzz_*"))
    known = [name for name in known if name != "replay_test"]
    if unknown := set(options.targets) - set(known):
        parser.error(f"no such target: {', '.join(unknown)}; there are {', '.join(known)}")
    names = options.targets or known
    jobs = max(1, min(os.cpu_count() or 1, len(names)))
    share = max(1, options.seconds * jobs // len(names))
    failed = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        if options.keep:
            for line in pool.map(lambda name: keep(build, name), names):
                print(line, flush=True)
            return 0
        print(f"fuzz: {len(names)} targets, {share} s each, {jobs} at a time", flush=True)
        for name, (line, sound) in zip(names, pool.map(lambda name: fuzz(build, name, share), names)):
            print(line, flush=True)
            failed += [] if sound else [name]
    print(f"fuzz: {', '.join(failed)} failed" if failed else "fuzz: nothing found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
