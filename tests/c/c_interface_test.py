# SPDX-License-Identifier: Apache-2.0
"""The C interface: programs in C and C++, the programs of docs/c.md, and a foreign language (ctypes).

c_interface_test.py LIBRARY INCLUDE_FOLDER FLAGS [unittest arguments]: FLAGS are of a sanitizer, or empty
"""

import ctypes
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

LIBRARY, INCLUDE = map(pathlib.Path, sys.argv[1:3])
FLAGS = sys.argv[3].split()
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
DEADLINE = 120  # seconds; far longer than any program here runs
COMPILERS = [name for name in ("gcc", "clang", "clang-14") if shutil.which(name)][:1 if FLAGS else 2]


def run(*command):
    ended = subprocess.run([str(each) for each in command], capture_output=True, text=True, timeout=DEADLINE)
    if ended.returncode != 0:
        raise AssertionError(f"{command}: {ended.returncode}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def compiled(source, folder, compiler, standard="c11"):
    program = folder / f"{source.stem}_{compiler}_{standard}"
    language = ["-x", "c++"] if standard.startswith("c++") else ["-x", "c"]
    run(compiler, *language, f"-std={standard}", *STRICT, *FLAGS, "-pthread", f"-I{INCLUDE}", f"-I{HERE}", source,
        "-x", "none", "-o", program, f"-L{LIBRARY.parent}", "-lnetiodaq", f"-Wl,-rpath,{LIBRARY.parent}")
    return program


class InAFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Programs(InAFolder):
    def check(self, name, *arguments):
        for compiler in COMPILERS:
            run(compiled(HERE / f"{name}.c", self.folder, compiler), *arguments)

    def test_publishers_subscribers_and_senders(self):
        (self.folder / "bus").mkdir()
        self.check("front_door", self.folder / "bus")

    def test_byte_streams(self):
        self.check("streams")

    def test_requests_and_replies(self):
        self.check("requests")

    def test_the_loop_with_send_and_listen_sockets(self):
        self.check("event_loop")

    def test_publish_and_subscribe_sockets(self):
        self.check("publish_sockets")

    def test_names_of_felix_may_be_in_the_same_program(self):
        self.check("name_clash")

    def test_the_header_is_also_c_plus_plus(self):
        for compiler in COMPILERS:
            run(compiled(HERE / "name_clash.c", self.folder, compiler.replace("gcc", "g++").replace("clang", "clang++"),
                         "c++17"))


class Documented(InAFolder):
    def test_the_two_programs_of_the_page(self):
        page = (ROOT / "docs/c.md").read_text()
        programs = re.findall(r"^```c\n(.*?)^```", page, re.S | re.M)
        self.assertEqual(len(programs), 2)
        for compiler, standard in [(each, "c11") for each in COMPILERS] + [("g++", "c++17")]:
            port = run(sys.executable, "-c", "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); "
                       "print(s.getsockname()[1], end='')")
            built = []
            for name, text in zip(("publisher", "subscriber"), programs):
                source = self.folder / f"{name}.c"
                source.write_text(text.replace(":12345", f":{port}"))
                built.append(compiled(source, self.folder, compiler, standard))
            subscriber = subprocess.Popen([built[1]], stdout=subprocess.PIPE, text=True)
            try:
                run(built[0])
                self.assertEqual(subscriber.communicate(timeout=DEADLINE)[0], "100000 messages, 800000 bytes, lost: 0\n")
                self.assertEqual(subscriber.returncode, 0)
            finally:
                subscriber.kill()

    def test_each_name_of_the_page_exists(self):
        page = (ROOT / "docs/c.md").read_text()
        header = (ROOT / "apps/c/netio_daq.h").read_text()
        for name in set(re.findall(r"\bnetiodaq_\w+|\bNETIODAQ_[A-Z_]+\b", page)) - {"netiodaq_"}:
            self.assertRegex(header, rf"\b{name}\b")
        for result, number in re.findall(r"^\| `(NETIODAQ_\w+)` \| (-?\d+) \|", page, re.M):
            self.assertRegex(header, rf"\b{result} = {number}\b")

    def test_each_function_of_netio_next_has_a_counterpart(self):
        page = (ROOT / "docs/c.md").read_text()
        theirs = set(re.findall(r"\bnetio_\w+", (ROOT / "docs/netio-next.md").read_text()))
        # Data types, and metrics of the program.
        theirs = {name for name in theirs
                  if not re.search(r"_(context|socket|semaphore|cache|message)$|_publisher_|_subscriber_|_peer_", name)}
        self.assertGreater(len(theirs), 20)
        self.assertEqual([name for name in sorted(theirs) if name not in page], [])


class Symbols(unittest.TestCase):
    def test_the_header_and_the_library_have_the_same_functions(self):
        header = re.sub(r"/\*.*?\*/", "", (ROOT / "apps/c/netio_daq.h").read_text(), flags=re.S)
        declared = set(re.findall(r"\b(netiodaq_\w+)\((?!\*)", header))
        versions = re.findall(r"^\s+(netiodaq_\w+);", (ROOT / "apps/c/exports.map").read_text(), re.M)
        self.assertEqual(sorted(declared), sorted(versions))
        if FLAGS:
            self.skipTest("a library with a sanitizer exports everything")
        symbols = [line.split()[-1] for line in run("nm", "-D", "--defined-only", LIBRARY).splitlines()]
        self.assertEqual(sorted(symbols), sorted([f"{name}@@NETIODAQ_0.3" for name in declared] + ["NETIODAQ_0.3"]))

    def test_the_soname_has_the_version_of_the_interface(self):
        self.assertIn("[libnetiodaq.so.0]", run("readelf", "-d", LIBRARY))


class Item(ctypes.Structure):
    _fields_ = [("fid", ctypes.c_uint64), ("lost_before", ctypes.c_uint64), ("data", ctypes.c_void_p),
                ("size_bytes", ctypes.c_uint64), ("status", ctypes.c_uint32), ("is_gap", ctypes.c_uint32)]


class ForeignError(Exception):
    pass


class Foreign:
    """The library as a language without the header sees it."""

    def __init__(self):
        self.library = ctypes.CDLL(str(LIBRARY))
        for name, result in {"last_error": ctypes.c_char_p, "error_text": ctypes.c_char_p,
                             "publisher_address": ctypes.c_char_p, "message_data": ctypes.c_void_p,
                             "message_size_bytes": ctypes.c_uint64, "message_fid": ctypes.c_uint64,
                             "batch_count": ctypes.c_uint64, "batch_items": ctypes.POINTER(Item)}.items():
            getattr(self.library, f"netiodaq_{name}").restype = result

    def __call__(self, name, *arguments):
        result = getattr(self.library, f"netiodaq_{name}")(*arguments)
        if getattr(self.library, f"netiodaq_{name}").restype is ctypes.c_int and result < 0:
            raise ForeignError(result, self.library.netiodaq_last_error().decode())
        return result

    def new(self, name, *arguments):
        handle = ctypes.c_void_p()
        self(name, *arguments, ctypes.byref(handle))
        return handle

    def options(self, kind, **values):
        options = self.new("options_new", kind)
        for name, value in values.items():
            self("options_set", options, name.replace("__", ".").encode(), value.encode())
        return options


def number(value):
    return ctypes.c_uint64(value)


@unittest.skipIf(FLAGS, "a sanitizer must be loaded before the interpreter")
class ForeignLanguage(InAFolder):
    def publish_and_receive(self, publisher_options=None, subscriber_options=None):
        netio = Foreign()
        publisher = netio.new("publisher_new", None, b"127.0.0.1:0", publisher_options)
        subscriber = netio.new("subscriber_new", None, netio("publisher_address", publisher), subscriber_options)
        netio("subscriber_subscribe", subscriber, number(0), number(2**64 - 1))
        netio("subscriber_wait_until_subscribed", subscriber, ctypes.c_int64(60000))
        for i in range(100):
            text = f"message {i}".encode()
            netio("publisher_publish", publisher, number(2**64 - 1 - i), text, number(len(text)), ctypes.c_uint8(i))
        message = netio.new("subscriber_receive", subscriber, ctypes.c_int64(60000))
        self.assertEqual(netio("message_fid", message), 2**64 - 1)
        kept = (ctypes.c_char * netio("message_size_bytes", message)).from_address(netio("message_data", message))
        batch = netio.new("batch_new")
        received = []
        while len(received) < 99:
            netio("subscriber_receive_batch", subscriber, ctypes.c_int64(60000), batch)
            items = netio("batch_items", batch)
            received += [(item.fid, item.status, ctypes.string_at(item.data, item.size_bytes))
                         for item in items[:netio("batch_count", batch)]]
        self.assertEqual(received, [(2**64 - 1 - i, i, f"message {i}".encode()) for i in range(1, 100)])
        netio("subscriber_free", subscriber)
        self.assertEqual(bytes(kept), b"message 0")
        netio("message_free", message)
        netio("batch_free", batch)
        netio("publisher_free", publisher)

    def test_publishes_and_receives(self):
        self.publish_and_receive()

    def test_errors_are_numbers_with_texts(self):
        netio = Foreign()
        with self.assertRaises(ForeignError) as raised:
            netio.new("publisher_new", None, b"nowhere", None)
        self.assertEqual(raised.exception.args, (-9, "'nowhere' is not an address: the port is missing; "
                                                     "expected HOST:PORT or [IPV6]:PORT"))
        self.assertEqual(netio("error_text", -9), b"invalid argument")

    def test_with_a_key(self):
        secret = bytes(range(32))
        check = hashlib.sha256(b"netio key checksum 1" + secret).digest()[:4]
        text = f"netio-keys 1\n7 monitor nk1-{(secret + check).hex()} services=pubsub fids=0-0xffffffffffffffff:block\nend\n"
        for name in ("site.keys", "monitor.key"):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o600)
        netio = Foreign()
        publisher = netio.options(2, keys__file=str(self.folder / "site.keys"), keys__min_protection="integrity")
        subscriber = netio.options(3, key__file=str(self.folder / "monitor.key"), key__protection="privacy")
        self.publish_and_receive(publisher, subscriber)
        # An address in use: the keys are released on their loop.
        first = netio.new("publisher_new", None, b"127.0.0.1:0", publisher)
        with self.assertRaisesRegex(ForeignError, "in use"):
            netio.new("publisher_new", None, netio("publisher_address", first), publisher)
        netio("publisher_free", first)

    def test_a_call_that_waits_releases_the_interpreter(self):
        netio = Foreign()
        publisher = netio.new("publisher_new", None, b"127.0.0.1:0", None)
        subscriber = netio.new("subscriber_new", None, netio("publisher_address", publisher), None)
        netio("subscriber_subscribe", subscriber, number(1), number(1))
        received = []
        waiting = threading.Thread(target=lambda: received.append(
            netio.new("subscriber_receive", subscriber, ctypes.c_int64(-1))))
        waiting.start()
        netio("publisher_wait_for_subscribers", publisher, number(1), ctypes.c_int64(60000))
        netio("publisher_publish", publisher, number(1), b"x", number(1), ctypes.c_uint8(0))
        waiting.join(DEADLINE)
        self.assertEqual(len(received), 1)
        netio("message_free", received[0])
        netio("subscriber_free", subscriber)
        netio("publisher_free", publisher)

    def test_an_inherited_handle_ends_the_child_with_a_line(self):
        source = ("import ctypes, os, sys\nn = ctypes.CDLL(sys.argv[1])\np = ctypes.c_void_p()\n"
                  "assert n.netiodaq_publisher_new(None, b'127.0.0.1:0', None, ctypes.byref(p)) == 0\n"
                  "child = os.fork()\nif child == 0: n.netiodaq_publisher_close(p); os._exit(0)\n"
                  "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0\nn.netiodaq_publisher_free(p)\n")
        ended = subprocess.run([sys.executable, "-c", source, LIBRARY], capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stderr, "Publisher")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
