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
TimeoutError. Returns whether the fid had a subscriber; otherwise the message is discarded.

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

// --- PublishSocket ----------------------------------------------------------------------------

inline constexpr char buffer[] =
    R"(Returns an array of zeros in memory that a PublishSocket of this context sends without a copy.
The memory lives as long as the array, a view of it, or a publication that is not complete.

>>> import netio_daq as netio
>>> frames = netio.buffer((16, 65536), context=netio.Context())
>>> frames.shape, frames.dtype
((16, 65536), dtype('uint8'))
)";
inline constexpr char publish_socket[] =
    R"(Publishes without a copy, from arrays of buffer(). Any thread may call it. For small messages a
Publisher is faster.

Listens at one address or a list of them. The options have the names and defaults of the C++ class
(docs/options.md): outstanding_limit, queue_limit_messages, slow_policy, close_timeout, close_limit,
allow_remote_anonymous, keys, session (a dict), disconnect_after, subscriber_limit,
connections_per_host, ranges_per_subscriber_limit, pending_reply_limit, largest_message_bytes, and
context. As a context manager it closes in order.

>>> import netio_daq as netio
>>> context = netio.Context()
>>> frames = netio.buffer((2, 65536), context=context)
>>> with netio.PublishSocket("127.0.0.1:0", context=context) as socket:
...     subscriber = netio.Subscriber(socket.address)
...     subscriber.subscribe(7)
...     _ = socket.wait_for_subscribers(1, timeout=60)
...     frames[0] = 1
...     publication = socket.publish(7, frames[0])
...     subscriber.receive(timeout=60).size, publication.wait(timeout=60), publication.outcome["sent"]
(65536, True, 1)
)";
inline constexpr char publish_array[] =
    R"(Publishes an array of buffer(), or a contiguous part of it, without a copy: do not write to it
before the returned Publication is done. Returns None if the fid has no subscriber; if the last one
leaves during the call, `outcome` of the Publication may be zeros instead. Waits while there is no
space, at most for `timeout`; then it raises TimeoutError.

>>> import netio_daq as netio
>>> context = netio.Context()
>>> frames = netio.buffer((2, 65536), context=context)
>>> netio.PublishSocket("127.0.0.1:0", context=context).publish(7, frames[1]) is None
True
)";
inline constexpr char publish_socket_counters[] =
    R"(The counters, as a dict.

>>> import netio_daq as netio
>>> netio.PublishSocket("127.0.0.1:0", context=netio.Context()).counters()["messages"]
0
)";
inline constexpr char publication[] =
    R"(One message of a PublishSocket. `done`: its memory may be written to again; `outcome`, then: the
numbers of subscribers to which it was `sent`, for which it was `dropped` (they were too slow), which
had `unsubscribed`, or which were `lost`; None if the socket was destroyed before.

>>> import netio_daq as netio
>>> context = netio.Context()
>>> frames = netio.buffer((2, 65536), context=context)
>>> socket = netio.PublishSocket("127.0.0.1:0", context=context)
>>> subscriber = netio.Subscriber(socket.address)
>>> subscriber.subscribe(7)
>>> _ = socket.wait_for_subscribers(1, timeout=60)
>>> publication = socket.publish(7, frames[0])
>>> publication.wait(timeout=60), publication.done, publication.outcome["dropped"]
(True, True, 0)
)";
inline constexpr char publication_wait[] =
    R"(Waits until the memory may be written to again. Returns False after the time-out.

>>> import netio_daq as netio
>>> context = netio.Context()
>>> frame = netio.buffer(65536, context=context)
>>> socket = netio.PublishSocket("127.0.0.1:0", context=context)
>>> subscriber = netio.Subscriber(socket.address)
>>> subscriber.subscribe(7)
>>> _ = socket.wait_for_subscribers(1, timeout=60)
>>> socket.publish(7, frame).wait(timeout=60)
True
)";
inline constexpr char publication_done[] = "Whether the memory may be written to again.";
inline constexpr char publication_outcome[] = "A dict with the numbers of subscribers: sent, "
                                              "dropped, unsubscribed, lost; None before the end.";

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
    R"(Subscribes to fids: an integer, a pair (first, last) that includes both, a range, a
