// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/blocking_connection.hpp"

#include "netio/base/check.hpp"
#include "netio/base/copy.hpp"
#include "netio/base/option_check.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"

#include <new>
#include <utility>

namespace netio::stream::inline v0_3 {
namespace {

StreamSocket::Options without_heartbeats(StreamSocket::Options options) {
    options.session.heartbeat = options.session.dead_after = std::chrono::milliseconds{0};
    return options;
}

TimePoint later(TimePoint begin, std::chrono::milliseconds time) {
    return time > longest_time ? TimePoint::max() : begin + time;
}

// The end of a time limit; a limit of 0 means no end.
TimePoint end_of(TimePoint begin, std::chrono::milliseconds limit) {
    return limit.count() > 0 ? later(begin, limit) : TimePoint::max();
}

void check_memory(const char* call, const void* data, std::size_t bytes) {
    if (data != nullptr || bytes == 0) return;
    throw std::invalid_argument{std::string{call} + ": the memory is null, and its size is " +
                                std::to_string(bytes) + " bytes"};
}

StreamError timed_out(const BlockingCall& call, const std::string& effect) {
    return {StreamError::Kind::timed_out, call.verdict() + "; " + effect};
}

} // namespace

// --- the loop -------------------------------------------------------------------------------

BlockingEngine::BlockingEngine(const std::string& provider)
    : own_loop_{std::make_unique<EventLoop>()}, loop_{*own_loop_},
      own_transport_{open_fabric(loop_, {.provider = provider})}, transport_{*own_transport_} {}

BlockingEngine::BlockingEngine(EventLoop& loop, Transport& transport)
    : loop_{loop}, transport_{transport} {}

BlockingEngine::Use::Use(BlockingEngine& engine) : engine_{engine} {
    const std::lock_guard lock{engine.mutex_};
    const auto self = std::this_thread::get_id();
    NETIO_CHECK_MSG(engine.caller_ == std::thread::id{} || engine.caller_ == self,
                    "two threads are in calls of a BlockingStream or a BlockingListener at once; "
                    "only BlockingListener::stop() may be called from another thread");
    is_outermost_ = engine.caller_ != self;
    engine.caller_ = self;
}

BlockingEngine::Use::~Use() {
    if (!is_outermost_) return;
    engine_.run_interrupts();
    const std::lock_guard lock{engine_.mutex_};
    engine_.caller_ = {};
    engine_.changed_.notify_all();
}

void BlockingEngine::interrupt(std::function<void()> task) {
    std::unique_lock lock{mutex_};
    const auto self = std::this_thread::get_id();
    if (caller_ == std::thread::id{}) {
        // Calls that begin now wait for the mutex. The task may destroy streams.
        caller_ = self;
        task();
        caller_ = {};
        return;
    }
    interrupts_.push_back(std::move(task));
    has_interrupts_.store(true);
    loop_.stop(); // ends the wait
    if (caller_ == self) return;
    changed_.wait(lock, [this] { return interrupts_.empty(); });
}

void BlockingEngine::run_interrupts() {
    if (!has_interrupts_.load()) return;
    const std::lock_guard lock{mutex_};
    for (const auto& task : interrupts_)
        task();
    interrupts_.clear();
    has_interrupts_.store(false);
    changed_.notify_all();
}

// --- one call -------------------------------------------------------------------------------

BlockingCall::BlockingCall(BlockingEngine& engine, const BlockingLimits& limits,
                           std::function<std::uint64_t()> moved_bytes)
    : engine_{engine}, use_{engine}, limits_{limits},
      moved_bytes_{std::move(moved_bytes)}, end_{end_of(engine.loop().now(), limits.call)},
      inactivity_{limits.progress > longest_time ? std::chrono::milliseconds{0} : limits.progress},
      seen_bytes_{moved_bytes_()} {}

bool BlockingCall::run_for(std::chrono::milliseconds time, const std::function<bool()>& done) {
    return run_until(done, std::min(end_, later(engine_.loop().now(), time)));
}

bool BlockingCall::run_until(const std::function<bool()>& done, TimePoint end) {
    EventLoop& loop = engine_.loop();
    TimePoint now = loop.now();
    while (!done()) {
        if (now >= end || inactivity_.has_expired()) return false;
        loop.run_once(std::min(end, inactivity_.poll_deadline(now)));
        engine_.run_interrupts();
        const TimePoint begin = std::exchange(now, loop.now());
        const std::uint64_t last = std::exchange(seen_bytes_, moved_bytes_());
        inactivity_.on_polled(now - begin, seen_bytes_ != last);
    }
    return true;
}

std::string BlockingCall::verdict() const {
    return inactivity_.has_expired()
               ? "no byte has moved for " + std::to_string(limits_.progress.count()) +
                     " ms (progress_timeout)"
               : "the call did not end within " + std::to_string(limits_.call.count()) +
                     " ms (call_timeout)";
}

// --- what has arrived -----------------------------------------------------------------------

std::size_t UnreadBytes::size() const noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        bytes += pieces_[i].bytes.size();
    return bytes;
}

