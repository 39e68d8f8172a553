# SPDX-License-Identifier: Apache-2.0
"""docs/operations.md lists every queue with its limit: each name in the table exists in the file or
options of its row, and each option that is named like a limit has a row.

limit_table.py [--self-test]
"""

import pathlib
import re
import sys

SECTION = "## Every queue and its limit"
# Limits of a time, of one value, or of work, not of a queue.
NOT_A_QUEUE = {"retry_limit", "close_limit", "turn_limit", "drain_limit", "coalesce_limit_bytes",
               "backlog_limit_bytes", "ring_transfer_limit_bytes", "batch_limit_count"}


def rows(page):
    """(queue, limit, default, when full, where) of the table."""
    section = page.split(SECTION)[1].split("\n## ")[0] if SECTION in page else ""
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 5 and cells[0] != "queue or store":
            yield cells


def options(page):
    """Options by the name of their section in docs/options.md."""
    found = {}
    for part in re.split(r"^## ", page, flags=re.M)[1:]:
        if name := re.match(r"`(.+?)`", part):
            found[name[1]] = set(re.findall(r"^\| `(\w+)` \|", part, re.M))
    return found


def wrong(table, known, constants):
    """What is wrong with it; constants(file): the names that a file defines, None if it is not there."""
    listed = set()
    for queue, limit, default, when_full, where in table:
        names = re.findall(r"`(\w+)`", limit)
        place = where.strip("`")
        if not (default and when_full):
            yield f"{queue}: the default, or the effect of a full queue, is missing"
        if place in known:
            listed |= {(place, name) for name in names}
            yield from (f"{queue}: {place} has no {name}" for name in names if name not in known[place])
        elif "/" in place:
            there = constants(place)
            if there is None:
                yield f"{queue}: there is no file {place}"
            else:
                yield from (f"{queue}: {place} does not define {name}" for name in names if name not in there)
    named = {name for _, name in listed}
    for section, fields in known.items():
        for name in sorted(fields):
            if re.search(r"_limit(_|$)", name) and name not in NOT_A_QUEUE | named:
                yield f"{section}: {name} has no row"


def self_test():
    known = {"A::Options": {"a_limit", "b_limit_bytes", "retry_limit", "other"}}
    table = [["a", "`a_limit`", "1", "again", "`A::Options`"], ["c", "`c_limit`", "2", "again", "`x/c.hpp`"]]
    found = list(wrong(table, known, {"x/c.hpp": {"c_limit"}}.get))
    assert found == ["A::Options: b_limit_bytes has no row"], found
    table = [["a", "`a_limt`", "1", "", "`A::Options`"], ["c", "`c_limit`", "2", "again", "`x/c.hpp`"],
             ["d", "`d_limit`", "2", "again", "`x/d.hpp`"], ["b", "`b_limit_bytes`", "1", "again", "`A::Options`"]]
    found = list(wrong(table, known, {"x/c.hpp": {"d_limit"}}.get))
    assert found == ["a: the default, or the effect of a full queue, is missing", "a: A::Options has no a_limt",
                     "c: x/c.hpp does not define c_limit", "d: there is no file x/d.hpp",
                     "A::Options: a_limit has no row"], found
    assert list(rows(f"{SECTION}\n\n| queue or store | l | d | f | w |\n|---|---|---|---|---|\n"
                     "| a | b | c | d | e |\n\n## next\n| f | g | h | i | j |\n")) == [list("abcde")]


def main():
    root = pathlib.Path(__file__).resolve().parents[2]

    def constants(path):
        if not (root / path).is_file():
            return None
        return set(re.findall(r"^[^/\n]*?\b(\w+)(?: = |\{)[^;\n]*;", (root / path).read_text(), re.M))

    table = list(rows((root / "docs/operations.md").read_text()))
    found = list(wrong(table, options((root / "docs/options.md").read_text()), constants))
    print("\n".join(f"docs/operations.md: {each}" for each in found) or f"{len(table)} queues have a limit")
    return bool(found) or len(table) < 50


if "--self-test" in sys.argv:
    self_test()
else:
    sys.exit(main())
