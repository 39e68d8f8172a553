# SPDX-License-Identifier: Apache-2.0
"""The rows of one run as tables for people: medians, with the minimum and the maximum in brackets."""

UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
SUBJECTS = (
    "raw-coalesced",
    "raw-unbatched",
    "plain-libfabric",
    "netio buffered",
    "netio unbuffered",
    "zeromq",
    "nng",
    "cyclonedds",
    "ucx",
)


def number(value):
    for size, unit in UNITS:
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def parameters_text(parameters):
    return ", ".join(f"{name} {value}" for name, value in parameters.items())


def name_of(row):
    form = row["parameters"].get("form")
    return f"{row['subject']} {form}" if form else row["subject"]


def cell(row, factor=1.0):
    if row is None:
        return "–"
    median, least, most = (number(row[key] * factor) for key in ("median", "min", "max"))
    return f"{median} ({least}–{most})"


def table(heads, lines):
    ruled = ["|" + "|".join(["---"] * len(heads)) + "|"]
    return "\n".join(["| " + " | ".join(heads) + " |", *ruled, *("| " + " | ".join(line) + " |" for line in lines)])


class Rows:
    def __init__(self, rows):
        self.rows = rows

    def find(self, workload, metric, **parameters):
        return [
            row
            for row in self.rows
            if row["workload"] == workload
            and row["metric"] == metric
            and all(row["parameters"].get(key) == value for key, value in parameters.items())
        ]

    def cells(self, workload, metric, subjects, **parameters):
        found = {name_of(row): row for row in self.find(workload, metric, **parameters)}
        return [cell(found.get(subject)) for subject in subjects]


def of_fids(row):
    return f"{row['workload']}, {row['parameters']['fids']} fids"


def small_messages(rows):
    lines = []
    for workload in ("W1", "W5"):
        rates = rows.find(workload, "messages_per_s")
        costs = rows.find(workload, "cpu_s_per_million")
        lines += [[of_fids(rate), rate["subject"], cell(rate, 1e-6), cell(cost)] for rate, cost in zip(rates, costs)]
    heads = ("", "subject", "million messages/s", "CPU seconds per million, both sides")
    return "W1 and W5: 40 bytes", table(heads, lines)


def sizes(rows):
    found = sorted({row["parameters"]["size"] for row in rows.find("W2", "gbit_per_s")})
    lines = [[str(size), *rows.cells("W2", "gbit_per_s", SUBJECTS, size=size)] for size in found]
    return "W2: Gb/s by size, 1 to 1", table(("bytes", *SUBJECTS), lines)


def round_trips(rows):
    lines = []
    for row in rows.find("W3", "p50_us"):
        same = {key: row["parameters"].get(key) for key in ("size", "mode", "form")}
        later = [
            cell(next((each for each in rows.find("W3", metric, **same) if each["subject"] == row["subject"]), None))
            for metric in ("p99_us", "p999_us")
        ]
        lines.append([str(same["size"]), name_of(row), same["mode"], cell(row), *later])
    return "W3: round trip in microseconds", table(("bytes", "subject", "mode", "p50", "p99", "p99.9"), lines)


def fan_out(rows):
    subjects = tuple(subject for subject in SUBJECTS if subject != "plain-libfabric")
    cases = sorted({(row["parameters"]["subscribers"], row["parameters"]["size"]) for row in rows.find("W4", "gbit_per_s")})
    lines = [
        [f"1 to {subscribers}, {size} B", *rows.cells("W4", "gbit_per_s", subjects, subscribers=subscribers, size=size)]
        for subscribers, size in cases
    ]
    return "W4: fan-out, Gb/s in sum", table(("", *subjects), lines)


def paced(rows):
    metrics = ("p50_us", "p99_us", "p999_us", "publisher_cpu_percent", "subscriber_cpu_percent", "cpu_us_per_tick")
    names = [name_of(row) for row in rows.find("W6", "p50_us")]
    columns = [rows.cells("W6", metric, names) for metric in metrics]
    lines = [[name, *(column[i] for column in columns)] for i, name in enumerate(names)]
    heads = ("subject", "p50, us", "p99, us", "p99.9, us", "publisher, % of a core", "subscriber, % of a core",
             "us of both a tick")
    return "W6: 100,000 messages of 1 KiB a second", table(heads, lines)


def streams(rows):
    subjects = ("netio", "netio-writes", "plain-libfabric", "raw-unbatched")
    found = sorted({row["parameters"]["size"] for row in rows.find("W7", "gbit_per_s")})
    lines = [[str(size), *rows.cells("W7", "gbit_per_s", subjects, size=size)] for size in found]
    heads = ("bytes of a message", "netio", "by remote writes", "plain `fi_writedata`", "raw TCP")
    return "W7: byte streams, Gb/s", table(heads, lines)


def scale(rows):
    lines = []
    for rate, cost in zip(rows.find("W8", "messages_per_s"), rows.find("W8", "cpu_s_per_million")):
        lines.append([parameters_text(rate["parameters"]), cell(rate, 1e-6), cell(cost)])
    heads = ("netio, buffered", "million messages/s", "CPU seconds per million, both sides")
    idle = [
        f"1,000 idle connections with default heartbeats: {side} {cell(row)} % of a core."
        for side in ("publisher", "subscriber")
        for row in rows.find("W8", f"{side}_cpu_percent")
    ]
    return "W8: scale", "\n\n".join([table(heads, lines), *idle])


def hard_cases(rows):
    metrics = (("W10", "gbit_per_s", "Gb/s"), ("W11", "messages_per_s", "messages/s"), ("W12", "wall_ms", "ms"),
               ("W13", "gbit_per_s", "Gb/s"), ("W14", "publisher_cpu_s_per_million", "s of CPU per million"),
               ("W15", "messages_per_s", "messages/s"), ("W16", "gbit_per_s", "Gb/s"))
    lines = [
        [workload, row["subject"], parameters_text(row["parameters"]), f"{cell(row)} {unit}"]
        for workload, metric, unit in metrics
        for row in rows.find(workload, metric)
    ]
    title = "W10 to W16: pieces, groups, starting, a long way, loops, a client, coalescing"
    return title, table(("", "subject", "", "measured"), lines)


def markdown(rows):
    of_run = Rows([row for row in rows if row["runs"] > 0])
    parts = (small_messages, sizes, round_trips, fan_out, paced, streams, scale, hard_cases)
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in (part(of_run) for part in parts)) + "\n"
