// SPDX-License-Identifier: Apache-2.0
#pragma once

// A listener with keys, clients that connect to it, and the results on each side.

#include "netio/access/auth.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/connector.hpp"
#include "netio/session/server_keys.hpp"
#include "netio/session/session_listener.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netio::test {

using Data = std::vector<std::byte>;

inline Hello gate_hello(Service service = Service::messages) {
    Hello hello{.service = service,
                .receive_buffer_bytes = 4096,
                .receive_count = 8,
                .heartbeat_ms = 0,
                .instance = 77,
                .service_data = {}};
    hello.service_data.size = 4;
    return hello;
}

// Sends any bytes in one connection attempt and records the answer.
class RawDialer final : private Connection::Handler {
  public:
    RawDialer(Transport& transport, const Address& address)
        : connection_{transport.make_connection(transport.providers_to(address).front(), address,
                                                {}, {.send_count = 4, .receive_count = 4}, *this)} {
        for (std::uint64_t i = 0; i < 4; ++i) {
            const Slice slice = memory_.slice(i * 4096, 4096);
            EXPECT_EQ(connection_->post_receive({&slice, 1}, Cookie{i}), Status::ok);
        }
    }
    void open(std::span<const std::byte> data) { connection_->open(data); }
    void send(std::span<const std::byte> frame) {
        const Slice slice = out_.slice(sent_ % 4 * 1024, frame.size());
        std::ranges::copy(frame, slice.data);
        EXPECT_EQ(connection_->post_send({&slice, 1}, Cookie{sent_++ % 4}), Status::ok);
    }
    RejectCode code() const { return decode_rejection(rejection.value_or(Data{})).code; }

    std::optional<Data> answer, rejection;
    std::vector<Closed> closed;

  private:
    void on_connected(std::span<const std::byte> data) override {
        answer.emplace(data.begin(), data.end());
    }
    void on_rejected(std::span<const std::byte> data) override {
        rejection.emplace(data.begin(), data.end());
    }
    void on_completion(const Completion&) override {}
    void on_closed(const Closed& why) override { closed.push_back(why); }

    RegisteredBuffer memory_{4 * 4096};
    RegisteredBuffer out_{4096};
    std::uint64_t sent_ = 0;
    std::unique_ptr<Connection> connection_;
};

// A client as in the sockets: it tries each route, and may try more than once.
class Visitor final : private Connector::Handler, private Session::Handler {
  public:
    explicit Visitor(Transport& transport) : transport_{transport}, connector_{transport, *this} {}

    void connect(const Address& remote, std::shared_ptr<const ClientKey> key = nullptr) {
        connector_.connect(remote, {}, std::move(key));
    }
    bool is_done() const { return opened > 0 || !closed.empty(); }

    SessionOptions options{.connect_timeout = std::chrono::minutes{1}};
    int attempts = 0;
    int opened = 0;
    int sent = 0; // sends whose memory is free again
    std::vector<Data> frames;
    std::vector<Closed> closed;
    std::unique_ptr<Session> session;

  private:
    void on_route(const Session::Target& target) override {
        ++attempts;
        session = std::make_unique<Session>(transport_, target, gate_hello(), options,
                                            static_cast<Session::Handler&>(*this));
    }
    void on_connect_failed(const Closed& why) override { closed.push_back(why); }
    void on_open(Session&) override {
        connector_.cancel();
        ++opened;
    }
    void on_frame(Session&, const IncomingFrame& frame) override {
        frames.emplace_back(frame.body.begin(), frame.body.end());
    }
    void on_sent(Session&, Cookie, Completion::Outcome) override { ++sent; }
    void on_writable(Session&) override {}
    void on_closed(Session&, const Closed& why) override {
        const std::unique_ptr<Session> ended = std::move(session); // `why` may belong to it
        if (connector_.is_connecting()) return connector_.try_next(why);
        closed.push_back(why);
    }

    Transport& transport_;
    Connector connector_;
};

