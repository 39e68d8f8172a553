# SPDX-License-Identifier: Apache-2.0
"""Publish/subscribe data acquisition on libfabric (docs/python.md).

>>> import netio_daq as netio
>>> publisher = netio.Publisher("127.0.0.1:0")
>>> subscriber = netio.Subscriber(publisher.address)
>>> subscriber.subscribe(range(64))
>>> publisher.wait_for_subscribers(1, timeout=60)
True
>>> publisher.publish(7, "a text")
True
>>> subscriber.receive(timeout=60)
<Message fid=0x7 size=6 status=0 lost_before=0>

Python code never runs on a thread of the library. Any thread may call any object. Times are seconds,
or datetime.timedelta; None is no limit. Ctrl-C ends every wait. A child process of fork() must not
use objects of its parent.
"""

from __future__ import annotations

import asyncio
import atexit
import dataclasses
import io
import logging
import os
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from . import _core
from ._core import (
    Batch,
    Bus,
    ClientKey,
    Context,
    FidSet,
    IncomingMessage,
    Message,
    MessageListener,
    MessageSocket,
    Publication,
    PublishSocket,
    RecordedEvent,
    RecordedMessage,
    Reply,
    Request,
    ServerKeys,
    Stream,
    StreamListener,
    __version__,
    buffer,
)
from .errors import ClosedError, Error, FabricError, RecordingError, RequestError, TimeoutError

__all__ = [
    "Announcement",
    "Batch",
    "Bus",
    "ClientKey",
    "ClosedError",
    "Context",
    "Damage",
    "Error",
    "FabricError",
    "FidSet",
    "IncomingMessage",
    "Message",
    "MessageListener",
    "MessageSocket",
    "Publication",
    "PublishSocket",
    "Publisher",
    "PublisherStats",
    "RecordedEvent",
    "RecordedMessage",
    "RecordingError",
    "RecordingFile",
    "RecordingReader",
    "RecordingWriter",
    "RecordingWriterStats",
    "Reply",
    "Request",
    "RequestError",
    "Requester",
    "RequesterStats",
    "Responder",
    "ResponderStats",
    "Sender",
    "SenderStats",
    "ServerKeys",
    "Stream",
    "StreamListener",
    "Subscriber",
    "SubscriberStats",
    "TimeoutError",
    "__version__",
    "buffer",
    "publishers",
    "set_log",
]

_core._require_main_interpreter()

# --- asyncio -------------------------------------------------------------------------------------

_Value = TypeVar("_Value")


class _Wait:
    """The tasks of one event loop that wait until a descriptor of an object is readable."""

    def __init__(self, loop: asyncio.AbstractEventLoop, its: Any) -> None:
        self.loop = loop
        self.future: asyncio.Future[None] = loop.create_future()
        self._tasks = 0
        self._its = its
        self._watched: int | None = its._watch() if hasattr(its, "_watch") else None
        self._descriptors = [] if self._watched is None else [self._watched]
        if hasattr(its, "fileno"):
            self._descriptors.append(os.dup(its.fileno()))
        for descriptor in self._descriptors:
            loop.add_reader(descriptor, self.end)

    def __enter__(self) -> _Wait:
        self._tasks += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._tasks -= 1
        if self._tasks == 0:
            self.end()

    def end(self) -> None:
        descriptors, self._descriptors = self._descriptors, []
        if self._watched is not None and descriptors:
            self._its._unwatch(self._watched)
        self._its = None  # which has a reference to this
        for descriptor in descriptors:
            if not self.loop.is_closed():
                self.loop.remove_reader(descriptor)
            os.close(descriptor)
        if not self.future.done() and not self.loop.is_closed():
            self.future.set_result(None)


