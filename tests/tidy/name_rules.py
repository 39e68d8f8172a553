# SPDX-License-Identifier: Apache-2.0
"""Rules on the use of one folder by another, and on names."""

import re

from tree import RULES_FOLDER, cpp, public_headers, rule

LIBRARIES = ("netio", "pubsub", "stream")
VERSION_HEADER = "netio/base/version.hpp"
READS_FILES = "netio/access/key_source.cpp"  # the other files of its folder use its interface
CONVERTS = ("openssl/", "arpa/inet.h")  # system headers without I/O


# --- folders -------------------------------------------------------------------------------------


@rule(
    bad=[
        {"pubsub/core/a.hpp": '#include "netio/transport.hpp"\n'},
        {"pubsub/core/a.hpp": '#include "pubsub/publisher/b.hpp"\n'},
        {"stream/core/a.cpp": "#include <sys/epoll.h>\n"},
        {"netio/coalescing/a.hpp": '#include "netio/loop/event_loop.hpp"\n'},
        {"netio/base/a.hpp": '#include "netio/memory/buffer.hpp"\n'},
        {"netio/access/a.cpp": '#include "netio/loop/event_loop.hpp"\n'},
        {"netio/access/a.cpp": "#include <unistd.h>\n"},
        {"netio/access/a.hpp": "#include <openssl/evp.h>\n"},
    ],
    good=[
        {"pubsub/core/a.hpp": '#include "netio/base/cookie.hpp"\n#include <map>\n'},
        {"stream/core/a.hpp": '#include "netio/coalescing/b.hpp"\n#include "stream/core/c.hpp"\n'},
        {"pubsub/publisher/a.hpp": '#include "netio/transport.hpp"\n'},
        {"netio/access/a.cpp": "#include <openssl/evp.h>\n#include <arpa/inet.h>\n"},
        {"netio/access/key_source.cpp": "#include <unistd.h>\n"},
    ],
)
def what_decides_does_no_io(tree):
    allowed = {
        "netio/access/": ("netio/access/", "netio/base/"),
        "netio/base/": ("netio/base/",),
        "netio/coalescing/": ("netio/base/", "netio/coalescing/"),
        "pubsub/core/": ("netio/base/", "netio/coalescing/", "pubsub/core/"),
        "stream/core/": ("netio/base/", "netio/coalescing/", "stream/core/"),
    }
    for source in cpp(tree):
        for folder, may in allowed.items():
            if not source.path.startswith(folder) or source.path == READS_FILES:
                continue
            computes = re.match(r"netio/access/.*\.cpp", source.path)
            for line, path, opening in source.includes:
                ours = opening == '"' and not path.startswith(may)
                theirs = opening == "<" and re.search(r"[/.]", path)
                if ours or (theirs and not (computes and path.startswith(CONVERTS))):
                    yield source.path, line, f"{folder} is without I/O: it does not include {path}"


# What the program may use of the libraries in addition to their public headers.
PRIVATE_FOR_APPS = (
    "netio/access/",  # creates and lists keys
    "netio/base/",  # NETIO_CHECK, and the stores and loads of its own wire formats
    "netio/session/",  # the probe of the doctor is a separate service
    "pubsub/core/",  # sets of fids, arrivals
    "pubsub/discovery/bounded_json.hpp",  # JSON from a server or a peer
    "pubsub/recording/",  # repairs files record by record
    "stream/core/",  # the studies of the stream protocol run its state machines
)
LISTED = "set(NETIO_PUBLIC_HEADERS\n    netio/fabric.hpp)\n"


@rule(
    bad=[
        {"apps/a.cpp": '#include "netio/loop/x.hpp"\n', "cmake/public_headers.cmake": LISTED},
        {"apps/a.cpp": '#include "pubsub/publisher/x.hpp"\n', "cmake/public_headers.cmake": LISTED},
    ],
    good=[{"apps/a.cpp": '#include "netio/fabric.hpp"\n', "cmake/public_headers.cmake": LISTED}],
)
def apps_use_what_is_public(tree):
    public = public_headers(tree)
    for source in cpp(tree):
        if source.top != "apps":
            continue
        for line, path, opening in source.includes:
            private = path.startswith(LIBRARIES) and path not in public
            if opening == '"' and private and not path.startswith(PRIVATE_FOR_APPS):
                yield source.path, line, f"{path} is private to its library"


@rule(
    bad=[{"cmake/public_headers.cmake": LISTED}],
    good=[{"cmake/public_headers.cmake": LISTED, "netio/fabric.hpp": ""}],
)
def public_headers_exist(tree):
    for header in sorted(public_headers(tree)):
        if header not in tree:
            yield "cmake/public_headers.cmake", 1, f"there is no {header}"


