# SPDX-License-Identifier: Apache-2.0
# The interface: it is documented (docs/guide.md), follows the semantic versions of CHANGELOG.md, and
# its functions are exported. What these headers include is installed beside them, because the
# compiler needs it, and is nobody else's to use: it may change with any version.
set(NETIO_PUBLIC_HEADERS
    netio/access/protection.hpp
    netio/base/cookie.hpp
    netio/base/endpoint.hpp
    netio/base/export.hpp
    netio/base/latency_histogram.hpp
    netio/base/status.hpp
    netio/base/time.hpp
    netio/base/version.hpp
    netio/fabric.hpp
    netio/loop/descriptor_watch.hpp
    netio/loop/event_loop.hpp
    netio/loop/event_source.hpp
    netio/loop/signal_watch.hpp
    netio/memory/buffer.hpp
    netio/memory/registration_cache.hpp
    netio/messages/buffered_send_socket.hpp
    netio/messages/listen_socket.hpp
    netio/messages/send_socket.hpp
    netio/session/client_key.hpp
    netio/session/server_keys.hpp
    netio/session/session_options.hpp
    netio/transport.hpp
    pubsub/core/arrival_counter.hpp
    pubsub/core/felix_fid.hpp
    pubsub/core/fid.hpp
    pubsub/core/fid_layout.hpp
    pubsub/core/fid_map.hpp
    pubsub/core/publish_ticket.hpp
    pubsub/core/publisher_change.hpp
    pubsub/core/slow_policy.hpp
    pubsub/discovery/announcement.hpp
    pubsub/discovery/bus.hpp
    pubsub/discovery/discovery.hpp
    pubsub/publisher/buffered_publish_socket.hpp
    pubsub/publisher/publish_socket.hpp
    pubsub/publisher/publisher.hpp
    pubsub/publisher/publisher_snapshot.hpp
    pubsub/subscriber/subscribe_socket.hpp
    stream/core/counters.hpp
    stream/core/options.hpp
    stream/socket/blocking_stream.hpp
    stream/socket/stream_listener.hpp
    stream/socket/stream_socket.hpp)
