#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/targets.py and bench/cases.py: the performance targets, and the cases that measure them."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
import cases  # noqa: E402
import targets  # noqa: E402
from case import Command  # noqa: E402


def row(workload, subject, metric, median, **parameters):
    return {"workload": workload, "subject": subject, "parameters": parameters, "metric": metric,
            "median": median, "min": median, "max": median, "runs": 5}


def found(rows, what):
    return [each for each in targets.ratios(rows) if each[1] == what]


# Output of a program, with a match for every pattern.
REPORTS = [
    {"role": "publish", "messages": 100, "ticks": 10, "cpu_s": 0.5, "wall_s": 1.0,
     "p50_us": 10.0, "p99_us": 20.0, "p999_us": 30.0},
    {"role": "subscribe", "messages": 100, "seconds": 1.0, "cpu_s": 0.4,
     "p50_us": 10.0, "p99_us": 20.0, "p999_us": 30.0},
    {"role": "idle", "cpu_s": 0.1},
]


def rows_of_everything():
    for case in cases.all_cases(False):
        if isinstance(case, Command):
            metrics = {"wall_ms": 5.0, "gbit_per_s": 5.0}
        else:
            metrics = case.metrics(REPORTS if case.subscribers else [REPORTS[0], REPORTS[2]])
        for metric, value in metrics.items():
            yield row(case.workload, case.subject, metric, value, **case.parameters)


class Aiming(unittest.TestCase):
    def test_a_ratio_is_ours_by_theirs(self):
        rows = [row("W1", "netio", "messages_per_s", 30.0), row("W1", "raw-coalesced", "messages_per_s", 40.0)]
        self.assertEqual([each[-1] for each in found(rows, "of raw TCP, coalesced")], [0.75])

    def test_buffered_messages_are_aimed_at_raw_tcp_by_size_and_fids(self):
        rows = [row("W16", subject, "messages_per_s", median, size=128, fids=fids)
                for fids, ours in ((1, 3.0), (1000, 2.0))
                for subject, median in (("netio", ours), ("raw-coalesced", 4.0))]
        for fids, expected in ((1, 0.75), (1000, 0.5)):
            what = f"128 B, buffered, {fids} fids: of raw TCP, coalesced"
            self.assertEqual([each[2:] for each in found(rows, what)], [("at least", 0.95, expected)])

    def test_what_was_not_measured_has_no_row(self):
        self.assertEqual(list(targets.ratios([])), [])
        self.assertEqual(list(targets.ratios([row("W1", "raw-coalesced", "messages_per_s", 1.0)])), [])

    def test_the_cost_of_a_tick_is_what_sending_adds_to_it(self):
        rows = [row("W6", "ticks", "cpu_us_per_tick", 10.0),
                row("W6", "raw-coalesced", "cpu_us_per_tick", 30.0),
                row("W6", "netio", "cpu_us_per_tick", 70.0, form="buffered")]
        self.assertEqual([each[-1] for each in found(rows, "the same, of raw TCP coalesced")], [3.0])

    def test_the_best_form_counts_but_for_unbuffered_small_messages(self):
        rows = [row("W2", "netio", "messages_per_s", 9e6, size=64, form="buffered"),
                row("W2", "netio", "messages_per_s", 1e6, size=64, form="unbuffered"),
                row("W2", "ucx", "messages_per_s", 2e6, size=64)]
        self.assertEqual([each[-1] for each in found(rows, "64 B, of the best peer")], [4.5])
        self.assertEqual([each[-1] for each in found(rows, "64 B, unbuffered: of UCX")], [0.5])

    def test_more_than_means_more(self):
        self.assertFalse(targets.holds("more than", 1, 1))
        self.assertTrue(targets.holds("at least", 1, 1))
        self.assertFalse(targets.holds("less than", 1, 1))
        self.assertTrue(targets.holds("at most", 1, 1))

    def test_an_aim_whose_case_gave_nothing_is_told(self):
        def table(ours, theirs):
            return "\n".join(targets.markdown([ours, theirs]))

        ours = row("W13", "netio-stream", "gbit_per_s", 10.0, size=65536)
        theirs = row("W13", "raw-unbatched", "gbit_per_s", 20.0, size=65536)
        void = {"metric": "void", "median": None, "min": None, "max": None, "runs": 0}
        wanted = "| W13 | 20 ms there and back, the stream: of raw TCP | at least 0.9 | **not measured** |  |"
        self.assertIn("| 0.5 | **no** |", table(ours, theirs))
        self.assertIn(wanted, table({**ours, **void}, theirs))
        self.assertIn(wanted, table(ours, {**theirs, **void}))
        self.assertIn(wanted, table({**ours, **void}, {**theirs, **void, "metric": "skipped"}))
        # A case without a target has no row, and one missing peer of several is allowed.
        cyclone = {**row("W2", "cyclonedds", "messages_per_s", 1.0, size=64), **void}
        ucx = row("W2", "ucx", "messages_per_s", 1e6, size=64)
        netio = row("W2", "netio", "messages_per_s", 2e6, size=64, form="buffered")
        self.assertEqual([each[-1] for each in found([cyclone, ucx, netio], "64 B, of the best peer")], [2.0])

    def test_the_table_says_what_is_missed(self):
        rows = [row("W12", "netio", "wall_ms", 200.0, command="--help"),
                row("W12", "netio", "wall_ms", 10.0, command="--version")]
        table = "\n".join(targets.markdown(rows))
        self.assertIn("| W12 | --help: ms | at most 20 | 200 | **no** |", table)
        self.assertIn("| W12 | --version: ms | at most 20 | 10 | yes |", table)


