# SPDX-License-Identifier: Apache-2.0
"""The examples in the documents are exactly those that the build compiles: whole programs in the README,
pieces of programs in the guide, the first steps and the page on monitoring. Each example is named in a document.
"""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]
readme = (root / "README.md").read_text()
first_steps = (root / "docs" / "first-steps.md").read_text()
guide = (root / "docs" / "guide.md").read_text()
monitoring = (root / "docs" / "monitoring.md").read_text()
programs = {path.stem: path.read_text() for path in sorted((root / "apps" / "examples").glob("*.cpp"))}
found = []
for example in ("publisher", "subscriber"):
    licence, program = programs[example].split("\n", 1)
    if f"```cpp\n{program}```" not in readme:
        found.append(f"README.md: does not show apps/examples/{example}.cpp unchanged")
for name, page in (("first-steps", first_steps), ("guide", guide), ("monitoring", monitoring)):
    for piece in re.finditer(r"^```cpp\n(.*?)^```", page, re.S | re.M):
        if not any(piece[1] in program for program in programs.values()):
            line = page.count("\n", 0, piece.start()) + 1
            found.append(f"docs/{name}.md:{line}: no example in apps/examples has these lines")
for example in programs:
    if not example.startswith("readout") and f"{example}.cpp" not in readme + first_steps + guide:
        found.append(f"apps/examples/{example}.cpp: no document names it")
print("\n".join(found))
sys.exit(bool(found))