void UnreadBytes::add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
    if (!bytes.empty()) pieces_.push_back({bytes, std::move(owner)});
}

void UnreadBytes::put_back(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    const auto copy = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
    Fifo<Piece> pieces;
    pieces.push_back({*copy, copy});
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        pieces.push_back(pieces_[i]);
    pieces_ = std::move(pieces);
}

std::size_t UnreadBytes::take(std::span<std::byte> memory) noexcept {
    std::size_t taken = 0;
    while (!pieces_.empty() && taken < memory.size()) {
        std::span<const std::byte>& front = pieces_.front().bytes;
        const std::size_t bytes = std::min(memory.size() - taken, front.size());
        copy_bytes(memory.data() + taken, front.first(bytes));
        front = front.subspan(bytes);
        if (front.empty()) pieces_.pop_front();
        taken += bytes;
    }
    return taken;
}

// --- connecting -----------------------------------------------------------------------------

BlockingConnection::BlockingConnection(std::shared_ptr<BlockingEngine> engine,
                                       std::string_view address,
                                       const BlockingStream::Options& options)
    : limits{options.call_timeout, options.progress_timeout, options.farewell_timeout},
      engine_{std::move(engine)}, outgoing_{options.stream.send_limit_count},
      socket_{std::make_unique<StreamSocket>(engine_->transport(),
                                             without_heartbeats(options.stream),
                                             static_cast<StreamSocket::Handler&>(*this))} {
    BlockingCall call = begin();
    loop().observer = options.observer;
    socket_->connect(parse_address(address));
    if (!call.run_until([this] { return connected_ || closed_; })) {
        throw timed_out(call, "there is no connection to " + std::string{address} + " yet");
    }
    if (!connected_) throw_closed();
}

BlockingConnection::BlockingConnection(std::shared_ptr<BlockingEngine> engine,
                                       IncomingStream& incoming,
                                       const BlockingStream::Options& options)
    : limits{options.call_timeout, options.progress_timeout, options.farewell_timeout},
      engine_{std::move(engine)}, outgoing_{options.stream.send_limit_count},
      socket_{incoming.accept(without_heartbeats(options.stream), *this)} {}

BlockingConnection::~BlockingConnection() {
    const BlockingEngine::Use use{*engine_};
    socket_.reset();
}

BlockingCall BlockingConnection::begin() {
    return {*engine_, limits, [this] { return moved_bytes(); }};
}

// --- reading --------------------------------------------------------------------------------

std::size_t BlockingConnection::read(std::span<std::byte> memory) {
    check_memory("read", memory.data(), memory.size());
    BlockingCall call = begin();
    if (memory.empty()) return 0;
    const std::size_t bytes = take(memory, Fill::some, call);
    if (bytes == 0) report_end(call);
    return bytes;
}

void BlockingConnection::read_exactly(std::span<std::byte> memory) {
    check_memory("read_exactly", memory.data(), memory.size());
    BlockingCall call = begin();
    const std::size_t bytes = take(memory, Fill::all, call);
    if (bytes == memory.size()) return;
    put_back(memory.first(bytes));
    report_end(call);
    const std::string asked = std::to_string(memory.size()) + " bytes";
    throw StreamError{StreamError::Kind::ended,
                      bytes == 0 ? "the stream ended before the first of " + asked
                                 : "the stream ended after " + std::to_string(bytes) + " of " +
                                       asked + "; the next read returns what has arrived"};
}