class GateTest : public testing::TestWithParam<Bed>,
                 public SessionListener::Handler,
                 public Session::Handler {
  protected:
    void listen(access::Protection least = access::Protection::none, std::uint32_t per_host = 64) {
        keys = std::make_shared<ServerKeys>(bed.loop(),
                                            ServerKeys::Options{.file = files.site(),
                                                                .min_protection = least,
                                                                .connections_per_host = per_host,
                                                                .look_interval = look_interval});
        listen_with(keys);
    }
    void listen_with(std::shared_ptr<ServerKeys> these) {
        listener =
            std::make_unique<SessionListener>(over != nullptr ? *over : bed.transport(),
                                              SessionListener::Options{.service = Service::messages,
                                                                       .listen = {bed.address()},
                                                                       .service_bytes = 4,
                                                                       .keys = std::move(these)},
                                              static_cast<SessionListener::Handler&>(*this));
        address = listener->endpoints().front().address;
    }
    std::shared_ptr<const ClientKey> key(const std::string& file,
                                         access::Protection protection = access::Protection::none) {
        return std::make_shared<ClientKey>(
            ClientKey::Options{.file = file, .protection = protection});
    }
    void visit(Visitor& visitor, std::shared_ptr<const ClientKey> with = nullptr) {
        visitor.connect(address, std::move(with));
        ASSERT_TRUE(bed.run_until([&] { return visitor.is_done(); }));
    }
    void expect_let_in(std::shared_ptr<const ClientKey> with = nullptr) {
        const std::size_t before = sessions.size();
        open = 0;
        Visitor visitor{bed.transport()};
        visit(visitor, std::move(with));
        ASSERT_EQ(visitor.opened, 1) << visitor.closed.front().detail;
        ASSERT_TRUE(bed.run_until([&] { return open > 0; }));
        visitor.session->close();
        ASSERT_TRUE(bed.run_until([&] { return sessions.size() == before; }));
    }
    void expect_kept_out(std::shared_ptr<const ClientKey> with, const std::string& told) {
        Visitor visitor{bed.transport()};
        visit(visitor, std::move(with));
        EXPECT_EQ(visitor.opened, 0);
        ASSERT_EQ(visitor.closed.size(), 1U);
        EXPECT_EQ(visitor.closed[0].reason, CloseReason::rejected);
        EXPECT_THAT(visitor.closed[0].detail, testing::HasSubstr(told));
        EXPECT_EQ(incoming, 0) << "a peer that is not admitted reaches no handler";
    }
    // One raw connection attempt with these bytes.
    std::unique_ptr<RawDialer> dial(std::span<const std::byte> data) {
        auto dialer = std::make_unique<RawDialer>(bed.transport(), address);
        dialer->open(data);
        EXPECT_TRUE(
            bed.run_until([&] { return dialer->answer.has_value() || !dialer->closed.empty(); }));
        return dialer;
    }
    access::AuthAddress dialled() {
        access::AuthAddress found;
        bool done = false;
        const auto search = bed.transport().find_routes(address, {}, [&](FoundRoutes routes) {
            found = routes.routes.front().dialled;
            done = true;
        });
        EXPECT_TRUE(bed.run_until([&] { return done; }));
        return found;
    }
    // The next request of a client with this key.
    static Data request_of(access::AuthClient& client) {
        ConnectionData data;
        static_cast<void>(encode(gate_hello(), data));
        access::ClientNonce nonce;
        access::fill_randomly(nonce);
        const std::size_t size = client.request(data, nonce);
        return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
    }
    // Runs the authentication up to the second request and returns that request.
    Data proved_request(access::AuthClient& client) {
        const auto first = dial(request_of(client));
        EXPECT_EQ(first->code(), RejectCode::prove_key);
        static_cast<void>(client.take_challenge(first->rejection.value_or(Data{})));
        return request_of(client);
    }

    void on_incoming(IncomingSession& asking) override {
        ++incoming;
        sessions.push_back(asking.accept(gate_hello(), session_options, *this));
    }
    void on_accept_failed(const std::string& peer, const FabricError& why) override {
        ADD_FAILURE() << peer << ": " << why.what();
    }
    void on_peer_rejected(const std::string&, const std::string& why) override {
        turned_away.push_back(why);
    }
    void on_open(Session&) override { ++open; }
    void on_frame(Session&, const IncomingFrame& frame) override {
        frames.emplace_back(frame.body.begin(), frame.body.end());
    }
    void on_sent(Session&, Cookie, Completion::Outcome) override { ++sent; }
    void on_writable(Session&) override {}
    void on_closed(Session& session, const Closed& why) override {
        closed.push_back(why);
        std::erase_if(sessions, [&](const auto& each) { return each.get() == &session; });
    }

    static constexpr std::chrono::milliseconds look_interval{1};

    TestBed bed{GetParam()};
    Transport* over = nullptr; // instead of the bed's
    KeyFiles files;
    Address address;
    SessionOptions session_options; // of admitted peers
    int incoming = 0;
    int open = 0;
    int sent = 0;
    std::vector<Data> frames;
    std::vector<Closed> closed;
    std::vector<std::string> turned_away; // recorded by the listener's handler, which counts them
    // Reports to the observer.
    std::vector<std::string>& refused = bed.seen().not_admitted;
    std::vector<std::string>& problems = bed.seen().key_file_problems;
    std::vector<std::pair<unsigned, std::size_t>>& revoked = bed.seen().revoked;
    std::shared_ptr<ServerKeys> keys;
    std::unique_ptr<SessionListener> listener;
    std::vector<std::unique_ptr<Session>> sessions;
};

} // namespace netio::test
