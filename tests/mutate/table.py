# SPDX-License-Identifier: Apache-2.0
"""The tables of planted faults (faults/*.toml), and the text of a file with one planted.

A fault names a function and an expression in it, not a line, so that formatting, comments and
moves between the files of a folder leave the table alone:

    function = "Sender::send_indirect"
    on = "ring_.bytes - offset"            an expression that the function has once, or nth = 2
    with = "ring_.bytes"                   its replacement; or: operator = "call skipped"

`operator` is one of those of draw.py, applied to the line on which the expression begins.
"""

import dataclasses
import functools
import pathlib
import re
import sys
import tomllib

import draw

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tidy"))
from tree import Source  # noqa: E402

# How the names of instantiations and of their parameters begin.
INSTANCE = "Beds|sim|fabric|tcp|verbs"
NOISE = re.compile(r"\[\[.*?\]\]|\bNETIO_EXPORT\b|\b(?:alignas|noexcept|requires)\s*\([^()]*\)|\btemplate\s*<[^{}]*?>(?=\s*\w)", re.S)
CLASS = re.compile(r"\b(?:class|struct|union)\s+([\w:]+)(?:\s+final)?\s*(?::(?!:)[^()]*)?\s*$", re.S)
CALLABLE = re.compile(r"((?:\w+(?:<[^()]*?>)?::)*(?:operator\s*\(\)|operator\s*[^\s\w(]{1,3}|operator\s+\w+|~?\w+))\s*\(")


class TableError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Function:
    """The definition of a function: where its head begins and its body ends."""

    name: str
    begin: int
    end: int


@functools.lru_cache(maxsize=None)
def functions_of(path, text):
    """Every function that a source defines outside of other functions, in order."""
    bare = Source(path, text).bare
    scopes, found = [], []
    head, inside = 0, None  # inside: (scopes outside of the function, its name, its begin)
    for match in re.finditer(r"[{};]", bare):
        words = NOISE.sub(" ", bare[head : match.start()])
        if match[0] == "{":
            if inside is None and not words.rstrip().endswith("=") and not re.search(r"\b(namespace|enum)\b", words):
                callable_ = CALLABLE.search(words)
                if callable_ and not CLASS.search(words):
                    outer = [scope for scope in scopes if scope]
                    name = "::".join([*outer, re.sub(r"<[^()]*?>|\s", "", callable_[1])])
                    inside = len(scopes), name, head
            named = CLASS.search(words) if inside is None else None
            scopes.append(named[1] if named else "")
        elif match[0] == "}" and scopes:
            scopes.pop()
            goes_on = re.match(r"\s*[,{]", bare[match.end() :])  # the initialiser of a member
            if inside is not None and inside[0] == len(scopes) and not goes_on:
                found.append(Function(inside[1], inside[2], match.end()))
                inside = None
        head = match.end()
    return found


def pattern_of(expression):
    """Finds an expression whatever its spaces and line breaks are."""
    tokens = re.findall(r"\w+|\S", expression)
    pattern = r"\s*".join(re.escape(token) for token in tokens)
    before = r"(?<!\w)" if re.match(r"\w", tokens[0]) else ""
    return re.compile(before + pattern + (r"(?!\w)" if re.match(r"\w", tokens[-1]) else ""))


@dataclasses.dataclass(frozen=True)
class Change:
    """One changed expression or statement of a function."""

    folder: str
    function: str
    on: str
    replacement: str = ""
    operator: str = ""
    nth: int = 0

    def place(self, root):
        """(path, begin, end) of the expression; TableError unless it occurs exactly once."""
        found, is_there = [], False
        for path in sorted((root / self.folder).rglob("*.[hc]pp")):
            name, text = path.relative_to(root).as_posix(), path.read_text("utf-8")
            if self.function.split("::")[-1] not in text:
                continue
            code = Source(name, text).code
            for function in functions_of(name, text):
                if function.name == self.function:
                    is_there = True
                    hits = pattern_of(self.on).finditer(code, function.begin, function.end)
                    found += [(name, hit.start(), hit.end()) for hit in hits]
        if not is_there:
            raise TableError(f"{self.folder} has no function {self.function}")
        if not (self.nth or len(found) == 1) or len(found) < self.nth:
            raise TableError(f"{self.function} has '{self.on}' {len(found)} times")
        return found[max(self.nth, 1) - 1]

    def edit(self, root):
        """(path, begin, end, replacement text)"""
        path, begin, end = self.place(root)
        if not self.operator:
            return path, begin, end, self.replacement
        text = (root / path).read_text("utf-8")
        lines = text.split("\n")
        number = text.count("\n", 0, begin)
        start = text.rfind("\n", 0, begin) + 1
        whole = list(draw.whole_statements(lines))[number]
        for kind, line in draw.faults_in(lines[number], whole):
            if kind == self.operator:
                return path, start, start + len(lines[number]), line
        raise TableError(f"{self.function}: no '{self.operator}' at '{self.on}'")


