// SPDX-License-Identifier: Apache-2.0

// A copy server with a sender that breaks the protocol, and a sender with such a server, over real
// sockets, because the disk threads do not run in virtual time. Whatever the peer sends: nothing is
// written outside the served folder, a file under its final name has the promised checksum, and the
// slot is free again after the peer has disconnected.

#include "apps/copy/sender.hpp"
#include "apps/copy/server.hpp"
#include "netio/fabric.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/support/temporary_folder.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

namespace netio::fuzz::copy_peer_fuzz {
namespace {

namespace fs = std::filesystem;
using namespace apps::copy;
using stream::StreamSocket;

constexpr std::size_t file_limit_bytes = 3000;
constexpr std::chrono::microseconds turn{50};
constexpr std::chrono::seconds patience{20}; // allows for the disk and the kernel

// The content of every file, on both sides.
std::vector<std::byte> content(std::uint64_t from, std::size_t bytes) {
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        made[i] = static_cast<std::byte>((from + i) * 7 % 251);
    return made;
}

Digest digest_of(Bytes bytes, ChecksumKind kind = ChecksumKind::xxh3_128) {
    Checksum checksum{kind};
    checksum.add(bytes);
    return checksum.digest();
}

// One for all inputs, because opening a fabric takes longer than running an input.
struct Fabric {
    EventLoop loop;
    std::unique_ptr<Transport> transport{open_fabric(loop, {.provider = "tcp"})};

    void turns(std::size_t count) {
        for (; count > 0; --count)
            loop.run_once(Clock::now() + turn);
    }
    template <typename Done>
    void until(Done done) {
        const TimePoint end = Clock::now() + patience;
        while (!done()) {
            NETIO_CHECK(Clock::now() < end);
            turns(1);
        }
    }
    static Fabric& of_the_process() {
        static Fabric fabric;
        return fabric;
    }
};

// The other side: sends parts of the protocol, at the right time or not, and other bytes.
class Peer final : public StreamSocket::Handler, public stream::StreamListener::Handler {
    // Must outlive the socket that uses it.
    RegisteredBuffer outgoing_{8192};
    RegisteredBuffer incoming_{4096, Access::remote_write};

  public:
    std::unique_ptr<StreamSocket> socket;
    bool closed = false;

    void act(Input& input) {
        if (!socket || !socket->is_connected()) return;
        switch (input.below(24)) {
        case 0:
        case 1:
            return open(input);
        case 2:
            position_ = input.below(4) == 0 ? input.wild() : 0;
            return send(encode(Start{.offset_bytes = position_}));
        case 3:
        case 4:
        case 5:
            return chunk(input);
        case 6:
            return send(
                encode(End{.digest = digest_of(content(0, input.below(4) == 0 ? 1 : size_))}));
        case 7:
            return answer(input);
        case 8:
            return send(encode(Verdict{.kept = input.flag(), .text = "\x1b[2Jno"}));
        case 9:
            return send(input.take(input.below(64)));
        case 10:
            if (input.below(4) == 0) socket->shutdown_send();
            return;
        case 11:
            if (input.below(8) == 0) socket->abort();
            return;
        case 12:
            return send(encode(SparseStart{.offset_bytes = 0, .data_bytes = input.wild()}));
        case 13:
            return extents(input);
        case 14:
            return send(encode(Attributes{.modified_s = static_cast<std::int64_t>(input.wild()),
                                          .modified_ns = 7,
                                          .mode = input.byte()}));
        default:
            return go_on(input);
        }
    }

    void on_connected(StreamSocket&) override { receive(); }
    void on_send_completed(StreamSocket&, Cookie, Completion::Outcome) override {}
    void on_received(StreamSocket&, const stream::Received& got) override {
        if (got.outcome == Completion::Outcome::done && !got.end_of_stream) receive();
    }
    void on_closed(StreamSocket&, const Closed&) override { closed = true; }
    void on_incoming(stream::IncomingStream& incoming) override {
        if (!socket) socket = incoming.accept({}, *this);
    }

