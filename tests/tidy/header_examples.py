# SPDX-License-Identifier: Apache-2.0
"""The examples in the public headers' comments compile: header_examples.py COMPILER

An example is the indented part of the comment at the beginning of a header. PRELUDE declares what an
example uses without a declaration (a loop, a transport, a handler of its socket, some memory). A handler
in an example must be complete.
"""

import pathlib
import re
import subprocess
import sys

PRELUDE = """
using namespace netio;
using namespace netio::pubsub;
using namespace std::chrono_literals;
namespace pubsub = netio::pubsub;
namespace stream = netio::stream;
struct Given {
    EventLoop& loop;
    Transport* transport;
    RegisteredBuffer &buffer, &other;
    RegistrationCache& cache;
    std::span<const std::byte> bytes, request;
    std::span<std::byte> answer;
    std::byte* data;
    std::size_t size;
    Slice slice;
    PublishTicket waiting;
    Cookie cookie;
    stream::StreamSocket& stream_socket;
    Address address;
    SubscribeSocket::Functions functions;
    std::vector<KeptPage> pages;
};
"""
DRAWING = re.compile(r"^\s*[|+]|--|->", re.M)


def blocks(text):
    """The indented parts of the comment before the first include."""
    head = text.split("\n#include", 1)[0]
    for block in re.findall(r"(?:^//     ?[^\n]*\n|^//\n(?=//     ))+", head + "\n", re.M):
        code = re.sub(r"^//(?:    )?", "", block, flags=re.M)
        if re.search(r"[;{}]\s*(?://.*)?$", code, re.M) and not DRAWING.search(code):
            yield code


def program(path, text):
    """Of a header's examples; empty if it has none."""
    parts = list(blocks(text))
    if not parts:
        return ""
    names = {"i": 0}
    outside, inside = [], []
    handler = ""
    for part in parts:
        part = re.sub(r"^\s*struct Handler.*?\{ \.\.\. \} handler;\n", "", part, flags=re.M)
        shown = re.search(r"^\s*struct Handler.*?^\s*\} handler;\n", part, re.S | re.M)
        if shown:
            outside.append(shown[0].replace("} handler;", "};"))
            handler = "Handler handler;"
            part = part.replace(shown[0], "")
        if re.match(r"\s*void on_", part):  # of a listener's handler
            outside.append("struct Incoming final : stream::StreamListener::Handler {\n"
                           "std::vector<std::unique_ptr<stream::StreamSocket>> sockets;\n"
                           "stream::StreamSocket::Options options;\nstream::StreamSocket::Handler& handler;\n"
                           f"Incoming(stream::StreamSocket::Handler& h) : handler{{h}} {{}}\n{part}}};\n")
        else:
            inside.append(part)
    made = re.search(r"\b((?:\w+::)*\w+(?:Socket|Listener)) \w+\{", "".join(inside))
    names = re.findall(r"[&\]] ?(\w+)[,;]|\b(\w+)[,;]", PRELUDE.split("struct Given {")[1])
    given = "".join(f"[[maybe_unused]] auto& {name} = given.{name};\n" for pair in names for name in pair if name)
    scopes = "{\n".join(inside) + "}\n" * (len(inside) - 1)
    argument = f", {made[1]}::Handler& handler" if made and not handler and "handler" in scopes else ""
    if argument.startswith(", stream::Blocking"):
        argument = ""
    declared = set(re.findall(r"\bEventLoop (\w+)[;{]|\bauto (transport)\b", "".join(inside)))
    for pair in declared:
        for name in pair:
            given = re.sub(rf"^.*auto& {name} = .*\n", "", given, flags=re.M) if name else given
    space = "example_" + re.sub(r"\W", "_", path)
    return (f"namespace {space} {{\n{''.join(outside)}"
            f"[[maybe_unused]] void example(Given& given{argument}) {{\n{given}{handler}\n{scopes}}}\n}}\n")


root = pathlib.Path(__file__).resolve().parents[2]
listed = re.findall(r"^    (\S+?\.hpp)\)?$", (root / "cmake/public_headers.cmake").read_text(), re.M)
listed = list(dict.fromkeys(listed))  # some are in two lists
source = "".join(f'#include "{path}"\n' for path in listed) + "#include <iostream>\n#include <vector>\n" + PRELUDE
count = 0
for path in listed:
    example = program(path, (root / path).read_text())
    count += bool(example)
    source += f'#line 1 "example of {path}"\n' + example
ended = subprocess.run([sys.argv[1], "-std=c++20", "-fsyntax-only", "-I", root, "-x", "c++", "-"],
                       input=source, text=True)
print(f"the examples of {count} public headers" + (" do not compile" if ended.returncode else " compile"))
sys.exit(bool(ended.returncode) or count < 5)