@dataclasses.dataclass(frozen=True)
class DrawnChange:
    """A change at a line given by its number, from draw.py."""

    file: str
    number: int
    line: str
    replacement: str

    def edit(self, root):
        lines = (root / self.file).read_text("utf-8").split("\n")
        start = sum(len(line) + 1 for line in lines[: self.number - 1])
        return self.file, start, start + len(lines[self.number - 1]), self.replacement


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    changes: tuple
    test: str  # the program that must notice it
    filter: str  # its tests to run
    says: str = ""  # a text expected in its output


CHANGE_KEYS = {"folder", "function", "on", "with", "operator", "nth"}


def change_of(part, folder, name):
    if "function" not in part or "on" not in part or ("with" in part) == ("operator" in part):
        raise TableError(f"{name}: a change has function, on, and either with or operator")
    return Change(part.get("folder", folder), part["function"], part["on"], part.get("with", ""),
                  part.get("operator", ""), part.get("nth", 0))


def fault_of(entry, folder, shared):
    name = entry.get("name", "(no name)")
    known = CHANGE_KEYS | {"name", "also", "shared", "test", "filter", "says"}
    if unknown := set(entry) - known:
        raise TableError(f"{name}: unknown: {', '.join(sorted(unknown))}")
    if missing := {"name", "test", "filter"} - set(entry):
        raise TableError(f"{name}: missing: {', '.join(sorted(missing))}")
    if entry.get("shared", "") not in ("", *shared):
        raise TableError(f"{name}: there are no shared changes {entry['shared']}")
    parts = [entry, *entry.get("also", []), *shared.get(entry.get("shared"), [])]
    changes = tuple(change_of(part, folder, name) for part in parts)
    return Fault(name, changes, entry["test"], entry["filter"], entry.get("says", ""))


def read_table(folder):
    """All faults of the files *.toml of a folder."""
    faults = []
    for path in sorted(pathlib.Path(folder).glob("*.toml")):
        with path.open("rb") as file:
            content = tomllib.load(file)
        shared = content.get("shared", {})  # changes that several faults share
        faults += [fault_of(entry, content["folder"], shared) for entry in content.get("fault", [])]
    names = [fault.name for fault in faults]
    if twice := {name for name in names if names.count(name) > 1}:
        raise TableError(f"several faults have one name: {', '.join(sorted(twice))}")
    return faults


def mutated_files(root, changes):
    """{path: text} of every file that the changes touch; TableError if a place is not found."""
    edits = {}
    for change in changes:
        path, begin, end, text = change.edit(root)
        edits.setdefault(path, []).append((begin, end, text))
    files = {}
    for path, of_file in edits.items():
        before = text = (root / path).read_text("utf-8")
        of_file.sort(reverse=True)
        for (begin, _, _), (_, end, _) in zip(of_file, of_file[1:]):
            if end > begin:
                raise TableError(f"{path}: two changes at one place")
        for begin, end, replacement in of_file:
            text = text[:begin] + replacement + text[end:]
        if text == before:
            raise TableError(f"{path}: the change changes nothing")
        files[path] = text
    return files


def read_survivors(folder):
    """{(file, line, replacement): why nothing can notice it}, from survivors.toml"""
    with (pathlib.Path(folder) / "survivors.toml").open("rb") as file:
        entries = tomllib.load(file).get("survivor", [])
    return {(e["file"], e["line"].strip(), e["with"].strip()): " ".join(e["why"].split()) for e in entries}


def check_filters(root, faults):
    """Reports test patterns that match no test in the sources."""
    tests = set()
    for path in (root / "tests").glob("**/*.cpp"):
        tests |= set(re.findall(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", path.read_text("utf-8")))
    names = [f"{suite}.{test}" for suite, test in tests]
    complaints = []
    for fault in faults:
        for pattern in fault.filter.split("-")[0].split(":"):
            # Instantiations and their parameters have many kinds of names and are not checked.
            pieces = [each for each in re.split(r"[*/?]", pattern) if each and not re.match(INSTANCE, each)]
            needed = [each for each in pieces if "." in each or (each == pieces[0] and not pattern.startswith("*/"))]
            if not any(all(each in name for each in needed) for name in names):
                complaints.append(f"{fault.name}: no test {pattern}")
    return complaints


def check_table(root, faults):
    """Reports faults whose place is not found."""
    complaints = []
    for fault in faults:
        try:
            mutated_files(root, fault.changes)
        except TableError as error:
            complaints.append(f"{fault.name}: {error}")
    return complaints
