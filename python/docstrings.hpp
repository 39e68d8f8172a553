// SPDX-License-Identifier: Apache-2.0
#pragma once

// The docstrings of the Python module. Their examples are run by a test.

namespace netio::python::doc {

// --- Publisher --------------------------------------------------------------------------------

inline constexpr char publisher[] = R"(Publishes messages under fids, from any thread.

Listens at one address or a list of them; port 0 means any free port. The options have the names and
defaults of the C++ class (docs/options.md): publish_timeout, queue_limit_bytes, slow_policy,
close_timeout, close_limit, allow_remote_anonymous, keys, bus, name, fids, context, and socket, a
dict. Times are seconds or datetime.timedelta. As a context manager it closes in order.

>>> import netio_daq as netio
>>> with netio.Publisher("127.0.0.1:0", slow_policy="drop", socket={"page_count": 64}) as publisher:
...     publisher.publish(7, "a text")
False
)";
inline constexpr char publish[] = R"(Publishes a bytes-like object, an array or a text (in UTF-8).

Waits while there is no space, for `timeout` or the option publish_timeout; then it raises
TimeoutError. Returns whether the fid had a subscriber.

>>> import netio_daq as netio, numpy
>>> with netio.Publisher("127.0.0.1:0") as publisher:
...     _ = publisher.publish(7, numpy.arange(4), status=1)
...     publisher.stats().published <= 1
True
)";
inline constexpr char try_publish[] = R"(The same without waiting: 'ok', 'no_subscribers', 'again',
'too_large', 'not_owned' or 'closed'.

>>> import netio_daq as netio
>>> with netio.Publisher("127.0.0.1:0") as publisher:
...     publisher.try_publish(7, b"bytes")
'no_subscribers'
)";
inline constexpr char publish_batch[] = R"(Publishes many messages in one call, in order.

Each row of `data` along its first axis is a message; or, with `offsets`, the bytes from each offset
to the next one, so that there is one offset more than messages. `fids` and `status` are a value for
all, or an array with one for each message. Returns the number of messages. After a time-out and a
close in the middle, `accepted` of the exception is the number of accepted messages.

>>> import netio_daq as netio, numpy
>>> with netio.Publisher("127.0.0.1:0") as publisher:
...     publisher.publish_batch([1, 2, 1], numpy.zeros((3, 40), dtype=numpy.uint8))
...     publisher.publish_batch(5, b"abcdef", offsets=[0, 2, 6])
3
2
)";
inline constexpr char wait_for_subscribers[] =
    R"(Waits until `count` subscribers have a subscription.

Returns False after the time-out, or if the publisher is closed.

>>> import netio_daq as netio
>>> with netio.Publisher("127.0.0.1:0") as publisher:
...     publisher.wait_for_subscribers(1, timeout=0)
False
)";
inline constexpr char announce[] = R"(Announces the publisher on a bus, with fids or a dict from
meanings to fids. Another call replaces the announcement; close() withdraws it.

>>> import netio_daq as netio, tempfile
>>> with tempfile.TemporaryDirectory() as folder, netio.Publisher("127.0.0.1:0") as publisher:
...     publisher.announce(netio.Bus(folder), "run5", {"hits": (0, 63)})
)";
inline constexpr char publisher_address[] = R"(The first address where it listens, with its port.

>>> import netio_daq as netio
>>> with netio.Publisher("127.0.0.1:0") as publisher:
...     publisher.address.startswith("127.0.0.1:")
True
)";
inline constexpr char publisher_endpoints[] = R"(All addresses, as PROVIDER:HOST:PORT.

>>> import netio_daq as netio
>>> with netio.Publisher("127.0.0.1:0") as publisher:
...     publisher.endpoints == ["tcp:" + publisher.address]
True
)";
inline constexpr char publisher_close[] =
    R"(Closes in order: sends what was published, and waits until
every subscriber has confirmed it, but not longer than close_limit. Ctrl-C ends the wait.

>>> import netio_daq as netio
>>> publisher = netio.Publisher("127.0.0.1:0")
>>> publisher.close()
>>> publisher.closed
True
)";

