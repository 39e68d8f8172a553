# SPDX-License-Identifier: Apache-2.0
"""Message sockets, and requests with their replies."""

import asyncio
import concurrent.futures
import gc
import select
import signal
import subprocess
import sys
import threading

import netio_daq as netio
import numpy
import pytest
from support import LONG


def pair(listener_options={}, **options):
    """A connected socket, and the accepted one."""
    with netio.MessageListener("127.0.0.1:0", **listener_options) as listener:
        client = netio.MessageSocket(listener.address, **options)
        return client, listener.accept(LONG)


# --- message sockets -----------------------------------------------------------------------------


def test_messages_of_all_sizes_arrive_both_ways_until_both_finish():
    client, server = pair()
    sizes = [0, 1, 100, 65_000, 200_000, 3_000_000, 7]

    def send(socket, byte):
        for size in sizes:
            socket.send(bytes([byte]) * size, timeout=LONG)
        socket.finish()

    with concurrent.futures.ThreadPoolExecutor() as pool:
        sent = [pool.submit(send, client, 1), pool.submit(send, server, 2)]
        received = [pool.submit(list, client), pool.submit(list, server)]
        for future in sent:
            future.result(LONG)
        for future, byte in zip(received, (2, 1)):
            assert [bytes(message) for message in future.result(LONG)] == [bytes([byte]) * size for size in sizes]
    while not (client.closed and server.closed):
        pass
    assert client.end == server.end == "closed in order"
    assert client.receive(LONG) is None and client.receive_batch() == [] and list(server) == []
    with pytest.raises(netio.ClosedError, match="message socket to 127.0.0.1:.*: closed in order"):
        client.send(b"too late")
    assert client.try_send(b"too late") == "closed"
    assert client.counters()["messages_sent"] == len(sizes)


def test_a_message_is_valid_after_its_socket():
    client, server = pair()
    block = numpy.arange(100_000, dtype="u4")
    client.send(block)
    message = server.receive(LONG)
    view = numpy.frombuffer(message, "u4")
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    del message, server, client
    gc.collect()
    assert numpy.array_equal(view, block)


def test_a_full_queue_makes_the_peer_wait():
    options = {"queue_limit_events": 4, "socket": {"session": {"receive_count": 4, "receive_buffer_bytes": 4096}}}
    client, server = pair(options, page_size_bytes=4096, page_count=2)
    count = 0
    while True:
        try:
            client.send(count.to_bytes(2000, "little"), timeout=0.2)
        except netio.TimeoutError as error:
            assert "no space for the message for 200 ms (timeout)" in str(error)
            break
        count += 1
    assert client.try_send(b"") == "again"
    client.finish()
    received = []
    while batch := server.receive_batch(3):
        assert len(batch) <= 3
        received += [int.from_bytes(bytes(message), "little") for message in batch]
    assert received == list(range(count)), "nothing is lost"


def test_a_connection_that_fails_is_an_error_after_its_last_message():
    client, server = pair()
    client.send(b"the last one")
    while client.counters()["messages_sent"] == 0 or not select.select([server], [], [], LONG)[0]:
        pass
    client.abort()
    assert bytes(server.receive(LONG)) == b"the last one"
    for call in (server.receive, lambda: next(server), server.receive_batch, lambda: server.send(b"")):
        with pytest.raises(netio.ClosedError, match="message socket of 127.0.0.1:.*: connection lost"):
            call()
    assert list(client) == [], "it was aborted here"
    with pytest.raises(netio.ClosedError, match="refused"):
        netio.MessageSocket("127.0.0.1:9").send(b"")
    with pytest.raises(netio.ClosedError, match="refused"):
        netio.MessageSocket("127.0.0.1:9").receive()


def test_a_socket_waits_for_its_listener_and_connects_again():
    first = netio.MessageListener("127.0.0.1:0")
    address = first.address
    first.close()
    client = netio.MessageSocket(address, reconnect=True, retry_interval=0.01, retry_limit=0.01)
    with pytest.raises(netio.TimeoutError, match=r"not connected for 10 ms \(timeout\)"):
        client.send(b"a", timeout=0.01)
    for _ in range(2):
        with netio.MessageListener(address) as listener:
            server = listener.accept(LONG)
            assert client.wait_until_connected(LONG)
            server.send(b"hello")
            server.finish()
            assert bytes(client.receive(LONG)) == b"hello"
            server.abort()
        while client.connected:
            pass
    client.close()
    assert list(client) == [] and client.counters()["connections"] == 2


