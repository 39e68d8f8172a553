# SPDX-License-Identifier: Apache-2.0
"""The programs that the README shows are those that the build compiles, to the letter."""

import pathlib
import sys

root = pathlib.Path(__file__).resolve().parents[2]
readme = (root / "README.md").read_text()
missing = []
for example in ("publisher", "subscriber"):
    path = root / "apps" / "examples" / f"{example}.cpp"
    licence, program = path.read_text().split("\n", 1)
    if f"```cpp\n{program}```" not in readme:
        missing.append(str(path.relative_to(root)))
for path in missing:
    print(f"README.md: does not show {path} as it is")
sys.exit(bool(missing))
