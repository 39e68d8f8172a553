// SPDX-License-Identifier: Apache-2.0
#pragma once

// A copy server, senders, and peers that say whatever a test wants, on the fabric: disks do not
// know the simulator's time.

#include "apps/copy/copy_sender.hpp"
#include "apps/copy/copy_server.hpp"
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
#include <vector>

namespace apps::test {

namespace fs = std::filesystem;

struct Outcome final : CopySender::Handler {
    void on_file(const CopiedFile& file) override { files.push_back(file); }
    void on_finished(const std::string& why) override { problem = why; }

    std::vector<CopiedFile> files;
    std::optional<std::string> problem;
};

// A peer that sends bytes and keeps all it is sent.
class RawPeer final : public netio::stream::StreamSocket::Handler {
    // Gone after the socket that uses it.
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
    void send(const CopyChunk& chunk, std::string_view content) {
        std::vector<std::byte> bytes(copy_chunk_header_bytes);
        encode(chunk, std::span{bytes}.first<copy_chunk_header_bytes>());
        const auto tail = std::as_bytes(std::span{content});
        bytes.insert(bytes.end(), tail.begin(), tail.end());
        send(bytes);
    }
    // The message at the front, if it is whole; it is taken away.
    template <typename Message>
    std::optional<Message> take() {
        const auto bytes = std::as_bytes(std::span{received});
        CopyPrelude prelude;
        if (bytes.size() < copy_prelude_bytes ||
            decode(bytes.first(copy_prelude_bytes), prelude) != CopyFlaw::none ||
            bytes.size() < copy_prelude_bytes + prelude.body_bytes) {
            return {};
        }
        Message message;
        EXPECT_EQ(decode(bytes.subspan(copy_prelude_bytes, prelude.body_bytes), message),
                  CopyFlaw::none);
        received.erase(0, copy_prelude_bytes + prelude.body_bytes);
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
    CopyBed() {
        fs::create_directories(root + "/served");
        fs::create_directories(root + "/source");
    }
    ~CopyBed() override { fs::remove_all(root); }

    void serve(std::size_t sender_limit = 16,
               std::chrono::milliseconds idle_limit = std::chrono::minutes{1}) {
        server =
            std::make_unique<CopyServer>(bed.loop(), bed.transport(),
                                         CopyServer::Options{.folder = root + "/served",
                                                             .addresses = {bed.address()},
                                                             .sender_limit_count = sender_limit,
                                                             .buffer_count = 3,
                                                             .idle_limit = idle_limit});
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
    CopySender::Options options(std::vector<std::string> names) const {
        CopySender::Options options{.server = address(), .buffer_count = 3};
        for (const std::string& name : names)
            options.files.push_back({.path = root + "/source/" + name, .name = name});
        return options;
    }
    Outcome copy(CopySender::Options what) {
        Outcome outcome;
        CopySender sender{bed.loop(), bed.transport(), std::move(what), outcome};
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
    template <typename Message>
    Message wait_for(RawPeer& peer) {
        std::optional<Message> message;
        EXPECT_TRUE(bed.run_until([&] {
            if (!message) message = peer.take<Message>();
            return message.has_value() || peer.closed;
        }));
        EXPECT_TRUE(message) << "closed before it said so";
        return message.value_or(Message{});
    }

    std::string root = testing::TempDir() + "netio_copy_" + std::to_string(::getpid());
    netio::test::TestBed bed{netio::test::Bed::fabric_tcp};
    std::unique_ptr<CopyServer> server;
};

} // namespace apps::test
