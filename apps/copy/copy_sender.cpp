// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/copy_sender.hpp"

#include "apps/common/printable.hpp"
#include "apps/copy/copy_path.hpp"

#include <algorithm>
#include <utility>

namespace apps {

using netio::Cookie;
using netio::stream::Received;
using netio::stream::StreamSocket;
using Outcome = netio::Completion::Outcome;

CopySender::CopySender(netio::EventLoop& loop, netio::Transport& transport, Options options,
                       Handler& handler)
    : options_{std::move(options)}, handler_{handler}, channel_{options_.buffer_count},
      socket_{transport, copy_stream_options(options_.local_host), *this}, disk_{loop} {}

void CopySender::start() {
    state_ = State::connecting;
    channel_.reset();
    socket_.connect(options_.server);
}

void CopySender::stop() {
    if (state_ == State::finished) return;
    problem_ = "interrupted";
    state_ = State::leaving;
    disk_.drop();
    socket_.abort();
}

CopySender::Progress CopySender::progress() const {
    return {.path = current_.path,
            .size_bytes = current_.size_bytes,
            .done_bytes = done_bytes_,
            .moved_bytes = moved_bytes_};
}

// --- one file after another -----------------------------------------------------------------

void CopySender::on_connected(StreamSocket&) {
    provider_ = socket_.provider();
    try {
        channel_.expect(socket_);
    } catch (const netio::FabricError& error) { // no more memory may be locked
        return end(error.what());
    }
    next_file();
}

void CopySender::next_file() {
    while (position_ < options_.files.size() && !file().flaw.empty()) {
        current_ = {.path = file().path};
        settle(CopiedFile::Outcome::failed, file().flaw);
    }
    if (position_ == options_.files.size()) {
        state_ = State::leaving;
        return socket_.close();
    }
    state_ = State::opening;
    ++attempt_;
    current_ = {.path = file().path,
                .outcome = CopiedFile::Outcome::failed,
                .size_bytes = 0,
                .resumed_bytes = 0,
                .checksum = {},
                .detail = {}};
    done_bytes_ = 0;
    end_sent_ = false;
    disk_.run(
        [this, from = file(), kind = options_.checksum,
         overwrite = options_.overwrite](const std::stop_token&) {
            source_ = std::make_unique<SourceFile>(from.path, kind);
            open_ = {.name = from.name,
                     .size_bytes = source_->size_bytes(),
                     .modified_ns = source_->modified_ns(),
                     .mode = source_->mode(),
                     .checksum = kind,
                     .overwrite = overwrite};
        },
        [this, attempt = attempt_](const std::string& problem) {
            if (attempt != attempt_ || state_ != State::opening) return;
            if (!problem.empty()) {
                settle(CopiedFile::Outcome::failed, problem);
                return next_file();
            }
            current_.size_bytes = open_.size_bytes;
            state_ = State::asking;
            send(encode(open_));
        });
}

void CopySender::settle(CopiedFile::Outcome outcome, const std::string& detail) {
    current_.outcome = outcome;
    current_.detail = detail;
    const CopiedFile file = std::exchange(current_, {});
    ++position_;
    ++attempt_;
    handler_.on_file(file);
}

void CopySender::give_up_file(const std::string& why) {
    state_ = State::leaving;
    disk_.drop();
    socket_.abort();
    settle(CopiedFile::Outcome::failed, why);
}

void CopySender::end(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
    state_ = State::leaving;
    disk_.drop();
    socket_.abort();
}

void CopySender::on_closed(StreamSocket&, const netio::Closed& closed) {
    const bool files_left = position_ < options_.files.size();
    if (state_ == State::leaving && problem_.empty() && files_left) {
        try {
            return start();
        } catch (const netio::FabricError& error) {
            problem_ = error.what();
        }
    }
    if (state_ != State::leaving && problem_.empty()) {
        problem_ =
            to_string(options_.server) + ": " +
            (closed.detail.empty() ? std::string{netio::to_string(closed.reason)} : closed.detail);
    }
    disk_.drop();
    if (!current_.path.empty()) settle(CopiedFile::Outcome::failed, problem_);
    state_ = State::finished;
    handler_.on_finished(problem_);
}

void CopySender::on_end_of_stream(StreamSocket&) {
    if (state_ != State::leaving) end(to_string(options_.server) + ": the server has ended");
}

// --- messages -------------------------------------------------------------------------------

void CopySender::send(const CopyMessage& message) {
    if (!channel_.send(socket_, message)) {
        end(to_string(options_.server) + ": the server does not take messages");
    }
}

void CopySender::on_received(StreamSocket&, const Received& received) {
    if (received.outcome != Outcome::done || state_ == State::leaving) return;
    switch (channel_.on_received(socket_, received)) {
    case CopyChannel::Progress::incomplete:
    case CopyChannel::Progress::ended:
        return; // on_end_of_stream follows
    case CopyChannel::Progress::message:
        take_message();
        break;
    case CopyChannel::Progress::flawed:
        return end(to_string(options_.server) + ": the server " +
                   std::string{to_string(channel_.flaw())});
    }
    if (state_ != State::leaving) channel_.expect(socket_);
}

void CopySender::take_message() {
    const CopyKind kind = channel_.kind();
    if (kind == CopyKind::answer && state_ == State::asking) return take_answer();
    if (kind == CopyKind::verdict && state_ == State::sending) return take_verdict();
    end(to_string(options_.server) + ": the server sent a message out of turn");
}

void CopySender::take_answer() {
    CopyAnswer answer;
    const CopyFlaw flaw = decode(channel_.body(), answer);
    if (flaw != CopyFlaw::none || answer.offset_bytes > open_.size_bytes) {
        return end(to_string(options_.server) + ": the server sent an answer that cannot be");
    }
    if (answer.outcome == CopyAnswer::Outcome::refused) {
        settle(CopiedFile::Outcome::failed, "refused by the server: " + printable(answer.text));
        return next_file();
    }
    compare(answer);
}

// Whether what the server has is the beginning, or the whole, of this file.
void CopySender::compare(const CopyAnswer& answer) {
    state_ = State::comparing;
    on_disk([this, bytes = answer.offset_bytes](
                const std::stop_token& stop) { digest_ = source_->skip(bytes, stop); },
            [this, answer] {
                const bool same = digest_ == answer.digest;
                if (answer.outcome == CopyAnswer::Outcome::accepted) {
                    return begin(same ? answer.offset_bytes : 0);
                }
                current_.checksum = to_hex(options_.checksum, digest_);
                if (same && answer.offset_bytes == open_.size_bytes) {
                    settle(CopiedFile::Outcome::present);
                } else {
                    settle(CopiedFile::Outcome::failed,
                           "refused: " + open_.name +
                               " exists there already, and is another; --overwrite replaces it");
                }
                next_file();
            });
}

void CopySender::take_verdict() {
    CopyVerdict verdict;
    const CopyFlaw flaw = decode(channel_.body(), verdict);
    if (flaw != CopyFlaw::none || (verdict.kept && !end_sent_)) {
        return end(to_string(options_.server) + ": the server sent a verdict that cannot be");
    }
    if (!verdict.kept) return give_up_file("failed at the server: " + printable(verdict.text));
    settle(CopiedFile::Outcome::copied);
    next_file();
}

// --- the bytes ------------------------------------------------------------------------------

void CopySender::begin(std::uint64_t offset) {
    state_ = State::sending;
    current_.resumed_bytes = offset;
    read_position_ = done_bytes_ = offset;
    send(encode(CopyStart{offset}));
    if (state_ != State::sending) return;
    if (offset == 0) on_disk([this](const std::stop_token&) { source_->rewind(); }, [] {});
    if (offset == open_.size_bytes) return send_end();
    read_chunks();
}

// As many as there are buffers.
void CopySender::read_chunks() {
    while (channel_.has_free_buffer() && read_position_ < open_.size_bytes) {
        const CopyChannel::Buffer buffer = channel_.take_buffer();
        const std::uint64_t position = read_position_;
        const auto bytes = static_cast<std::size_t>(
            std::min<std::uint64_t>(copy_chunk_bytes, open_.size_bytes - position));
        read_position_ += bytes;
        on_disk(
            [this, buffer, position, bytes](const std::stop_token&) {
                const auto memory = channel_.bytes(buffer, bytes);
                source_->read(memory);
                encode({.position = position, .bytes = bytes, .digest = chunk_digest(memory)},
                       channel_.header(buffer));
            },
            [this, buffer, bytes] { send_chunk(buffer, bytes); });
        if (read_position_ == open_.size_bytes) send_end();
    }
}

void CopySender::send_chunk(CopyChannel::Buffer buffer, std::size_t bytes) {
    try {
        // A connection that has ended says so by on_closed.
        static_cast<void>(socket_.send(channel_.slice(buffer, bytes), Cookie{buffer}));
    } catch (const netio::FabricError& error) { // no more memory may be locked
        end(error.what());
    }
    done_bytes_ += bytes;
    moved_bytes_ += bytes;
}

void CopySender::on_send_completed(StreamSocket&, Cookie key, Outcome outcome) {
    if (!CopyChannel::is_buffer(key)) return channel_.on_sent(key);
    channel_.free_buffer(static_cast<CopyChannel::Buffer>(key));
    if (outcome == Outcome::done && state_ == State::sending) read_chunks();
}

// Behind the last chunk: the disk's thread has read it by then.
void CopySender::send_end() {
    on_disk([this](const std::stop_token&) { digest_ = source_->finish(); },
            [this] {
                current_.checksum = to_hex(options_.checksum, digest_);
                end_sent_ = true;
                send(encode(CopyEnd{digest_}));
            });
}

void CopySender::on_disk(DiskThread::Task task, std::function<void()> then) {
    disk_.run(std::move(task),
              [this, attempt = attempt_, then = std::move(then)](const std::string& problem) {
                  if (attempt != attempt_ || state_ == State::leaving) return;
                  if (!problem.empty()) return give_up_file(problem);
                  then();
              });
}

} // namespace apps