// If it returns fewer bytes than requested, the stream ends after them. A call that fails consumes
// none.
std::size_t BlockingConnection::take(std::span<std::byte> memory, Fill fill, BlockingCall& call) {
    std::size_t filled = 0;
    try {
        take(memory, fill, call, filled);
    } catch (...) {
        put_back(memory.first(filled));
        throw;
    }
    return filled;
}

void BlockingConnection::take(std::span<std::byte> memory, Fill fill, BlockingCall& call,
                              std::size_t& filled) {
    while (filled < memory.size() && (fill == Fill::all || filled == 0)) {
        if (is_over()) {
            if (end_ == End::none) throw_closed();
            return;
        }
        const auto rest = memory.subspan(filled);
        if (may_receive_directly(rest.size())) {
            if (!receive_directly(rest, fill, call, filled)) {
                throw timed_out(call, arrivals_of(memory.size(), filled));
            }
        } else {
            if (!wait_for_arrivals(call)) {
                throw timed_out(call, arrivals_of(memory.size(), filled));
            }
            filled += take_arrivals(rest);
        }
    }
}

// The text of a read that timed out.
std::string BlockingConnection::arrivals_of(std::size_t asked, std::size_t filled) const {
    const std::size_t arrived = filled + unread_.size() + static_cast<std::size_t>(partial_bytes());
    std::string text =
        std::to_string(arrived) + " of " + std::to_string(asked) + " bytes have arrived";
    if (arrived > 0) text += "; the next read returns what has arrived";
    return closed_ ? text + "; the connection has ended, because the peer writes to the memory "
                            "that this call was given"
                   : text;
}

// Whether nothing is left to read, and nothing more will arrive.
bool BlockingConnection::is_over() const noexcept {
    return !has_arrivals() && (closed_ || end_ == End::read || is_at_end());
}

bool BlockingConnection::may_receive_directly(std::size_t bytes) const noexcept {
    return !has_arrivals() && !standing_ && !closed_ && bytes > copy_limit_bytes;
}

// For a receive that is posted into this object's memory: bytes that arrived and were not read.
std::uint64_t BlockingConnection::partial_bytes() const noexcept {
    if (!standing_) return 0;
    const std::uint64_t filled = socket_->filled_bytes();
    return filled > standing_read_bytes_ ? filled - standing_read_bytes_ : 0;
}

// Waits until bytes have arrived or no more will. A receive into this object's memory stays posted
// after a timeout. Returns false after a timeout.
bool BlockingConnection::wait_for_arrivals(BlockingCall& call,
                                           const std::function<bool()>& or_else) {
    if (unread_.empty() && !standing_ && !closed_ && end_ != End::read &&
        socket_->receive(incoming_->slice(), standing_cookie, Fill::some) == Status::ok) {
        standing_ = incoming_;
        standing_read_bytes_ = 0;
    }
    return call.run_until([&] { return has_arrivals() || closed_ || is_at_end() || or_else(); });
}

std::size_t BlockingConnection::take_arrivals(std::span<std::byte> memory) {
    if (!unread_.empty()) return unread_.take(memory);
    const std::size_t bytes = std::min(memory.size(), static_cast<std::size_t>(partial_bytes()));
    if (bytes == 0) return 0;
    copy_bytes(memory.data(), {standing_->data() + standing_read_bytes_, bytes});
    standing_read_bytes_ += bytes;
    return bytes;
}

// Receives into the caller's memory, which is not used any more when this returns. Returns false
// after a timeout.
bool BlockingConnection::receive_directly(std::span<std::byte> memory, Fill fill,
                                          BlockingCall& call, std::size_t& filled) {
    RegisteredBuffer registered{memory, Access::remote_write};
    received_.reset();
    if (socket_->receive(registered.slice(), direct_cookie, fill) != Status::ok) {
        wait_for_reason();
        return true;
    }
    const bool in_time = call.run_until([this] { return received_.has_value(); });
    if (!in_time) {
        if (keep_receiving(memory.size())) return false;
        disconnect("an earlier call timed out: " + call.verdict());
    }
    filled += static_cast<std::size_t>(received_->bytes);
    return in_time;
}

