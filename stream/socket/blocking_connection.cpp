// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/blocking_connection.hpp"

#include "netio/base/option_check.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "stream/core/silence.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace netio::stream::inline v0_2 {
namespace {

StreamSocket::Options without_heartbeats(StreamSocket::Options options) {
    options.session.heartbeat = options.session.dead_after = std::chrono::milliseconds{0};
    return options;
}

TimePoint later(TimePoint begin, std::chrono::milliseconds limit) {
    return limit.count() > 0 ? begin + std::min(limit, longest_time) : TimePoint::max();
}

// The peer has no part in it.
void wait_for_reason(EventLoop& loop, const std::optional<Closed>& closed) {
    run_until(
        loop, {}, [] { return 0; }, [&closed] { return closed.has_value(); });
}

} // namespace

BlockingEngine::BlockingEngine(const std::string& provider)
    : transport{open_fabric(loop, {.provider = provider})} {}

void run_until(EventLoop& loop, const BlockingLimits& limits,
               const std::function<std::uint64_t()>& moved, const std::function<bool()>& done) {
    TimePoint now = Clock::now();
    const TimePoint end = later(now, limits.call);
    const std::uint64_t before = moved();
    std::uint64_t seen = before;
    Silence silence{std::min(limits.progress, longest_time)};
    while (!done()) {
        if (now >= end) {
            throw StreamError{StreamError::Kind::timed_out,
                              "the call did not end within " + std::to_string(limits.call.count()) +
                                  " ms (call_timeout); " + std::to_string(seen - before) +
                                  " bytes have moved"};
        }
        if (silence.is_too_long()) {
            throw StreamError{StreamError::Kind::timed_out,
                              "no byte has moved for " + std::to_string(limits.progress.count()) +
                                  " ms (progress_timeout)"};
        }
        loop.run_once(std::min(end, silence.look_end(now)));
        const TimePoint begin = std::exchange(now, Clock::now());
        const std::uint64_t last = std::exchange(seen, moved());
        silence.on_looked(now - begin, seen != last);
    }
}

BlockingStream::Connection::Connection(std::string_view address,
                                       const BlockingStream::Options& options)
    : limits{options.call_timeout, options.progress_timeout, options.farewell_timeout},
      engine_{std::make_unique<BlockingEngine>(options.provider)}, loop_{engine_->loop},
      outgoing_{options.stream.send_limit_count}, socket_{std::make_unique<StreamSocket>(
                                                      *engine_->transport,
                                                      without_heartbeats(options.stream),
                                                      static_cast<StreamSocket::Handler&>(*this))} {
    loop_.observer = options.observer;
    socket_->connect(parse_address(address));
    wait([this] { return connected_; });
}

BlockingStream::Connection::Connection(IncomingStream& incoming,
                                       const BlockingStream::Options& options, EventLoop& loop)
    : limits{options.call_timeout, options.progress_timeout, options.farewell_timeout}, loop_{loop},
      outgoing_{options.stream.send_limit_count}, socket_{incoming.accept(
                                                      without_heartbeats(options.stream), *this)} {}

// --- reading --------------------------------------------------------------------------------

bool BlockingStream::Connection::may_receive_directly(std::size_t bytes) const noexcept {
    return !has_arrivals() && !standing_ && !closed_ && bytes > copy_limit_bytes;
}

std::size_t BlockingStream::Connection::read(std::span<std::byte> memory) {
    if (memory.empty()) return 0;
    if (may_receive_directly(memory.size())) return receive_into(memory, Fill::some);
    if (!has_arrivals() && end_ != End::read) wait_for_arrivals();
    if (arrived_.empty()) arrived_ = std::exchange(rescued_.rest, {});
    const std::size_t bytes = std::min(memory.size(), arrived_.size());
    if (bytes == 0) return nothing_more();
    std::memcpy(memory.data(), arrived_.data(), bytes);
    arrived_ = arrived_.subspan(bytes);
    return bytes;
}

