# SPDX-License-Identifier: Apache-2.0
"""Checks that each exported symbol of a shared library belongs to a class or function of a public
header.

exported_symbols.py ROOT LIBRARY
"""

import pathlib
import re
import subprocess
import sys

PLACE = r"netio::(?:pubsub::|stream::)?v\d+_\d+::(?:time_stamp::)?"
OURS = re.compile(r"\bnetio::")
OWNER = re.compile(rf"(?:^|[ <(&*]){PLACE}(~?\w+)")
# Called by inline functions of public headers.
SUPPORT = {"process_generation", "refuse_inherited"}
DECLARED = re.compile(r"^(?:class|struct|enum class) (?:\[\[.*?\]\] ?|NETIO_EXPORT )*(\w+)|^NETIO_EXPORT [^;=]*?(\w+)\(", re.M)


def public_names(root):
    listed = (root / "cmake/public_headers.cmake").read_text()
    names = set(SUPPORT)
    for header in re.findall(r"^    (\S+\.hpp)", listed, re.M):
        for found in DECLARED.findall((root / header).read_text()):
            names |= {name for name in found if name}
    return names


def entity(symbol):
    """The name of the symbol without arguments, result type and prefixes."""
    symbol = re.sub(r"^(?:vtable for|typeinfo for|typeinfo name for|guard variable for|"
                    r"(?:non-)?virtual thunk to|VTT for) ", "", symbol)
    count = 1
    while count:
        symbol, count = re.subn(r"\([^()]*\)|<[^<>]*>", "", symbol)
    return symbol.replace("[abi:cxx11]", "").strip()


def private(symbol, names):
    if not OURS.search(symbol):
        return False  # of the standard library
    found = OWNER.search(" " + entity(symbol))
    if found is not None:
        return found[1] not in names
    # Otherwise it is in an unversioned namespace, or a standard-library template over one of our
    # types.
    return OURS.search(entity(symbol)) is not None or any(
        name not in names for name in re.findall(PLACE + r"(\w+)", symbol))


def self_test():
    names = {"EventLoop", "to_string", "Slice"}
    for symbol in ("netio::v0_3::EventLoop::run()", "vtable for netio::v0_3::EventLoop",
                   "netio::pubsub::v0_3::to_string[abi:cxx11](netio::v0_3::Hidden const&)",
                   "std::vector<netio::v0_3::Slice>::reserve(unsigned long)", "std::sort<int*>(int*)"):
        assert not private(symbol, names), symbol
    for symbol in ("netio::fabric::Domain::f(netio::v0_3::EventLoop&)", "netio::detail::f()",
                   "netio::v0_3::Session::send()", "typeinfo for netio::pubsub::v0_3::Session",
                   "std::vector<netio::v0_3::Session*>::reserve(unsigned long)"):
        assert private(symbol, names), symbol


self_test()
names = public_names(pathlib.Path(sys.argv[1]))
told = subprocess.run(["nm", "-DC", "--defined-only", sys.argv[2]], check=True, text=True,
                      capture_output=True).stdout
symbols = [line.split(" ", 2)[2] for line in told.splitlines()]
found = [symbol for symbol in symbols if private(symbol, names)]
for symbol in found:
    print(f"exported, and of no public header: {symbol}")
print(f"{len(symbols)} symbols are exported, {len(found)} of them are private")
sys.exit(bool(found) or not symbols)
