# SPDX-License-Identifier: Apache-2.0
"""Publisher and Subscriber: messages, batches, policies, errors."""

import asyncio
import datetime
import gc
import pathlib
import queue
import select
import subprocess
import threading

import netio_daq as netio
import numpy
import pytest
from support import LONG, pair


def numbers(messages):
    return [int.from_bytes(bytes(message), "little") for message in messages]


def test_messages_arrive_in_order_until_the_publisher_closes():
    publisher, subscriber = pair(range(4))
    for number in range(1000):
        assert publisher.publish(number % 4, number.to_bytes(8, "little"), status=number % 7)
    publisher.close()
    messages = list(subscriber)
    assert numbers(messages) == list(range(1000))
    assert [message.fid for message in messages] == [number % 4 for number in range(1000)]
    assert [message.status for message in messages] == [number % 7 for number in range(1000)]
    assert subscriber.closed and publisher.closed
    assert subscriber.receive(timeout=LONG) is None, "it does not wait after the end"
    assert subscriber.stats().messages == 1000 and subscriber.stats().lost == 0
    assert publisher.stats() == netio.PublisherStats(1000, 0, 0, 0)


@pytest.mark.parametrize("value", [b"abc", bytearray(b"abc"), memoryview(b"abc"), "abc", numpy.frombuffer(b"abc", "u1")])
def test_what_has_contiguous_bytes_is_a_message(value):
    publisher, subscriber = pair()
    publisher.publish(1, value)
    assert publisher.try_publish(1, value) == "ok"
    for _ in range(2):
        message = subscriber.receive(LONG)
        assert bytes(message) == message.data == b"abc" and len(message) == message.size == 3


def test_an_empty_message_arrives():
    publisher, subscriber = pair()
    publisher.publish(1, b"")
    message = subscriber.receive(LONG)
    assert bytes(message) == b"" and len(message.data) == 0
    publisher.publish_batch(1, b"", offsets=[0, 0, 0])
    publisher.close()
    assert sum(len(batch) for batch in subscriber.batches()) == 2


def test_what_is_not_contiguous_is_refused():
    publisher = netio.Publisher("127.0.0.1:0")
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        publisher.publish(1, numpy.zeros((4, 4))[:, 1])
    with pytest.raises(TypeError):
        publisher.publish(1, 7)
    with pytest.raises((BufferError, ValueError)):
        publisher.publish_batch(1, numpy.zeros((4, 4))[:, 1])


OBJECTS = [
    numpy.array([object()]),
    numpy.zeros(2, dtype=[("Other", "f8"), ("x", "O")]),
    memoryview(numpy.array([None])),
]


@pytest.mark.parametrize("value", OBJECTS, ids=["array", "record", "view"])
def test_references_to_objects_are_never_sent(value, tmp_path):
    context = netio.Context()
    with netio.Publisher("127.0.0.1:0") as publisher, netio.RecordingWriter(tmp_path / "run.mcap") as writer:
        calls = [
            lambda: publisher.publish(1, value),
            lambda: publisher.try_publish(1, value),
            lambda: publisher.publish_batch(1, value),
            lambda: publisher.publish_batch(1, value, offsets=[0, 8]),
            lambda: netio.Sender("127.0.0.1:9").try_send(value),
            lambda: netio.MessageSocket("127.0.0.1:9").try_send(value),
            lambda: netio.Requester("127.0.0.1:9").send(value),
            lambda: writer.write_bytes(1, value),
            lambda: netio.buffer(1, object, context=context),
        ]
        for call in calls:
            with pytest.raises(TypeError, match="Python objects"):
                call()
        assert publisher.publish(1, numpy.zeros(2, dtype=[("Other", "f8")])) is False, "a name may have any letter"
        assert publisher.publish(1, numpy.zeros(2, dtype="M8[s]")) is False, "a type without a format"