FidSet, or a list of them; does not wait. If a publisher refuses (its key, policy or number of ranges
does not permit it), the next receive() raises an Error. A fid that no publisher owns is no error. `policy` is how publishers treat this subscriber for
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
fid, or each of `fids`; fids without a subscription count as accepted. Returns False after the
time-out, or if a given publisher has refused one.

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

inline constexpr char subscriber_closed[] =
    R"(Whether it is closed, and all its connections have ended: by close(), or because its publishers
have closed. Messages may still be in the queue; `ended` also says that none is left.

>>> import netio_daq as netio
>>> netio.Subscriber("127.0.0.1:9").closed
False
)";
inline constexpr char ended[] =
    R"(Whether the iteration would end. After receive() or receive_batch() has returned None: True at
the end, False after a time-out.

>>> import netio_daq as netio
>>> subscriber = netio.Subscriber("127.0.0.1:9")
>>> subscriber.receive(timeout=0), subscriber.ended
(None, False)
>>> subscriber.close()
>>> subscriber.receive(timeout=0), subscriber.ended
(None, True)
)";

// --- messages ---------------------------------------------------------------------------------

inline constexpr char message_fid[] = "The fid under which it was published.";
inline constexpr char message_status[] = "The status that the publisher gave it, 0 to 255.";
inline constexpr char message_lost_before[] =
    "The number of messages of this fid that were lost since the previous one.";
inline constexpr char message_time[] =
    "When it was taken from the queue, in nanoseconds since 1970 (UTC).";
inline constexpr char message_publish_time[] =
    "The publisher's time in nanoseconds since 1970 (UTC); None if it sends none.";
inline constexpr char message_copied[] =
    "Whether its bytes are a copy; otherwise it holds the memory that it was received into.";

inline constexpr char message[] =
    R"(A received message: fid, status, lost_before, time, and its bytes.

It has the buffer protocol: bytes(message), memoryview(message), numpy.frombuffer(message.data,
dtype). A message of at least 8 KiB is not copied if, when it arrived, less than half of
socket={"session": {"keep_limit_bytes": ...}} of the subscriber was held: it, and each view of it,
holds the memory that it was received into, also after the subscriber is closed. Other messages are
copies (`copied`).

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
>>> numpy.frombuffer(message.data, dtype=int)
array([0, 1, 2])
)";
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
inline constexpr char batch_records[] =
    "A structured array with a row for each message: fid, offset, lost_before, time, size, status.";
inline constexpr char batch_buffer[] =
    "The bytes of the messages that were copied, at their offsets, as a read-only array.";
inline constexpr char batch_gaps[] =
    "Pairs (fid, count): lost messages after the last message of their fid.";
inline constexpr char view[] =
    R"(The bytes of a message as a read-only array, without a copy.

>>> import netio_daq as netio
>>> publisher = netio.Publisher("127.0.0.1:0")
>>> subscriber = netio.Subscriber(publisher.address)
>>> subscriber.subscribe(range(4))
>>> _ = publisher.wait_for_subscribers(1, timeout=60)
>>> _ = publisher.publish_batch(1, b"abcdef", offsets=[0, 2, 6])
>>> batch = subscriber.receive_batch(timeout=60)
>>> bytes(batch.view(0)), batch.view(0).dtype
(b'ab', dtype('uint8'))
)";
inline constexpr char as_array[] =
    R"(The messages as elements of a read-only array; each must have
the size of the type. It is a copy if the publisher sends time stamps, otherwise it is not.

>>> import netio_daq as netio, numpy
>>> publisher = netio.Publisher("127.0.0.1:0")
>>> subscriber = netio.Subscriber(publisher.address)
>>> subscriber.subscribe(range(4))
>>> _ = publisher.wait_for_subscribers(1, timeout=60)
>>> hits = numpy.array([(1, 2.5)], dtype=[("channel", "u4"), ("energy", "f4")])
>>> _ = publisher.publish_batch(1, hits)
>>> subscriber.receive_batch(timeout=60).as_array(hits.dtype)["energy"]
array([2.5], dtype=float32)
)";

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

// --- message sockets --------------------------------------------------------------------------

inline constexpr char message_socket[] =
    R"(Messages in both directions over one connection: it connects to a MessageListener, here or in a
C++ program; accept() of a listener returns the other side. Both sides are equal.

The options have the names and defaults of the C++ class (docs/options.md): reconnect,
retry_interval, retry_limit, largest_message_bytes, page_size_bytes, page_count, protocol,
local_host, session (a dict), key, context; and those of its queue of received messages:
queue_limit_events, queue_limit_bytes. While the queue is full, the peer waits.

