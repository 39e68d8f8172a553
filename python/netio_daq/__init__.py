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
from collections.abc import Callable, Iterator
from typing import Any

from . import _core
from ._core import (
    Batch,
    Bus,
    ClientKey,
    Context,
    FidSet,
    Message,
    ServerKeys,
    Stream,
    StreamListener,
    __version__,
)
from .errors import ClosedError, Error, FabricError, TimeoutError

__all__ = [
    "Announcement",
    "Batch",
    "Bus",
    "ClientKey",
    "ClosedError",
    "Context",
    "Error",
    "FabricError",
    "FidSet",
    "Message",
    "Publisher",
    "PublisherStats",
    "Sender",
    "SenderStats",
    "ServerKeys",
    "Stream",
    "StreamListener",
    "Subscriber",
    "SubscriberStats",
    "TimeoutError",
    "__version__",
    "publishers",
    "set_log",
]

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


class Subscriber(_core.Subscriber):
    __doc__ = _core.Subscriber.__doc__

    _waiting: tuple[asyncio.AbstractEventLoop, asyncio.Future[None]] | None = None

    def stats(self) -> SubscriberStats:
        """The counters.

        >>> import netio_daq as netio
        >>> netio.Subscriber("127.0.0.1:9").stats().lost
        0
        """
        return SubscriberStats(**self._stats())

    def batches(self, max: int | None = None) -> Iterator[Batch]:
        """Iterates over batches of at most `max` messages; ends as the iteration over messages does.

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
        while (batch := self.receive_batch(max)) is not None:
            yield batch

    def __aiter__(self) -> Subscriber:
        return self

    async def __anext__(self) -> Message:
        while (message := self._next_now()) is None:
            await self._readable()
        return message

    async def _readable(self) -> None:
        """Waits until the descriptor is readable. Tasks of one event loop share the wait."""
        loop = asyncio.get_running_loop()
        if self._waiting is None or self._waiting[0] is not loop or self._waiting[1].done():
            future: asyncio.Future[None] = loop.create_future()
            descriptor = os.dup(self.fileno())

            def end(_: object = None) -> None:
                if loop.remove_reader(descriptor):
                    os.close(descriptor)
                if not future.done():
                    future.set_result(None)

            loop.add_reader(descriptor, end)
            self._waiting = (loop, future)
            future.add_done_callback(end)
        await asyncio.shield(self._waiting[1])


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
            except Exception:
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