@rule(
    bad=[{"apps/copy/a.cpp": '#include "apps/pump/b.hpp"\n'}, {"apps/common/a.cpp": '#include "apps/cat/b.hpp"\n'}],
    good=[
        {"apps/copy/a.cpp": '#include "apps/copy/b.hpp"\n#include "apps/common/c.hpp"\n'},
        {"apps/program/main.cpp": '#include "apps/program/commands.hpp"\n'},
        {"apps/pump/a.cpp": '#include "apps/program/commands.hpp"\n'},
        {"apps/pump/a.cpp": '#include "apps/metrics/metrics.hpp"\n'},
    ],
)
def commands_do_not_use_each_other(tree):
    shared = {"common", "metrics", "program"}
    for source in cpp(tree):
        here = source.path.split("/")
        if here[0] != "apps" or len(here) < 3:
            continue
        for line, path, _ in source.includes:
            there = path.split("/")
            if there[0] == "apps" and len(there) > 2 and there[1] not in shared | {here[1]}:
                yield source.path, line, f"apps/{here[1]} does not use apps/{there[1]}"


# --- names ---------------------------------------------------------------------------------------


def version_of(tree):
    text = tree[VERSION_HEADER].text if VERSION_HEADER in tree else ""
    return [match[1] for match in re.finditer(r"#define NETIO_VERSION_(?:MAJOR|MINOR) (\d+)", text)]


VERSION_SAMPLE = "#define NETIO_VERSION_MAJOR 1\n#define NETIO_VERSION_MINOR 4\n#define NETIO_VERSION_PATCH 2\n"


@rule(
    bad=[{VERSION_HEADER: VERSION_SAMPLE, "netio/a.hpp": "namespace netio::inline v1_3 {\n}\n"}],
    good=[{VERSION_HEADER: VERSION_SAMPLE, "netio/a.hpp": "namespace netio::stream::inline v1_4 {\n}\n"}],
)
def namespaces_name_the_version(tree):
    expected = "v" + "_".join(version_of(tree))
    for source in cpp(tree):
        if source.top in LIBRARIES:
            for line, match in source.matches(r"\binline (v\d+_\d+)\b", source.bare):
                if match[1] != expected:
                    yield source.path, line, f"{match[1]}, but the version is {expected} ({VERSION_HEADER})"


# Private words, and the usual technical term for each (docs/glossary.md). The code and the documents
# use the technical terms.
FIELD_WORDS = {
    r"\bon_room\b|\bfind_room\b|\bask_for_room\b": "on_writable, request_capacity",
    r"\bon_turned_away\b|\bturn(?:s|ed|ing)?\b(?:\s+\w+)?\s+away\b": "accept failed, rejected",
    r"\bgoodbye\b": "shutdown",
    r"\bpatien(?:t|ce)_for\b|\bdebts?\b|\bdebts_settled\b": "pending deliveries, completed",
    r"\bhas_its_share\b": "is_over_share",
    r"\blet us in\b": "accepted",
    r"\bSubscriberLinks?\b|\bLink(?:Id|Options|Listener)\b": "session, SubscriberId",
    r"\bg[ia]ven? back\b|\bgives? back\b|\bgiving back\b": "released, returned",
}


def words_of_our_own(tree):
    for source in tree.values():
        known = source.is_cpp or source.path.endswith((".md", ".yaml", ".py"))
        if not known or source.path.startswith((RULES_FOLDER, "docs/glossary.md", "CHANGELOG.md")):
            continue
        for pattern, better in FIELD_WORDS.items():
            for line, match in source.matches(rf"(?:{pattern})"):
                yield source.path, line, f"'{match[0]}': the technical term is {better}"


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def misnamed_files(tree):
    """A header with classes is named after one of them, a source after a header of its folder."""
    for source in cpp(tree):
        if source.top not in (*LIBRARIES, "apps") or source.path.startswith("apps/examples/"):
            continue
        folder, _, name = source.path.rpartition("/")
        stem = name.rsplit(".", 1)[0]
        if name.endswith(".cpp"):
            headers = {path.rsplit("/", 1)[1][:-4] for path in tree
                       if path.rpartition("/")[0] == folder and path.endswith(".hpp")}
            command = {folder.removeprefix("apps/"), folder.removeprefix("apps/") + "_command", "main"}
            if stem not in headers and not (folder.startswith("apps/") and stem in command):
                yield source.path, 1, f"no {stem}.hpp in this folder"


def notes(tree):
    for path, line, what in [*misnamed_files(tree), *words_of_our_own(tree)]:
        yield f"{path}:{line}: {what}"