async def _until(its: Any, attempt: Callable[[], _Value | None]) -> _Value:
    """Returns the first result that is not None. `its` has a descriptor, _watch(), or both."""
    loop = asyncio.get_running_loop()
    while (result := attempt()) is None:
        wait: _Wait | None = getattr(its, "_waiting", None)
        if wait is None or wait.loop is not loop or wait.future.done():
            its._waiting = wait = _Wait(loop, its)
        with wait:
            # What has changed before the wait began is not reported.
            if (result := attempt()) is not None:
                break
            await asyncio.shield(wait.future)
    return result


# --- publishing ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class PublisherStats:
    """The counters of a Publisher.

    `published`: messages that were sent, or published without subscribers; `without_subscribers` of
    them; `unpublished`: accepted, and discarded by close(); `subscribers`: with a subscription now.

    >>> import netio_daq as netio
    >>> netio.Publisher("127.0.0.1:0").stats().subscribers
    0
    """

    published: int
    without_subscribers: int
    unpublished: int
    subscribers: int


class Publisher(_core.Publisher):
    __doc__ = _core.Publisher.__doc__

    def stats(self) -> PublisherStats:
        """The counters.

        >>> import netio_daq as netio
        >>> netio.Publisher("127.0.0.1:0").stats().published
        0
        """
        return PublisherStats(**self._stats())


# --- subscribing ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SubscriberStats:
    """The counters of a Subscriber.

    `messages`: arrived; `lost`: published and not received, as far as is known; of them
    `lost_at_end` after the last message of their fid, and `dropped` when the queue was full;
    `restarts`: another publisher answered at the same address; `unknown_tails`: publishers that
    ended without totals; `publishers`: connected now.

    >>> import netio_daq as netio
    >>> netio.Subscriber("127.0.0.1:9").stats().messages
    0
    """

    messages: int
    lost: int
    lost_at_end: int
    dropped: int
    restarts: int
    unknown_tails: int
    publishers: int


class _Batches:
    """The batches of a subscriber, for `for` and `async for`."""

    def __init__(self, subscriber: Subscriber, most: int | None) -> None:
        self._subscriber = subscriber
        self._most = most

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Batch:
        if (batch := self._subscriber.receive_batch(self._most)) is None:
            raise StopIteration
        return batch

    def __aiter__(self) -> _Batches:
        return self

    async def __anext__(self) -> Batch:
        return await _until(self._subscriber, lambda: self._subscriber._next_batch_now(self._most))


class Subscriber(_core.Subscriber):
    __doc__ = _core.Subscriber.__doc__

    def stats(self) -> SubscriberStats:
        """The counters.

        >>> import netio_daq as netio
        >>> netio.Subscriber("127.0.0.1:9").stats().lost
        0
        """
        return SubscriberStats(**self._stats())

    def batches(self, max: int | None = None) -> _Batches:
        """Iterates, with `for` or `async for`, over batches of at most `max` messages; ends as the
        iteration over messages does.

        >>> import netio_daq as netio
        >>> publisher = netio.Publisher("127.0.0.1:0")
        >>> subscriber = netio.Subscriber(publisher.address)
        >>> subscriber.subscribe(1)
        >>> _ = publisher.wait_for_subscribers(1, timeout=60)
        >>> _ = publisher.publish_batch(1, bytes(6), offsets=range(7))
        >>> publisher.close()
        >>> sum(len(batch) for batch in subscriber.batches(max=4))
        6
        """
        return _Batches(self, max)

    def __aiter__(self) -> Subscriber:
        return self

    async def __anext__(self) -> Message:
        return await _until(self, self._next_now)


# --- point to point, and streams -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SenderStats:
    """The counters of a Sender.

    `sent`: passed to a connection; `unsent`: too large, or discarded by close();
    `unconfirmed_frames`: pages of lost connections; `connected`: now.

    >>> import netio_daq as netio
    >>> netio.Sender("127.0.0.1:9").stats().connected
    False
    """

    sent: int
    unsent: int
    unconfirmed_frames: int
    connected: bool


class Sender(_core.Sender):
    __doc__ = _core.Sender.__doc__

    def stats(self) -> SenderStats:
        """The counters.

        >>> import netio_daq as netio
        >>> netio.Sender("127.0.0.1:9").stats().sent
        0
        """
        return SenderStats(**self._stats())


