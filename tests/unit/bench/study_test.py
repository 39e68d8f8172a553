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
        rows = ["measured,improved,65536,4,8,12.5000,0.2500,0.5000,1.0000,1.0000,half",
                "10 Gb/s over 48 ms,published,0,1,1,0.0000,0.0000,0.0000,0.0000,0.0000,equal"]
        script = study.plot_script(rows, "out/study.csv", "out")
        self.assertIn("set output 'out/measured.svg'", script)
        self.assertIn("set output 'out/10-Gb-s-over-48-ms.svg'", script)
        self.assertIn("'out/study.csv' using", script)

    def test_judges_what_was_measured(self):
        def rows(improved):
            return [f"measured,{subject},65536,{sends},{receives},{rate},0.5,{receiver},1,{transfers},{experiment}"
                    for subject, rate, receiver, transfers in (("direct", 10, 0.5, 1), ("indirect", 5, 0.9, 0),
                                                               ("published", 8, 0.7, 1), ("improved", improved, 0.5, 1))
                    for experiment, sends, receives in (("half", 2, 4), ("half", 16, 32), ("fixed", 2, 32))]
        verdicts = {promise: holds for promise, _, holds in study.Judge(rows(9.5)).verdicts()}
        self.assertEqual({promise for promise, holds in verdicts.items() if not holds},
                         {"half as many sends as receives: published keeps up with the better baseline"})
        self.assertEqual(len(verdicts), 7)
        verdicts = {promise: holds for promise, _, holds in study.Judge(rows(8.9)).verdicts()}
        self.assertFalse(verdicts["half as many sends as receives: improved keeps up with the better baseline"])


if __name__ == "__main__":
    unittest.main()
