#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of the project that a compiler does not check.

    tidy.py [ROOT]       checks the tree; prints path:line: [rule] what; fails if there are findings
    tidy.py --self-test  checks each rule: bad samples must be flagged, good ones must not

Rules about layers, form, tests and documents are here; rules about names are in name_rules.py.
"""

import pathlib
import re
import sys

import name_rules
from tree import HEAD, LAYERS, RULES, RULES_FOLDER, Source, blanked, cpp, line_of, read_tree, rule

FILE_LIMIT = 900
FUNCTION_LIMIT = 80


# --- layers --------------------------------------------------------------------------------------


@rule(
    bad=[{"pubsub/a.cpp": "#include <rdma/fabric.h>\n"}, {"netio/a.hpp": "# include <rdma/fi_cm.h>\n"}],
    good=[
        {"netio/fabric/a.cpp": "#include <rdma/fabric.h>\n"},
        {"netio/a.cpp": "// <rdma/fabric.h>\n"},
        {"bench/plain.cpp": "#include <rdma/fabric.h>\n"},  # measures libfabric alone
    ],
)
def libfabric_stays_inside(tree):
    for source in cpp(tree):
        for line, path, _ in source.includes:
            if path.startswith("rdma/") and not source.path.startswith(("netio/fabric/", "bench/")):
                yield source.path, line, f"only netio/fabric includes <{path}>"


@rule(
    bad=[
        {"netio/a.cpp": '#include "pubsub/core/fid.hpp"\n'},
        {"pubsub/a.cpp": '#include "stream/core/wire.hpp"\n'},
        {"stream/a.hpp": '#include "pubsub/core/fid.hpp"\n'},
        {"stream/a.hpp": '#include "apps/main.hpp"\n'},
        {"netio/a.cpp": '#include "tests/support/seed.hpp"\n'},
    ],
    good=[{"apps/a.cpp": '#include "pubsub/core/fid.hpp"\n'}, {"tests/a.cpp": '#include "stream/core/wire.hpp"\n'}],
)
def layers_look_down_only(tree):
    folders = {*LAYERS, "tests", "bench"}
    for source in cpp(tree):
        for line, path, _ in source.includes:
            target = path.split("/")[0]
            if source.top in LAYERS and target in folders - LAYERS[source.top]:
                yield source.path, line, f"{source.top} must not include {target}"


@rule(
    bad=[
        {"netio/a.hpp": '#include "netio/fabric/domain.hpp"\n'},
        {"pubsub/a.cpp": '#include "netio/fabric/domain.hpp"\n'},
    ],
    good=[
        {"netio/fabric/a.hpp": '#include "netio/fabric/domain.hpp"\n'},
        {"netio/a.hpp": '#include "netio/fabric.hpp"\n'},
        {"tests/unit/netio/a_test.cpp": '#include "netio/fabric/domain.hpp"\n'},
    ],
)
def fabric_folder_is_private(tree):
    for source in cpp(tree):
        inside = source.path.startswith("netio/fabric/") or source.top in ("tests", "bench")
        for line, path, _ in source.includes:
            public = source.top != "netio" or source.path.endswith(".hpp")
            if path.startswith("netio/fabric/") and public and not inside:
                yield source.path, line, f"{path} is private to netio's sources"


@rule(
    bad=[{"netio/a.cpp": '#include "b.hpp"\n', "netio/b.hpp": ""}],
    good=[{"netio/a.cpp": '#include "netio/b.hpp"\n', "netio/b.hpp": ""}],
)
def includes_start_at_the_root(tree):
    for source in cpp(tree):
        if source.path.startswith("tests/install_consumer/"):
            continue  # independent projects
        for line, path, opening in source.includes:
            if opening == '"' and path not in tree:
                yield source.path, line, f'"{path}" is not a file, relative to the repository root'


PROVIDERS = "tcp|verbs|sockets|udp|shm|psm[23]?|efa|opx|usnic|gni|ofi_rxm|ofi_rxd"


# Up to fmt 10 another header declares fmt::join as well; fmt 11 needs <fmt/ranges.h>.
@rule(
    bad=[
        {"apps/a.cpp": '#include <fmt/format.h>\nauto a = fmt::join(list, ", ");\n'},
        {"apps/a.cpp": "#include <fmt/core.h>\n#include <fmt/format.h>\nauto a = fmt :: join (list, x);\n"},
        {"apps/a.hpp": "#include <fmt/ranges.h>\n", "apps/a.cpp": '#include "apps/a.hpp"\nfmt::join(a, b);\n'},
        {"apps/a.cpp": "// #include <fmt/ranges.h>\nusing fmt::join;\n"},
    ],
    good=[
        {"apps/a.cpp": '#include <fmt/ranges.h>\nauto a = fmt::join(list, ", ");\n'},
        {"apps/a.cpp": "// fmt::join\n#include <fmt/format.h>\nauto a = fmt::format(x);\nauto b = fmt::joined;\n"},
    ],
)
def users_of_join_include_ranges(tree):
    for source in cpp(tree):
        if any(path == "fmt/ranges.h" for _, path, _ in source.includes):
            continue
        for line, _ in source.matches(r"\bfmt\s*::\s*join\b", source.bare):
            yield source.path, line, "fmt::join is in <fmt/ranges.h>"


@rule(
    bad=[{"netio/session/session.cpp": 'if (name == "tcp") {}\n'}, {"pubsub/a.cpp": 'f("verbs;ofi_rxm");\n'}],
    good=[
        {"netio/fabric/provider.cpp": 'f("tcp");\n'},
        {"netio/a.hpp": '// "tcp" or "verbs"\n'},
        {"apps/a.cpp": 'f("tcp");\n'},
    ],
)
def provider_names_have_one_home(tree):
    for source in cpp(tree):
        if source.top in ("netio", "pubsub", "stream") and source.path != "netio/fabric/provider.cpp":
            for line, match in source.matches(rf'"(?:{PROVIDERS})(?:;\w+)*"', source.code):
                yield source.path, line, f"{match[0]}: use the capabilities for differences between providers"


@rule(
    bad=[{"netio/a.cpp": 'std::getenv("X");\n'}, {"stream/a.cpp": "secure_getenv(name);\n"}],
    good=[{"apps/a.cpp": "getenv(name);\n"}, {"netio/a.cpp": "// getenv\n"}],
)
def libraries_ignore_the_environment(tree):
    for source in cpp(tree):
        if source.top in ("netio", "pubsub", "stream") and not source.path.startswith("netio/fabric/"):
            for line, _ in source.matches(r"\b(secure_)?getenv\b", source.code):
                yield source.path, line, "behaviour is chosen by options, not by the environment"


@rule(
    bad=[{"netio/a.cpp": "#include <iostream>\n"}, {"pubsub/a.cpp": 'std::printf("x");\n'}],
    good=[{"apps/a.cpp": "#include <iostream>\n"}, {"netio/a.cpp": 'std::fprintf(stderr, "x");\n'}],
)
def libraries_do_not_print(tree):
    for source in cpp(tree):
        if source.top in ("netio", "pubsub", "stream"):
            for line, _ in source.matches(r"<iostream>|\b(printf|puts)\s*\(", source.code):
                yield source.path, line, "standard output belongs to the program"


# --- form ----------------------------------------------------------------------------------------


@rule(
    bad=[
        {"netio/a.cpp": "int a;\n"},
        {"netio/CMakeLists.txt": "add_library(a)\n"},
        {"netio/a.hpp": HEAD + "int a;\n"},
        {"netio/a.hpp": HEAD + "// words\n#include <map>\n#pragma once\n"},
    ],
    good=[{"netio/a.cpp": HEAD}, {"netio/a.hpp": HEAD + "#pragma once\n\n// words\n"}],
)
def files_begin_alike(tree):
    for source in tree.values():
        lines = source.text.split("\n")
        known = source.path.endswith((".hpp", ".cpp", ".py", ".cmake", "CMakeLists.txt"))
        if known and "SPDX-License-Identifier: Apache-2.0" not in "".join(lines[:2]):
            yield source.path, 1, "the first line is the SPDX line"
        if source.path.endswith(".hpp") and lines[1:2] != ["#pragma once"]:
            yield source.path, 2, "the second line of a header is #pragma once"


@rule(
    bad=[{"netio/a.cpp": "\n" * (FILE_LIMIT + 1)}],
    good=[{"netio/a.cpp": "\n" * FILE_LIMIT}, {"docs/a.md": "\n" * 2000}],
)
def files_are_short(tree):
    for source in tree.values():
        if source.path.endswith((".hpp", ".cpp", ".py")):
            count = source.text.count("\n")
            if count > FILE_LIMIT:
                yield source.path, count, f"{count} lines; at most {FILE_LIMIT}"


def opens_scope(head):
    """Whether a brace after this opens a namespace, a class or an initialiser."""
    outside, count = head, 1
    while count:  # only keywords outside parentheses and template arguments count
        outside, count = re.subn(r"\([^()]*\)|<[^<>]*>", " ", outside)
    if re.search(r"\b(namespace|class|struct|union|enum|extern)\b|=\s*$", outside):
        return True
    return "(" not in head and re.match(r"\s*\w", head) is not None


def functions(text):
    """Yields (first line, last line) of each outermost block for which opens_scope() is false."""
    depth = 0
    head = 0
    inside = None  # depth at which the function began
    for match in re.finditer(r"[{};]", text):
        if match[0] == "{":
            is_scope = inside is None and opens_scope(text[head : match.start()])
            if inside is None and not is_scope:
                inside = depth
                begin = line_of(text, head + re.match(r"\s*", text[head:]).end())
            depth += 1
        elif match[0] == "}" and depth:
            depth -= 1
            if inside == depth:
                inside = None
                yield begin, line_of(text, match.start())
        head = match.end()


LONG_BODY = "{\n" + "    x();\n" * FUNCTION_LIMIT + "}\n"


@rule(
    bad=[
        {"netio/a.cpp": "namespace n {\nclass A {\n    void f() " + LONG_BODY + "};\n}\n"},
        {"netio/a.cpp": "A::A(int x)\n    : x_{x}, y_{1'000} " + LONG_BODY},
        {"tests/a_test.cpp": "TEST(A, Does) " + LONG_BODY},
        {"netio/a.hpp": "template <class T>\nvoid f(std::map<int, T>) noexcept " + LONG_BODY},
    ],
    good=[
        {"netio/a.cpp": "struct A " + LONG_BODY},
        {"netio/a.cpp": "int table[] = " + LONG_BODY},
        {"netio/a.cpp": "class alignas(64) A : B<int> " + LONG_BODY},
        {"netio/a.cpp": "std::array<int, 3> table" + LONG_BODY},
        {"netio/a.cpp": "void f() {\n" + "    x();\n" * 60 + "}\n" + "void g() {\n" + "    x();\n" * 60 + "}\n"},
    ],
)
def functions_are_short(tree):
    for source in cpp(tree):
        for begin, end in functions(source.bare):
            if end - begin + 1 > FUNCTION_LIMIT:
                count = end - begin + 1
                yield source.path, begin, f"a function of {count} lines; at most {FUNCTION_LIMIT}"


@rule(
    bad=[{"tests/a_test.cpp": "#define private public\n"}, {"tests/a.hpp": "#  define protected public\n"}],
    good=[{"tests/a_test.cpp": "// #define private public\n"}],
)
def private_parts_stay_private(tree):
    for source in cpp(tree):
        for line, _ in source.matches(r"^[ \t]*#[ \t]*define[ \t]+(private|protected)\b", source.code):
            yield source.path, line, "test through the interface"


@rule(
    bad=[{"netio/a.cpp": "// TO" "DO: later\n"}, {"docs/a.md": "FIX" "ME\n"}, {"dev": "# XX" "X\n"}],
    good=[{"netio/a.cpp": "int todo_count;\n"}],
)
def nothing_is_left_for_later(tree):
    for source in tree.values():
        for line, match in source.matches(r"\b(TO[D]O|FIX[M]E|XX[X])\b"):
            if not source.path.startswith(RULES_FOLDER):
                yield source.path, line, f"{match[0]}: do it, or write an issue"


# --- tests and documents -------------------------------------------------------------------------


@rule(
    bad=[
        {"tests/unit/a_test.cpp": "", "tests/unit/CMakeLists.txt": "b_test.cpp ba_test.cpp"},
        {"tests/unit/a_test.cpp": "", "tests/unit/CMakeLists.txt": "# a_test.cpp"},
        {"tests/unit/a_test.cpp": "", "tests/model/CMakeLists.txt": "a_test.cpp"},
    ],
    good=[
        {"tests/unit/a_test.cpp": "", "tests/unit/CMakeLists.txt": "add(a_test.cpp)"},
        {"tests/unit/n/a_test.cpp": "", "tests/unit/CMakeLists.txt": "add(n/a_test.cpp)"},
    ],
)
def every_test_is_built(tree):
    for path in tree:
        if not (path.startswith("tests/") and path.endswith("_test.cpp")):
            continue
        for folder in pathlib.PurePosixPath(path).parents:
            name = re.escape(str(pathlib.PurePosixPath(path).relative_to(folder)))
            listed = tree.get(f"{folder}/CMakeLists.txt")
            if listed and listed.matches(rf"^[^#\n]*(?<![\w./-]){name}(?![\w./-])"):
                break
        else:
            yield path, 1, "no CMakeLists.txt lists it, so it never runs"


@rule(
    bad=[
        {"tests/a_test.cpp": "std::this_thread::sleep_for(1ms);\n"},
        {"tests/a.hpp": "::usleep(10);\n"},
        {"tests/a.py": "time.sleep(1)\n"},
        {"tests/run": "    sleep 1\n"},
    ],
    good=[{"tests/a_test.cpp": "bool may_sleep() { return loop.sleeps(); } // sleep(1)\n"}],
)
def tests_do_not_sleep(tree):
    pattern = r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|\bsleep\s*\(|^[ \t]*sleep[ \t]+\d"
    for source in tree.values():
        if source.top == "tests" and not source.path.startswith(RULES_FOLDER) and not source.path.endswith(".md"):
            for line, _ in source.matches(pattern, source.code if source.is_cpp else source.text):
                yield source.path, line, "wait for the event itself, or move the simulator's clock"


@rule(
    bad=[
        {"docs/a.md": "see [b](b.md)\n"},
        {"docs/a.md": "see [b](/docs/a.md)\n"},
        {"README.md": "![p](docs/p.svg)\n"},
        {"README.md": "[d]: docs/d.md\n"},
    ],
    good=[
        {"docs/a.md": "[b](../b.md#part) [w](https://example.org) [h](#part)\n", "b.md": ""},
        {"a.md": "[folder](docs/) `[c](d)`\n```\n[x](y)\n```\n", "docs/b.md": ""},
    ],
)
def links_lead_somewhere(tree):
    places = {str(folder) for path in tree for folder in pathlib.PurePosixPath(path).parents} | set(tree)
    for source in tree.values():
        if not source.path.endswith(".md"):
            continue
        prose = re.sub(r"^ *```.*?^ *```|`[^`\n]*`", lambda m: blanked(m[0]), source.text, flags=re.S | re.M)
        for line, match in source.matches(r"\]\(([^)\s]+)[^)]*\)|^\[[^\]\n]+\]:[ \t]*(\S+)", prose):
            target = (match[1] or match[2]).strip("<>").split("#")[0]
            if not target or re.match(r"[a-z]+:", target):
                continue
            steps = list(pathlib.PurePosixPath(source.path).parent.parts)
            for step in target.rstrip("/").split("/"):
                steps = steps[:-1] if step == ".." else steps if step == "." else [*steps, step]
            if ("/".join(steps) or ".") not in places:
                yield source.path, line, f"there is no {target}"


@rule(
    bad=[
        {"docs/a.md": "run /home/me/netio\n"},
        {"netio/a.cpp": "// as in /tmp/x.log\n"},
        {"docs/a.md": "fixed in #12\n"},
        {"netio/a.cpp": "// as the brief says\n"},
        {"docs/a.md": "In this session we\n"},
    ],
    good=[
        {"docs/a.md": "# 1 Part\n[a](#1-part) /dev/shm /proc/self/home/x\n"},
        {"netio/a.cpp": "// libfabric issue 545\n#if 0\n"},
    ],
)
def files_speak_of_the_project(tree):
    forbidden = {
        r"(?<![\w.~$}/-])/(?:home|root|tmp|work|workspace|mnt|Users)\b/?": "a path of one machine",
        r"(?:^|[\s(])#\d{1,5}\b(?![-\w])": "a number of one tracker; describe the matter",
        r"(?i)\b((?:in|during|of) this session|the brief|sub-?agents?|as instructed|my instructions)\b": "not of the project",
    }
    for source in tree.values():
        for pattern, why in forbidden.items():
            for line, match in source.matches(pattern):
                if source.path != "LICENSE" and not source.path.startswith(RULES_FOLDER):
                    yield source.path, line, f"'{match[0].strip()}': {why}"


# --- running -------------------------------------------------------------------------------------


def check_tree(root):
    tree = read_tree(root)
    if "tests/tidy/tidy.py" not in tree:
        sys.exit(f"tidy: {root} is not the project's root")
    findings = sorted({(*found, name) for name, check, _, _ in RULES for found in check(tree)})
    for path, line, what, name in findings:
        print(f"{path}:{line}: [{name}] {what}")
    for line in name_rules.notes(tree):
        print(f"note: {line}")
    print(f"tidy: {len(tree)} files, {len(RULES)} rules, {len(findings)} findings")
    return 1 if findings else 0


def self_test():
    wrong = 0
    for name, check, bad, good in RULES:
        for samples, expected in ((bad, True), (good, False)):
            for sample in samples:
                tree = {path: Source(path, text) for path, text in sample.items()}
                found = list(check(tree))
                if bool(found) != expected:
                    wrong += 1
                    print(f"{name}: {'not flagged' if expected else f'flagged {found}'}: {sample}")
    print(f"tidy: {len(RULES)} rules tried on their samples, {wrong} wrong")
    return 1 if wrong or not all(bad for _, _, bad, _ in RULES) else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    here = pathlib.Path(__file__).resolve().parents[2]
    sys.exit(check_tree(pathlib.Path(sys.argv[1]).resolve() if sys.argv[1:] else here))
