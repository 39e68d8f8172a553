# SPDX-License-Identifier: Apache-2.0
"""The input of the rules of tidy.py: the sources of the tree, and the list of rules.

A rule is a function from the tree (path -> Source) to findings (path, line, what). Each rule has
samples that test it: small trees, {path: text}.
"""

import functools
import re

LAYERS = {  # which libraries each of them may include
    "netio": {"netio"},
    "pubsub": {"netio", "pubsub"},
    "stream": {"netio", "stream"},
    "apps": {"netio", "pubsub", "stream", "apps"},
}
HEAD = "// SPDX-License-Identifier: Apache-2.0\n"
RULES_FOLDER = "tests/tidy/"  # contains the forbidden words

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<string>R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+')
      | \b\d(?:'?\w)*  # so that a digit separator does not begin a character""",
    re.DOTALL | re.VERBOSE,
)


def blanked(text):
    return re.sub(r"[^\n]", " ", text)


class Source:
    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.top = path.split("/")[0]
        self.is_cpp = path.endswith((".hpp", ".cpp"))

    @functools.cached_property
    def code(self):  # without comments; lines and columns stay
        return TOKEN.sub(lambda m: blanked(m[0]) if m["comment"] else m[0], self.text)

    @functools.cached_property
    def bare(self):  # without comments, literals and preprocessor lines
        text = TOKEN.sub(lambda m: blanked(m[0]) if m["comment"] or m["string"] else m[0], self.text)
        return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: blanked(m[0]), text, flags=re.M)

    @functools.cached_property
    def includes(self):  # (line, path, opening character)
        found = re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)', self.code, re.M)
        return [(line_of(self.code, m.start(1)), m[2], m[1]) for m in found]

    def matches(self, pattern, text=None):
        text = self.text if text is None else text
        return [(line_of(text, m.start()), m) for m in re.finditer(pattern, text, re.M)]


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


RULES = []


def rule(bad, good=()):
    def register(check):
        RULES.append((check.__name__, check, bad, good))
        return check

    return register


def cpp(tree):
    return [source for source in tree.values() if source.is_cpp]


def public_headers(tree):
    """The paths that cmake/public_headers.cmake lists."""
    listed = tree.get("cmake/public_headers.cmake")
    return {match[1] for _, match in listed.matches(r"^    (\S+?\.hpp)\)?$")} if listed else set()


def read_tree(root):
    tree = {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        hidden = relative.parts[0].startswith((".", "build")) and relative.parts[0] != ".ci"
        if hidden or "__pycache__" in relative.parts or not path.is_file():
            continue
        try:
            tree[relative.as_posix()] = Source(relative.as_posix(), path.read_text("utf-8"))
        except UnicodeDecodeError:
            continue  # a picture or a captured packet
    return tree