class _StreamFile(io.RawIOBase):
    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._stream.readinto(buffer)

    def write(self, data: Any) -> int:
        self._stream.write(data)
        return memoryview(data).nbytes


def _makefile(
    self: Stream, mode: str = "r", *, encoding: str | None = None, newline: str | None = None
) -> Any:
    """A file object for the stream, as that of a socket: "r", "w" or "rw", with "b" for bytes. To
    close it does not close the stream.

    >>> import netio_daq as netio, threading
    >>> listener = netio.StreamListener("127.0.0.1:0")
    >>> def serve():
    ...     with listener.accept() as server, server.makefile("w") as file:
    ...         print("one line", file=file)
    >>> thread = threading.Thread(target=serve)
    >>> thread.start()
    >>> with netio.Stream.connect(listener.address) as client:
    ...     client.makefile("r").readlines()
    ['one line\\n']
    >>> thread.join()
    """
    kinds = set(mode) - {"b"}
    raw = _StreamFile(self)
    buffered: Any
    if kinds == {"r", "w"}:
        buffered = io.BufferedRWPair(raw, raw)
    elif kinds == {"w"}:
        buffered = io.BufferedWriter(raw)
    elif kinds == {"r"}:
        buffered = io.BufferedReader(raw)
    else:
        raise ValueError(f"the mode of a stream is 'r', 'w' or 'rw', with 'b' or without, and not {mode!r}")
    return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, newline=newline)


setattr(Stream, "makefile", _makefile)


# --- message sockets, requests and replies -------------------------------------------------------


def _aiter(self: Any) -> Any:
    return self


async def _anext(self: Any) -> Any:
    return await _until(self, self._next_now)


async def _anext_of_reply(self: Reply) -> memoryview:
    return await _until(self._requester, self._next_now)


async def _first_of_reply(self: Reply) -> memoryview:
    async for message in self:
        return message
    raise Error("the reply was taken before")


def _await_reply(self: Reply) -> Generator[Any, None, memoryview]:
    return _first_of_reply(self).__await__()


for _type in (MessageSocket, MessageListener, Reply):
    setattr(_type, "__aiter__", _aiter)
for _type in (MessageSocket, MessageListener):
    setattr(_type, "__anext__", _anext)
setattr(Reply, "__anext__", _anext_of_reply)
setattr(Reply, "__await__", _await_reply)


@dataclasses.dataclass(frozen=True)
class RequesterStats:
    """The counters of a Requester.

    `outstanding`: open now. Requests that ended: `replied`, `timed_out`, `canceled`,
    `disconnected`, and `failed` (no reply, a failure, too large). `late`: messages of replies to
    requests that had ended; `queued_bytes`: waiting for the connection; `reply_bytes`: arrived and
    not taken; `connected`: now.

    >>> import netio_daq as netio
    >>> netio.Requester("127.0.0.1:9").stats().outstanding
    0
    """

    outstanding: int
    replied: int
    timed_out: int
    canceled: int
    disconnected: int
    failed: int
    late: int
    queued_bytes: int
    reply_bytes: int
    connected: bool


class Requester(_core.Requester):
    __doc__ = _core.Requester.__doc__

    def send(self, message: _core.Bytes, timeout: _core.Time | None = None) -> Reply:
        """Sends a request without waiting for its reply. `timeout`, or the option request_timeout,
        is the time until the whole reply. Raises TimeoutError if a limit is reached for this time.

        >>> import asyncio, netio_daq as netio
        >>> async def ask(requester):
        ...     return bytes(await requester.send("a question", timeout=60))
        >>> async def answer(responder):
        ...     async for request in responder:
        ...         request.reply("an answer")
        ...         return
        >>> async def main():
        ...     with netio.Responder("127.0.0.1:0") as responder:
        ...         with netio.Requester(responder.address) as requester:
        ...             return await asyncio.gather(ask(requester), answer(responder))
        >>> asyncio.run(main())
        [b'an answer', None]
        """
        reply = super().send(message, timeout)
        reply._requester = self
        return reply

    def stats(self) -> RequesterStats:
        """The counters.

        >>> import netio_daq as netio
        >>> netio.Requester("127.0.0.1:9").stats().replied
        0
        """
        return RequesterStats(**self._stats())