// A receive cannot be withdrawn. If this side copies the arriving bytes, the receive continues in
// memory of this object. That is not possible if the peer writes directly to the caller's memory,
// or if there is no memory. The operating system provides its pages only when bytes arrive there.
bool BlockingConnection::keep_receiving(std::size_t bytes) {
    try {
        auto memory = std::make_shared<RegisteredBuffer>(bytes, Access::remote_write);
        if (!socket_->move_receive(memory->slice())) return false;
        standing_ = std::move(memory);
        standing_read_bytes_ = 0;
        return true;
    } catch (const FabricError&) {
        return false;
    }
}

// Without memory for the bytes there would be a gap in the stream, so no more of it is read then.
void BlockingConnection::put_back(std::span<const std::byte> bytes) {
    try {
        unread_.put_back(bytes);
    } catch (const std::bad_alloc&) {
        dropped_bytes_ += bytes.size() + unread_.size();
        unread_.clear();
        if (!closed_) disconnect("there was no memory for what a call had read");
    }
}

// The peer waits in close() until it knows that everything was read here, and this may be the last
// call. Errors of the peer are not reported here.
void BlockingConnection::report_end(BlockingCall& call) {
    if (std::exchange(end_, End::read) != End::arrived || !socket_->peer_closes()) return;
    static_cast<void>(call.run_for(limits.farewell, [this] { return closed_.has_value(); }));
}

BlockingStream::Ready BlockingConnection::wait_for(int descriptor) {
    using Ready = BlockingStream::Ready;
    BlockingCall call = begin();
    bool ready = false;
    std::optional<DescriptorWatch> watch;
    if (descriptor != BlockingStream::no_descriptor) {
        try {
            watch.emplace(loop(), descriptor, DescriptorWatch::Interest::readable,
                          [&ready] { ready = true; });
        } catch (const FabricError& error) {
            if (error.code() != std::errc::operation_not_permitted) throw;
            ready = true; // a regular file: always readable, and epoll does not accept it
            loop().run_once();
        }
    }
    const bool wants_capacity = descriptor == BlockingStream::no_descriptor;
    const auto is_writable = [&] { return wants_capacity && has_capacity(); };
    if (!has_arrivals() && !wait_for_arrivals(call, [&] { return ready || is_writable(); })) {
        throw timed_out(call, "nothing was read or written");
    }
    if (has_arrivals() || is_at_end()) return Ready::peer;
    if (closed_) throw_closed();
    return ready ? Ready::descriptor : Ready::writable;
}

// --- writing --------------------------------------------------------------------------------

void BlockingConnection::write(std::span<const std::byte> memory) {
    check_memory("write", memory.data(), memory.size());
    BlockingCall call = begin();
    if (closed_) throw_closed();
    if (shut_down_) {
        throw StreamError{StreamError::Kind::closed,
                          "write() after shutdown_send() or close(): nothing was written"};
    }
    if (memory.empty()) return;
    if (!call.run_until([this] { return has_capacity() || closed_; })) {
        throw timed_out(call, "nothing of this write was sent, because the peer does not take what "
                              "was written before");
    }
    if (closed_) throw_closed();
    if (memory.size() <= copy_limit_bytes) {
        // The copy belongs to this object: a short write returns before it is sent.
        const Slice slice = outgoing_.slice(sends_, memory.size());
        copy_bytes(slice.data, memory);
        send(slice);
        loop().run_once();
        return;
    }
    RegisteredBuffer registered = RegisteredBuffer::of_constant(memory);
    send(registered.slice());
    if (!call.run_until([this] { return sends_open_ == 0 || closed_; })) {
        disconnect("an earlier call timed out: " + call.verdict());
        throw timed_out(call, "the connection has ended, and the peer may have received a part of "
                              "this write");
    }
    if (sends_open_ > 0 || (closed_ && send_canceled_)) throw_closed();
}

void BlockingConnection::send(const Slice& slice) {
    if (socket_->send(slice, Cookie{sends_}) != Status::ok) {
        wait_for_reason();
        throw_closed();
    }
    ++sends_;
    ++sends_open_;
}

// Long writes have completed, and short ones are in this object's memory, so it need not wait.
// Otherwise two peers that both write, shut down and then read would wait for each other.
void BlockingConnection::shutdown_send() {
    const BlockingEngine::Use use{*engine_};
    if (closed_) throw_closed();
    shut_down_ = true;
    socket_->shutdown_send();
    loop().run_once();
}