Any thread may call it. Iterate over it, with `for` or `async for`; the iteration ends when the peer
has called finish() or close(), and raises ClosedError if the connection has failed.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> with netio.MessageSocket(listener.address) as client:
...     client.send("a question")
...     with listener.accept(timeout=60) as server:
...         server.send(bytes(server.receive(timeout=60)).upper())
...         server.finish()
...         for message in client:
...             print(bytes(message))
...         client.finish()
b'A QUESTION'
)";
inline constexpr char message_socket_send[] =
    R"(Sends a bytes-like object or a text; it is copied. Waits while there is no connection yet or no
space, at most for `timeout`; then it raises TimeoutError.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> client = netio.MessageSocket(listener.address)
>>> client.send(b"bytes", timeout=60)
)";
inline constexpr char message_socket_try_send[] =
    R"(The same without waiting: 'ok', 'again', 'too_large' or 'closed'.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> client = netio.MessageSocket(listener.address)
>>> client.wait_until_connected(timeout=60), client.try_send(b"bytes")
(True, 'ok')
)";
inline constexpr char message_socket_receive[] =
    R"(Returns the next message, an IncomingMessage, or None if none arrives in time, or if the
iteration would end.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> netio.MessageSocket(listener.address).receive(timeout=0) is None
True
)";
inline constexpr char message_socket_receive_batch[] =
    R"(Returns a list of the next messages: at least one, and at most `max` or 64; an empty list where
receive() returns None.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> netio.MessageSocket(listener.address).receive_batch(timeout=0)
[]
)";
inline constexpr char wait_until_connected[] =
    R"(Returns False after the time-out, or if no connection was made and none follows.

>>> import netio_daq as netio
>>> netio.MessageSocket("127.0.0.1:9").wait_until_connected(timeout=60)
False
)";
inline constexpr char finish[] =
    R"(Sends nothing more after what was accepted; the iteration of the peer ends. Messages still
arrive. When both sides have finished, the connection closes in order. Keep the socket until then, or
use it as a context manager: one that is dropped closes at once, and what was not sent is lost.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> client = netio.MessageSocket(listener.address)
>>> client.send("the only message")
>>> client.finish()
>>> [bytes(message) for message in listener.accept(timeout=60)]
[b'the only message']
)";
inline constexpr char abort[] =
    R"(Closes at once; what was not sent is lost.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> client = netio.MessageSocket(listener.address)
>>> client.abort()
>>> client.wait_until_connected(timeout=60)
False
)";
inline constexpr char message_socket_close[] =
    R"(Closes in order: sends what was accepted, and discards what arrives. Waits until the peer has
confirmed it, as the options session.close_timeout and session.close_limit permit. Messages in the
queue can still be received. Ctrl-C ends the wait.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> client = netio.MessageSocket(listener.address)
>>> client.close()
>>> client.closed
True
)";
inline constexpr char message_socket_fileno[] =
    R"(A descriptor that is readable while messages wait, and at the end.

>>> import netio_daq as netio, select
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> client = netio.MessageSocket(listener.address)
>>> select.select([client], [], [], 0)
([], [], [])
)";
inline constexpr char message_socket_counters[] = R"(The counters, as a dict.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> netio.MessageSocket(listener.address).counters()["messages_sent"]
0
)";
inline constexpr char message_socket_connected[] = "Whether there is a connection now.";
inline constexpr char message_socket_end[] =
    "Why the last connection or attempt has ended, as a text; None if none has.";
inline constexpr char message_limit[] =
    "The largest message that can be sent, in bytes; 0 without a connection.";
inline constexpr char incoming_message[] =
    R"(A received message: a bytes-like object. From 8 KiB on it is not copied, as that of a Subscriber.
`immediate` is a number that a C++ program may send with a message, or None.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> client = netio.MessageSocket(listener.address)
>>> client.send(b"bytes")
>>> message = listener.accept(timeout=60).receive(timeout=60)
>>> message, bytes(message.data), message.immediate
(<IncomingMessage size=5>, b'bytes', None)
)";
inline constexpr char immediate[] =
    "The number that a C++ program has sent with the message, or None.";
inline constexpr char message_listener[] =
    R"(Listens for message sockets. The options have the names and defaults of the C++ class:
