#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/distance.py: which runs are repeated."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
import distance  # noqa: E402


class Machine:
    """Measures each of the distances once, then the last one for ever. Its clock advances by wait()."""

    def __init__(self, *distances):
        self.distances = [50.0] * distance.CoreDistance.FIRST_LOOKS + list(distances)
        self.time = 0.0
        self.runs = 0

    def now(self):
        return self.distances.pop(0) if len(self.distances) > 1 else self.distances[0]

    def clock(self):
        return self.time

    def wait(self, seconds):
        self.time += seconds

    def run(self):
        self.runs += 1
        return self.runs

    def distance(self):
        return distance.CoreDistance(self.now, self.clock, self.wait)


class Distance(unittest.TestCase):
    def test_a_near_run_counts_at_once(self):
        machine = Machine(55.0)
        self.assertEqual(machine.distance().measure(machine.run), 1)

    def test_a_run_that_ends_far_apart_is_repeated(self):
        machine = Machine(50.0, 350.0, 50.0)
        self.assertEqual(machine.distance().measure(machine.run), 2)

    def test_no_run_begins_far_apart(self):
        machine = Machine(350.0, 350.0, 50.0)
        self.assertEqual(machine.distance().measure(machine.run), 1)
        self.assertGreater(machine.time, 0)

    def test_a_run_counts_after_all_if_the_processors_stay_far_apart(self):
        machine = Machine(350.0)
        measured = machine.distance()
        self.assertEqual(measured.measure(machine.run), 1)
        self.assertEqual(measured.far_runs, 1)
        self.assertGreaterEqual(machine.time, distance.CoreDistance.PATIENCE_S)

    def test_patience_is_limited_in_all(self):
        machine = Machine(350.0)
        measured = machine.distance()
        for _ in range(100):
            measured.measure(machine.run)
        self.assertEqual(measured.far_runs, 100)
        self.assertLess(machine.time, distance.CoreDistance.PATIENCE_IN_ALL_S + 1)

    def test_the_smallest_distance_seen_is_near(self):
        machine = Machine(20.0, 50.0, 20.0)
        self.assertEqual(machine.distance().measure(machine.run), 2)

    def test_one_processor_is_always_near(self):
        measured = distance.CoreDistance(lambda: 0.0)
        self.assertEqual(measured.measure(lambda: "once"), "once")

    def test_without_the_program_every_run_counts(self):
        self.assertIsNone(distance.measured_by(pathlib.Path("/nonexistent/core-distance")))
        self.assertEqual(distance.CoreDistance(None).measure(lambda: "once"), "once")


if __name__ == "__main__":
    unittest.main()