def wrong_calls():
    publisher = netio.Publisher("127.0.0.1:0")
    subscriber = netio.Subscriber("127.0.0.1:9")
    closed = netio.Subscriber("127.0.0.1:9")
    closed.close()
    for call, error, text in [
        (lambda: netio.Publisher(5555), TypeError, "an address is a text 'HOST:PORT'.*and not 5555"),
        (lambda: netio.Publisher(None), TypeError, "and not None"),
        (lambda: netio.Subscriber([5]), TypeError, "an address is a text"),
        (lambda: netio.Sender(5), TypeError, "an address is a text"),
        (lambda: netio.Stream.connect(5), TypeError, "an address is a text"),
        (lambda: netio.Publisher("127.0.0.1:0", netio.Context()), TypeError, r"Publisher\(addresses, \*\*options\): 2"),
        (lambda: netio.Subscriber(), TypeError, r"Subscriber\(publishers, \*\*options\): 0"),
        (lambda: netio.Subscriber("127.0.0.1:9", 7), TypeError, "options are given by name"),
        (lambda: netio.Subscriber("127.0.0.1:0"), ValueError, "port 0 is not valid"),
        (lambda: netio.Sender("127.0.0.1:0"), ValueError, "port 0 is not valid"),
        (lambda: netio.Requester("127.0.0.1:0"), ValueError, "port 0 is not valid"),
        (lambda: netio.MessageSocket("127.0.0.1:0"), ValueError, "port 0 is not valid"),
        (lambda: netio.Stream.connect("127.0.0.1:0"), ValueError, "port 0 is not valid"),
        (lambda: netio.Publisher(publisher.address), netio.FabricError, "use another port, or port 0"),
        (lambda: netio.Publisher("192.0.2.1:5"), netio.FabricError, "does not have the address"),
        (lambda: publisher.publish(7, 3), TypeError, r"and not 'int'; convert it: numpy.asarray\(x\)"),
        (lambda: publisher.publish(7, numpy.zeros((4, 4))[:, 1]), BufferError, "use numpy.ascontiguousarray"),
        (lambda: publisher.publish(7.0, b""), TypeError, "a fid is an integer .* and not 7.0"),
        (lambda: publisher.publish(7, b"", status=256), ValueError, "status is an integer from 0 to 255, and not 256"),
        (lambda: publisher.publish(7, b"", status="a"), TypeError, "status is an integer from 0 to 255, and not 'a'"),
        (lambda: publisher.wait_for_subscribers(-1), ValueError, "count must be an integer of at least 0"),
        (lambda: subscriber.subscribe(7.0), TypeError, r"fids are .* and not 7\.0"),
        (lambda: subscriber.subscribe([1.5]), TypeError, r"fids are .* and not 1\.5"),
        (lambda: subscriber.subscribe((1, 2, 3)), TypeError, "give several fids as a list"),
        (lambda: subscriber.wait_until_subscribed(1), TypeError, r"wait_until_subscribed\(timeout=1\)"),
        (lambda: next(subscriber.batches(max=-1)), ValueError, "max must be an integer of at least 1, and not -1"),
        (lambda: subscriber.receive_batch(0), ValueError, "max must be an integer of at least 1, and not 0"),
        (lambda: subscriber.receive(float("nan")), ValueError, "timeout must be a number, and not nan"),
        (lambda: closed.subscribe(7), netio.ClosedError, "create another one"),
    ]:
        yield call, error, text


def test_a_wrong_call_gets_its_cause_and_remedy():
    for call, error, text in wrong_calls():
        with pytest.raises(error, match=text):
            call()


def test_ended_tells_the_end_from_a_time_out():
    publisher, subscriber = pair()
    assert subscriber.receive(0) is None and not subscriber.ended
    publisher.publish(1, b"abc")
    publisher.close()
    while not subscriber.closed:
        pass
    assert not subscriber.ended, "a message is left"
    assert bytes(subscriber.receive(LONG)) == b"abc"
    assert subscriber.receive(LONG) is None and subscriber.ended