allow_remote_anonymous, peer_limit, connections_per_host, keys, protocol, context; accept_limit, the
number of connections that wait for accept(), beyond which peers are rejected; and of each accepted
socket: queue_limit_events, queue_limit_bytes, and `socket`, a dict with its other options.

Iterate over it, with `for` or `async for`, to accept one peer after the other.

>>> import netio_daq as netio
>>> with netio.MessageListener("127.0.0.1:0", socket={"largest_message_bytes": 1 << 20}) as listener:
...     client = netio.MessageSocket(listener.address)
...     server = listener.accept(timeout=60)
...     server.wait_until_connected(timeout=60), client.wait_until_connected(timeout=60)
(True, True)
)";
inline constexpr char message_listener_accept[] =
    R"(Returns the next peer that connects. Raises TimeoutError.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> client = netio.MessageSocket(listener.address)
>>> listener.accept(timeout=60).peer_address.split(":")[0]
'127.0.0.1'
)";
inline constexpr char message_listener_stop[] =
    R"(Stops listening; a waiting accept() raises ClosedError.

>>> import netio_daq as netio
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> listener.stop()
>>> listener.closed
True
)";
inline constexpr char message_listener_fileno[] =
    R"(A descriptor that is readable while connections wait for accept(), and after stop().

>>> import netio_daq as netio, select
>>> listener = netio.MessageListener("127.0.0.1:0")
>>> client = netio.MessageSocket(listener.address)
>>> select.select([listener], [], [], 60)[0] == [listener]
True
)";

// --- requests and replies ---------------------------------------------------------------------

inline constexpr char requester[] =
    R"(Sends requests to one Responder, here or in a C++ program, and receives its replies, on any
thread. It connects by itself, and again when the connection is lost; a request waits for a
responder that is not there yet until its time is over. A request is not repeated.

The options have the names and defaults of the C++ class (docs/options.md): request_timeout,
outstanding_limit, queue_limit_bytes, reply_limit_bytes, key, context, and socket, a dict.

>>> import netio_daq as netio, threading
>>> responder = netio.Responder("127.0.0.1:0")
>>> def serve():
...     for request in responder:
...         request.reply(b"hello " + bytes(request))
>>> thread = threading.Thread(target=serve)
>>> thread.start()
>>> with netio.Requester(responder.address) as requester:
...     bytes(requester.request("you", timeout=60))
b'hello you'
>>> responder.close()
>>> thread.join()
)";
inline constexpr char request[] =
    R"(Sends a request, and waits for a reply of one message, a memoryview; of a longer one it returns
the first message. `timeout`, or the option request_timeout, is the time until the whole reply.
Raises RequestError.

>>> import netio_daq as netio
>>> try:
...     netio.Requester("127.0.0.1:9").request(b"a question", timeout=0.01)
... except netio.RequestError as error:
...     error.end
'timed_out'
)";
inline constexpr char requester_close[] =
    R"(Ends all open requests as 'canceled', and the connection.

>>> import netio_daq as netio
>>> requester = netio.Requester("127.0.0.1:9")
>>> reply = requester.send("a question")
>>> requester.close()
>>> reply.end
'canceled'
)";
inline constexpr char reply[] =
    R"(The reply to one request: one message or more, as memoryviews. Iterate over it, with `for` or
`async for`; `await reply` is the first message. A request whose Reply is not referenced any more is
canceled.

>>> import netio_daq as netio
>>> responder = netio.Responder("127.0.0.1:0")
>>> requester = netio.Requester(responder.address)
>>> reply = requester.send("how many?")
>>> request = responder.receive(timeout=60)
>>> request.reply_part("one"), request.reply_part("two"), request.reply("three")
(True, True, True)
>>> [bytes(part) for part in reply], reply.end
([b'one', b'two', b'three'], 'replied')
)";
inline constexpr char reply_next[] =
    R"(Returns the next message, or None after the last one. Raises TimeoutError if none arrives in
time, and RequestError if the request has ended otherwise.

>>> import netio_daq as netio
>>> responder = netio.Responder("127.0.0.1:0")
>>> reply = netio.Requester(responder.address).send("a question")
>>> reply.cancel()
>>> try:
...     reply.next()
... except netio.RequestError as error:
...     error.end
'canceled'
)";
inline constexpr char reply_wait_for[] =
    R"(Waits until next() need not wait. Returns False after the time-out.

