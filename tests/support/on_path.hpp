// SPDX-License-Identifier: Apache-2.0
#pragma once

// OnPath is an attacker on the path: a transport between two peers that reads, changes, drops,
// repeats or reorders their messages.

#include "tests/support/forwarding_transport.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace netio::test {

class OnPath final : public ForwardingTransport {
  public:
    using Message = std::vector<std::byte>;

    using ForwardingTransport::ForwardingTransport;

    std::size_t endpoints = 0; // created for peers that asked for one
    // Returns the messages that are forwarded instead of `message`: it, others, several or none.
    std::function<std::vector<Message>(Message message)> tamper;

    std::unique_ptr<RouteSearch> find_routes(const Address& remote, const std::string& local_host,
                                             std::function<void(FoundRoutes)> found) override {
        return inner().find_routes(remote, local_host, std::move(found));
    }
    std::unique_ptr<netio::Connection>
    make_connection(const std::string& provider, const Address& remote,
                    const std::string& local_host, const QueueLimits& limits,
                    netio::Connection::Handler& handler) override {
        auto made = std::make_unique<Connection>(*this, handler);
        made->inner =
            inner().make_connection(provider, remote, local_host, with_more(limits), *made);
        return made;
    }
    std::unique_ptr<netio::Listener> listen(const std::string& provider, const Address& local,
                                            const ListenOptions& options,
                                            netio::Listener::Handler& handler) override {
        return std::make_unique<Listener>(*this, provider, local, options, handler);
    }

  private:
    static QueueLimits with_more(QueueLimits limits) {
        limits.send_count += 8; // for the added messages
        return limits;
    }

    class Connection final : public netio::Connection, public netio::Connection::Handler {
      public:
        Connection(OnPath& path, netio::Connection::Handler& handler)
            : path_{path}, handler_{handler} {}

        void open(std::span<const std::byte> data) override { inner->open(data); }
        Status post_send(std::span<const Slice> slices, Cookie cookie) override {
            Message message;
            for (const Slice& slice : slices)
                message.insert(message.end(), slice.data, slice.data + slice.size);
            std::vector<Message> instead;
            if (path_.tamper) {
                instead = path_.tamper(std::move(message));
            } else {
                instead.push_back(std::move(message));
            }
            if (instead.empty()) {
                left_out_.push_back(cookie);
                later_.start({});
            }
            bool first = true;
            for (const Message& each : instead) {
                Sent& sent = under_way_[next_];
                sent.memory =
                    std::make_unique<RegisteredBuffer>(std::max<std::size_t>(each.size(), 1));
                std::ranges::copy(each, sent.memory->data());
                if (first) sent.cookie = cookie;
                const Slice slice = sent.memory->slice(0, each.size());
                const Status status = inner->post_send({&slice, 1}, Cookie{next_++});
                if (status != Status::ok && first) return status;
                first = false;
            }
            return Status::ok;
        }
        Status post_receive(std::span<const Slice> slices, Cookie cookie) override {
            return inner->post_receive(slices, cookie);
        }
        Status post_write(std::span<const Slice> slices, const RemoteSlice& target,
                          std::optional<std::uint32_t> immediate, Cookie cookie) override {
            return inner->post_write(slices, target, immediate, cookie);
        }
        void close() override { inner->close(); }
        const Capabilities& capabilities() const noexcept override { return inner->capabilities(); }
        MemoryDomain& domain() noexcept override { return inner->domain(); }
        TimePoint last_sign_of_life(Duration interval) override {
            return inner->last_sign_of_life(interval);
        }
        std::string peer_address() const override { return inner->peer_address(); }

        void on_answer(std::span<const std::byte> data) override { handler_.on_answer(data); }
        void on_connected(std::span<const std::byte> data) override { handler_.on_connected(data); }
        void on_rejected(std::span<const std::byte> data) override { handler_.on_rejected(data); }
        void on_completion(const Completion& completion) override {
            if (completion.kind != Completion::Kind::send)
                return handler_.on_completion(completion);
            const auto found = under_way_.find(static_cast<std::uint64_t>(completion.cookie));
            const std::optional<Cookie> cookie = found->second.cookie;
            under_way_.erase(found);
            Completion told = completion;
            told.cookie = cookie.value_or(Cookie{});
            if (cookie) handler_.on_completion(told);
        }
        void on_closed(const Closed& closed) override {
            later_.cancel();
            handler_.on_closed(closed);
        }

      private:
        struct Sent {
            std::unique_ptr<RegisteredBuffer> memory;
            std::optional<Cookie> cookie; // the user's cookie
        };
        // Completes sends that were dropped: the sender must not notice.
        void tell_left_out() {
            const Cookie cookie = left_out_.front();
            left_out_.pop_front();
            if (!left_out_.empty()) later_.start({});
            handler_.on_completion({.kind = Completion::Kind::send, .cookie = cookie});
        }

        OnPath& path_;
        netio::Connection::Handler& handler_;
        std::map<std::uint64_t, Sent> under_way_;
        std::uint64_t next_ = 0;
        std::deque<Cookie> left_out_;
        Timer later_{path_.loop(), [this] { tell_left_out(); }};

      public:
        std::unique_ptr<netio::Connection> inner; // destroyed first
    };

    class Request final : public ConnectionRequest {
      public:
        Request(OnPath& path, ConnectionRequest& inner) : path_{path}, inner_{inner} {}
        std::span<const std::byte> data() const noexcept override { return inner_.data(); }
        std::string peer_address() const override { return inner_.peer_address(); }
        access::Host source() const override { return inner_.source(); }
        access::AuthAddress dialled() const override { return inner_.dialled(); }
        MemoryDomain& domain() override { return inner_.domain(); }
        bool guards_memory() const noexcept override { return inner_.guards_memory(); }
        std::unique_ptr<netio::Connection>
        make_connection(const QueueLimits& limits, netio::Connection::Handler& handler) override {
            ++path_.endpoints;
            auto made = std::make_unique<Connection>(path_, handler);
            made->inner = inner_.make_connection(with_more(limits), *made);
            return made;
        }
        void reject(std::span<const std::byte> data) override { inner_.reject(data); }
        bool is_answered() const noexcept override { return inner_.is_answered(); }

      private:
        OnPath& path_;
        ConnectionRequest& inner_;
    };

    class Listener final : public netio::Listener, private netio::Listener::Handler {
      public:
        Listener(OnPath& path, const std::string& provider, const Address& local,
                 const ListenOptions& options, netio::Listener::Handler& handler)
            : path_{path}, handler_{handler}, inner_{path.inner().listen(provider, local, options,
                                                                         *this)} {}
        Address address() const override { return inner_->address(); }
        const std::string& provider() const noexcept override { return inner_->provider(); }
        void prepare(RegisteredBuffer& buffer) override { inner_->prepare(buffer); }

      private:
        void on_request(ConnectionRequest& request) override {
            Request watched{path_, request};
            handler_.on_request(watched);
        }
        OnPath& path_;
        netio::Listener::Handler& handler_;
        std::unique_ptr<netio::Listener> inner_;
    };
};

} // namespace netio::test