def test_too_large_a_message_is_refused():
    client, server = pair({"socket": {"largest_message_bytes": 100_000}})
    with pytest.raises(netio.Error, match="has 100001 bytes; the limit is 100000") as info:
        client.send(bytes(100_001))
    assert info.value.status == client.try_send(bytes(100_001)) == "too_large"
    assert client.message_limit == 100_000


def test_connections_beyond_accept_limit_are_rejected():
    listener = netio.MessageListener("127.0.0.1:0", accept_limit=2)
    clients = [netio.MessageSocket(listener.address) for _ in range(4)]
    while sum(client.connected for client in clients) != 2 or sum(client.closed for client in clients) != 2:
        pass
    with pytest.raises(netio.ClosedError, match="accept_limit|rejected"):
        [client.receive(0) for client in clients]
    accepted = [listener.accept(LONG), listener.accept(LONG)]
    later = netio.MessageSocket(listener.address)
    assert later.wait_until_connected(LONG)
    listener.close()
    assert len(list(listener)) == 1, "what waits is accepted after close()"
    with pytest.raises(netio.ClosedError, match="the listener is closed"):
        listener.accept()
    assert all(each.connected for each in accepted)


@pytest.mark.parametrize(
    "create, error, text",
    [
        (lambda: netio.MessageSocket("nowhere"), ValueError, "nowhere"),
        (lambda: netio.MessageSocket("127.0.0.1:9", page_count=1), ValueError, "page_count"),
        (lambda: netio.MessageSocket("127.0.0.1:9", queue_limit_events=0), ValueError, "queue_limit_events"),
        (lambda: netio.MessageSocket("127.0.0.1:9", posted_limit=1), TypeError, "MessageSocket has no option"),
        (lambda: netio.MessageListener("127.0.0.1:0", accept_limit=0), ValueError, "accept_limit"),
        (lambda: netio.MessageListener("127.0.0.1:0", socket={"page_count": 1}), ValueError, "page_count"),
        (lambda: netio.MessageListener("0.0.0.0:0"), ValueError, "allow_remote_anonymous"),
        (lambda: netio.MessageListener("127.0.0.1:0", protocol=300), ValueError, "protocol must be from 0 to 255"),
        (lambda: netio.Requester("127.0.0.1:9", outstanding_limit=0), ValueError, "outstanding_limit"),
        (lambda: netio.Requester("nowhere"), ValueError, "nowhere"),
        (lambda: netio.Responder("127.0.0.1:0", request_limit=0), ValueError, "request_limit"),
        (lambda: netio.Responder("127.0.0.1:0", on_ready=print), TypeError, "Responder has no option 'on_ready'"),
    ],
)
def test_a_wrong_option_is_named(create, error, text):
    with pytest.raises(error, match=text):
        create()


def test_an_address_in_use_is_an_error():
    listener = netio.MessageListener("127.0.0.1:0")
    for create in (netio.MessageListener, netio.Responder):
        with pytest.raises(netio.FabricError):
            create(listener.address)


def test_asyncio_accepts_and_receives():
    async def serve(listener):
        async for socket in listener:
            with socket:  # closes in order; a socket that is dropped closes at once
                async for message in socket:
                    socket.send(bytes(message) * 2)
            return

    async def ask(address):
        client = netio.MessageSocket(address)
        for number in range(100):
            client.send(bytes([number]))
        client.finish()
        return [bytes(message) async for message in client]

    async def main():
        with netio.MessageListener("127.0.0.1:0") as listener:
            return (await asyncio.gather(serve(listener), ask(listener.address)))[1]

    assert asyncio.run(main()) == [bytes([number, number]) for number in range(100)]


# --- requests ------------------------------------------------------------------------------------


def echo(responder, threads):
    def serve():
        for request in responder:
            request.reply(request.data)

    for _ in range(threads):
        threading.Thread(target=serve, daemon=True).start()


def test_threads_ask_and_threads_reply():
    with netio.Responder("127.0.0.1:0") as responder, netio.Requester(responder.address) as requester:
        echo(responder, 3)

        def ask(first):
            for number in range(first, first + 300):
                assert int.from_bytes(requester.request(number.to_bytes(4, "big"), LONG), "big") == number
            replies = [requester.send(bytes([number])) for number in range(200)]
            assert [bytes(reply.next(LONG)) for reply in replies] == [bytes([number]) for number in range(200)]

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(ask, 1000 * index) for index in range(4)]:
                future.result(LONG)
        big = numpy.arange(300_000, dtype="u8")
        reply = requester.request(big, LONG)
        assert numpy.array_equal(numpy.frombuffer(reply, "u8"), big)
        assert requester.stats().replied == 2001 and requester.stats().outstanding == 0
    assert responder.stats().replied == 2001 and responder.closed
    assert numpy.array_equal(numpy.frombuffer(reply, "u8"), big), "it is valid after the requester"


