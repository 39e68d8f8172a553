# SPDX-License-Identifier: Apache-2.0
"""The table of planted faults (faults.toml), and what becomes of a file with one in it."""

import dataclasses
import pathlib
import re
import tomllib

# How the names of instantiations and of their parameters begin.
INSTANCE = "Beds|sim|fabric|tcp|verbs"


class TableError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Change:
    """One line of one file, told by its text without the spaces around it."""

    file: str
    line: str
    replacement: str
    after: str = ""  # only behind the line with this text, which is there once

    def place(self, lines):
        """The index of the line; TableError if it is not there exactly once."""
        begin = 0
        if self.after:
            begin = self._only(lines, self.after, 0) + 1
        return self._only(lines, self.line, begin, first=bool(self.after))

    def _only(self, lines, text, begin, first=False):
        found = [i for i in range(begin, len(lines)) if lines[i].strip() == text.strip()]
        if not found or (len(found) > 1 and not first):
            raise TableError(f"{self.file}: there {len(found)} times, must be once: {text.strip()}")
        return found[0]


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    changes: tuple
    test: str  # the program that notices it
    filter: str  # which of its tests
    says: str = ""  # what the output then has in it
    checked: bool = False  # only a build without NDEBUG notices it


def fault_of(entry, shared):
    known = {"name", "file", "line", "with", "after", "also", "shared", "test", "filter", "says", "checked"}
    if unknown := set(entry) - known:
        raise TableError(f"{entry.get('name')}: unknown: {', '.join(sorted(unknown))}")
    if missing := {"name", "file", "line", "with", "test", "filter"} - set(entry):
        raise TableError(f"{entry.get('name')}: missing: {', '.join(sorted(missing))}")
    if entry.get("shared", "") not in ("", *shared):
        raise TableError(f"{entry['name']}: there are no shared changes {entry['shared']}")
    changes = [
        Change(part.get("file", entry["file"]), part["line"], part["with"], part.get("after", ""))
        for part in (entry, *entry.get("also", []), *shared.get(entry.get("shared"), []))
    ]
    return Fault(
        entry["name"], tuple(changes), entry["test"], entry["filter"], entry.get("says", ""), entry.get("checked", False)
    )


def read_table(folder):
    """All faults of faults.toml and of the files beside it (faults_*.toml)."""
    faults = []
    for path in sorted(pathlib.Path(folder).glob("faults*.toml")):
        with path.open("rb") as file:
            content = tomllib.load(file)
        shared = content.get("shared", {})  # changes that several faults need besides their own
        faults += [fault_of(entry, shared) for entry in content.get("fault", [])]
    names = [fault.name for fault in faults]
    if twice := {name for name in names if names.count(name) > 1}:
        raise TableError(f"names that are there twice: {', '.join(sorted(twice))}")
    return faults


def mutated_files(root, changes):
    """{path: text} of every file that the changes touch; TableError if a line does not match."""
    files = {}
    for change in changes:
        if change.file not in files:
            path = root / change.file
            if not path.is_file():
                raise TableError(f"{change.file}: there is no such file")
            files[change.file] = path.read_text("utf-8").split("\n")
        lines = files[change.file]
        at = change.place(lines)
        if change.replacement.strip() == lines[at].strip():
            raise TableError(f"{change.file}: changes nothing: {change.line}")
        lines[at] = change.replacement
    return {path: "\n".join(lines) for path, lines in files.items()}


def read_survivors(folder):
    """{(file, line, replacement): why nothing can notice it}, of survivors.toml"""
    with (pathlib.Path(folder) / "survivors.toml").open("rb") as file:
        entries = tomllib.load(file).get("survivor", [])
    return {(e["file"], e["line"].strip(), e["with"].strip()): " ".join(e["why"].split()) for e in entries}


def check_survivors(root, survivors):
    """The complaints about that list: lines that are not there any more."""
    complaints = []
    for file, line, _ in survivors:
        path = root / file
        text = path.read_text("utf-8") if path.is_file() else ""
        if line not in (each.strip() for each in text.split("\n")):
            complaints.append(f"survivors.toml: {file}: not there: {line}")
    return complaints


def check_filters(root, faults):
    """The complaints about patterns that no test of the sources fits, whatever it is built with."""
    tests = set()
    for path in (root / "tests").glob("**/*.cpp"):
        tests |= set(re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text("utf-8")))
    names = [f"{suite}.{test}" for suite, test in tests]
    complaints = []
    for fault in faults:
        for pattern in fault.filter.split("-")[0].split(":"):
            # Instantiations and their parameters are not looked for: they have names of many kinds.
            pieces = [each for each in re.split(r"[*/?]", pattern) if each and not re.match(INSTANCE, each)]
            needed = [each for each in pieces if "." in each or (each == pieces[0] and not pattern.startswith("*/"))]
            if not any(all(each in name for each in needed) for name in names):
                complaints.append(f"{fault.name}: no test {pattern}")
    return complaints


def check_table(root, faults):
    """The complaints about a table: lines that are not there once."""
    complaints = []
    for fault in faults:
        try:
            mutated_files(root, fault.changes)
        except TableError as error:
            complaints.append(f"{fault.name}: {error}")
    return complaints
