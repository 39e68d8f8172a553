# SPDX-License-Identifier: Apache-2.0
"""The plots of the 2014 study (bench/study.py)."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))
sys.dont_write_bytecode = True

import study  # noqa: E402


class Studying(unittest.TestCase):
    def test_draws_a_file_for_each_link(self):
        rows = ["measured,improved,65536,4,8,12.5000,0.2500,0.5000,1.0000",
                "10 Gb/s over 48 ms,published,0,1,1,0.0000,0.0000,0.0000,0.0000"]
        script = study.plot_script(rows, "out/study.csv", "out")
        self.assertIn("set output 'out/measured.svg'", script)
        self.assertIn("set output 'out/10-Gb-s-over-48-ms.svg'", script)
        self.assertIn("'out/study.csv' using", script)


if __name__ == "__main__":
    unittest.main()
