// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/copy_session.hpp"

#include "apps/common/printable.hpp"
#include "apps/copy/copy_path.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace apps {

using netio::Cookie;
using netio::stream::Received;
using netio::stream::StreamSocket;
using Outcome = netio::Completion::Outcome;

namespace {

// A sender that was told of a failure has nothing left to do but to leave.
constexpr std::chrono::seconds patience{10};
constexpr std::uint64_t slow_disk_bytes_per_ms = 20'000;

} // namespace

CopySession::CopySession(netio::EventLoop& loop, const ServedFolder& folder,
                         std::size_t buffer_count, std::chrono::milliseconds idle_limit,
                         netio::stream::IncomingStream& incoming, Handler& handler)
    : folder_{folder}, handler_{handler}, peer_{incoming.peer_address()}, idle_limit_{idle_limit},
      channel_{buffer_count}, patience_{loop, [this] { lose_patience(); }}, disk_{loop} {
    socket_ = incoming.accept(copy_stream_options(), *this);
}

// It is the sender's turn. Its place, and the name of the file it has begun, are others' as well.
void CopySession::wait_for_peer() {
    patience_.start(idle_limit_);
}

void CopySession::lose_patience() {
    if (state_ != State::failing) {
        spdlog::warn("{} has said nothing for {} ms", peer_, idle_limit_.count());
    }
    socket_->abort();
}

bool CopySession::is_in_a_file() const noexcept {
    return state_ == State::examining || state_ == State::accepted || state_ == State::receiving ||
           state_ == State::finishing;
}

std::string CopySession::file() const {
    return peer_ + ": " + printable(open_.name, 256);
}

void CopySession::on_connected(StreamSocket&) {
    spdlog::info("{} has come", peer_);
    try {
        channel_.expect(*socket_);
        wait_for_peer();
    } catch (const netio::FabricError& error) { // no more memory may be locked
        refuse_peer(error.what());
    }
}

void CopySession::on_send_completed(StreamSocket&, Cookie key, Outcome) {
    channel_.on_sent(key);
}

void CopySession::on_received(StreamSocket&, const Received& received) {
    if (received.outcome != Outcome::done) return;
    if (state_ == State::failing || state_ == State::closed) return;
    if (CopyChannel::is_buffer(received.cookie)) {
        return take_chunk(static_cast<CopyChannel::Buffer>(received.cookie), received.bytes);
    }
    switch (channel_.on_received(*socket_, received)) {
    case CopyChannel::Progress::incomplete:
        return;
    case CopyChannel::Progress::message:
        return take_message();
    case CopyChannel::Progress::ended:
        return; // on_end_of_stream follows
    case CopyChannel::Progress::flawed:
        return refuse_peer(to_string(channel_.flaw()));
    }
}

void CopySession::take_message() {
    const CopyKind kind = channel_.kind();
    if (kind == CopyKind::open && state_ == State::idle) return take_open();
    if (kind == CopyKind::start && state_ == State::accepted) return take_start();
    if (kind == CopyKind::end && state_ == State::receiving) return take_end();
    refuse_peer("sent a message out of turn");
}

void CopySession::take_open() {
    const CopyFlaw flaw = decode(channel_.body(), open_);
    if (flaw != CopyFlaw::none) return refuse_peer(to_string(flaw));
    patience_.cancel();
    state_ = State::examining;
    moved_bytes_ = arrived_position_ = 0;
    disk_.run(
        [this, request = open_](const std::stop_token& stop) {
            target_.reset();
            target_ = std::make_unique<TargetFile>(request);
            answer_ = target_->examine(folder_, stop);
            if (answer_.outcome != CopyAnswer::Outcome::accepted) target_.reset();
        },
        [this](const std::string& problem) {
            if (state_ != State::examining) return;
            if (!problem.empty()) {
                answer_ = {.outcome = CopyAnswer::Outcome::refused,
                           .offset_bytes = 0,
                           .digest = {},
                           .text = problem};
            }
            answer(answer_);
        });
}

void CopySession::answer(const CopyAnswer& answer) {
    const bool accepted = answer.outcome == CopyAnswer::Outcome::accepted;
    state_ = accepted ? State::accepted : State::idle;
    if (answer.outcome == CopyAnswer::Outcome::refused) {
        spdlog::warn("{}: refused: {}", file(), answer.text);
        handler_.on_file_failed(std::exchange(moved_bytes_, 0));
    }
    say(encode(answer));
    // What is there already it compares with its own file first, which may lie on a slow disk.
    const std::uint64_t reading_ms = answer.offset_bytes / slow_disk_bytes_per_ms;
    if (state_ == State::accepted || state_ == State::idle) {
        patience_.start(idle_limit_ + std::chrono::milliseconds{reading_ms});
    }
}

// And goes on to the next message. Who does not read what it asked for is not answered without end.
void CopySession::say(const CopyMessage& message) {
    if (!channel_.send(*socket_, message)) return refuse_peer("does not take answers");
    channel_.expect(*socket_);
    wait_for_peer();
}

void CopySession::take_start() {
    CopyStart start;
    const CopyFlaw flaw = decode(channel_.body(), start);
    if (flaw != CopyFlaw::none) return refuse_peer(to_string(flaw));
    if (start.offset_bytes != 0 && start.offset_bytes != answer_.offset_bytes) {
        return refuse_peer("goes on where that was not offered");
    }
    if (start.offset_bytes > 0) {
        spdlog::info("{}: goes on at {} of {} bytes", file(), start.offset_bytes, open_.size_bytes);
    } else if (answer_.offset_bytes > 0) {
        spdlog::info("{}: what was there of it is of another file, begins anew", file());
    }
    state_ = State::receiving;
    asked_position_ = arrived_position_ = start.offset_bytes;
    on_disk([this, start](const std::stop_token&) { target_->start(start.offset_bytes); }, [] {});
    try {
        post_receives();
    } catch (const netio::FabricError& error) { // no more memory may be locked
        fail(error.what());
    }
}

