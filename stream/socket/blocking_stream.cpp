// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/blocking_stream.hpp"

#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

namespace netio::stream::inline v0_2 {

namespace {

// What is shorter is copied through registered memory that is kept; registering more than this for
// one call costs less than the copy.
constexpr std::size_t copy_limit_bytes = 64 * 1024;
constexpr std::size_t write_slots = 8;

struct Engine {
    explicit Engine(const std::string& provider)
        : transport{open_fabric(loop, {.provider = provider})} {}

    EventLoop loop;
    std::unique_ptr<Transport> transport;
};

// Runs the loop until it is done. Throws StreamError::timed_out.
void run_until(EventLoop& loop, std::chrono::milliseconds timeout,
               const std::function<bool()>& done) {
    const bool bounded = timeout.count() > 0;
    const TimePoint end = bounded ? Clock::now() + timeout : TimePoint::max();
    while (!done()) {
        if (bounded && Clock::now() >= end) {
            throw StreamError{StreamError::Kind::timed_out,
                              "nothing happened within " + std::to_string(timeout.count()) + " ms"};
        }
        loop.run_once(end);
    }
}

StreamOptions without_heartbeats(StreamOptions options) {
    options.session.heartbeat = options.session.dead_after = std::chrono::milliseconds{0};
    return options;
}

} // namespace

// One connection, and the answers to the calls that wait for them.
class BlockingStream::Connection final : private StreamSocket::Handler {
  public:
    Connection(std::string_view address, const BlockingOptions& options)
        : timeout_{options.timeout}, engine_{std::make_unique<Engine>(options.provider)},
          loop_{engine_->loop}, socket_{std::make_unique<StreamSocket>(
                                    *engine_->transport, without_heartbeats(options.stream),
                                    static_cast<StreamSocket::Handler&>(*this))} {
        socket_->connect(parse_address(address));
        wait_for_connection();
    }
    Connection(IncomingStream& incoming, const BlockingOptions& options, EventLoop& loop)
        : timeout_{options.timeout}, loop_{loop}, socket_{incoming.accept(
                                                      without_heartbeats(options.stream), *this)} {}

    void wait_for_connection() {
        wait([this] { return connected_; });
    }

    std::size_t read(std::span<std::byte> memory) {
        if (memory.empty()) return 0;
        if (arrived_.empty() && !standing_ && memory.size() > copy_limit_bytes) {
            return closed_ ? nothing_more() : receive_into(memory, Fill::some);
        }
        wait_for_arrivals();
        const std::size_t bytes = std::min(memory.size(), arrived_.size());
        if (bytes == 0) return nothing_more();
        std::memcpy(memory.data(), arrived_.data(), bytes);
        arrived_ = arrived_.subspan(bytes);
        return bytes;
    }

    std::size_t read_all(std::span<std::byte> memory) {
        std::size_t filled = 0;
        while (filled < memory.size()) {
            const auto rest = memory.subspan(filled);
            const bool direct =
                arrived_.empty() && !standing_ && rest.size() > copy_limit_bytes && !closed_;
            const std::size_t bytes = direct ? receive_into(rest, Fill::all) : read(rest);
            if (bytes == 0) break;
            filled += bytes;
        }
        return filled;
    }

    bool has_capacity() const noexcept { return sends_open_ < write_slots; }

    Ready wait_for(int descriptor) {
        bool ready = false;
        std::optional<DescriptorWatch> watch;
        if (descriptor != no_descriptor) {
            watch.emplace(loop_, descriptor, DescriptorWatch::Interest::readable,
                          [&ready] { ready = true; });
        }
        const bool wants_room = !has_capacity();
        wait_for_arrivals([&] { return ready || (wants_room && has_capacity()); });
        if (!standing_) return Ready::peer;
        return ready ? Ready::descriptor : Ready::room;
    }

    void write(std::span<const std::byte> memory) {
        require_socket();
        if (memory.size() > copy_limit_bytes) {
            // Only read; the type has no way to say so.
            RegisteredBuffer registered{{const_cast<std::byte*>(memory.data()), memory.size()},
                                        Access::send};
            send(registered.slice());
            wait([this] { return sends_open_ == 0; });
            return;
        }
        if (memory.empty()) return;
        // The copy is ours: a short write returns before it has left.
        wait([this] { return has_capacity(); });
        const Slice slice =
            outgoing_.slice((sends_ % write_slots) * copy_limit_bytes, memory.size());
        std::memcpy(slice.data, memory.data(), memory.size());
        send(slice);
        loop_.run_once();
    }