class Casting(unittest.TestCase):
    def test_every_aim_has_cases_for_both_of_its_sides(self):
        missing = [each[:2] for each in targets.aims(list(rows_of_everything())) if each[-2] and each[-1] is None]
        self.assertEqual(missing, [])

    def test_every_aim_is_measured_by_some_case(self):
        told = {each[1] for each in targets.ratios(list(rows_of_everything()))}
        for what in (
            "64 B, unbuffered: messages per second", "1024 B, unbuffered: messages per second",
            "4096 B, unbuffered: messages per second", "28 pieces, of 3",
            "262144 B, buffered: of raw TCP, coalesced", "1048576 B, buffered: of raw TCP, coalesced",
            "256 B, of the better raw form", "1000 fids: rate, of one fid's",
            "1000 fids: rate, of raw TCP with as many", "10000 fids: cost per message, of one",
            "64 B, adaptive, publish/subscribe over two connections: p50 of plain libfabric",
            "64 B, busy, publish/subscribe over two connections: p50 of plain libfabric",
            "64 B, busy, a bare session: p50 of plain libfabric",
            "20 ms there and back, publish/subscribe: of raw TCP",
            "20 ms there and back, the stream: of raw TCP",
            "40 B, two loops: CPU per message, of one", "1024 B, two loops: CPU per message, of one",
            "40 B, integrity, of U A / (U + A)", "65536 B, privacy, of U A / (U + A)",
            "64 B, unbuffered: of UCX", "1024 B, unbuffered: of UCX", "4096 B, unbuffered: of UCX",
            "64 B, unbuffered: of raw TCP, unbatched", "the same, of raw TCP coalesced",
            "p99, us", "1280 groups, of 64", "--help: ms", "--version: ms",
            "40 B, a client, callback: of the socket of one thread",
            "40 B, a client, batches: of the socket of one thread",
            "1024 B, a client, batches: of the socket of one thread",
        ):
            self.assertIn(what, told)

    def test_no_two_cases_are_the_same(self):
        names = [str(case) for case in cases.all_cases(False)]
        self.assertEqual(sorted(names), sorted(set(names)))

    def test_the_short_run_is_a_part_of_the_long_one(self):
        long = {str(case) for case in cases.all_cases(False)}
        short = {str(case) for case in cases.all_cases(True)}
        self.assertLess(len(short), len(long))
        self.assertLessEqual(short, long)

    def test_the_strongest_peer_on_tcp_is_among_them(self):
        workloads = {case.workload for case in cases.all_cases(False) if case.subject == "ucx"}
        self.assertLessEqual({"W1", "W2", "W3", "W4", "W6"}, workloads)


if __name__ == "__main__":
    unittest.main()
