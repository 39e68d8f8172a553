#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports modules with exactly one user: candidates for a merge into their user's file.

    modules.py [ROOT]

A module is a header with its source. A public header (cmake/public_headers.cmake) is never reported. One user is
no fault, because a module may hide a decision well. It is a reason to ask whether the module helps the reader.
"""

import collections
import pathlib
import sys

from tree import LAYERS, cpp, public_headers, read_tree


def module_of(path):
    return path.rsplit(".", 1)[0]


def modules_with_one_user(tree):
    """[(module, lines, its user)], by user."""
    public = {module_of(path) for path in public_headers(tree)}
    users, lines = collections.defaultdict(set), collections.Counter()
    for source in cpp(tree):
        if source.top not in LAYERS or source.path.startswith("apps/examples/"):
            continue
        user = module_of(source.path)
        lines[user] += source.text.count("\n")
        for _, path, _ in source.includes:
            if module_of(path) != user:
                users[module_of(path)].add(user)
    single = [(module, lines[module], *users[module]) for module in lines if len(users[module]) == 1]
    return sorted((each for each in single if each[0] not in public), key=lambda each: (each[2], each[0]))


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1]) if sys.argv[1:] else pathlib.Path(__file__).resolve().parents[2]
    found = modules_with_one_user(read_tree(root.resolve()))
    for module, count, user in found:
        print(f"{count:5}  {module}  <- {user}")
    print(f"modules: {len(found)} have exactly one user")