// As many as there are buffers; behind the last chunk comes the end.
void CopySession::post_receives() {
    const std::uint64_t before = asked_position_;
    while (channel_.has_free_buffer() && asked_position_ < open_.size_bytes) {
        const CopyChannel::Buffer buffer = channel_.take_buffer();
        const auto bytes = static_cast<std::size_t>(
            std::min<std::uint64_t>(copy_chunk_bytes, open_.size_bytes - asked_position_));
        asked_position_ += bytes;
        const netio::Status status = socket_->receive(channel_.slice(buffer, bytes), Cookie{buffer},
                                                      netio::stream::Fill::all);
        if (status != netio::Status::ok) return; // on_closed says why
    }
    wait_for_peer();
    const bool asked_for_all = asked_position_ == open_.size_bytes;
    if (asked_for_all && (before < asked_position_ || open_.size_bytes == arrived_position_)) {
        channel_.expect(*socket_);
    }
}

void CopySession::take_chunk(CopyChannel::Buffer buffer, std::uint64_t received_bytes) {
    const auto bytes = static_cast<std::size_t>(
        std::min<std::uint64_t>(copy_chunk_bytes, open_.size_bytes - arrived_position_));
    if (received_bytes < copy_chunk_header_bytes + bytes) return; // the end of the stream follows
    CopyChunk chunk;
    const CopyFlaw flaw = decode(channel_.header(buffer), chunk);
    if (flaw != CopyFlaw::none || chunk.position != arrived_position_ || chunk.bytes != bytes) {
        return refuse_peer("sent a chunk that does not belong there");
    }
    arrived_position_ += bytes;
    if (arrived_position_ == asked_position_ && arrived_position_ < open_.size_bytes) {
        patience_.cancel(); // it is the disk's turn
    } else {
        wait_for_peer();
    }
    on_disk(
        [this, buffer, chunk](const std::stop_token&) {
            const auto memory = channel_.bytes(buffer, static_cast<std::size_t>(chunk.bytes));
            if (chunk_digest(memory) != chunk.digest) {
                throw std::runtime_error{fmt::format("the {} bytes at {} were damaged on their way",
                                                     chunk.bytes, chunk.position)};
            }
            target_->write(memory);
        },
        [this, buffer, bytes] {
            moved_bytes_ += bytes;
            channel_.free_buffer(buffer);
            if (asked_position_ < open_.size_bytes) post_receives();
        });
}

void CopySession::take_end() {
    const CopyFlaw flaw = decode(channel_.body(), end_);
    if (flaw != CopyFlaw::none) return refuse_peer(to_string(flaw));
    patience_.cancel();
    state_ = State::finishing;
    on_disk(
        [this, digest = end_.digest](const std::stop_token&) {
            target_->finish(digest);
            target_.reset();
        },
        [this] {
            spdlog::info("{}: kept, {} bytes, {} {}", file(), open_.size_bytes,
                         to_string(open_.checksum), to_hex(open_.checksum, end_.digest));
            handler_.on_file_kept(std::exchange(moved_bytes_, 0));
            state_ = State::idle;
            say(encode(CopyVerdict{.kept = true, .text = {}}));
        });
}

void CopySession::on_disk(DiskThread::Task task, std::function<void()> then) {
    disk_.run(std::move(task), [this, then = std::move(then)](const std::string& problem) {
        if (state_ == State::failing || state_ == State::closed) return;
        if (!problem.empty()) return fail(problem);
        then();
    });
}

// The file has failed here. The sender is told, and leaves then.
void CopySession::fail(const std::string& why) {
    spdlog::error("{}: {}", file(), why);
    handler_.on_file_failed(std::exchange(moved_bytes_, 0));
    state_ = State::failing;
    disk_.drop();
    disk_.run([this](const std::stop_token&) { target_.reset(); }, [](const std::string&) {});
    if (!channel_.send(*socket_, encode(CopyVerdict{.kept = false, .text = why}))) {
        return socket_->abort();
    }
    socket_->shutdown_send();
    patience_.start(patience);
}

void CopySession::refuse_peer(std::string_view what) {
    spdlog::error("{} {}", peer_, what);
    if (is_in_a_file()) handler_.on_file_failed(std::exchange(moved_bytes_, 0));
    state_ = State::failing;
    socket_->abort();
}

void CopySession::on_end_of_stream(StreamSocket&) {
    socket_->close();
}

// The file is given up on its thread, which may still be at work on it.
void CopySession::on_closed(StreamSocket&, const netio::Closed& closed) {
    const bool orderly =
        closed.reason == netio::CloseReason::orderly || closed.reason == netio::CloseReason::local;
    if (is_in_a_file()) {
        spdlog::error("{}: the sender {} with {} of {} bytes received, which are kept for the next "
                      "attempt{}{}",
                      file(), orderly ? "left" : "vanished", arrived_position_, open_.size_bytes,
                      closed.detail.empty() ? "" : ": ", closed.detail);
        handler_.on_file_failed(std::exchange(moved_bytes_, 0));
    } else if (state_ == State::idle && !orderly) {
        spdlog::warn("{}: {} {}", peer_, netio::to_string(closed.reason), closed.detail);
    } else {
        spdlog::info("{} has left", peer_);
    }
    if (state_ == State::examining) disk_.drop(); // reading what is there may take long
    state_ = State::closed;
    patience_.cancel();
    disk_.run([this](const std::stop_token&) { target_.reset(); },
              [this](const std::string&) { handler_.on_session_ended(*this); });
}

} // namespace apps
