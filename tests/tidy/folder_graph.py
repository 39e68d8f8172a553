#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The graph of the folders by their includes.

    folder_graph.py [ROOT]         fails if an arrow points upward, or two folders use each other
    folder_graph.py --dot [ROOT]   writes it for graphviz, without arrows that others imply
"""

import pathlib
import re
import sys

# From the lowest level up: a folder uses folders of earlier lines only, none of its own line.
LEVELS = (
    ("netio/base",),
    ("netio/access", "netio/coalescing", "netio/loop", "stream/core"),
    ("netio/memory", "pubsub/core"),
    ("netio/device_watch.hpp", "netio/random_number.hpp"),
    ("netio/transport.hpp",),
    ("netio/fabric.hpp", "netio/session"),
    ("netio/context.hpp",),
    ("netio/coalesced_task.hpp", "netio/completion_queue.hpp"),
    ("netio/fabric", "netio/messages", "pubsub/discovery", "pubsub/publisher", "pubsub/subscriber",
     "stream/socket"),
    ("pubsub/client", "pubsub/queued.hpp", "pubsub/recording"),
    ("pubsub/pubsub.hpp", "stream/stream.hpp"),
    ("apps/common",),
    ("apps/metrics",),
    ("apps/program",),
    ("apps/c", "apps/cat", "apps/copy", "apps/doctor", "apps/dump", "apps/etcd", "apps/examples", "apps/file", "apps/info",
     "apps/key", "apps/list", "apps/listen", "apps/publish", "apps/pump", "apps/record", "apps/replay", "apps/request",
     "apps/respond", "apps/send", "apps/subscribe", "apps/top"),
)
LEVEL = {folder: number for number, folders in enumerate(LEVELS) for folder in folders}
COLOURS = {"netio": "#dce9f7", "pubsub": "#e2f1dc", "stream": "#fbeed5", "apps": "#eeeeee"}
# The command line names every command, and no other folder can use it.
TOP = ("apps/program/main.cpp",)


def folder_of(path):
    parts = path.split("/")
    return re.sub(r"\.cpp$", ".hpp", "/".join(parts[:2]))  # netio/transport.hpp stands for itself


def arrows(files):
    """Returns (from, to) -> an example, for {path: text}."""
    found = {}
    for path, text in files.items():
        for included in re.findall(r'^#include "([^"]+)"', text, re.M):
            one, other = folder_of(path), folder_of(included)
            if one != other and other.split("/")[0] in COLOURS and path not in TOP:
                found.setdefault((one, other), f"{path} includes {included}")
    return found


def wrong(found):
    for (one, other), example in sorted(found.items()):
        for folder in (one, other):
            if folder not in LEVEL:
                yield f"{folder} is missing in LEVELS: {example}"
                break
        else:
            if LEVEL[one] <= LEVEL[other]:
                yield f"{one} is not above {other}: {example}"


def implied(found):
    """The arrows that follow from a longer path."""
    below = {}
    for one, other in found:
        below.setdefault(one, set()).add(other)

    def reach(folder):
        return below.get(folder, set()).union(*(reach(next_) for next_ in below.get(folder, ())))

    return {(one, other) for one, other in found
            if any(other in reach(between) for between in below[one] - {other})}


def dot(found):
    lines = ["digraph folders {", '  node [shape=box, style="filled,rounded", fontname="sans-serif"];',
             "  rankdir=TB;"]
    folders = {folder for arrow in found for folder in arrow}
    for folder in sorted(folders):
        lines.append(f'  "{folder}" [fillcolor="{COLOURS[folder.split("/")[0]]}"];')
    for level in reversed(LEVELS):
        known = " ".join(f'"{folder}";' for folder in level if folder in folders)
        lines.append(f"  {{ rank=same; {known} }}")
    for one, other in sorted(set(found) - implied(found)):
        lines.append(f'  "{one}" -> "{other}";')
    return "\n".join([*lines, "}"])


def self_test():
    files = {"netio/loop/a.cpp": '#include "netio/base/b.hpp"\n#include "netio/loop/c.hpp"\n'}
    assert not list(wrong(arrows(files)))
    files["netio/base/b.hpp"] = '#include "netio/loop/c.hpp"\n'
    assert len(list(wrong(arrows(files)))) == 1
    assert len(list(wrong(arrows({"netio/new/a.cpp": '#include "netio/base/b.hpp"\n'})))) == 1
    assert implied({("a", "b"): "", ("b", "c"): "", ("a", "c"): ""}) == {("a", "c")}


self_test()
arguments = [argument for argument in sys.argv[1:] if argument != "--dot"]
root = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).resolve().parents[2]
sources = {str(path.relative_to(root)): path.read_text() for top in COLOURS
           for path in sorted((root / top).rglob("*.[hc]pp"))}
graph = arrows(sources)
if "--dot" in sys.argv:
    print(dot(graph))
else:
    mistakes = list(wrong(graph))
    print("\n".join([*mistakes, f"{len(graph)} arrows between folders, {len(mistakes)} wrong"]))
    sys.exit(bool(mistakes))
