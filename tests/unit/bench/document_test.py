#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/document.py: the tables in docs/ show the last release."""

import pathlib
import subprocess
import sys
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[3] / "bench"
sys.path.insert(0, str(BENCH))
import document  # noqa: E402


def row(workload, subject, metric, median, **parameters):
    return {"workload": workload, "subject": subject, "parameters": parameters, "metric": metric,
            "median": median, "min": median, "max": median, "runs": 5}


class Documenting(unittest.TestCase):
    def test_the_pages_show_the_last_release(self):
        done = subprocess.run([sys.executable, "-B", BENCH / "document.py", "--check"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_only_what_stands_between_the_comments_is_written(self):
        page = "before\n<!-- bench: small -->\nold\n<!-- bench: end -->\nbehind\n"
        once = document.rewritten(page, {"small": "new"})
        self.assertEqual(once, "before\n<!-- bench: small -->\nnew\n<!-- bench: end -->\nbehind\n")
        self.assertEqual(document.rewritten(once, {"small": "new"}), once)

    def test_a_size_is_a_line(self):
        rows = [row("W2", "netio", "gbit_per_s", 34.5, size=1024, form="buffered"),
                row("W2", "netio", "gbit_per_s", 0.9, size=1024, form="unbuffered"),
                row("W2", "raw-coalesced", "gbit_per_s", 35.0, size=1024),
                row("W2", "raw-unbatched", "gbit_per_s", 2.0, size=1024),
                row("W2", "ucx", "gbit_per_s", 4.0, size=1024)]
        self.assertIn("| 1 KiB | 34.5 | 0.9 | 35 | 4 |", document.throughput(rows))

    def test_what_was_not_measured_is_a_dash(self):
        rows = [row("W3", "netio", "p50_us", 17.0, size=64, mode="busy", form="session"),
                row("W3", "netio", "p99_us", 25.0, size=64, mode="busy", form="session")]
        self.assertIn("| busy | 17 / 25 | – | – | – | – |", document.latency(rows))

    def test_only_missed_aims_are_listed(self):
        rows = [row("W12", "netio", "wall_ms", 12.0, command="info"),
                row("W12", "netio", "wall_ms", 31.0, command="list")]
        self.assertEqual(document.missed(rows).split("\n")[0], "1 aims are met. These are not:")
        self.assertIn("| W12 | list: ms | at most 20 | 31 | **no** |", document.missed(rows))
        self.assertNotIn("info", document.missed(rows))


if __name__ == "__main__":
    unittest.main()