>>> import netio_daq as netio
>>> requester = netio.Requester("127.0.0.1:9")
>>> requester.send("a question").wait_for(timeout=0)
False
)";
inline constexpr char reply_cancel[] =
    R"(Ends the request, if it is still open, and notifies the responder. Messages that have arrived
can still be taken.

>>> import netio_daq as netio
>>> reply = netio.Requester("127.0.0.1:9").send("a question")
>>> reply.cancel()
>>> reply.ready, reply.end
(True, 'canceled')
)";
inline constexpr char reply_ready[] = "Whether next() need not wait.";
inline constexpr char reply_end[] =
    "How the request has ended: 'open', 'replied', 'timed_out', 'canceled', 'disconnected', "
    "'no_reply', 'failed' or 'too_large'.";
inline constexpr char responder[] =
    R"(Receives requests of requesters, and replies to them, on any thread. Several threads may iterate:
each request goes to one of them. A request may be replied to later, in any order.

The options have the names and defaults of the C++ class (docs/options.md): request_limit,
request_limit_bytes, reply_queue_limit_bytes, send_timeout, allow_remote_anonymous, keys,
peer_limit, connections_per_host, context, and socket, a dict.

Iterate over it, with `for` or `async for`; the iteration ends after close().

>>> import netio_daq as netio
>>> with netio.Responder("127.0.0.1:0", request_limit=16) as responder:
...     reply = netio.Requester(responder.address).send("a question")
...     request = responder.receive(timeout=60)
...     request.reply(bytes(request) + b" and its answer")
...     bytes(reply.next())
True
b'a question and its answer'
)";
inline constexpr char responder_receive[] =
    R"(Returns the next request, or None if none arrives in time, and after close().

>>> import netio_daq as netio
>>> netio.Responder("127.0.0.1:0").receive(timeout=0) is None
True
)";
inline constexpr char responder_close[] =
    R"(Listens no more; requests that wait end as 'no_reply'. Sends the replies that were given, and
closes the connections in order, for at most session.close_limit of the option socket. Ctrl-C ends
the wait.

>>> import netio_daq as netio
>>> responder = netio.Responder("127.0.0.1:0")
>>> responder.close()
>>> list(responder), responder.closed
([], True)
)";
inline constexpr char one_request[] =
    R"(A received request: a bytes-like object. One that is not referenced any more, without a reply,
ends as 'no_reply' at its requester.

>>> import netio_daq as netio
>>> responder = netio.Responder("127.0.0.1:0")
>>> reply = netio.Requester(responder.address).send("a question")
>>> request = responder.receive(timeout=60)
>>> bytes(request), len(request), request.canceled
(b'a question', 10, False)
)";
inline constexpr char request_reply[] =
    R"(Replies, and ends the request. Returns False, without an effect, if it has ended before. Waits
while reply_queue_limit_bytes wait for this requester, at most send_timeout.

>>> import netio_daq as netio
>>> responder = netio.Responder("127.0.0.1:0")
>>> reply = netio.Requester(responder.address).send("a question")
>>> request = responder.receive(timeout=60)
>>> request.reply("an answer"), request.reply("another one")
(True, False)
)";
inline constexpr char reply_part[] =
    R"(Sends one message of a reply, and at least one more follows; otherwise as reply().

>>> import netio_daq as netio
>>> responder = netio.Responder("127.0.0.1:0")
>>> reply = netio.Requester(responder.address).send("a question")
>>> request = responder.receive(timeout=60)
>>> request.reply_part("one"), request.reply("two")
(True, True)
>>> [bytes(part) for part in reply]
[b'one', b'two']
)";
inline constexpr char request_fail[] =
    R"(Ends the request as 'failed' at its requester, which gets up to 4096 bytes of the text.

>>> import netio_daq as netio
>>> responder = netio.Responder("127.0.0.1:0")
>>> reply = netio.Requester(responder.address).send("a question")
>>> responder.receive(timeout=60).fail("no such channel")
True
>>> try:
...     reply.next()
... except netio.RequestError as error:
...     error.end, str(error).endswith("no such channel")
('failed', True)
)";
inline constexpr char canceled[] = "Whether the requester has canceled, or is gone.";

// --- connections ------------------------------------------------------------------------------

inline constexpr char peer_address[] = "The address of the peer.";

} // namespace netio::python::doc
