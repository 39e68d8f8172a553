// SPDX-License-Identifier: Apache-2.0
#pragma once

// The sockets of the subject `netio`, chosen by the arguments: one that publishes, one that
// subscribes.

#include "bench/subject.hpp"
#include "netio/access/key_file.hpp"
#include "netio/access/key_source.hpp"
#include "netio/access/rights.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace bench {

using netio::Status;
using netio::pubsub::Fid;
using netio::pubsub::FidRange;

inline netio::Address address_of(const Arguments& arguments, unsigned offset = 0) {
    return {arguments.address, static_cast<std::uint16_t>(arguments.port + offset)};
}

inline void set_heartbeat(netio::SessionOptions& session, const Arguments& arguments) {
    if (arguments.heartbeat_ms >= 0)
        session.heartbeat = std::chrono::milliseconds{arguments.heartbeat_ms};
}

// The fid ranges of one subscriber.
inline std::vector<FidRange> ranges_of(const Arguments& arguments) {
    if (!arguments.each_fid) {
        return {{Fid{fid_at(0)}, Fid{fid_at(arguments.fids - 1)}}};
    }
    std::vector<FidRange> ranges;
    for (std::size_t i = 0; i < arguments.fids; ++i)
        ranges.push_back({Fid{fid_at(i)}, Fid{fid_at(i)}});
    return ranges;
}

inline netio::access::Protection protection_of(const Arguments& arguments) {
    using netio::access::Protection;
    for (const Protection level : {Protection::peers, Protection::integrity, Protection::privacy})
        if (to_string(level) == arguments.protection) return level;
    return Protection::none;
}

// Creates one key, in the publisher's file and in that of its subscribers.
inline std::shared_ptr<netio::ServerKeys> new_keys(netio::EventLoop& loop,
                                                   const Arguments& arguments) {
    if (arguments.protection.empty()) return nullptr;
    const netio::access::Key key{
        .id = 1,
        .name = "bench",
        .secret = netio::access::Secret::random(),
        .rights = netio::access::parse_rights("services=pubsub fids=0-0xffffffffffffffff:block")};
    const std::string text = netio::access::text_of_one(key);
    for (const std::string& path : {arguments.keys, arguments.keys + ".client"})
        netio::access::write_key_file(path, text, true);
    return std::make_shared<netio::ServerKeys>(
        loop, netio::ServerKeys::Options{.file = arguments.keys,
                                         .min_protection = protection_of(arguments)});
}

inline std::shared_ptr<const netio::ClientKey> client_key(const Arguments& arguments) {
    if (arguments.protection.empty()) return nullptr;
    return std::make_shared<netio::ClientKey>(netio::ClientKey::Options{
        .file = arguments.keys + ".client", .protection = protection_of(arguments)});
}

// Publishes buffered or unbuffered.
class Output final : private netio::pubsub::PublishSocket::Handler {
  public:
    struct Events {
        std::function<void()> on_ready; // all subscribers have subscribed
        std::function<void()> on_writable;
        std::function<void()> on_closed;
    };

    Output(netio::Transport& transport, const Arguments& arguments, unsigned port_offset,
           std::size_t expected_ranges, Events events)
        : events_{std::move(events)}, arguments_{arguments}, size_{arguments.size},
          ranges_left_{expected_ranges}, message_(arguments.size), pieces_(arguments.pieces) {
        netio::pubsub::Publisher::Options publisher{.listen = {address_of(arguments, port_offset)},
                                                    .allow_remote_anonymous = true};
        publisher.keys = new_keys(transport.loop(), arguments);
        set_heartbeat(publisher.session, arguments);
        if (arguments.form != "unbuffered") {
            buffered_.emplace(transport,
                              netio::pubsub::BufferedPublishSocket::Options{.publisher = publisher},
                              static_cast<netio::pubsub::Publisher::Handler&>(*this));
            return;
        }
        const std::size_t count = std::clamp<std::size_t>((16U << 20) / size_, 4, 256);
        memory_.emplace(count * size_);
        for (std::size_t i = count; i > 0; --i)
            free_.push_back(i - 1);
        unbuffered_.emplace(transport,
                            netio::pubsub::PublishSocket::Options{.publisher = publisher},
                            static_cast<netio::pubsub::PublishSocket::Handler&>(*this));
    }