def test_every_end_of_a_request_has_its_name():
    with netio.Responder("127.0.0.1:0") as responder, netio.Requester(responder.address) as requester:
        replies = {name: requester.send(name) for name in ("no_reply", "failed", "replied", "canceled", "disconnected")}
        requests = {bytes(request).decode(): request for request in (responder.receive(LONG) for _ in replies)}
        del requests["no_reply"]
        assert requests["failed"].fail("no such channel")
        assert requests["replied"].reply(b"yes")
        replies["canceled"].cancel()
        late = requester.send("timed_out", timeout=0.01)
        assert late.wait_for(LONG)
        with pytest.raises(netio.TimeoutError, match=r"within 10 ms \(timeout\); the request goes on"):
            replies["disconnected"].next(timeout=0.01)
        while not requests["canceled"].canceled:
            pass
        assert requests["canceled"].reply(b"too late") is False
        for name in ("no_reply", "failed", "canceled"):
            with pytest.raises(netio.RequestError) as info:
                replies[name].next(LONG)
            assert info.value.end == replies[name].end == name and isinstance(info.value, netio.ClosedError)
        assert late.end == "timed_out"
        assert list(map(bytes, replies["replied"])) == [b"yes"] and replies["replied"].next() is None
        responder.close()
        assert replies["disconnected"].wait_for(LONG)
        assert replies["disconnected"].end in ("disconnected", "no_reply", "canceled")
        assert requests["disconnected"].reply(b"after close()") is False


def test_a_limit_of_requests_is_a_time_out():
    with netio.Requester("127.0.0.1:9", outstanding_limit=2) as requester:
        replies = [requester.send(b"a") for _ in range(2)]
        with pytest.raises(netio.TimeoutError, match="no space for the request"):
            requester.send(b"a", timeout=0.02)
        replies.pop()  # canceled
        assert requester.send(b"a", timeout=LONG).end == "open"
        assert requester.stats().canceled >= 1
        requester.close()
        with pytest.raises(netio.ClosedError, match="the requester is closed"):
            requester.request(b"a")


def test_a_requester_that_receives_nothing_is_disconnected():
    program = "import netio_daq as netio, sys; netio.Requester(sys.argv[1]).request(b'a')"
    with netio.Responder("127.0.0.1:0", reply_queue_limit_bytes=1 << 20, send_timeout=0.3) as responder:
        with subprocess.Popen([sys.executable, "-c", program, responder.address]) as requester:
            try:
                request = responder.receive(LONG)
                requester.send_signal(signal.SIGSTOP)
                while request.reply_part(bytes(30_000)):
                    pass
                while responder.stats().too_slow != 1:
                    pass
            finally:
                requester.kill()


def test_asyncio_asks_and_replies():
    async def serve(responder):
        async for request in responder:
            if bytes(request) == b"end":
                request.reply_part(b"1")
                request.reply_part(b"2")
                request.reply(b"3")
                return
            request.reply(request)

    async def ask(requester, number):
        return int(bytes(await requester.send(str(number), timeout=LONG)))

    async def main():
        with netio.Responder("127.0.0.1:0") as responder, netio.Requester(responder.address) as requester:
            serving = asyncio.create_task(serve(responder))
            answers = await asyncio.gather(*(ask(requester, number) for number in range(500)))
            parts = [bytes(part) async for part in requester.send("end", timeout=LONG)]
            await serving
            with pytest.raises(netio.RequestError):
                await requester.send("without a reply", timeout=0.01)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(ask(requester, 5), 0.01)
            return answers, parts

    assert asyncio.run(main()) == (list(range(500)), [b"1", b"2", b"3"])


def test_the_end_of_a_responder_ends_the_iterations():
    responder = netio.Responder("127.0.0.1:0")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        iterations = [pool.submit(list, responder) for _ in range(3)]

        async def all_requests():
            return [request async for request in responder]

        iterations.append(pool.submit(asyncio.run, all_requests()))
        while not iterations[-1].running():
            pass
        responder.close()
        assert [future.result(LONG) for future in iterations] == [[]] * 4