// --- Subscriber -------------------------------------------------------------------------------

inline constexpr char subscriber[] =
    R"(Subscribes to fids at publishers: an address, a list of them,
or a Bus where they are found. It connects by itself, and again when a connection is lost.

The options have the names and defaults of the C++ class (docs/options.md): reconnect ('on_loss',
'always', 'never'), key, queue_limit_messages, queue_limit_bytes, when_full, disconnect_after,
silence_hint, context, and socket, a dict. Any thread may call it. Iterate over it, with `for` or
`async for`, or take batches. As a context manager it is closed at the end.

>>> import netio_daq as netio
>>> publisher = netio.Publisher("127.0.0.1:0")
>>> with netio.Subscriber(publisher.address) as subscriber:
...     subscriber.subscribe(range(64))
...     _ = publisher.wait_for_subscribers(1, timeout=60)
...     _ = publisher.publish(7, "a text")
...     publisher.close()
...     for message in subscriber:
...         print(message.fid, bytes(message), message.lost_before)
7 b'a text' 0
)";
inline constexpr char subscribe[] =
    R"(Subscribes to fids: an integer, a pair (first, last), a range, a
FidSet, or an iterable of them; does not wait. `policy` is how publishers treat this subscriber for
these fids while it is slow: 'block', 'drop', 'newest' or 'disconnect'.

>>> import netio_daq as netio
>>> subscriber = netio.Subscriber("127.0.0.1:9")
>>> subscriber.subscribe([5, (10, 19), range(100, 200)], policy="drop")
)";
inline constexpr char unsubscribe[] = R"(Ends the subscription to these fids; does not wait.

>>> import netio_daq as netio
>>> subscriber = netio.Subscriber("127.0.0.1:9")
>>> subscriber.subscribe((0, 63))
>>> subscriber.unsubscribe(7)
)";
inline constexpr char wait_until_subscribed[] =
    R"(Waits until a publisher has accepted each subscribed
fid, or each of `fids`. Returns False after the time-out, or if a given publisher has refused one.

>>> import netio_daq as netio
>>> publisher = netio.Publisher("127.0.0.1:0")
>>> subscriber = netio.Subscriber(publisher.address)
>>> subscriber.subscribe(7)
>>> subscriber.wait_until_subscribed(timeout=60)
True
)";
inline constexpr char receive[] =
    R"(Returns the next message, or None if none arrives in time, or if
the iteration would end.

>>> import netio_daq as netio
>>> netio.Subscriber("127.0.0.1:9").receive(timeout=0) is None
True
)";
inline constexpr char receive_batch[] = R"(Returns a Batch with the next messages, at most `max`, or
None as receive() does. It does not wait for more than one message.

>>> import netio_daq as netio
>>> netio.Subscriber("127.0.0.1:9").receive_batch(max=1000, timeout=0) is None
True
)";
inline constexpr char fileno[] = R"(A descriptor that is readable while the queue is not empty, and
once at the end: then call receive(0) until it returns None.

>>> import netio_daq as netio, select
>>> subscriber = netio.Subscriber("127.0.0.1:9")
>>> select.select([subscriber], [], [], 0)
([], [], [])
)";
inline constexpr char subscriber_close[] =
    R"(Closes all connections in order. The messages in the queue
can still be read. Ctrl-C ends the wait.

>>> import netio_daq as netio
>>> subscriber = netio.Subscriber("127.0.0.1:9")
>>> subscriber.close()
>>> list(subscriber)
[]
)";
inline constexpr char closed[] = R"(Whether it is closed, and all its connections have ended.

>>> import netio_daq as netio
>>> netio.Subscriber("127.0.0.1:9").closed
False
)";

// --- messages ---------------------------------------------------------------------------------

inline constexpr char message[] =
    R"(A received message: fid, status, lost_before, time, and its bytes.

It has the buffer protocol: bytes(message), memoryview(message), numpy.frombuffer(message, dtype). A
message of 8 KiB and more is not copied: it, and each view of it, holds the memory that it was
received into, also after the subscriber is closed. This memory counts against
socket={"session": {"keep_limit_bytes": ...}} of the subscriber until the last view is gone.