@dataclasses.dataclass(frozen=True)
class ResponderStats:
    """The counters of a Responder.

    `peers`: connected requesters; `waiting`: requests that wait for a thread; `open`: those, and the
    ones in use; `requests`: received; of them `replied`, `failed` by fail(), `no_reply` without a
    reply, `canceled` by their requester or its end; `too_slow`: requesters that were disconnected
    after send_timeout.

    >>> import netio_daq as netio
    >>> netio.Responder("127.0.0.1:0").stats().requests
    0
    """

    peers: int
    waiting: int
    open: int
    requests: int
    replied: int
    failed: int
    no_reply: int
    canceled: int
    too_slow: int


class Responder(_core.Responder):
    __doc__ = _core.Responder.__doc__

    def stats(self) -> ResponderStats:
        """The counters.

        >>> import netio_daq as netio
        >>> netio.Responder("127.0.0.1:0").stats().peers
        0
        """
        return ResponderStats(**self._stats())

    def __aiter__(self) -> Responder:
        return self

    async def __anext__(self) -> Request:
        return await _until(self, self._next_now)


# --- recordings ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class RecordingFile:
    """A file of a recording. `has_summary`: its writer has closed it; `properties`: run, part, host,
    version; `messages`: the number of messages and events by the summary, once the file was reached.

    >>> import netio_daq as netio
    >>> netio.RecordingWriter("run7.mcap").close()
    >>> netio.RecordingReader("run7.mcap").files()[0].has_summary
    True
    """

    path: str
    bytes: int
    has_summary: bool
    profile: str
    library: str
    properties: dict[str, str]
    messages: int | None


@dataclasses.dataclass(frozen=True)
class Damage:
    """A part of a file that was not read: its place, its size and the problem.

    >>> import netio_daq as netio
    >>> netio.Damage("run7.mcap", offset=4096, bytes=100, problem="a wrong checksum").offset
    4096
    """

    path: str
    offset: int
    bytes: int
    problem: str


class RecordingReader(_core.RecordingReader):
    __doc__ = _core.RecordingReader.__doc__

    def files(self) -> list[RecordingFile]:
        """The files, in the order of reading.

        >>> import netio_daq as netio
        >>> netio.RecordingWriter("run7.mcap").close()
        >>> [file.path for file in netio.RecordingReader("run7.mcap").files()]
        ['run7.mcap']
        """
        return [RecordingFile(**each) for each in self._files()]

    def damage(self) -> list[Damage]:
        """What was skipped since the last rewind(); at most 1000 places.

        >>> import netio_daq as netio
        >>> netio.RecordingWriter("run7.mcap").close()
        >>> netio.RecordingReader("run7.mcap", on_damage="skip").damage()
        []
        """
        return [Damage(**each) for each in self._damage()]

    def torn(self) -> list[Damage]:
        """Ends of files within a record.

        >>> import netio_daq as netio
        >>> netio.RecordingWriter("run7.mcap").close()
        >>> netio.RecordingReader("run7.mcap").torn()
        []
        """
        return [Damage(**each) for each in self._torn()]


@dataclasses.dataclass(frozen=True)
class RecordingWriterStats:
    """The counters of a RecordingWriter.

    `messages`, `bytes`, `events`: accepted; `written`: messages in files; `discarded`: accepted, and
    not written because of a failure; `chunks`, `file_bytes`, `files`: what was written;
    `clock_steps`: steps back of the clock; `queued_bytes`; `direct_io`: in use; `failure`: empty if
    there is none.

    >>> import netio_daq as netio
    >>> with netio.RecordingWriter("run7.mcap") as writer:
    ...     writer.write_bytes(7, "a text")
    >>> writer.stats().written
    1
    """

    messages: int
    bytes: int
    written: int
    discarded: int
    events: int
    chunks: int
    file_bytes: int
    clock_steps: int
    queued_bytes: int
    direct_io: bool
    files: list[str]
    failure: str


