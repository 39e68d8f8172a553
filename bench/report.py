# SPDX-License-Identifier: Apache-2.0
"""Writes the results of bench/run: JSON, Markdown tables, and plots if matplotlib is installed."""

import json
import os
import pathlib
import platform
import subprocess

import tables
import targets
from tables import number, parameters_text


def one_line(metrics):
    return ", ".join(f"{name} {number(value)}" for name, value in metrics.items())


def caches():
    """The sizes of a core's caches as reported by the C library: "L1d 48 KiB, L2 1024 KiB"."""
    names = (("L1d", "LEVEL1_DCACHE_SIZE"), ("L2", "LEVEL2_CACHE_SIZE"), ("L3", "LEVEL3_CACHE_SIZE"))
    sizes = []
    for name, variable in names:
        done = subprocess.run(["getconf", variable], capture_output=True, text=True)
        if done.stdout.strip().isdigit() and int(done.stdout) > 0:
            sizes.append(f"{name} {int(done.stdout) // 1024} KiB")
    return ", ".join(sizes) or "of unknown sizes"


def machine():
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{os.cpu_count()} x {model} (caches: {caches()}), Linux {platform.release()}; load average at the end: {load}"


def markdown(rows, options, took_s):
    lines = [
        machine(),
        "",
        f"{options.repetitions} repetitions of {options.seconds} s, interleaved, in {took_s / 60:.0f} minutes.",
        "",
        *targets.markdown(rows),
        "",
        "| workload | subject | parameters | metric | median | min | max | runs |",
        "|---|---|---|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        values = ["" if row[key] is None else number(row[key]) for key in ("median", "min", "max")]
        cells = [row["workload"], row["subject"], parameters_text(row["parameters"]), row["metric"]]
        lines.append("| " + " | ".join([*cells, *values, str(row["runs"])]) + " |")
    return "\n".join(lines) + "\n"


def label(row, leave_out):
    rest = {name: value for name, value in row["parameters"].items() if name not in leave_out}
    return " ".join([row["subject"], *(str(value) for value in rest.values())])


def bars(plot, rows, title, unit):
    rows = rows[::-1]
    spread = [
        [row["median"] - row["min"] for row in rows],
        [row["max"] - row["median"] for row in rows],
    ]
    colours = ["tab:red" if row["subject"] == "netio" else "tab:gray" for row in rows]
    names = [label(row, ("size", "fids", "rate")) for row in rows]
    plot.barh(range(len(rows)), [row["median"] for row in rows], xerr=spread, color=colours)
    plot.set_yticks(range(len(rows)), names, fontsize=8)
    plot.set_title(title, fontsize=9)
    plot.set_xlabel(unit, fontsize=8)


def sweep(plot, rows, title):
    lines = {}
    for row in rows:
        lines.setdefault(label(row, ("size",)), []).append((row["parameters"]["size"], row["median"]))
    for name, points in lines.items():
        points.sort()
        style = "-o" if name.startswith("netio") else "--."
        plot.plot([x for x, _ in points], [y for _, y in points], style, label=name)
    plot.set_xscale("log", base=2)
    plot.set_yscale("log")
    plot.set_xlabel("bytes", fontsize=8)
    plot.set_ylabel("Gb/s", fontsize=8)
    plot.set_title(title, fontsize=9)
    plot.legend(fontsize=7)


def draw(folder, rows):
    try:
        import matplotlib

        matplotlib.use("svg")
        matplotlib.rcParams["svg.hashsalt"] = "bench"
        from matplotlib import pyplot
    except ImportError:
        print("no plots: python3-matplotlib is not installed")
        return

    def of(workload, metric, **parameters):
        return [
            row
            for row in rows
            if (row["workload"], row["metric"]) == (workload, metric)
            and all(row["parameters"].get(name) == value for name, value in parameters.items())
        ]

    def save(name, drawings):
        drawings = [(draw_one, data, *rest) for draw_one, data, *rest in drawings if data]
        if not drawings:
            return
        figure, plots = pyplot.subplots(1, len(drawings), figsize=(6 * len(drawings), 3.6), squeeze=False)
        for plot, (draw_one, data, *rest) in zip(plots[0], drawings):
            draw_one(plot, data, *rest)
        figure.tight_layout()
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)

    save("w1", [(bars, of("W1", "messages_per_s"), "W1: 40 bytes, 1 to 1", "messages/s")])
    save("w2", [(sweep, of("W2", "gbit_per_s"), "W2: throughput by size")])
    save("w3", [(bars, of("W3", "p50_us", size=size), f"W3: round trip, {size} B", "p50, us") for size in (64, 4096)])
    save(
        "w4",
        [
            (bars, of("W4", "gbit_per_s", subscribers=16, size=size), f"W4: 1 to 16, {size} B", "Gb/s in sum")
            for size in (1024, 65536)
        ],
    )
    save(
        "w6",
        [
            (bars, of("W6", "p99_us"), "W6: 100 kHz of 1 KiB, one way", "p99, us"),
            (bars, of("W6", "publisher_cpu_percent"), "W6: publisher", "% of a core"),
            (bars, of("W6", "subscriber_cpu_percent"), "W6: subscriber", "% of a core"),
        ],
    )


def write(folder, rows, options, took_s):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")
    (folder / "results.md").write_text(markdown(rows, options, took_s))
    (folder / "tables.md").write_text(tables.markdown(rows))
    draw(folder, rows)