def test_an_event_loop_receives_batches():
    publisher, subscriber = pair()

    async def main():
        publisher.publish_batch(1, bytes(6), offsets=range(7))
        await asyncio.to_thread(publisher.close)
        return [len(batch) async for batch in subscriber.batches(max=4)]

    assert sum(asyncio.run(main())) == 6


def test_a_message_says_whether_it_is_a_copy():
    publisher, subscriber = pair(socket={"session": {"keep_limit_bytes": 1 << 20}})
    publisher.publish(1, bytes(100))
    for _ in range(32):
        publisher.publish(1, bytes(65536))
    messages = [subscriber.receive(LONG) for _ in range(33)]
    copied = [message.copied for message in messages]
    assert copied[0] and not copied[1], "by its size"
    assert copied[-1], "half of the limit is held"


def test_a_late_subscriber_gets_the_history_first():
    publisher = netio.Publisher("127.0.0.1:0", socket={"history_limit_bytes": 1 << 20})
    for number in range(100):
        publisher.publish(1, number.to_bytes(8, "little"))
    subscriber = netio.Subscriber(publisher.address, socket={"history": True})
    subscriber.subscribe(1)
    assert subscriber.wait_until_subscribed(timeout=LONG)
    with pytest.raises(TypeError):
        subscriber.wait_until_subscribed(LONG)  # fids or a time?
    for number in range(100, 200):
        publisher.publish(1, number.to_bytes(8, "little"))
    publisher.close()
    assert numbers(subscriber) == list(range(200))


def test_a_batch_has_records_and_one_buffer():
    publisher, subscriber = pair()
    data = numpy.arange(30, dtype="u2").reshape(10, 3)
    assert publisher.publish_batch(range(10), data, status=list(range(10))) == 10
    publisher.close()
    batches = list(subscriber.batches(max=4))
    assert all(len(batch) <= 4 for batch in batches)
    records = numpy.concatenate([batch.records for batch in batches])
    assert records["fid"].tolist() == records["status"].tolist() == list(range(10))
    assert set(records["size"].tolist()) == {6} and set(records["lost_before"].tolist()) == {0}
    got = numpy.concatenate([batch.as_array([("values", "u2", 3)])["values"] for batch in batches])
    assert numpy.array_equal(got, data)
    for batch in batches:
        for index, record in enumerate(batch.records):
            part = batch.buffer[record["offset"] : record["offset"] + record["size"]]
            assert bytes(part) == bytes(batch[index]) == bytes(batch.view(index))
        assert bytes(batch[-1]) == bytes(batch[len(batch) - 1])
        with pytest.raises(IndexError):
            batch[len(batch)]
        with pytest.raises(ValueError, match="read-only"):
            batch.buffer[0] = 1
        with pytest.raises(ValueError, match="has 6 bytes, and an element has 8"):
            batch.as_array(float)


def test_offsets_divide_a_buffer():
    publisher, subscriber = pair()
    assert publisher.publish_batch(3, b"abcdef", offsets=numpy.array([1, 1, 4, 6])) == 3
    publisher.close()
    assert [bytes(message) for message in subscriber] == [b"", b"bcd", b"ef"]


@pytest.mark.parametrize(
    "arguments, text",
    [
        (dict(fids=1, data=b"abc"), "first axis"),
        (dict(fids=1, data=b"abc", offsets=[0, 4]), "message 0 would be bytes 0 to 4 of 3"),
        (dict(fids=1, data=b"abc", offsets=[2, 1]), "must ascend"),
        (dict(fids=1, data=b"abc", offsets=[]), "one element more"),
        (dict(fids=[1, 2], data=b"abc", offsets=[0, 3]), "fids must have one element for each of 1 messages"),
        (dict(fids=-1, data=b"abc", offsets=[0, 3]), "fids must not be negative"),
        (dict(fids=1, data=b"abc", offsets=[0, 3], status=256), "status must be at most 255"),
        (dict(fids=1, data=b"abc", offsets=[-1, 3]), "offsets must not be negative"),
    ],
)
def test_a_wrong_batch_is_refused_as_a_whole(arguments, text):
    with netio.Publisher("127.0.0.1:0") as publisher:
        with pytest.raises(ValueError, match=text):
            publisher.publish_batch(**arguments)
        assert publisher.stats().published == 0