  private:
    // Sends the next expected part; otherwise the input would never reach the end of a file.
    void go_on(Input& input) {
        switch (due_++ % 4) {
        case 0:
            return open(input);
        case 1:
            return send(encode(Start{.offset_bytes = 0}));
        case 2:
            return send_chunk({.position = 0, .bytes = size_}, content(0, size_));
        default:
            return send(encode(End{.digest = digest_of(content(0, size_))}));
        }
    }
    void receive() {
        static_cast<void>(socket->receive(incoming_.slice(), Cookie{0}, stream::Fill::some));
    }
    void open(Input& input) {
        static const std::array<std::string, 10> names{
            "a",        "b", "folder/c",      "../escaped", "up/escaped",
            "/escaped", "",  ".a.netio-part", "folder",     "a\xc2\x9b\x32J"};
        position_ = 0;
        size_ = input.below(file_limit_bytes);
        Open said{.name = names[input.below(names.size())],
                  .size_bytes = input.below(8) == 0 ? input.wild() : size_,
                  .modified_ns = static_cast<std::int64_t>(input.wild()),
                  .mode = 0600,
                  .overwrite = input.flag()};
        if (input.below(8) == 0) said.checksum = ChecksumKind::sha256;
        spoil(encode(said), input);
    }
    // Usually the whole file, so that its chunks and its end may follow.
    void extents(Input& input) {
        Extents said;
        if (input.below(4) != 0) {
            said.all.push_back({.position = 0, .bytes = std::max<std::uint64_t>(1, size_)});
        } else {
            for (std::size_t count = 1 + input.below(4); count > 0; --count)
                said.all.push_back(
                    {.position = input.below(file_limit_bytes), .bytes = input.below(9)});
        }
        spoil(encode(said), input);
    }
    void chunk(Input& input) {
        const std::size_t bytes = input.below(4) == 0 ? input.below(size_ + 2) : left();
        const std::vector<std::byte> body = content(position_, bytes);
        send_chunk({.position = input.below(16) == 0 ? input.wild() : position_,
                    .bytes = input.below(16) == 0 ? input.wild() : bytes},
                   body);
        position_ += bytes;
    }
    void send_chunk(Chunk header, Bytes body) {
        header.digest = chunk_digest(body);
        std::vector<std::byte> said(chunk_header_bytes);
        encode(header, std::span{said}.first<chunk_header_bytes>());
        said.insert(said.end(), body.begin(), body.end());
        send(said);
    }
    void answer(Input& input) {
        const std::size_t offset = input.below(file_limit_bytes);
        const auto outcome = static_cast<Answer::Outcome>(1 + input.below(3));
        spoil(encode(Answer{.outcome = outcome,
                            .offset_bytes = input.below(8) == 0 ? input.wild() : offset,
                            .digest = digest_of(content(0, offset)),
                            .text = input.flag() ? std::string{offer_text} : "because\n"}),
              input);
    }
    std::size_t left() const { return position_ < size_ ? size_ - position_ : 0; }
    void spoil(std::vector<std::byte> said, Input& input) {
        if (input.below(16) == 0) said[input.below(said.size())] = std::byte{input.byte()};
        send(said);
    }
    // Overwrites memory even if a send of it is in flight: this peer does not care.
    void send(Bytes bytes) {
        if (bytes.empty() || bytes.size() > outgoing_.size()) return;
        std::ranges::copy(bytes, outgoing_.data());
        static_cast<void>(socket->send(outgoing_.slice(0, bytes.size()), Cookie{0}));
    }

    std::uint64_t position_ = 0;
    std::uint64_t size_ = 0;
    unsigned due_ = 0;
};

// A file has the promised content, because no other content has its checksum.
void check_files(const fs::path& folder) {
    for (const auto& entry : fs::recursive_directory_iterator{folder}) {
        const std::string name = entry.path().filename();
        if (!entry.is_regular_file() || name.ends_with(".netio-part")) continue;
        std::ifstream in{entry.path(), std::ios::binary};
        const std::string text{std::istreambuf_iterator<char>{in}, {}};
        NETIO_CHECK(std::ranges::equal(std::as_bytes(std::span{text}), content(0, text.size())));
    }
}

void play(Fabric& fabric, Peer& peer, Input& input) {
    while (!input.empty() && !peer.closed) {
        peer.act(input);
        fabric.turns(input.below(16));
    }
}

void serve(Input& input, const fs::path& root) {
    Fabric& fabric = Fabric::of_the_process();
    fs::create_directories(root / "served" / "folder");
    fs::create_directory_symlink(root, root / "served" / "up");
    using May = TargetFile::Access;
    const std::array access{May::full, May::no_overwrite, May::write_only};
    Server server{fabric.loop,
                  *fabric.transport,
                  {.folder = root / "served",
                   .listen = {{.host = "127.0.0.1", .port = 0}},
                   .session = {.buffer_count = 2, .access = access[input.below(access.size())]}}};
    for (std::size_t senders = 1 + input.below(3); senders > 0; --senders) {
        Peer peer;
        peer.socket =
            std::make_unique<StreamSocket>(*fabric.transport, StreamSocket::Options{}, peer);
        peer.socket->connect(server.endpoints().front().address);
        fabric.until([&] { return peer.closed || peer.socket->is_connected(); });
        play(fabric, peer, input);
    }
    fabric.until([&] { return server.sender_count() == 0; });
    check_files(root / "served");
    NETIO_CHECK(std::ranges::distance(fs::directory_iterator{root}) == 1);
}

struct Ending final : Sender::Handler {
    void on_file(const CopiedFile& file) override {
        look_at(std::as_bytes(std::span{file.detail}));
    }
    void on_finished(const std::string& problem) override { why = problem; }
    std::optional<std::string> why;
};

void copy(Input& input, const fs::path& root) {
    Fabric& fabric = Fabric::of_the_process();
    const std::vector<std::byte> bytes = content(0, input.below(file_limit_bytes));
    std::ofstream{root / "source", std::ios::binary}.write(
        reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    Peer peer;
    const stream::StreamListener listener{
        *fabric.transport, {.listen = {{.host = "127.0.0.1", .port = 0}}}, peer};
    Ending ending;
    Sender sender{fabric.loop,
                  *fabric.transport,
                  {.server = listener.endpoints().front().address,
                   .files = {{.path = root / "source", .name = "a"},
                             {.path = root / "none", .name = "b"},
                             {.path = root / "source", .name = "c"}},
                   .buffer_count = 2},
                  ending};
    sender.start();
    fabric.until([&] { return ending.why || (peer.socket && peer.socket->is_connected()); });
    play(fabric, peer, input);
    if (!ending.why) sender.stop();
    fabric.until([&] { return ending.why.has_value(); });
}

const Target copy_peer{"copy_peer", [](Bytes bytes) {
                           spdlog::set_level(spdlog::level::off);
                           Input input{bytes};
                           const test::TemporaryFolder folder;
                           input.below(4) == 0 ? copy(input, folder.path())
                                               : serve(input, folder.path());
                       }};

} // namespace
} // namespace netio::fuzz::copy_peer_fuzz
