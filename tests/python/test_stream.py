# SPDX-License-Identifier: Apache-2.0
"""Byte streams, and the sender."""

import concurrent.futures
import hashlib
import os
import threading

import netio_daq as netio
import pytest
from support import LONG


def run(*works):
    """Runs each function in a thread, and returns their results."""
    with concurrent.futures.ThreadPoolExecutor(len(works)) as pool:
        return [future.result(LONG) for future in [pool.submit(work) for work in works]]


def talk(client_work, server_work, **options):
    """Each side closes its stream after its work."""
    with netio.StreamListener("127.0.0.1:0") as listener:

        def serve():
            with listener.accept(LONG) as server:
                return server_work(server)

        def ask():
            with netio.Stream.connect(listener.address, **options) as client:
                return client_work(client)

        return run(ask, serve)


def test_bytes_arrive_in_both_directions():
    data = os.urandom(5_000_000)

    def echo(server):
        while part := server.read(100_000):
            server.write(part)
        server.shutdown_send()

    def ask(client):
        def write():
            client.write(data)
            client.shutdown_send()

        def read():
            digest = hashlib.sha1()
            while part := client.read():
                digest.update(part)
            return digest.digest()

        digest = run(write, read)[1]
        sent = client.counters()["sent"]
        return digest, sent["direct_bytes"] + sent["indirect_bytes"], client.peer_address

    digest, count, address = talk(ask, echo)[0]
    assert (digest, count) == (hashlib.sha1(data).digest(), len(data)) and address


def test_reading_in_parts():
    def read(server):
        assert server.read_exactly(2) == b"ab"
        memory = bytearray(3)
        assert server.readinto(memory) == 3 and memory == b"cde"
        with pytest.raises(netio.TimeoutError, match="3 of 5 bytes have arrived, and the next read returns them"):
            server.read_exactly(5, timeout=0.1)
        assert server.read(2) == b"fg"
        with pytest.raises(netio.TimeoutError, match=r"read: not finished within 10 ms \(timeout\)"):
            [server.read(timeout=0.01) for _ in range(2)]
        server.write(b"go on")
        with pytest.raises(netio.ClosedError, match="the stream has ended; 1 of 2 bytes"):
            server.read_exactly(2)
        assert server.read() == b"i"
        assert server.read() == server.read() == b""

    def write(client):
        client.write(b"abcdefgh")
        assert client.read_exactly(5) == b"go on"
        client.write(b"i")
        client.shutdown_send()
        assert client.read() == b""

    talk(write, read)


def test_a_write_that_times_out_tells_how_much():
    gate = threading.Event()

    def write(client):
        with pytest.raises(netio.TimeoutError, match="bytes were written, and the stream can be used further") as info:
            client.write(bytes(400_000_000), timeout=0.2)
        gate.set()
        client.shutdown_send()
        assert client.read() == b""
        return info.value.accepted

    def read(server):
        gate.wait(LONG)
        return sum(len(part) for part in iter(lambda: server.read(1 << 20), b""))

    written, received = talk(write, read)
    assert 0 < written == received < 400_000_000


def test_files():
    def write(client):
        with client.makefile("w", encoding="utf-8", newline="\n") as out:
            out.writelines(f"line {number}\n" for number in range(1000))
        client.shutdown_send()
        assert client.makefile("rb").read() == b"answer"
        with pytest.raises(ValueError, match="mode of a stream"):
            client.makefile("a")

    def read(server):
        assert server.makefile(encoding="utf-8").read().splitlines() == [f"line {n}" for n in range(1000)]
        with server.makefile("rwb") as both:
            both.write(b"answer")

    talk(write, read)


def test_a_closed_stream():
    def use(client):
        client.write(b"a")
        client.close(LONG)
        client.close()
        assert client.closed
        with pytest.raises(netio.ClosedError):
            client.write(b"a")

    talk(use, lambda server: [server.read(), server.read()])


def test_several_streams_of_a_listener():
    with netio.StreamListener("127.0.0.1:0") as listener:

        def serve():
            with listener.accept(LONG) as stream:
                while part := stream.read():
                    stream.write(part)

        def ask():
            with netio.Stream.connect(listener.address, call_timeout=LONG) as stream:
                answers = []
                for number in range(20):
                    stream.write(number.to_bytes(4, "big"))
                    answers.append(int.from_bytes(stream.read_exactly(4), "big"))
                stream.shutdown_send()
                assert stream.read() == b""
                return answers

        assert run(*[serve] * 4, *[ask] * 4)[4:] == [list(range(20))] * 4


def test_errors_of_connecting():
    listener = netio.StreamListener("127.0.0.1:0", call_timeout=0.01)
    address = listener.address
    with pytest.raises(netio.TimeoutError, match=r"accept: not finished within 10 ms \(call_timeout\)"):
        listener.accept()
    with pytest.raises(netio.FabricError):
        netio.StreamListener(address)
    listener.stop()
    with pytest.raises(netio.ClosedError):
        listener.accept()
    with pytest.raises(netio.ClosedError):
        netio.Stream.connect(address)
    with pytest.raises(TypeError, match="Stream.connect has no option 'timeout'"):
        netio.Stream.connect(address, timeout=1)
    with pytest.raises(ValueError):
        netio.Stream.connect("nowhere")


def test_a_sender_without_a_receiver():
    sender = netio.Sender("127.0.0.1:9", queue_limit_bytes=1000, close_timeout=0.01, close_limit=1)
    for _ in range(9):
        sender.try_send(bytes(200))
    assert sender.try_send(bytes(200)) == "again"
    with pytest.raises(netio.TimeoutError, match=r"sender to 127.0.0.1:9: no space for the message for 10 ms"):
        sender.send(bytes(200), timeout=0.01)
    sender.close()
    with pytest.raises(netio.ClosedError, match="the sender is closed"):
        sender.send(b"a")
    assert sender.stats().unsent > 0 and sender.closed
