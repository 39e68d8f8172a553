// SPDX-License-Identifier: Apache-2.0
#pragma once

// A copy server, senders, and peers that send any bytes, on the fabric. Disks do not use the
// simulator's time, unless a test brings a disk that does (tests/world/actors/sim_disk.hpp).

#include "apps/copy/sender.hpp"
#include "apps/copy/server.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace apps::copy::test {

namespace fs = std::filesystem;

struct Outcome final : Sender::Handler {
    void on_file(const CopiedFile& file) override { files.push_back(file); }
    void on_waiting(const std::string&) override { ++waited; }
    void on_finished(const std::string& why) override { problem = why; }

    std::vector<CopiedFile> files;
    std::optional<std::string> problem;
    int waited = 0;
};

// A peer that sends bytes and stores everything it receives.
class RawPeer final : public netio::stream::StreamSocket::Handler {
    // Destroyed after the socket that uses it.
    netio::RegisteredBuffer memory_{4096, netio::Access::remote_write};
    std::deque<std::unique_ptr<netio::RegisteredBuffer>> sent_;

  public:
    std::unique_ptr<netio::stream::StreamSocket> socket;
    std::string received;
    bool connected = false;
    bool closed = false;

    void send(std::span<const std::byte> bytes) {
        if (bytes.empty()) return;
        auto& buffer = sent_.emplace_back(std::make_unique<netio::RegisteredBuffer>(bytes.size()));
        std::ranges::copy(bytes, buffer->data());
        static_cast<void>(socket->send(buffer->slice(), netio::Cookie{0}));
    }
    void send(const Chunk& chunk, std::string_view content) {
        std::vector<std::byte> bytes(chunk_header_bytes);
        encode(chunk, std::span{bytes}.first<chunk_header_bytes>());
        const auto tail = std::as_bytes(std::span{content});
        bytes.insert(bytes.end(), tail.begin(), tail.end());
        send(bytes);
    }
    // Removes and returns the first message, if it is complete.
    template <typename Body>
    std::optional<Body> take() {
        const auto bytes = std::as_bytes(std::span{received});
        Prelude prelude;
        if (bytes.size() < prelude_bytes ||
            decode(bytes.first(prelude_bytes), prelude) != Flaw::none ||
            bytes.size() < prelude_bytes + prelude.body_bytes) {
            return {};
        }
        Body message;
        EXPECT_EQ(decode(bytes.subspan(prelude_bytes, prelude.body_bytes), message), Flaw::none);
        received.erase(0, prelude_bytes + prelude.body_bytes);
        return message;
    }

    void on_connected(netio::stream::StreamSocket&) override {
        connected = true;
        receive();
    }
    void on_send_completed(netio::stream::StreamSocket&, netio::Cookie,
                           netio::Completion::Outcome) override {}
    void on_received(netio::stream::StreamSocket&, const netio::stream::Received& got) override {
        for (std::size_t i = 0; i < got.bytes; ++i)
            received += static_cast<char>(memory_.data()[i]);
        if (got.outcome == netio::Completion::Outcome::done && !got.end_of_stream) receive();
    }
    void on_end_of_stream(netio::stream::StreamSocket& ended) override { ended.close(); }
    void on_closed(netio::stream::StreamSocket&, const netio::Closed&) override { closed = true; }

  private:
    void receive() {
        static_cast<void>(
            socket->receive(memory_.slice(), netio::Cookie{0}, netio::stream::Fill::some));
    }
};

class CopyBed : public testing::Test {
  protected:
    explicit CopyBed(netio::test::Bed where = netio::test::Bed::fabric_tcp) : bed{where} {
        fs::create_directories(root + "/served");
        fs::create_directories(root + "/source");
    }
    ~CopyBed() override { fs::remove_all(root); }

    void serve(std::size_t sender_limit = 16, Session::Options session = {.buffer_count = 3}) {
        server = std::make_unique<Server>(bed.loop(), bed.transport(),
                                          Server::Options{.folder = root + "/served",
                                                          .listen = {bed.address()},
                                                          .allow_remote_anonymous = true,
                                                          .sender_limit_count = sender_limit,
                                                          .session = std::move(session)});
    }
    netio::Address address() const { return server->endpoints().front().address; }
    std::string put(const std::string& name, const std::string& text) const {
        std::ofstream{root + "/" + name, std::ios::binary} << text;
        return root + "/" + name;
    }
    std::string content(const std::string& name) const {
        std::ifstream in{root + "/" + name, std::ios::binary};
        return {std::istreambuf_iterator<char>{in}, {}};
    }
    Sender::Options options(const std::vector<std::string>& names) const {
        Sender::Options options{.server = address(), .buffer_count = 3};
        for (const std::string& name : names)
            options.files.push_back({.path = root + "/source/" + name, .name = name});
        return options;
    }
    Outcome copy(Sender::Options what) {
        Outcome outcome;
        Sender sender{bed.loop(), bed.transport(), std::move(what), outcome};
        sender.start();
        EXPECT_TRUE(bed.run_until([&] { return outcome.problem.has_value(); }));
        return outcome;
    }
    void connect(RawPeer& peer) {
        peer.socket = std::make_unique<netio::stream::StreamSocket>(
            bed.transport(), netio::stream::StreamSocket::Options{}, peer);
        peer.socket->connect(address());
        ASSERT_TRUE(bed.run_until([&] { return peer.connected || peer.closed; }));
    }
    template <typename Body>
    Body wait_for(RawPeer& peer) {
        std::optional<Body> message;
        EXPECT_TRUE(bed.run_until([&] {
            if (!message) message = peer.take<Body>();
            return message.has_value() || peer.closed;
        }));
        EXPECT_TRUE(message) << "closed without this message";
        return message.value_or(Body{});
    }

    std::string root = testing::TempDir() + "netio_copy_" + std::to_string(::getpid());
    netio::test::TestBed bed;
    std::unique_ptr<Server> server;
};

} // namespace apps::copy::test
