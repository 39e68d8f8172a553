# SPDX-License-Identifier: Apache-2.0
"""Stream servers and a client that uses the tcp provider's own wire protocol and forges its writes.

forged_write_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import socket
import struct
import subprocess
import unittest

from program_case import DEADLINE, PROVIDER, UNITTEST_ARGUMENTS, Case

LISTEN = "127.0.0.1:0"
WRAP = 1 << 64


class ForgingClient:
    """A client after the handshake, which knows the ring that the server announced."""

    MESSAGE, WRITE = 0, 4
    RING = 21  # kind of a frame

    def __init__(self, address):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=DEADLINE)
        stream = struct.pack("<BBH", 4, 0b10001, 256)  # advertises, offers its memory
        hello = b"NTIO" + struct.pack("<HBBIHHQ", 3, 3, 0, 262152, 16, 5000, os.getpid()) + stream
        # The full length that the provider reads, with the data inside.
        self.socket.sendall(struct.pack(">BBH20xQ256s", 3, 0, 256, 1 << 56, hello))
        answer = self.receive(32)
        self.receive(struct.unpack(">H", answer[2:4])[0])
        self.frames = 0
        self.send_frame(1, b"")  # open
        ring = self.receive_message()
        assert ring[0] == self.RING, ring
        self.address, self.key, self.bytes = struct.unpack("<QQQ", ring[8:])
        self.send_frame(self.RING, struct.pack("<QQQ", 0, 0, 1000))

    def receive(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise AssertionError("the server has closed the connection")
            data += more
        return data

    def receive_message(self):
        header = self.receive(16)
        rest = self.receive(struct.unpack("<Q", header[8:])[0] - len(header))
        return rest[header[6] - len(header):]

    def send(self, operation, places, data, immediate=None):
        said = b"" if immediate is None else struct.pack("<Q", immediate)
        size = 16 + len(said) + len(places)
        header = struct.pack("<BBHBBBBQ", 3, operation, bool(said), 0, len(places) // 24, size, 0,
                             size + len(data))
        self.socket.sendall(header + said + places + data)

    def send_frame(self, kind, body):
        self.send(self.MESSAGE, b"", struct.pack("<BBHI", kind, 0, 0, self.frames) + body)
        self.frames += 1

    def write(self, address, length, key, data):
        self.send(self.WRITE, struct.pack("<QQQ", address, length, key), data)

    def claim(self, immediate):
        """A write of no bytes to no address, with the given notice."""
        self.send(self.WRITE, b"", b"", immediate)

    def is_cut_off(self):
        """Whether the connection is closed, after reading everything that the server has sent."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionResetError:
            pass
        return True


@unittest.skipIf(PROVIDER != "tcp", "it is the tcp provider's protocol")
class Forging(Case):
    SERVERS = (("pump", "--serve"), ("copy", "--serve"), ("cat",))

    def serve(self, kind, *more):
        folder = (self.folder.name,) if kind[0] == "copy" else ()
        options = {"stdin": subprocess.PIPE, "json_report": False} if kind[0] == "cat" else {}
        return self.start(*kind, *folder, "--listen", LISTEN, "--provider", "tcp", *more, **options)

    def forge(self, address):
        client = ForgingClient(address)
        self.addCleanup(client.socket.close)
        return client

    def test_a_server_names_no_memory_that_a_client_may_write_to(self):
        for kind in self.SERVERS:
            client = self.forge(self.serve(kind).address())
            self.assertEqual((client.address, client.key), (0, 0))
            self.assertEqual(client.bytes, 1 << 20)

    def test_a_trusted_client_gets_writable_memory(self):  # otherwise the test before proves nothing
        for kind in self.SERVERS:
            client = self.forge(self.serve(kind, "--remote-writes", "trusted").address())
            self.assertNotEqual(client.key, 0)

    def test_a_write_that_has_written_nothing_is_not_believed(self):
        for immediate in (100, 1 << 31 | 100):  # into a receive, into the ring
            pump = self.serve(self.SERVERS[0], "--once")
            cat = self.serve(("cat",))
            for server in (pump, cat):
                client = self.forge(server.address())
                client.claim(immediate)
                client.socket.close()
            report = pump.end()[1]
            received = report["received"]
            self.assertEqual((report["bytes"], received["direct_bytes"], received["indirect_bytes"]), (0, 0, 0))
            self.assertEqual(cat.process.stdout.read(), "")
            cat.process.stdin.close()
            cat.end()

    def test_a_write_whose_length_wraps_finds_no_memory(self):
        serving = self.serve(self.SERVERS[0])
        for address, length in ((0, 64), (0, WRAP - 1), ((1 << 20) - 64, WRAP - 64),
                                (1 << 20, WRAP - (1 << 20)), (WRAP - 64, 128)):
            for key in (0, 1, WRAP - 1):
                client = self.forge(serving.address())
                client.write(address, length, key, b"forged" * 1000)
                self.assertTrue(client.is_cut_off())
        pump = self.start("pump", serving.address(), "--bytes", "10m", "--verify",
                          "--bidirectional")
        status, report, log = pump.end()
        self.assertEqual((status, report["bytes"]), (0, 10 << 20), log)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