`lost_before` is the number of messages of this fid that were lost since the previous one. `time` is
when it was taken from the queue, in nanoseconds since 1970 (UTC).

>>> import netio_daq as netio, numpy
>>> publisher = netio.Publisher("127.0.0.1:0")
>>> subscriber = netio.Subscriber(publisher.address)
>>> subscriber.subscribe(7)
>>> _ = publisher.wait_for_subscribers(1, timeout=60)
>>> _ = publisher.publish(7, numpy.arange(3))
>>> message = subscriber.receive(timeout=60)
>>> message
<Message fid=0x7 size=24 status=0 lost_before=0>
>>> numpy.frombuffer(message, dtype=int)
array([0, 1, 2])
)";
inline constexpr char message_data[] = "A memoryview of the bytes.";
inline constexpr char batch[] = R"(Many received messages.

`records` is a structured array with a row for each message: fid, offset, lost_before, time, size,
status. `offset` is its place in `buffer`, an array of bytes, which also has the publisher's time
stamps; it is -1 for a message that was not copied, whose bytes are view(index). batch[index] is a Message. `gaps` has pairs (fid, count): lost
messages after the last message of their fid; a batch may have gaps only.

>>> import netio_daq as netio, numpy
>>> publisher = netio.Publisher("127.0.0.1:0")
>>> subscriber = netio.Subscriber(publisher.address)
>>> subscriber.subscribe(range(4))
>>> _ = publisher.wait_for_subscribers(1, timeout=60)
>>> _ = publisher.publish_batch([1, 2], numpy.array([3.5, 4.5]))
>>> publisher.close()
>>> for batch in subscriber.batches():
...     print(batch.records["fid"], batch.as_array(float), bytes(batch[0]) == bytes(batch.view(0)))
[1 2] [3.5 4.5] True
)";
inline constexpr char view[] = "The bytes of a message as a read-only array, without a copy.";
inline constexpr char as_array[] = R"(The messages as elements of a read-only array; each must have
the size of the type. It is a copy if the publisher sends time stamps, otherwise it is not.)";

// --- others -----------------------------------------------------------------------------------

inline constexpr char fid_set[] =
    R"(A set of fids: iterates over its ranges, as pairs (first, last).

>>> import netio_daq as netio
>>> fids = netio.FidSet([(0, 63), 64, 100])
>>> list(fids), 7 in fids, 99 in fids
([(0, 64), (100, 100)], True, False)
)";
inline constexpr char context[] =
    R"(An event loop with its own thread, which several objects may share.
`fabric` is a dict with options of the network, for example {"provider": "tcp"}.

>>> import netio_daq as netio
>>> context = netio.Context()
>>> publisher = netio.Publisher("127.0.0.1:0", context=context)
>>> subscriber = netio.Subscriber(publisher.address, context=context)
)";
inline constexpr char bus[] = R"(A bus where publishers are found by fid: a directory that all hosts
share. Options: lease, poll, publisher_limit.

>>> import netio_daq as netio, tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     bus = netio.Bus(folder, lease=5)
...     with netio.Publisher("127.0.0.1:0", bus=bus, fids=range(64), name="hits"):
...         with netio.Subscriber(bus) as subscriber:
...             subscriber.subscribe(7)
...             subscriber.wait_until_subscribed(timeout=60)
True
)";
inline constexpr char server_keys[] =
    R"(The keys of the peers that a Publisher or StreamListener admits,
in a file of `netio key new`. Options: min_protection ('none', 'integrity', 'privacy'),
connections_per_host, look_interval, advertised_addresses.

>>> import netio_daq as netio
>>> keys = netio.ServerKeys("site.keys", min_protection="privacy")
)";
inline constexpr char client_key[] = R"(The key of a Subscriber, Sender or Stream, in a file of
`netio key new --client`, with the requested protection: 'none', 'integrity' or 'privacy'.

