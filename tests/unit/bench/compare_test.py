#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/compare.py and bench/releases.py: which results count as slower, and which data of a run is stored."""

import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
import cases  # noqa: E402
import compare  # noqa: E402
import releases  # noqa: E402
import targets  # noqa: E402


def row(subject, median, metric="messages_per_s", workload="W1", wide=0.0, **parameters):
    return {"workload": workload, "subject": subject, "parameters": parameters, "metric": metric,
            "median": median, "min": median and median * (1 - wide), "max": median and median * (1 + wide),
            "runs": 5}


def said(earlier, now):
    return compare.text(now, {"version": "1.0", "machine": "here", "rows": earlier})


class Comparing(unittest.TestCase):
    def test_what_is_slower_is_named_with_how_much(self):
        lines = said([row("netio", 100.0), row("raw-coalesced", 200.0)],
                     [row("netio", 80.0), row("raw-coalesced", 200.0)])
        self.assertIn("slower: 1", lines)
        self.assertIn("-20 % (noise 5 %)  W1 netio messages_per_s: 100 -> 80", "\n".join(lines))

    def test_a_longer_time_is_slower_too(self):
        lines = said([row("netio", 10.0, "p50_us")], [row("netio", 20.0, "p50_us")])
        self.assertIn("slower: 1", lines)

    def test_what_the_floor_lost_as_well_is_the_machine_s(self):
        lines = said([row("netio", 100.0), row("raw-coalesced", 200.0)],
                     [row("netio", 50.0), row("raw-coalesced", 100.0)])
        self.assertIn("slower: 0", lines)
        self.assertIn("within noise: 1", lines)

    def test_the_floor_of_the_same_workload_counts_before_that_of_others(self):
        earlier = [row("netio", 100.0), row("raw-coalesced", 100.0),
                   row("raw-coalesced", 100.0, workload="W2")]
        now = [row("netio", 50.0), row("raw-coalesced", 50.0), row("raw-coalesced", 100.0, workload="W2")]
        self.assertIn("within noise: 1", said(earlier, now))

    def test_a_change_smaller_than_runs_differ_by_is_noise(self):
        self.assertIn("within noise: 1", said([row("netio", 100.0, wide=0.15)], [row("netio", 80.0, wide=0.1)]))
        self.assertIn("slower: 1", said([row("netio", 100.0, wide=0.05)], [row("netio", 80.0, wide=0.05)]))

    def test_the_noise_of_the_floor_counts_too(self):
        earlier = [row("netio", 100.0), row("raw-coalesced", 100.0, wide=0.2)]
        self.assertIn("within noise: 1", said(earlier, [row("netio", 85.0), row("raw-coalesced", 100.0)]))

    def test_what_is_faster_is_told_as_well(self):
        lines = said([row("netio", 100.0)], [row("netio", 200.0)])
        self.assertIn("faster: 1", lines)

    def test_the_same_case_with_other_parameters_is_another(self):
        lines = said([row("netio", 100.0, size=40)], [row("netio", 50.0, size=64)])
        self.assertIn("slower: 0", lines)
        self.assertIn("not measured now: 1", lines)

    def test_a_count_does_not_drift_with_the_machine(self):
        earlier = [row("netio", 100.0, "system_calls_per_million", counted=True),
                   row("raw-coalesced", 100.0, "system_calls_per_million")]
        now = [row("netio", 150.0, "system_calls_per_million", counted=True),
               row("raw-coalesced", 150.0, "system_calls_per_million")]
        self.assertIn("slower: 1", said(earlier, now))

    def test_peers_and_void_rows_are_not_compared(self):
        void = {**row("netio", 1.0), "median": None, "min": None, "max": None, "runs": 0}
        lines = said([row("zeromq", 100.0), row("netio", 1.0)], [row("zeromq", 10.0), void])
        self.assertIn("slower: 0", lines)
        self.assertIn("within noise: 0", lines)

    def test_the_stream_that_got_slower_is_named(self):
        lines = said([row("netio-stream", 100.0, "gbit_per_s", "W13", size=65536),
                      row("netio-stream", 100.0, "messages_per_s", "W13", size=65536)],
                     [row("netio-stream", 50.0, "messages_per_s", "W13", size=65536)])
        self.assertIn("slower: 1", lines)

    def test_all_that_is_ours_is_compared(self):
        asked = set()

        class Asked(targets.Results):
            def medians(self, workload, subjects, metric, **parameters):
                asked.update((subjects,) if isinstance(subjects, str) else subjects)
                return super().medians(workload, subjects, metric, **parameters)

        every = [row(case.workload, 1.0, workload=case.workload, **case.parameters)
                 for case in cases.all_cases(False)]
        with unittest.mock.patch.object(targets, "Results", Asked):
            list(targets.aims(every))
        asked |= {case.subject for case in cases.all_cases(False)}
        self.assertEqual({subject for subject in asked if subject.startswith("netio")}, set(compare.OURS))

    def test_without_a_release_it_says_so(self):
        self.assertIn("no release", compare.text([row("netio", 1.0)], None)[0])


class Releasing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_what_is_recorded_is_read_again(self):
        void = {**row("netio", None), "metric": "void", "runs": 0}
        skipped = {**row("ucx", None), "metric": "skipped", "runs": 0}
        releases.record([row("netio", 123456.0, size=40), void, skipped], "0.2.0", "a machine", self.folder)
        found = releases.last(self.folder)
        self.assertEqual(found["machine"], "a machine")
        self.assertEqual([each["median"] for each in found["rows"]], [123500.0, None])
        self.assertIn("within noise: 1", compare.text([row("netio", 123456.0, size=40)], found))

    def test_the_last_release_is_that_of_the_greatest_number(self):
        for version in ("0.9.0", "0.10.0", "0.2.1"):
            releases.record([], version, "a machine", self.folder)
        self.assertEqual(releases.last(self.folder)["version"], "0.10.0")
        self.assertEqual(releases.last(self.folder, but="0.10.0")["version"], "0.9.0")

    def test_there_may_be_none(self):
        self.assertIsNone(releases.last(self.folder))

    def test_a_version_is_of_numbers(self):
        with self.assertRaises(ValueError):
            releases.record([], "../x", "a machine", self.folder)

    def test_the_history_of_this_tree_can_be_compared_with(self):
        last = releases.last()
        self.assertIsNotNone(last)
        lines = compare.text(last["rows"], last)
        self.assertIn("slower: 0", lines)
        self.assertIn("faster: 0", lines)


if __name__ == "__main__":
    unittest.main()