@pytest.mark.parametrize("fids", ["a", 1.5, None, [0.5]])
def test_fids_of_a_batch_are_integers(fids):
    with netio.Publisher("127.0.0.1:0") as publisher, pytest.raises((TypeError, ValueError)):
        publisher.publish_batch(fids, b"abc", offsets=[0, 3])


def test_the_largest_fid_is_a_fid():
    most = 2**64 - 1
    publisher, subscriber = pair((most - 1, most))
    publisher.publish_batch(numpy.array([most], dtype="u8"), b"a", offsets=[0, 1])
    assert subscriber.receive(LONG).fid == most
    for wrong in (-1, most + 1):
        with pytest.raises(ValueError, match="a fid is an integer"):
            publisher.publish(wrong, b"")


def test_a_large_message_is_valid_after_the_subscriber():
    publisher, subscriber = pair()
    block = numpy.arange(65536, dtype="u4")
    for _ in range(3):
        publisher.publish(1, block)
    first = subscriber.receive(LONG)
    batch = subscriber.receive_batch(timeout=LONG)
    assert batch.records["offset"][0] == -1, "not copied"
    with pytest.raises(ValueError, match="view"):
        batch.as_array([("values", "u4", 65536)])
    views = [numpy.frombuffer(first, "u4"), batch.view(0).view("u4")]
    with pytest.raises(ValueError, match="read-only"):
        views[0][0] = 1
    publisher.close()
    subscriber.close()
    del first, batch, subscriber
    gc.collect()
    for view in views:
        assert numpy.array_equal(view, block)