>>> import netio_daq as netio
>>> try:
...     netio.ClientKey("/no/such/file")
... except netio.Error as error:
...     print("no key")
no key
)";
inline constexpr char sender[] = R"(Sends messages to one receiver (a ListenSocket in C++), from any
thread. Options as in C++: send_timeout, queue_limit_bytes, close_timeout, close_limit, key, context.

>>> import netio_daq as netio
>>> sender = netio.Sender("127.0.0.1:9", close_timeout=0.1)
>>> sender.send("a text")
>>> sender.stats().connected
False
)";
inline constexpr char send[] =
    R"(Sends a bytes-like object or a text. Waits while there is no space, for
`timeout` or the option send_timeout; then it raises TimeoutError.

>>> import netio_daq as netio
>>> sender = netio.Sender("127.0.0.1:9", close_timeout=0.1)
>>> sender.send(b"bytes", timeout=1)
)";
inline constexpr char try_send[] =
    R"(The same without waiting: 'ok', 'again', 'too_large' or 'closed'.

>>> import netio_daq as netio
>>> sender = netio.Sender("127.0.0.1:9", close_timeout=0.1)
>>> sender.try_send(b"bytes")
'ok'
)";
inline constexpr char sender_close[] =
    R"(Closes in order: sends what was accepted, and waits until the
receiver has confirmed it, as the options close_timeout and close_limit permit.

>>> import netio_daq as netio
>>> sender = netio.Sender("127.0.0.1:9")
>>> sender.close()
)";

// --- streams ----------------------------------------------------------------------------------

inline constexpr char stream[] =
    R"(A byte stream in both directions; Stream.connect() or accept() of a
StreamListener creates it. Threads may use it at the same time. Bytes are transferred during calls
only: while one side waits, the other one must be in a call, too.

>>> import netio_daq as netio, threading
>>> listener = netio.StreamListener("127.0.0.1:0")
>>> def serve():
...     with listener.accept() as server:
...         server.write(server.read_exactly(8))
>>> thread = threading.Thread(target=serve)
>>> thread.start()
>>> with netio.Stream.connect(listener.address, call_timeout=60) as client:
...     client.write(b"question")
...     client.read_exactly(8), client.read()
(b'question', b'')
>>> thread.join()
)";
inline constexpr char connect[] =
    R"(Connects to a listener, which must be in a call. Options: call_timeout
(of each call in total) and progress_timeout (while no byte moves), farewell_timeout, provider,
local_host, key.

>>> import netio_daq as netio
>>> try:
...     netio.Stream.connect("127.0.0.1:9", call_timeout=30)
... except netio.ClosedError:
...     print("nothing listens there")
nothing listens there
)";
inline constexpr char read[] =
    "Returns what has arrived, from 1 to `size` bytes; b'' at the end of the stream.";
inline constexpr char read_exactly[] =
    "Returns `size` bytes. If it cannot, the next read returns those that have arrived.";
inline constexpr char readinto[] =
    "Reads into a writable buffer what has arrived; returns the number of bytes, 0 at the end.";
inline constexpr char write[] = "Writes all bytes. After a time-out, `accepted` of the exception "
                                "is the number of written bytes.";
inline constexpr char shutdown_send[] =
    "Ends this direction; the peer reads the end of the stream.";
inline constexpr char stream_close[] =
    "Ends this direction, and waits until the peer has received everything.";
inline constexpr char peer_address[] = "The address of the peer.";
inline constexpr char counters[] = "The counters of both directions, as a dict of dicts.";
inline constexpr char stream_listener[] =
    R"(Listens for byte streams. Options as Stream.connect(), and
allow_remote_anonymous and keys. The listener and its streams share one loop, which runs during
their calls: a call of one of them may delay another by some milliseconds.

>>> import netio_daq as netio
>>> with netio.StreamListener("127.0.0.1:0") as listener:
...     try:
...         listener.accept(timeout=0)
...     except netio.TimeoutError:
...         print("nobody has connected")
nobody has connected
)";
inline constexpr char accept[] = "Returns the next peer that connects. Raises TimeoutError.";
inline constexpr char stop[] = "Stops listening; a waiting accept() raises ClosedError.";

} // namespace netio::python::doc