std::size_t BlockingStream::Connection::read_all(std::span<std::byte> memory) {
    std::size_t filled = 0;
    while (filled < memory.size()) {
        const auto rest = memory.subspan(filled);
        const std::size_t bytes =
            may_receive_directly(rest.size()) ? receive_into(rest, Fill::all) : read(rest);
        if (bytes == 0) break;
        filled += bytes;
    }
    return filled;
}

// Until something has arrived or nothing more will. A receive into our own memory may stay posted,
// so this is not ended by a time-out.
void BlockingStream::Connection::wait_for_arrivals(const std::function<bool()>& or_else) {
    if (!standing_ && !closed_ && end_ != End::read &&
        socket_->receive(incoming_.slice(), standing_cookie, Fill::some) == Status::ok) {
        standing_ = true;
    }
    run([&] {
        return has_arrivals() || closed_ || (end_ == End::arrived && !standing_) || or_else();
    });
}

std::size_t BlockingStream::Connection::receive_into(std::span<std::byte> memory, Fill fill) {
    RegisteredBuffer registered{memory, Access::remote_write};
    received_.reset();
    if (socket_->receive(registered.slice(), direct_cookie, fill) != Status::ok) {
        return nothing_more();
    }
    wait([this] { return received_.has_value(); });
    if (received_->outcome != Completion::Outcome::done) throw_closed();
    if (received_->bytes == 0) return nothing_more();
    return static_cast<std::size_t>(received_->bytes);
}

// What a read is told when nothing has arrived.
std::size_t BlockingStream::Connection::nothing_more() {
    if (end_ == End::none) throw_closed();
    if (std::exchange(end_, End::read) == End::arrived && socket_->peer_closes()) settle();
    return 0;
}

// The peer waits in close() until it knows that everything was read here, and perhaps this was the
// last call.
void BlockingStream::Connection::settle() {
    if (limits.farewell.count() == 0) return;
    try {
        run_until(
            loop_, {.call = limits.farewell}, [] { return 0; },
            [this] { return closed_.has_value(); });
    } catch (const StreamError&) {
        // It does not answer. Here everything has arrived; what it makes of that, it says itself.
    }
}

BlockingStream::Ready BlockingStream::Connection::wait_for(int descriptor) {
    bool ready = false;
    std::optional<DescriptorWatch> watch;
    if (descriptor != no_descriptor) {
        try {
            watch.emplace(loop_, descriptor, DescriptorWatch::Interest::readable,
                          [&ready] { ready = true; });
        } catch (const FabricError& error) {
            if (error.code() != std::errc::operation_not_permitted) throw;
            ready = true; // a file: always readable, and epoll does not take it
            loop_.run_once();
        }
    }
    const bool wants_capacity = descriptor == no_descriptor;
    const auto is_writable = [&] { return wants_capacity && has_capacity(); };
    if (!has_arrivals()) wait_for_arrivals([&] { return ready || is_writable(); });
    if (has_arrivals() || (end_ == End::arrived && !standing_)) return Ready::peer;
    if (closed_) throw_closed();
    return ready ? Ready::descriptor : Ready::writable;
}

// --- writing --------------------------------------------------------------------------------

void BlockingStream::Connection::write(std::span<const std::byte> memory) {
    if (closed_) throw_closed();
    if (memory.empty()) return;
    wait([this] { return has_capacity(); });
    if (memory.size() > copy_limit_bytes) {
        // Only read; the type has no way to say so.
        RegisteredBuffer registered{{const_cast<std::byte*>(memory.data()), memory.size()},
                                    Access::send};
        send(registered.slice());
        wait([this] { return sends_open_ == 0; });
        return;
    }
    // The copy is ours: a short write returns before it has left.
    const Slice slice = outgoing_.slice(sends_, memory.size());
    std::memcpy(slice.data, memory.data(), memory.size());
    send(slice);
    loop_.run_once();
}

void BlockingStream::Connection::send(const Slice& slice) {
    if (socket_->send(slice, Cookie{sends_}) != Status::ok) {
        // It is gone, and what had arrived is being saved: the reason is told behind that.
        if (!socket_->is_connected()) wait_for_reason(loop_, closed_);
        throw_closed();
    }
    ++sends_;
    ++sends_open_;
}

