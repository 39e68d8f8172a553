# SPDX-License-Identifier: Apache-2.0
"""The medians of each release: bench/history/VERSION.json, one row per line."""

import json
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent / "history"
KEPT = ("workload", "subject", "parameters", "metric", "median", "min", "max", "runs")


def order_of(path):
    return [int(number) for number in re.findall(r"\d+", path.stem)]


def last(folder=FOLDER, but=None):
    """The medians of the latest release that is not `but`; None if there is none."""
    found = sorted((path for path in folder.glob("*.json") if path.stem != but), key=order_of)
    return json.loads(found[-1].read_text()) if found else None


def four_digits(value):
    return float(f"{value:.4g}") if isinstance(value, float) else value


def record(rows, version, machine, folder=FOLDER):
    """Writes them, and returns the path."""
    if not re.fullmatch(r"\d+(\.\d+)+", version):
        raise ValueError(f"'{version}' is not a version")
    kept = [{key: four_digits(row[key]) for key in KEPT} for row in rows if row["metric"] != "skipped"]
    lines = ",\n".join(json.dumps(row) for row in kept)
    head = f'"version": {json.dumps(version)},\n"machine": {json.dumps(machine)},\n'
    folder.mkdir(exist_ok=True)
    path = folder / f"{version}.json"
    path.write_text(f'{{\n{head}"rows": [\n{lines}\n]\n}}\n')
    return path