void BlockingConnection::close() {
    BlockingCall call = begin();
    shut_down_ = true;
    // An earlier call may have noticed the end without reporting it.
    if (!closed_) {
        socket_->close();
        if (!call.run_until([this] { return closed_.has_value(); })) {
            throw timed_out(call, "the stream is still closing: call close() again to wait longer, "
                                  "or destroy the stream to end it at once");
        }
    }
    if (closed_->reason != CloseReason::orderly) throw_closed();
}

// --- the end --------------------------------------------------------------------------------

// Ends the connection, so that memory of the caller is not used any more. Bytes that have arrived
// can still be read.
void BlockingConnection::disconnect(const std::string& why) {
    if (!closed_) socket_->disconnect();
    wait_for_reason();
    closed_->detail = why;
}

// The connection is lost, or the session was ended here, so the wait does not depend on the peer.
void BlockingConnection::wait_for_reason() {
    BlockingCall call{*engine_, {}, [] { return std::uint64_t{0}; }};
    static_cast<void>(call.run_until([this] { return closed_.has_value(); }));
}

std::uint64_t BlockingConnection::moved_bytes() const {
    const StreamSocket::Counters counters = socket_->counters();
    return counters.sent.direct_bytes + counters.sent.indirect_bytes +
           counters.received.direct_bytes + counters.received.indirect_bytes;
}

void BlockingConnection::throw_closed() const {
    std::string why = closed_ ? to_string(*closed_) : "the connection is closed";
    if (dropped_bytes_ > 0) {
        why += "; " + std::to_string(dropped_bytes_) +
               " bytes that had arrived were dropped for lack of memory";
    }
    throw StreamError{StreamError::Kind::closed, why};
}

std::string BlockingConnection::peer_address() const {
    return socket_->is_connected() ? socket_->peer_address() : "no peer";
}

// --- what the socket reports ----------------------------------------------------------------

void BlockingConnection::on_connected(StreamSocket&) {
    connected_ = true;
}

void BlockingConnection::on_send_completed(StreamSocket&, Cookie, Completion::Outcome outcome) {
    --sends_open_;
    if (outcome != Completion::Outcome::done) send_canceled_ = true;
}

void BlockingConnection::on_received(StreamSocket&, const Received& received) {
    const auto bytes = static_cast<std::size_t>(received.bytes);
    if (received.cookie == rest_cookie) {
        add_arrivals(std::exchange(rest_, nullptr), 0, bytes);
    } else if (standing_) {
        add_arrivals(std::exchange(standing_, nullptr), standing_read_bytes_, bytes);
    } else {
        received_ = received;
    }
}

void BlockingConnection::add_arrivals(const std::shared_ptr<RegisteredBuffer>& memory,
                                      std::size_t begin, std::size_t end) {
    const auto bytes = memory->memory().first(end).subspan(begin);
    if (dropped_bytes_ > 0) {
        dropped_bytes_ += bytes.size();
    } else {
        unread_.add(bytes, memory);
    }
}

void BlockingConnection::on_end_of_stream(StreamSocket&) {
    end_ = End::arrived;
}

// Later calls may read the bytes. If there is not enough memory for all of them, the beginning is
// kept.
void BlockingConnection::on_lost(StreamSocket& socket, std::uint64_t arrived_bytes) {
    for (std::uint64_t kept = arrived_bytes; kept > 0; kept /= 2) {
        try {
            rest_ = std::make_shared<RegisteredBuffer>(static_cast<std::size_t>(kept),
                                                       Access::remote_write);
            static_cast<void>(socket.receive(rest_->slice(), rest_cookie, Fill::all));
            missing_bytes_ = arrived_bytes - kept;
            return;
        } catch (const std::exception&) {
            missing_bytes_ = arrived_bytes;
        }
    }
}

void BlockingConnection::on_closed(StreamSocket&, const Closed& closed) {
    closed_ = closed;
    // These bytes follow the ones that were kept.
    dropped_bytes_ += std::exchange(missing_bytes_, 0);
}

} // namespace netio::stream::inline v0_3