    void finish() {
        require_socket();
        socket_->finish();
        wait([this] { return sends_open_ == 0; });
    }

    void close() {
        if (closed_) return;
        socket_->close();
        run_until(loop_, timeout_, [this] { return closed_.has_value(); });
        if (closed_->reason != CloseReason::local && closed_->reason != CloseReason::orderly) {
            throw_closed();
        }
    }

    void set_timeout(std::chrono::milliseconds timeout) noexcept { timeout_ = timeout; }
    std::string peer_address() const {
        return socket_->is_connected() ? socket_->peer_address() : "nobody";
    }
    StreamCounters counters() const { return socket_->counters(); }
    bool connected() const noexcept { return connected_; }
    bool failed() const noexcept { return closed_.has_value(); }

  private:
    static constexpr Cookie standing_key{0};
    static constexpr Cookie direct_key{1};

    // Until something has arrived or nothing more will. A receive into our own memory may stay
    // posted, so this is not ended by a time-out.
    void wait_for_arrivals(const std::function<bool()>& or_else = [] { return false; }) {
        if (arrived_.empty() && !standing_ && !closed_ &&
            socket_->receive(incoming_.slice(), standing_key, Fill::some) == Status::ok) {
            standing_ = true;
        }
        run_until(loop_, timeout_, [&] { return !standing_ || or_else(); });
    }

    std::size_t receive_into(std::span<std::byte> memory, Fill fill) {
        RegisteredBuffer registered{memory, Access::remote_write};
        received_.reset();
        if (socket_->receive(registered.slice(), direct_key, fill) != Status::ok) throw_closed();
        wait([this] { return received_.has_value(); });
        if (received_->outcome != Completion::Outcome::done) throw_closed();
        return static_cast<std::size_t>(received_->bytes);
    }

    // What a read is told when nothing has arrived.
    std::size_t nothing_more() const {
        if (!ended_) throw_closed();
        return 0;
    }

    void send(const Slice& slice) {
        if (socket_->send(slice, Cookie{sends_}) != Status::ok) throw_closed();
        ++sends_;
        ++sends_open_;
    }

    // Throws if the connection ends before. Lent memory is free when this returns or throws.
    void wait(const std::function<bool()>& done) {
        try {
            run_until(loop_, timeout_, [&] { return done() || closed_; });
        } catch (const StreamError&) {
            socket_->abort();
            run_until(loop_, {}, [this] { return closed_.has_value(); });
            throw;
        }
        if (!done() || (closed_ && send_canceled_)) throw_closed();
    }

    void require_socket() const {
        if (closed_) throw_closed();
    }

    [[noreturn]] void throw_closed() const {
        std::string why = "the connection is closed";
        if (closed_) {
            why =
                closed_->detail.empty() ? std::string{to_string(closed_->reason)} : closed_->detail;
        }
        throw StreamError{StreamError::Kind::closed, why};
    }

    void on_connected(StreamSocket&) override { connected_ = true; }
    void on_send_completed(StreamSocket&, Cookie, Completion::Outcome outcome) override {
        --sends_open_;
        if (outcome != Completion::Outcome::done) send_canceled_ = true;
    }
    void on_received(StreamSocket&, const StreamSocket::Received& received) override {
        if (received.key == direct_key) {
            received_ = received;
            return;
        }
        standing_ = false;
        arrived_ = incoming_.memory().first(static_cast<std::size_t>(received.bytes));
    }
    void on_end_of_stream(StreamSocket&) override { ended_ = true; }
    void on_closed(StreamSocket&, const Closed& closed) override { closed_ = closed; }

