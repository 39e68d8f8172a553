# SPDX-License-Identifier: Apache-2.0
"""Publishing without a copy from arrays of registered memory."""

import collections
import gc
import threading

import netio_daq as netio
import numpy
import pytest
from support import LONG, pair


def create(shape=(8, 65536), **options):
    context = netio.Context()
    return netio.buffer(shape, context=context), netio.PublishSocket("127.0.0.1:0", context=context, **options)


def test_frames_arrive_and_their_memory_is_used_again():
    frames, socket = create()
    _, subscriber = pair(publisher=socket)
    received = []
    thread = threading.Thread(target=lambda: received.extend((m.status, m.data[0], m.data[65535]) for m in subscriber))
    thread.start()
    publications = [None] * 8
    for number in range(400):
        slot = number % 8
        assert publications[slot] is None or publications[slot].wait(LONG)
        frames[slot] = number % 251
        publications[slot] = socket.publish(number % 3, frames[slot], status=number % 7)
    socket.close()
    thread.join(LONG)
    assert received == [(number % 7, number % 251, number % 251) for number in range(400)]
    assert all(each.done and each.outcome == dict(sent=1, dropped=0, unsubscribed=0, lost=0) for each in publications)
    assert socket.counters()["messages"] == 400 and socket.closed
    with pytest.raises(netio.ClosedError, match="fid 0x1: the publish socket is closed"):
        socket.publish(1, frames[0])


def test_the_memory_lives_until_its_publication_is_complete():
    frames, socket = create()
    _, subscriber = pair(publisher=socket)
    for number in range(8):
        frames[number] = number
        socket.publish(1, frames[number])
    del frames
    gc.collect()
    for number in range(8):
        message = subscriber.receive(LONG)
        assert message.data[0] == message.data[65535] == number
    del socket
    gc.collect()
    assert message.data[0] == 7


def test_a_slow_subscriber_keeps_memory_in_flight():
    frames, socket = create(outstanding_limit=4)
    subscriber = pair(publisher=socket, queue_limit_messages=1, socket={"session": {"keep_limit_bytes": 1 << 20}})[1]
    publications = []
    with pytest.raises(netio.TimeoutError, match=r"no space for the message for 100 ms \(timeout\)"):
        while True:
            publications.append(socket.publish(1, frames[0], timeout=0.1))
    assert not publications[-1].wait(timeout=0) and not publications[-1].done and publications[-1].outcome is None
    assert socket.counters()["outstanding"] >= 1
    del socket
    gc.collect()
    assert publications[-1].wait(LONG), "its socket is gone"
    assert subscriber.receive(LONG).size == 65536


@pytest.mark.parametrize("view", [lambda f: f[2], lambda f: f.view("f8")[3, 8:64], lambda f: f.reshape(-1)[5:9], lambda f: f[1:3]])
def test_parts_and_views_are_messages(view):
    frames, socket = create()
    frames[:] = numpy.arange(8, dtype="u1")[:, None]
    _, subscriber = pair(publisher=socket)
    part = view(frames)
    assert socket.publish(1, part).wait(LONG)
    assert bytes(subscriber.receive(LONG)) == part.tobytes()


def test_what_is_not_of_a_buffer_is_refused():
    frames, socket = create()
    other = netio.buffer(100, context=netio.Context())
    for array in (numpy.zeros(5, "u1"), b"abc", frames.copy(), numpy.dtype("f8"), None):
        with pytest.raises(TypeError, match="an array of netio_daq.buffer"):
            socket.publish(1, array)
    with pytest.raises(ValueError, match="of another context"):
        socket.publish(1, other)
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        socket.publish(1, frames[:, 1])
    assert socket.publish(1, frames[0]) is None, "there is no subscriber"
    for shape in (0, (4, 0), -1, (1 << 40, 1 << 40)):
        with pytest.raises(ValueError, match="from 1 byte"):
            netio.buffer(shape, context=netio.Context())
    with pytest.raises(TypeError, match="Python objects"):
        netio.buffer(4, object, context=netio.Context())
    limited, socket = create(largest_message_bytes=1000)
    pair(publisher=socket)
    with pytest.raises(netio.Error, match="larger than largest_message_bytes"):
        socket.publish(1, limited[0])


def test_messages_of_all_fids_stay_in_order():
    """Those that are handed over to the loop, and those that wait for it because their fid is new."""
    frames, socket = create((64, 64))
    _, subscriber = pair(publisher=socket)
    expected, publications = [], collections.deque()
    for number in range(3000):
        if len(publications) == 64:
            assert publications.popleft().wait(LONG)
        frames[number % 64].view("u8")[0] = number
        fid = number if number % 5 == 0 else number % 3
        if (publication := socket.publish(fid, frames[number % 64])) is not None:
            publications.append(publication)
            expected.append((fid, number))
    socket.close()
    assert [(message.fid, int.from_bytes(message.data[:8], "little")) for message in subscriber] == expected
    assert len(expected) > 2000 and all(publication.outcome["sent"] == 1 for publication in publications)


def test_threads_hand_over_at_the_same_time():
    frames, socket = create((40, 256))
    _, subscriber = pair(publisher=socket)
    expected = {fid: [number % 251 for number in range(500)] for fid in range(4)}

    def publish(fid):
        for number, byte in enumerate(expected[fid]):
            frame = frames[10 * fid + number % 10]
            frame[:] = byte
            assert socket.publish(fid, frame).wait(LONG)

    threads = [threading.Thread(target=publish, args=[fid]) for fid in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    socket.close()
    received = {fid: [] for fid in range(4)}
    for message in subscriber:
        received[message.fid].append(message.data[255])
    assert received == expected


def test_a_publication_ends_when_its_subscribers_leave():
    frames, socket = create()
    subscriber = pair((1, 2), publisher=socket)[1]
    publications = [socket.publish(1, frames[0]) for _ in range(10)]
    subscriber.unsubscribe(1)
    while (publication := socket.publish(1, frames[0])) is not None:
        assert publication.wait(LONG)
        publications.append(publication)
    assert all(each.wait(LONG) and sum(each.outcome.values()) <= 1 for each in publications)
    assert socket.publish(2, frames[0]).wait(LONG), "it still has this one"
    subscriber.close()
    while (publication := socket.publish(2, frames[0])) is not None:
        assert publication.wait(LONG)


def test_no_publication_is_left_at_the_end_of_the_socket():
    for end in ("close", "destroy"):
        frames, socket = create()
        subscriber = pair(publisher=socket)[1]
        publications = [socket.publish(1, frames[number % 8]) for number in range(50)]
        if end == "close":
            socket.close()
            assert sum(1 for _ in subscriber) == 50, "close() is after them"
            with pytest.raises(netio.ClosedError):
                socket.publish(1, frames[0])
        del socket, frames
        gc.collect()
        assert all(each.wait(LONG) for each in publications)