// Long writes have waited, and short ones are in memory of ours: nothing is to be waited for. Two
// peers that both write, shut down and then read would wait for each other.
void BlockingStream::Connection::shutdown_send() {
    if (closed_) throw_closed();
    socket_->shutdown_send();
    loop_.run_once();
}

void BlockingStream::Connection::close() {
    // A call before may have noticed how it ended, and told nobody.
    if (!closed_) {
        socket_->close();
        run([this] { return closed_.has_value(); });
    }
    if (closed_->reason != CloseReason::orderly) throw_closed();
}

// --- waiting --------------------------------------------------------------------------------

// Throws if the connection ends before. Lent memory is free when this returns or throws.
void BlockingStream::Connection::wait(const std::function<bool()>& done) {
    try {
        run([&] { return done() || closed_; });
    } catch (const StreamError& timeout) {
        socket_->abort();
        wait_for_reason(loop_, closed_);
        closed_->detail = std::string{"a call before timed out: "} + timeout.what();
        throw;
    }
    if (!done() || (closed_ && send_canceled_)) throw_closed();
}

void BlockingStream::Connection::run(const std::function<bool()>& done) {
    run_until(
        loop_, limits, [this] { return moved_bytes(); }, done);
}

std::uint64_t BlockingStream::Connection::moved_bytes() const {
    const StreamSocket::Counters counters = socket_->counters();
    return counters.sent.direct_bytes + counters.sent.indirect_bytes +
           counters.received.direct_bytes + counters.received.indirect_bytes;
}

void BlockingStream::Connection::throw_closed() const {
    throw StreamError{StreamError::Kind::closed,
                      closed_ ? to_string(*closed_) : "the connection is closed"};
}

std::string BlockingStream::Connection::peer_address() const {
    return socket_->is_connected() ? socket_->peer_address() : "nobody";
}

// --- what the socket reports ----------------------------------------------------------------

void BlockingStream::Connection::on_connected(StreamSocket&) {
    connected_ = true;
}

void BlockingStream::Connection::on_send_completed(StreamSocket&, Cookie,
                                                   Completion::Outcome outcome) {
    --sends_open_;
    if (outcome != Completion::Outcome::done) send_canceled_ = true;
}

void BlockingStream::Connection::on_received(StreamSocket&, const Received& received) {
    const auto bytes = static_cast<std::size_t>(received.bytes);
    if (received.cookie == direct_cookie) {
        received_ = received;
    } else if (received.cookie == rest_cookie) {
        rescued_.rest = rescued_.memory->memory().first(bytes);
    } else {
        standing_ = false;
        arrived_ = incoming_.memory().first(bytes);
    }
}

void BlockingStream::Connection::on_end_of_stream(StreamSocket&) {
    end_ = End::arrived;
}

// It will be read, or not, by later calls. Where there is no memory for all of it, the beginning is
// kept, as much as there is memory for.
void BlockingStream::Connection::on_lost(StreamSocket& socket, std::uint64_t arrived_bytes) {
    for (std::uint64_t kept = arrived_bytes; kept > 0; kept /= 2) {
        rescued_.dropped_bytes = arrived_bytes - kept;
        try {
            rescued_.memory = std::make_unique<RegisteredBuffer>(static_cast<std::size_t>(kept),
                                                                 Access::remote_write);
            static_cast<void>(socket.receive(rescued_.memory->slice(), rest_cookie, Fill::all));
            return;
        } catch (const std::exception&) {
            rescued_.dropped_bytes = arrived_bytes;
        }
    }
}

void BlockingStream::Connection::on_closed(StreamSocket&, const Closed& closed) {
    closed_ = closed;
    if (rescued_.dropped_bytes > 0) {
        closed_->detail += "; " + std::to_string(rescued_.dropped_bytes) +
                           " bytes that had arrived were dropped for want of memory";
    }
}

} // namespace netio::stream::inline v0_2