    std::chrono::milliseconds timeout_;
    std::unique_ptr<Engine> engine_; // of a stream that connected; else its listener's
    EventLoop& loop_;
    RegisteredBuffer incoming_{copy_limit_bytes, Access::remote_write};
    RegisteredBuffer outgoing_{write_slots * copy_limit_bytes, Access::send};
    std::span<const std::byte> arrived_; // of incoming_, and not yet read
    bool standing_ = false;              // a receive into incoming_ is posted
    bool connected_ = false;
    bool ended_ = false;
    bool send_canceled_ = false;
    std::uint64_t sends_ = 0;
    std::size_t sends_open_ = 0;
    std::optional<StreamSocket::Received> received_;
    std::optional<Closed> closed_;
    std::unique_ptr<StreamSocket> socket_; // last: goes first
};

BlockingStream::BlockingStream(std::unique_ptr<Connection> connection)
    : connection_{std::move(connection)} {}
BlockingStream::~BlockingStream() = default;
BlockingStream::BlockingStream(BlockingStream&&) noexcept = default;
BlockingStream& BlockingStream::operator=(BlockingStream&&) noexcept = default;

BlockingStream BlockingStream::connect(std::string_view address, const BlockingOptions& options) {
    return BlockingStream{std::make_unique<Connection>(address, options)};
}

std::size_t BlockingStream::read(std::span<std::byte> memory) {
    return connection_->read(memory);
}

void BlockingStream::read_exactly(std::span<std::byte> memory) {
    const std::size_t bytes = connection_->read_all(memory);
    if (bytes == memory.size()) return;
    throw StreamError{StreamError::Kind::ended, "the stream ended after " + std::to_string(bytes) +
                                                    " of " + std::to_string(memory.size()) +
                                                    " bytes"};
}

bool BlockingStream::has_capacity() const noexcept {
    return connection_->has_capacity();
}

BlockingStream::Ready BlockingStream::wait_for(int descriptor) {
    return connection_->wait_for(descriptor);
}

void BlockingStream::write(std::span<const std::byte> memory) {
    connection_->write(memory);
}

void BlockingStream::finish() {
    connection_->finish();
}

void BlockingStream::close() {
    connection_->close();
}

void BlockingStream::set_timeout(std::chrono::milliseconds timeout) noexcept {
    connection_->set_timeout(timeout);
}

std::string BlockingStream::peer_address() const {
    return connection_->peer_address();
}

StreamCounters BlockingStream::counters() const {
    return connection_->counters();
}

// --- listening ------------------------------------------------------------------------------

class BlockingListener::Acceptor final : private StreamListener::Handler {
  public:
    Acceptor(std::string_view address, const BlockingOptions& options)
        : options_{options}, engine_{options.provider}, listener_{*engine_.transport,
                                                                  {parse_address(address)},
                                                                  *this} {}

    std::unique_ptr<BlockingStream::Connection> accept() {
        run_until(engine_.loop, options_.timeout, [this] {
            std::erase_if(waiting_, [](const auto& peer) { return peer->failed(); });
            return first_connected() != waiting_.end() || accept_failed_;
        });
        const auto found = first_connected();
        if (found == waiting_.end()) throw *std::exchange(accept_failed_, std::nullopt);
        auto connection = std::move(*found);
        waiting_.erase(found);
        return connection;
    }
    Address address() const { return listener_.endpoints().front().address; }

  private:
    static constexpr std::size_t waiting_limit = 64; // connected, and not yet accepted

    std::deque<std::unique_ptr<BlockingStream::Connection>>::iterator first_connected() {
        return std::ranges::find_if(waiting_, [](const auto& peer) { return peer->connected(); });
    }
    void on_incoming(IncomingStream& incoming) override {
        if (waiting_.size() >= waiting_limit) return; // turned away
        waiting_.push_back(
            std::make_unique<BlockingStream::Connection>(incoming, options_, engine_.loop));
    }
    void on_accept_failed(const std::string& peer_address, const FabricError& why) override {
        accept_failed_.emplace(why.code(), "cannot accept " + peer_address + ": " + why.what());
    }

    BlockingOptions options_;
    Engine engine_;
    std::deque<std::unique_ptr<BlockingStream::Connection>> waiting_;
    std::optional<FabricError> accept_failed_; // the last one, until a call has said so
    StreamListener listener_;
};

BlockingListener::BlockingListener(std::string_view address, const BlockingOptions& options)
    : acceptor_{std::make_unique<Acceptor>(address, options)} {}
BlockingListener::~BlockingListener() = default;

BlockingStream BlockingListener::accept() {
    return BlockingStream{acceptor_->accept()};
}

Address BlockingListener::address() const {
    return acceptor_->address();
}

} // namespace netio::stream::inline v0_2