def test_the_last_view_may_end_in_any_thread():
    publisher, subscriber = pair()
    for _ in range(8):
        publisher.publish_batch(1, numpy.zeros((100, 40), "u1"))
        publisher.publish(1, bytes(100_000))
    publisher.close()
    views = [batch.view(index) for batch in subscriber.batches() for index in range(len(batch))]
    del publisher, subscriber

    def drop(part):
        part.clear()

    parts = [views[i::4] for i in range(4)]
    views.clear()
    threads = [threading.Thread(target=drop, args=[part]) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_kept_memory_comes_back_to_the_subscriber():
    publisher, subscriber = pair(socket={"session": {"keep_limit_bytes": 1 << 20}})
    for number in range(64):  # 16 MiB in all
        publisher.publish(1, bytes([number]) * 262144)
    for number in range(64):
        assert subscriber.receive(LONG).data[262143] == number


NETIO = pathlib.Path(netio.__file__).parents[2] / "bin" / "netio"


@pytest.mark.skipif(not NETIO.exists(), reason="needs the program netio of the same build")
@pytest.mark.parametrize("size, count", [(8, 1000), (65536, 4)])
def test_time_stamps_are_not_part_of_the_messages(size, count, tmp_path):
    """With time stamps 8 more bytes lie before each message, in the batch and in kept memory."""
    data = numpy.arange(size * count // 8, dtype="u8")
    data.tofile(tmp_path / "data")
    first = netio.Publisher("127.0.0.1:0")  # only to have a free port
    address = first.address
    first.close()
    del first
    (tmp_path / "publisher.yaml").write_text(
        f"{{listen: '{address}', mode: buffered, time_stamps: tai, "
        f"streams: [{{fids: 1, size: {size}, source: {{file: data}}}}]}}"
    )
    subscriber = netio.Subscriber(address, socket={"retry_interval": 0.01, "retry_limit": 0.01})
    subscriber.subscribe(1)
    command = [NETIO, "publish", tmp_path / "publisher.yaml"]
    program = subprocess.run(command, capture_output=True, text=True, timeout=LONG)
    assert program.returncode == 0, program.stderr
    batches = list(subscriber.batches(max=100))
    views = [batch.view(index) for batch in batches for index in range(len(batch))]
    messages = [batch[index] for batch in batches for index in range(len(batch))]
    if size == 8:
        assert numpy.array_equal(numpy.concatenate([batch.as_array("u8") for batch in batches]), data)
        offsets = [(batch.buffer, record["offset"]) for batch in batches for record in batch.records]
        assert b"".join(bytes(buffer[at : at + 8]) for buffer, at in offsets) == data.tobytes()
    else:
        for view, message in zip(views, messages):
            assert view.ctypes.data == numpy.frombuffer(message, "u1").ctypes.data, "not copied"
    del batches, subscriber
    gc.collect()
    for each in (views, messages):
        assert b"".join(map(bytes, each)) == data.tobytes()


def test_lost_messages_are_counted():
    publisher, subscriber = pair(when_full="drop", queue_limit_messages=4)
    for number in range(100):
        publisher.publish_batch(1, number.to_bytes(8, "little"), offsets=[0, 8])
    publisher.close()
    received, lost = 0, 0
    for batch in subscriber.batches():
        received += len(batch)
        lost += int(batch.records["lost_before"].sum()) + sum(count for _, count in batch.gaps)
    assert received + lost == 100 and lost == subscriber.stats().lost > 0


def test_publishing_without_space_ends_with_a_time_out():
    socket = {"page_size_bytes": 1024, "page_count": 4}
    publisher = netio.Publisher(
        "127.0.0.1:0", publish_timeout=0.05, queue_limit_bytes=4096, close_timeout=0.05, socket=socket
    )
    _, subscriber = pair(
        publisher=publisher,
        queue_limit_messages=1,
        socket={"session": {"receive_buffer_bytes": 2048, "receive_count": 4}},
    )
    with pytest.raises(netio.TimeoutError, match=r"fid 0x1: no space for the message for 50 ms \(publish_timeout\)") as info:
        while True:
            publisher.publish(1, bytes(900))
    assert isinstance(info.value, TimeoutError) and info.value.status == "again"
    assert publisher.try_publish(1, bytes(900)) == "again"
    with pytest.raises(netio.TimeoutError, match=r"10 ms \(timeout\).*accepted \d+ of 100 messages") as info:
        publisher.publish_batch(1, bytes(90_000), range(0, 90_001, 900), timeout=datetime.timedelta(milliseconds=10))
    assert info.value.accepted < 100


def test_a_refusal_has_the_text_of_the_library():
    publisher = netio.Publisher("127.0.0.1:0", fids=[1, (5, 9)])
    for call in (lambda: publisher.publish(4, b""), lambda: publisher.publish_batch([1, 4], b"ab", range(3))):
        with pytest.raises(netio.Error, match=r"fid 0x4: not one of the publisher's fids \(option fids\)") as info:
            call()
        assert info.value.status == "not_owned"
    with pytest.raises(netio.Error, match="largest_message_bytes"):
        publisher.publish(1, bytes(17 << 20))
    publisher.close()
    with pytest.raises(netio.ClosedError, match="the publisher is closed"):
        publisher.publish(1, b"")


@pytest.mark.parametrize(
    "options, error, text",
    [
        (dict(queue_limit=4), TypeError, "Publisher has no option 'queue_limit'; there are: .*queue_limit_bytes"),
        (dict(queue_limit_bytes=-1), ValueError, "Publisher, option queue_limit_bytes must be from 0"),
        (dict(queue_limit_bytes=1.5), TypeError, "queue_limit_bytes must be an integer"),
        (dict(slow_policy="dorp"), ValueError, "must be 'block', 'drop', 'newest' or 'disconnect', and not 'dorp'"),
        (dict(publish_timeout=-1), ValueError, "publish_timeout must not be negative"),
        (dict(publish_timeout=float("nan")), ValueError, "publish_timeout must be a number, and not nan"),
        (dict(publish_timeout="1s"), TypeError, "publish_timeout must be a number of seconds"),
        (dict(allow_remote_anonymous=1), TypeError, "must be True or False"),
        (dict(socket=5), TypeError, "option socket must be a dict"),
        (dict(socket={"page_size": 5}), TypeError, "option socket has no option 'page_size'"),
        (dict(socket={"page_count": 1}), ValueError, "page_count"),
        (dict(socket={"publisher": {"session": {"heartbeet": 1}}}), TypeError, "option session has no option"),
        (dict(bus=netio.Bus(".")), ValueError, "must say which fids"),
    ],
)
def test_a_wrong_option_is_named(options, error, text):
    with pytest.raises(error, match=text):
        netio.Publisher("127.0.0.1:0", **options)


@pytest.mark.parametrize("fids", ["5", b"5", 1.5, None, [None], (5, 1), [(5, 1)], -1, 2**64])
def test_wrong_fids_are_refused(fids):
    subscriber = netio.Subscriber("127.0.0.1:9")
    with pytest.raises((TypeError, ValueError)):
        subscriber.subscribe(fids)


def test_fids_have_many_forms():
    forms = [7, (3, 9), range(5), range(0, 9, 2), [1, (2, 3)], numpy.arange(3), netio.FidSet([1]), {5}, []]
    sets = [list(netio.FidSet(form)) for form in forms]
    assert sets == [
        [(7, 7)],
        [(3, 9)],
        [(0, 4)],
        [(0, 0), (2, 2), (4, 4), (6, 6), (8, 8)],
        [(1, 3)],
        [(0, 2)],
        [(1, 1)],
        [(5, 5)],
        [],
    ]
    assert netio.FidSet(range(4)) == netio.FidSet((0, 3)) != netio.FidSet(0)
    assert repr(netio.FidSet((0, 3))) == "FidSet([(0, 3)])"


def test_wrong_addresses_are_refused():
    with pytest.raises(ValueError):
        netio.Publisher("127.0.0.1")
    with pytest.raises(ValueError):
        netio.Subscriber([])
    publisher = netio.Publisher("127.0.0.1:0")
    with pytest.raises(netio.FabricError) as info:
        netio.Publisher(publisher.address)
    assert isinstance(info.value, OSError)


def test_several_threads_share_the_messages():
    publisher, subscriber = pair(fids=range(4))
    taken = [[] for _ in range(4)]

    def read(own, index):
        if index % 2:
            own += numbers(subscriber)
        else:
            for batch in subscriber.batches(max=7):
                own += batch.as_array("u8").tolist()

    threads = [threading.Thread(target=read, args=[own, index]) for index, own in enumerate(taken)]
    for thread in threads:
        thread.start()
    for begin in range(0, 20_000, 100):
        publisher.publish_batch(1, numpy.arange(begin, begin + 100, dtype="u8"))
    publisher.close()
    for thread in threads:
        thread.join(LONG)
    assert all(own == sorted(own) for own in taken), "in order for each thread"
    assert sorted(sum(taken, [])) == list(range(20_000))


def test_two_threads_that_publish_and_wait():
    publisher = netio.Publisher("127.0.0.1:0")
    waited = []
    thread = threading.Thread(target=lambda: waited.append(publisher.wait_for_subscribers(1, LONG)))
    thread.start()
    _, subscriber = pair(publisher=publisher)
    thread.join(LONG)
    assert waited == [True] and subscriber.wait_until_subscribed(timeout=LONG)
    subscriber.unsubscribe((0, 1000))


def test_an_event_loop_receives():
    publisher, subscriber = pair()
    other_publisher, other = pair()

    async def read(its):
        return [number async for message in its for number in numbers([message])]

    async def main():
        tasks = [asyncio.create_task(read(its)) for its in (subscriber, subscriber, other)]
        for number in range(300):
            publisher.publish(1, number.to_bytes(8, "little"))
            other_publisher.publish(1, number.to_bytes(8, "little"))
            if number % 50 == 0:
                await asyncio.to_thread(publisher.stats)  # the tasks go on
        await asyncio.gather(*(asyncio.to_thread(its.close) for its in (publisher, other_publisher)))
        return await asyncio.wait_for(asyncio.gather(*tasks), LONG)

    one, two, three = asyncio.run(main())
    assert sorted(one + two) == three == list(range(300))


def test_a_canceled_read_loses_nothing():
    publisher, subscriber = pair()

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(subscriber.__anext__(), 0.01)
        publisher.publish(1, b"abc")
        return await asyncio.wait_for(subscriber.__anext__(), LONG)

    assert bytes(asyncio.run(main())) == b"abc"
    publisher.publish(1, b"def")
    assert bytes(asyncio.run(asyncio.wait_for(subscriber.__anext__(), LONG))) == b"def", "on another event loop"


def test_select_sees_messages():
    publisher, subscriber = pair()
    assert select.select([subscriber], [], [], 0) == ([], [], [])
    publisher.publish(1, b"abc")
    assert select.select([subscriber], [], [], LONG)[0] == [subscriber]
    assert bytes(subscriber.receive(0)) == b"abc"
    assert subscriber.receive(0) is None


def test_a_restarted_publisher_is_found_again():
    publisher, subscriber = pair(reconnect="always")
    address = publisher.address
    publisher.publish(1, b"one")
    publisher.close()
    del publisher
    publisher = netio.Publisher(address)
    assert publisher.wait_for_subscribers(1, LONG)
    publisher.publish(1, b"two")
    assert [bytes(subscriber.receive(LONG)) for _ in range(2)] == [b"one", b"two"]
    assert subscriber.stats().restarts == 1


def test_a_bus_lists_publishers(tmp_path):
    bus = netio.Bus(tmp_path, poll=0.1)
    with netio.Publisher("127.0.0.1:0", bus=bus, fids=range(8), name="hits") as publisher:
        subscriber = netio.Subscriber(bus)
        subscriber.subscribe(3)
        assert subscriber.wait_until_subscribed(timeout=LONG)
        publisher.announce(bus, "hits", {"hits": (0, 3), "noise": (4, 7)}, {"run": "5"})
        while len((found := netio.publishers(tmp_path))[0].fids) != 2:
            pass
        assert found[0].fids == [(0, 3, "hits"), (4, 7, "noise")] and found[0].parameters["run"] == "5"
        subscriber.close()
    assert netio.publishers(bus) == []
    with pytest.raises(netio.Error, match="cannot read"):
        netio.publishers("no directory:")


def test_a_wait_that_cannot_succeed_ends_at_once():
    publisher, subscriber = pair()
    publisher.close()
    assert publisher.wait_for_subscribers(1) is False
    limit = {"publisher": {"ranges_per_subscriber_limit": 1}}
    publisher, subscriber = pair(fids=1, publisher=netio.Publisher("127.0.0.1:0", socket=limit))
    subscriber.subscribe([3, 5])
    assert subscriber.wait_until_subscribed() is False
    with pytest.raises(netio.Error, match="ranges_per_subscriber_limit"):
        subscriber.receive()


def test_a_subscriber_without_a_fid_is_reported():
    lines = queue.SimpleQueue()
    netio.set_log(lines.put)
    try:
        with netio.Subscriber("127.0.0.1:9", silence_hint=0.001, socket={"retry_interval": LONG, "retry_limit": LONG}):
            while "call subscribe(fids)" not in lines.get(timeout=LONG):
                pass
    finally:
        netio.set_log(None)


def test_without_reconnect_no_line_promises_another_attempt():
    lines = queue.SimpleQueue()
    netio.set_log(lines.put)
    try:
        with netio.Subscriber("127.0.0.1:9", reconnect="never") as subscriber:
            subscriber.subscribe(1)
            while "publisher 127.0.0.1:9:" not in (line := lines.get(timeout=LONG)):
                pass
            assert line.endswith("; waiting until it can be connected")
    finally:
        netio.set_log(None)


def test_a_bus_that_is_no_folder_names_the_remedy(tmp_path):
    for missing in (tmp_path / "none", __file__):
        with pytest.raises(netio.Error, match="(?s)cannot read .*correct the path, or create the folder"):
            netio.publishers(missing, timeout=LONG)
