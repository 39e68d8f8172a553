# SPDX-License-Identifier: Apache-2.0
"""What a program must not do: it gets an exception, and the process and its other objects go on."""

import asyncio
import copy
import gc
import os
import pickle
import threading
import weakref

import netio_daq as netio
import numpy
import pytest
from support import LONG, pair, run

CLASSES = [each for each in vars(netio._core).values() if isinstance(each, type)]
CREATED_BY_THE_LIBRARY = {
    "Batch",
    "IncomingMessage",
    "Message",
    "Publication",
    "RecordedEvent",
    "RecordedMessage",
    "Reply",
    "Request",
    "Stream",
}


@pytest.mark.parametrize("its_class", CLASSES, ids=lambda its_class: its_class.__name__)
def test_an_object_that_was_not_created_cannot_be_used(its_class):
    if its_class.__name__ in CREATED_BY_THE_LIBRARY:
        for create in (its_class, lambda: its_class.__new__(its_class), type("Own", (its_class,), {})):
            with pytest.raises(TypeError, match="cannot create|not safe|No constructor"):
                create()
        return
    missing = its_class.__new__(its_class)
    for name in dir(its_class):
        if isinstance(getattr(its_class, name), property):
            with pytest.raises(TypeError, match=r"a subclass calls super\(\).__init__\(\)"):
                getattr(missing, name)
    for name in ("close", "_stats", "counters", "__len__"):
        if hasattr(its_class, name):
            with pytest.raises(TypeError, match="does not exist"):
                getattr(missing, name)()


def test_a_subclass_that_uses_itself_too_early_gets_an_exception():
    class Own(netio.Publisher):
        def __init__(self):
            with pytest.raises(TypeError, match="does not exist"):
                self.address
            super().__init__("127.0.0.1:0")

    assert Own().address.startswith("127.0.0.1:")


def test_only_values_can_be_copied_and_pickled():
    publisher, subscriber = pair()
    publisher.publish(1, bytes(100_000))
    publisher.publish(1, b"small")
    large, batch = subscriber.receive(LONG), subscriber.receive_batch(timeout=LONG)
    for each in (publisher, subscriber, large, batch, netio.Context(), netio.Bus("bus")):
        kind = type(each).__name__
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match=f"a {kind} cannot be copied or pickled"):
                pickle.dumps(each, protocol)
        for copied in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be copied"):
                copied(each)
    fids = netio.FidSet([(1, 5), 2**64 - 1])
    for value in (fids, publisher.stats(), subscriber.stats(), large.fid):
        assert pickle.loads(pickle.dumps(value)) == copy.copy(value) == value
    error = pickle.loads(pickle.dumps(netio.TimeoutError("a text")))
    assert isinstance(error, netio.TimeoutError) and str(error) == "a text"


def test_unusual_fids_are_accepted_or_refused_and_never_end_the_process():
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        netio.FidSet(endless)
    most = 2**64 - 1
    assert list(netio.FidSet(range(0, 2**64))) == [(0, most)]
    assert list(netio.FidSet(range(2**63, 2**64, 2**62))) == [(2**63, 2**63), (2**63 + 2**62, 2**63 + 2**62)]
    assert list(netio.FidSet(numpy.array(7))) == [(7, 7)]
    for wrong in (range(0, 2**64 + 1), range(-1, 5), range(0, 2**70, 2**65)):
        with pytest.raises(ValueError, match="a fid is an integer from 0 to 2"):
            netio.FidSet(wrong)


@pytest.mark.parametrize("fids", ["itertools.count()", "range(0, 2**64, 2)"])
def test_a_signal_ends_fids_without_an_end(fids):
    result = run(
        f"""
        import itertools
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            netio.FidSet({fids})
        except KeyboardInterrupt:
            print('interrupted', flush=True)
        """
    )
    assert result.stdout == "interrupted\n" and result.returncode == 0, result.stderr


@pytest.mark.parametrize("fids", [[2**64 - 1, 1], (1, 2**64 - 1), 2**64 - 1, numpy.array([2**64 - 1, 1], "u8")])
def test_large_fids_of_a_batch_are_integers(fids):
    publisher, subscriber = pair([1, 2**64 - 1])
    assert publisher.publish_batch(fids, b"ab", offsets=[0, 1, 2]) == 2
    publisher.close()
    expected = fids if numpy.ndim(fids) else [fids, fids]
    assert [message.fid for message in subscriber] == [int(each) for each in expected]
    with netio.Publisher("127.0.0.1:0") as other:
        for wrong in ([2**64, 1], 2**64, [2**64 - 1, -1]):
            with pytest.raises(ValueError, match="fids must be from 0 to 2"):
                other.publish_batch(wrong, b"ab", offsets=[0, 1, 2])
        for wrong in ([2**64 - 1, 1.5], numpy.array([1.0, 2.0])):
            with pytest.raises(TypeError, match="fids must be an integer or an array of integers"):
                other.publish_batch(wrong, b"ab", offsets=[0, 1, 2])
        for wrong in (3, iter([0, 3])):
            with pytest.raises(TypeError, match="offsets must be an array or a list of integers"):
                other.publish_batch(1, b"abc", offsets=wrong)