class RecordingWriter(_core.RecordingWriter):
    __doc__ = _core.RecordingWriter.__doc__

    def stats(self) -> RecordingWriterStats:
        """The counters.

        >>> import netio_daq as netio
        >>> netio.RecordingWriter("run7.mcap").stats().messages
        0
        """
        return RecordingWriterStats(**self._stats())


# --- the bus -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Announcement:
    """A publisher on a bus. `fids` has (first, last, meaning) for each range.

    >>> import netio_daq as netio
    >>> netio.Announcement(name="hits", instance=1, fids=[(0, 63, "")], addresses=[]).name
    'hits'
    """

    name: str
    instance: int
    fids: list[tuple[int, int, str]]
    addresses: list[str]
    mode: str = ""
    parameters: dict[str, str] = dataclasses.field(default_factory=dict)
    host: str = ""
    pid: int = 0
    started: str = ""
    metrics: str = ""


def publishers(bus: Bus | str | os.PathLike[str], timeout: _core.Time | None = 10) -> list[Announcement]:
    """Returns the publishers that are announced on a bus now.

    >>> import netio_daq as netio, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with netio.Publisher("127.0.0.1:0", bus=netio.Bus(folder), fids=(0, 63), name="hits") as its:
    ...         while not (found := netio.publishers(folder)):
    ...             pass
    ...     found[0].name, found[0].fids
    ('hits', [(0, 63, '')])
    """
    if not isinstance(bus, Bus):
        bus = Bus(bus)
    return [Announcement(**each) for each in _core._publishers(bus, timeout)]


# --- the log, and the end ------------------------------------------------------------------------


class _Log:
    """Takes the lines of the library from a queue, in a thread of Python."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="netio log", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended:
            self._pass(0.2)

    def _pass(self, seconds: float) -> None:
        for line in _core._take_log(seconds):
            try:
                self._write(line)
            except BaseException as failure:  # in its thread each would end the log
                if not isinstance(failure, Exception) and threading.current_thread() is not self._thread:
                    raise
                logging.getLogger("netio").exception("the function of set_log() failed for: %s", line)

    def stop(self) -> None:
        self._ended = True
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def end(self) -> None:
        self.stop()
        self._pass(0)


_log: _Log | None = None


def set_log(log: logging.Logger | Callable[[str], object] | None) -> None:
    """Sets what receives the log lines about problems: a logger, whose warning() gets them, or a
    function. None discards them. By default the library writes them to standard error.

    A thread of Python takes the lines from a queue; set_log() and the end of the program wait for
    the last one. A child process of fork() starts with the default.

    >>> import logging, netio_daq as netio
    >>> netio.set_log(logging.getLogger("readout"))
    >>> netio.set_log(None)
    """
    global _log
    if log is not None and not isinstance(log, logging.Logger) and not callable(log):
        raise TypeError(f"log must be a logging.Logger, a function or None, and not {log!r}")
    former, _log = _log, None
    if log is None:
        _core._log_to_nothing()
    else:
        _core._log_to_queue()
    if former is not None:
        former.end()
    if isinstance(log, logging.Logger):
        _log = _Log(log.warning)
    elif log is not None:
        _log = _Log(log)


def _end() -> None:
    if _log is not None:
        _log.stop()  # no other thread returns from the library after this
    try:
        _core._close_all_at_exit()
    finally:
        if _log is not None:
            _core._log_to_nothing()
            _log.end()


def _forget_log() -> None:
    global _log
    _log = None


atexit.register(_end)
os.register_at_fork(after_in_child=_forget_log)