    // fill(bytes) writes the message. Returns false if the message was refused; on_writable
    // follows.
    template <typename Fill>
    bool publish(Fid fid, Fill fill) {
        Status status = Status::again;
        if (buffered_) {
            fill(message_.data());
            status = buffered_->publish(fid, message_);
        } else if (!free_.empty()) {
            const netio::Slice slice = memory_->slice(free_.back() * size_, size_);
            fill(slice.data);
            for (std::size_t i = 0; i < pieces_.size(); ++i) {
                const auto [at, bytes] = piece_of(arguments_, i);
                pieces_[i] = {slice.buffer, slice.data + at, bytes};
            }
            status = unbuffered_->publishv(fid, pieces_, netio::Cookie{free_.back()});
            if (status == Status::ok) free_.pop_back();
        }
        if (status == Status::ok) return true;
        if (status != Status::again) fail("publish: " + std::string{to_string(status)});
        return false;
    }

    void close() { buffered_ ? buffered_->close() : unbuffered_->close(); }

  private:
    void on_subscribed(netio::pubsub::Publisher&, const netio::pubsub::SubscriberPeer&,
                       const FidRange&) override {
        if (--ranges_left_ == 0) events_.on_ready();
    }
    void on_writable(netio::pubsub::Publisher&) override { events_.on_writable(); }
    void on_closed(netio::pubsub::Publisher&, const netio::Closed&) override {
        events_.on_closed();
    }
    void on_publish_completed(netio::pubsub::PublishSocket&, netio::Cookie key,
                              const netio::pubsub::PublicationOutcome&) override {
        free_.push_back(static_cast<std::size_t>(key));
        if (free_.size() == 1) events_.on_writable();
    }

    Events events_;
    const Arguments& arguments_;
    std::size_t size_;
    std::size_t ranges_left_;
    std::vector<std::byte> message_;
    std::vector<netio::Slice> pieces_;
    std::optional<netio::RegisteredBuffer> memory_;
    std::vector<std::size_t> free_; // free pieces of memory_
    std::optional<netio::pubsub::BufferedPublishSocket> buffered_;
    std::optional<netio::pubsub::PublishSocket> unbuffered_;
};

// Subscribes. Messages are handled as in a user's own handler, without a std::function.
class Input : private netio::pubsub::SubscribeSocket::Handler {
  public:
    Input(netio::Transport& transport, const Arguments& arguments, unsigned port_offset,
          const std::vector<FidRange>& ranges)
        : socket_{transport, options(arguments, port_offset), *this} {
        socket_.subscribe(ranges);
    }
    virtual ~Input() = default;

    std::uint64_t lost() const {
        const netio::pubsub::ArrivalCounter& arrivals = socket_.arrivals();
        const auto difference = arrivals.difference();
        return difference ? difference->lost : arrivals.dropped();
    }

  private:
    virtual void on_ended() = 0;

    static netio::pubsub::SubscribeSocket::Options options(const Arguments& arguments,
                                                           unsigned port_offset) {
        netio::pubsub::SubscribeSocket::Options options{.publisher =
                                                            address_of(arguments, port_offset)};
        options.key = client_key(arguments);
        set_heartbeat(options.session, arguments);
        return options;
    }
    void on_closed(netio::pubsub::SubscribeSocket&, const netio::Closed& closed,
                   bool retrying) override {
        if (retrying) return;
        if (closed.reason != netio::CloseReason::orderly) fail(explain(closed));
        on_ended();
    }

    netio::pubsub::SubscribeSocket socket_;
};

} // namespace bench
