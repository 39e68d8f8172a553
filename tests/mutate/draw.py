# SPDX-License-Identifier: Apache-2.0
"""Generic faults at random lines: a statement removed, a comparison reversed, a bound moved, a call
skipped. The seed alone decides which."""

import pathlib
import random
import re

FOLDERS = ("netio", "pubsub", "stream")
TURNED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
MOVED = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " + 1": "", " - 1": ""}
# Texts for users, our own checks, and compile-time conditions.
NOT_HERE = re.compile(
    r"NETIO_CHECK|static_assert|^\s*(#|//|using|template|public:|private:|friend|case |namespace|enum|\})"
    r"|^\s*[\w.]+\.reserve\(" # costs only time
    r"|\bthrow\b|\bdetail\b|\boperator|noexcept;|= 0;$|= default|= delete|\bconstexpr std::string_view\b"
)
# Functions for users and checkers: no behaviour of the product depends on them.
NOT_IN = re.compile(r"(?<!::)\b(describe|check_invariants|to_string|PrintTo)\(")
DECLARES = re.compile(r"^(const|auto|static|return|constexpr|inline|struct|class|virtual|explicit|typename|mutable)\b")
CALL = re.compile(r"^[\w:.>\[\]*()-]+\(.*\);$")
ASSIGNMENT = re.compile(r"^[\w:.>\[\]*()-]+ (=|\+=|-=|\|=) .*;$|^(\+\+|--)[\w.>-]+;$")


def code_of(line):
    """Returns the lines without comments and with strings blanked."""
    line = re.sub(r'"(?:\\.|[^"\\])*"', lambda m: '"' + "_" * (len(m[0]) - 2) + '"', line)
    return re.sub(r"//.*", lambda m: " " * len(m[0]), line)


def inside_of(lines, pattern):
    """Which lines belong to a function whose head matches."""
    depth, begun_at = 0, None
    for line in lines:
        code = code_of(line)
        if begun_at is None and pattern.search(code) and not code.strip().endswith(";"):
            begun_at = depth
        yield begun_at is not None
        depth += code.count("{") - code.count("}")
        if begun_at is not None and depth <= begun_at and "}" in code:
            begun_at = None


def whole_statements(lines):
    """Which lines are one complete statement, judged by the end of the previous line."""
    before = ";"
    for line in lines:
        code = code_of(line).strip()
        yield bool(code) and before.endswith((";", "{", "}", ":"))
        if code and not code.startswith("#"):
            before = code


def faults_in(line, whole):
    """(kind, replacement) for every fault that can be planted in a line."""
    code = code_of(line)
    if NOT_HERE.search(code) or not code.strip():
        return
    for match in re.finditer(r" (<=|>=|==|!=|<|>) ", code):
        yield "comparison turned", line[: match.start(1)] + TURNED[match[1]] + line[match.end(1) :]
    for text, other in MOVED.items():
        for match in re.finditer(re.escape(text) + r"(?![\w.'])" * text.endswith("1"), code):
            yield "bound moved", line[: match.start()] + other + line[match.end() :]
    for match in re.finditer(r" (&&|\|\|) ", code):
        other = "||" if match[1] == "&&" else "&&"
        yield "condition changed", line[: match.start(1)] + other + line[match.end(1) :]
    for match in re.finditer(r"\breturn (true|false);", code):
        other = "false" if match[1] == "true" else "true"
        yield "answer turned", line[: match.start(1)] + other + line[match.end(1) :]
    text = code.strip()
    if match := re.match(r"if \((.*)\) (return|continue|break)\b.*;$", text):
        yield "early return removed", ";"
    elif match := re.match(r"if \((.*)\)( \{)?$", text):
        if match[1].count("(") == match[1].count(")"):
            yield "condition denied", f"if (!({match[1]})){match[2] or ''}"
    if whole and not DECLARES.match(text) and "{}" not in text:
        if CALL.match(text) and text.count("(") == text.count(")"):
            yield "call skipped", ";"
        elif ASSIGNMENT.match(text):
            yield "statement removed", ";"


def candidates(root, folders=FOLDERS, leave_out=()):
    """[(path, line number from 0, [(kind, replacement)])], in the order of the tree"""
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*.[hc]pp")):
            name = path.relative_to(root).as_posix()
            if any(pathlib.PurePosixPath(name).match(pattern) for pattern in leave_out):
                continue
            lines = path.read_text("utf-8").split("\n")
            for number, (whole, skip) in enumerate(zip(whole_statements(lines), inside_of(lines, NOT_IN))):
                if not skip and (kinds := list(faults_in(lines[number], whole))):
                    found.append((name, number, kinds))
    return found


def drawn(root, seed, folders=FOLDERS, leave_out=()):
    """Yields (kind, path, line number from 1, line, replacement) endlessly, without repetition."""
    chance = random.Random(seed)
    pool = [(path, number, *kind) for path, number, kinds in candidates(root, folders, leave_out) for kind in kinds]
    chance.shuffle(pool)
    for path, number, kind, replacement in pool:
        line = (root / path).read_text("utf-8").split("\n")[number]
        yield kind, path, number + 1, line, replacement
