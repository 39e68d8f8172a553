# SPDX-License-Identifier: Apache-2.0
"""Every test that the documents below name exists, and every row of COMPLETE's tables names one.
COMPLETE has every name of NetIO-next's documentation of unbuffered messages, and a counterpart in
every row.

named_tests.py [ROOT]
"""

import pathlib
import re
import sys

COMPLETE = "docs/netio-next.md"
NETIO_NEXT = """
netio_buffer netio_connect netio_context netio_disconnect netio_init_listen_socket
netio_init_send_socket netio_listen netio_listen_socket netio_post_recv netio_recv_socket
netio_register_recv_buffer netio_register_send_buffer netio_semaphore netio_send netio_send_buffer
netio_send_imm netio_send_socket netio_sendv netio_sendv_imm netio_subscription_cache
netio_subscription_message netio_tag_t netio_unbuffered_publish netio_unbuffered_publish_socket
netio_unbuffered_publish_socket_init netio_unbuffered_publishv netio_unbuffered_publishv_usr
netio_unbuffered_socket_attr netio_unbuffered_subscribe netio_unbuffered_subscribe_socket
netio_unbuffered_subscribe_socket_init netio_unbuffered_unsubscribe netio_unsubscribe
cb_connection_closed cb_connection_established cb_error_bind_refused cb_error_connection_refused
cb_internal_connection_closed cb_msg_imm_received cb_msg_published cb_msg_received
cb_send_completed cb_subscribe cb_unsubscribe
NETIO_ERROR_MAX_IOV_EXCEEDED NETIO_MAX_IOV_LEN NETIO_REENTRY NETIO_STATUS_AGAIN NETIO_STATUS_OK
NETIO_STATUS_OK_NOSUB NETIO_STATUS_PARTIAL
""".split()
NAMING = ("docs/operations.md", "docs/stream-protocol.md")
CPP_TEST = re.compile(r"^TEST(?:_P|_F)?\(\s*(\w+),\s*(\w+)\s*\)", re.M)
NAME = re.compile(r"`([A-Z]\w*[a-z]\w*\.\w+|[A-Z]\.\w+)`")


def names_in_cpp(text):
    return {f"{suite}.{name}" for suite, name in CPP_TEST.findall(text)}


def names_in_python(text):
    names, current = set(), None
    for line in text.splitlines():
        if case := re.match(r"class (\w+)\(", line):
            current = case[1]
        elif test := re.match(r"    def (test_\w+)\(", line):
            names.add(f"{current}.{test[1]}")
    return names


def findings(document, existing):
    for number, line in enumerate(document.splitlines(), 1):
        if not line.startswith("| ") or line.endswith("| test |"):
            continue
        named = NAME.findall(line.rsplit("|", 2)[1])
        if not named:
            yield number, "names no test"
        if re.match(r"none\b", line.split(" | ")[1]):
            yield number, "names no counterpart"
        for name in named:
            if name not in existing:
                yield number, f"there is no test {name}"


def unknown_names(document, existing):
    for number, line in enumerate(document.splitlines(), 1):
        for name in NAME.findall(line):
            if name not in existing:
                yield number, f"there is no test {name}"


def names_without_row(document, names):
    """A name that is only a part of another one does not count."""
    for name in names:
        if not re.search(rf"(?<!\w){name}(?!\w)", document):
            yield name


def self_test():
    existing = names_in_cpp("TEST(A, One) {}\nTEST_P(B,\n       Two) {}\n// TEST(C, Three)\n")
    existing |= names_in_python("class D(Case):\n    def test_four(self):\n")
    assert existing == {"A.One", "B.Two", "D.test_four"}, existing
    table = "| x | y | test |\n|---|---|---|\n| a | `Not.This` | `A.One`, `D.test_four` |\n"
    assert not list(findings(table, existing))
    assert list(findings(table + "| b | c | `C.Three` |\n| d | `A.One` | |\n", existing)) == [
        (4, "there is no test C.Three"), (5, "names no test")]
    assert list(findings("| a | none needed | `A.One` |\n", existing)) == [
        (1, "names no counterpart")]
    assert list(unknown_names("`A.One` and\n| `C.Three` | `a.b` |", existing)) == [
        (2, "there is no test C.Three")]
    assert list(names_without_row("`netio_send_imm`, `netio_listen(port)`",
                                  ["netio_send", "netio_send_imm", "netio_listen"])) == ["netio_send"]


self_test()
root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
tests = set()
for path in (root / "tests").rglob("*_test.cpp"):
    tests |= names_in_cpp(path.read_text())
for path in (root / "tests").rglob("*_test.py"):
    tests |= names_in_python(path.read_text())
found = [(COMPLETE, *finding) for finding in findings((root / COMPLETE).read_text(), tests)]
found += [(COMPLETE, 1, f"does not name {name}")
          for name in names_without_row((root / COMPLETE).read_text(), NETIO_NEXT)]
for name in NAMING:
    found += [(name, *finding) for finding in unknown_names((root / name).read_text(), tests)]
for document, line_number, what in found:
    print(f"{document}:{line_number}: {what}")
sys.exit(bool(found))