def test_a_time_may_be_as_long_as_a_number_can_be():
    publisher, subscriber = pair()
    for timeout in (10**400, float("inf"), 1e308):
        publisher.publish(1, b"a")
        assert subscriber.receive(timeout)
    for wrong in (-(10**400), float("-inf")):
        with pytest.raises(ValueError, match="timeout must not be negative"):
            subscriber.receive(wrong)
    for wrong in (1j, "1", True, numpy.zeros(2), object()):
        with pytest.raises(TypeError, match="timeout must be a number of seconds or a datetime.timedelta"):
            subscriber.receive(wrong)


@pytest.mark.parametrize(
    "create, text",
    [
        (lambda: netio.Publisher("127.0.0.1:0", context=1), "Publisher, option context must be a netio_daq.Context, and not 1"),
        (lambda: netio.Publisher("127.0.0.1:0", keys="k"), "Publisher, option keys must be a netio_daq.ServerKeys"),
        (lambda: netio.Publisher("127.0.0.1:0", bus="/b"), "Publisher, option bus must be a netio_daq.Bus, and not '/b'"),
        (lambda: netio.Publisher("127.0.0.1:0", name=3), "Publisher, option name must be a text"),
        (lambda: netio.Subscriber("127.0.0.1:9", key="k"), "Subscriber, option key must be a netio_daq.ClientKey"),
        (lambda: netio.StreamListener("127.0.0.1:0", keys=1), "StreamListener, option keys must be a netio_daq.ServerKeys"),
        (lambda: netio.Stream.connect("127.0.0.1:9", key=1), "Stream.connect, option key must be a netio_daq.ClientKey"),
        (lambda: netio.buffer("a", context=netio.Context()), "the shape of a buffer is an integer or a tuple of integers"),
        (lambda: netio.buffer((2, 1.5), context=netio.Context()), "the shape of a buffer"),
        (lambda: netio.RecordingReader(3), "path must be a text or a path, and not 3"),
        (lambda: netio.RecordingWriter(3), "path must be a text or a path, and not 3"),
        (lambda: netio.Bus(3), "where must be a text or a path"),
        (lambda: netio.ClientKey(3), "file must be a text or a path"),
        (lambda: netio.set_log(3), "log must be a logging.Logger, a function or None, and not 3"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(create, text):
    with pytest.raises(TypeError) as info:
        create()
    assert text in str(info.value)


def test_a_number_out_of_range_is_named(tmp_path):
    publisher, subscriber = pair()
    publisher.publish(1, b"a")
    batch = subscriber.receive_batch(timeout=LONG)
    for get in (batch.view, batch.__getitem__):
        for wrong in (1, -2, 2**70, -(2**70)):
            with pytest.raises(IndexError, match="no such message"):
                get(wrong)
        for wrong in (0.0, "0", None, slice(1)):
            with pytest.raises(TypeError, match="the index of a message is an integer, and not"):
                get(wrong)
        assert bytes(get(numpy.int64(-1))) == b"a"
    with netio.RecordingWriter(tmp_path / "run.mcap") as writer:
        for time in (2**63, -(2**70)):
            with pytest.raises(ValueError, match="time must be within 292 years of 1970"):
                writer.write_bytes(1, b"a", time=time)
        for count in (-1, 2**64):
            for call in (lambda: writer.skip(1, count), lambda: writer.write_event("lost", count=count)):
                with pytest.raises(ValueError, match="count must be an integer of at least 0, and not"):
                    call()
    listener = netio.StreamListener("127.0.0.1:0")
    accepted = []
    thread = threading.Thread(target=lambda: accepted.append(listener.accept(LONG)))
    thread.start()
    client = netio.Stream.connect(listener.address)
    thread.join()
    for call in (client.read, client.read_exactly):
        for wrong in (-1, 2**70):
            with pytest.raises(ValueError, match="size must be an integer of at least 0, and not"):
                call(wrong)
        with pytest.raises(TypeError, match="size must be an integer"):
            call(1.5)


def test_an_array_may_be_the_shape_of_a_buffer():
    assert netio.buffer(numpy.array([2, 3]), context=netio.Context()).shape == (2, 3)


def test_the_name_of_a_file_is_never_cut(tmp_path):
    for create in (netio.RecordingWriter, netio.RecordingReader, netio.Bus, netio.ClientKey):
        with pytest.raises(ValueError, match="must not have a null character"):
            create(f"{tmp_path}/run\0.mcap")
    assert not list(tmp_path.iterdir())


def test_the_name_of_a_file_may_be_bytes_that_are_no_text(tmp_path):
    for number, path in enumerate([os.fsencode(tmp_path) + b"/\xff.mcap", os.fsdecode(os.fsencode(tmp_path) + b"/\xfe.mcap")]):
        with netio.RecordingWriter(path) as writer:
            writer.write_bytes(number, b"a")
        assert writer.stats().files == [os.fsdecode(path)]
        reader = netio.RecordingReader(path)
        assert reader.files()[0].path == os.fsdecode(path) and [message.fid for message in reader] == [number]
        with pytest.raises(netio.RecordingError, match=r"\\xf[ef].mcap"):
            netio.RecordingWriter(path)


def test_a_text_of_a_peer_that_is_no_utf8_is_a_text():
    lines = []
    netio.set_log(lines.append)
    netio._core._write_log(b"before \xff after")
    netio._core._write_log("the next one")
    netio.set_log(None)
    assert lines == ["before \\xff after", "the next one"]


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, BaseException])
def test_an_exception_of_the_log_function_does_not_end_the_log(error):
    lines, gate = [], threading.Event()

    def write(line):
        lines.append(line)
        gate.set()
        raise error("of the function")

    netio.set_log(write)
    netio._core._write_log("1")
    assert gate.wait(LONG)
    gate.clear()
    netio._core._write_log("2")
    assert gate.wait(LONG)
    netio.set_log(None)
    assert lines == ["1", "2"]


def test_the_records_of_a_batch_are_read_only():
    publisher, subscriber = pair()
    publisher.publish_batch(1, b"abcdef", offsets=[0, 2, 4])
    batch = subscriber.receive_batch(timeout=LONG)
    with pytest.raises(ValueError, match="read-only"):
        batch.records["offset"][0] = 1 << 40
    with pytest.raises(ValueError):
        batch.records.setflags(write=True)


def test_a_sub_interpreter_gets_an_import_error():
    program = """
        import _xxsubinterpreters as interpreters
        other = interpreters.create()
        try:
            interpreters.run_string(other, "import netio_daq")
        except interpreters.RunFailedError as error:
            print(error)
        interpreters.destroy(other)
        publisher, subscriber = pair()
        """
    result = run(program)
    assert "ImportError" in result.stdout and "sub-interpreter" in result.stdout, result.stderr
    assert result.returncode == 0, result.stderr


def test_two_event_loops_and_a_thread_may_read_from_one_subscriber():
    """None of them is left waiting at the end."""
    publisher, subscriber = pair()
    received, readers = [], []

    async def read():
        async for message in subscriber:
            received.append(message)

    for read_all in (lambda: asyncio.run(read()), lambda: asyncio.run(read()), lambda: received.extend(subscriber)):
        readers.append(threading.Thread(target=read_all, daemon=True))
        readers[-1].start()
    for _ in range(2000):
        publisher.publish(1, b"a")
    publisher.close()
    for reader in readers:
        reader.join(LONG)
        assert not reader.is_alive()
    assert len(received) == 2000


def test_a_thread_may_collect_garbage_while_objects_end():
    result = run(
        """
        import gc
        listener = netio.MessageListener('127.0.0.1:0')
        end = threading.Event()
        def collect():
            while not end.is_set(): gc.collect()
        threads = [threading.Thread(target=collect) for _ in range(2)]
        for thread in threads: thread.start()
        class Own(netio.MessageSocket): pass
        for _ in range(25):
            netio.MessageSocket(listener.address)
            Own(listener.address)
            lives = Own(listener.address)  # the others may have ended before they are accepted
            listener.accept(LONG)
        end.set()
        for thread in threads: thread.join()
        """
    )
    assert result.returncode == 0, result.stderr


def test_an_object_that_an_event_loop_has_used_ends_with_its_last_reference():
    publisher, subscriber = pair()
    listener = netio.MessageListener("127.0.0.1:0")
    responder = netio.Responder("127.0.0.1:0")

    async def wait_for(its):
        task = asyncio.create_task(its.__anext__())
        while not hasattr(its, "_waiting"):
            await asyncio.wait([task], timeout=0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    gc.collect()
    gc.disable()
    try:
        objects = [subscriber, listener, responder]
        for its in objects:
            asyncio.run(wait_for(its))
        references = [weakref.ref(its) for its in objects]
        del its, objects, subscriber, listener, responder
        assert [reference() for reference in references] == [None] * 3
    finally:
        gc.enable()


def test_an_event_loop_gets_what_a_thread_has_left_of_a_batch():
    publisher, subscriber = pair()
    received = []

    async def read():
        async for message in subscriber:
            received.append(message)
            if len(received) == 5:
                return

    loop = asyncio.new_event_loop()
    task = loop.create_task(read())
    while not hasattr(subscriber, "_waiting"):
        loop.call_soon(loop.stop)
        loop.run_forever()
    publisher.publish_batch(1, bytes(6), offsets=range(7))
    assert subscriber.receive(LONG), "the rest of its batch is not in the queue"
    loop.run_until_complete(asyncio.wait_for(task, LONG))
    loop.close()
