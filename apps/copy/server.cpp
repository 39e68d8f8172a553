// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/server.hpp"

#include "apps/copy/served_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace apps::copy {
namespace {

// Time for a sender to disconnect after it was notified of a failure.
constexpr std::chrono::seconds finish_timeout{10};

} // namespace

Session::Session(netio::EventLoop& loop, const ServedFolder& folder, const Options& options,
                 netio::stream::IncomingStream& incoming, Handler& handler)
    : folder_{folder}, handler_{handler}, peer_{incoming.peer_address()}, options_{options},
      channel_{options.buffer_count, options.remote_writes, *this},
      idle_timer_{loop, [this] { look_for_progress(); }}, disk_{options_.disk(loop)} {
    channel_.accept(incoming);
}

// A silent sender is aborted, because it occupies a slot and the name of the file that it has
// begun.
void Session::wait_for_peer() {
    progress_.seen_bytes = done_bytes();
    idle_timer_.start(options_.idle_limit);
}

// A chunk may take longer than the limit on a slow path: only arriving bytes count.
void Session::look_for_progress() {
    if (state_ == State::failing) return channel_.abort();
    if (state_ == State::examining) return examine();
    const std::uint64_t bytes = done_bytes() - progress_.seen_bytes;
    const auto wanted =
        static_cast<std::uint64_t>(static_cast<double>(options_.least_bytes_per_s) *
                                   std::chrono::duration<double>(options_.idle_limit).count());
    if (bytes >= std::max<std::uint64_t>(1, wanted)) return wait_for_peer();
    handler_.log().warn(fmt::format("{} has sent only {} bytes in {} ms", peer_, bytes,
                                    options_.idle_limit.count()));
    channel_.abort();
}

bool Session::is_in_a_file() const noexcept {
    return state_ == State::examining || state_ == State::accepted || state_ == State::receiving ||
           state_ == State::finishing;
}

std::string Session::file() const {
    constexpr std::size_t shown_bytes = 256;
    return peer_ + ": " + open_.name.substr(0, shown_bytes);
}

void Session::on_open() {
    handler_.log().info(peer_ + " is connected");
    try {
        disk_->start();
    } catch (const netio::FabricError& error) {
        return refuse_peer(error.what());
    }
    wait_for_peer();
}

void Session::on_no_memory(const std::string& why) {
    refuse_peer("cannot be served: " + why);
}

void Session::on_flaw(std::string_view what) {
    if (state_ != State::failing && state_ != State::closed) refuse_peer(what);
}

void Session::on_message() {
    if (state_ == State::failing || state_ == State::closed) return;
    const Kind kind = channel_.kind();
    if (kind == Kind::open && state_ == State::idle) return take_open();
    if (kind == Kind::comparing && may_compare()) return take_comparing();
    if (kind == Kind::start && state_ == State::accepted) return take_start();
    if (kind == Kind::sparse_start && state_ == State::accepted) return take_sparse_start();
    if (kind == Kind::attributes && may_take_attributes()) return take_attributes();
    if (state_ == State::receiving) arrivals_.message_expected = false;
    if (kind == Kind::extents && state_ == State::receiving && arrivals_.sparse)
        return take_extents();
    if (kind == Kind::end && state_ == State::receiving) return take_end();
    refuse_peer("sent a message out of order");
}

void Session::take_open() {
    const Flaw flaw = decode(channel_.body(), open_);
    if (flaw != Flaw::none) return refuse_peer(to_string(flaw));
    idle_timer_.cancel();
    state_ = State::examining;
    moved_bytes_ = progress_.compared_bytes = 0;
    arrivals_ = {};
    answer_.reset();
    if (options_.rights && !options_.rights->may_write(open_.name, open_.overwrite)) {
        return answer({.outcome = Answer::Outcome::refused,
                       .offset_bytes = 0,
                       .digest = {},
                       .text = open_.overwrite ? "the key does not permit replacing files there"
                                               : "the key does not permit writing there"});
    }
    disk_->run([this](const std::stop_token&) { target_.reset(); }, [](const std::string&) {});
    examine();
}

// Repeated while another session holds the partial file, without blocking a thread.
void Session::examine() {
    std::string within; // the right covers a folder, but not the targets of links in it
    if (options_.rights) within = options_.rights->folder_for(open_.name, open_.overwrite)->folder;
    disk_->run(
        [this, request = open_, within](const std::stop_token& stop) {
            answer_.reset();
            if (!target_) target_ = std::make_unique<TargetFile>(request, options_.access);
            answer_ = target_->examine(folder_, stop, within);
            if (answer_ && answer_->outcome == Answer::Outcome::refused) target_.reset();
        },
        [this](const std::string& problem) {
            if (state_ != State::examining) return;
            if (!problem.empty()) {
                answer_ = Answer{.outcome = Answer::Outcome::refused,
                                 .offset_bytes = 0,
                                 .digest = {},
                                 .text = problem};
            }
            if (!answer_) return idle_timer_.start(TargetFile::held_pause);
            answer(*answer_);
        });
}

void Session::answer(const Answer& answer) {
    const bool accepted = answer.outcome == Answer::Outcome::accepted;
    state_ = accepted ? State::accepted : State::idle;
    if (answer.outcome == Answer::Outcome::refused) {
        handler_.log().warn(fmt::format("{}: refused: {}", file(), answer.text));
        handler_.on_file_failed(std::exchange(moved_bytes_, 0));
    }
    say(encode(answer));
}

// The sender first compares the existing bytes with its own file, which may be on a slow disk.
bool Session::may_compare() const noexcept {
    return state_ == State::accepted ||
           (state_ == State::idle && answer_ && answer_->outcome == Answer::Outcome::present);
}

// The timer continues: it restarts only if the sender makes progress.
void Session::take_comparing() {
    Comparing comparing;
    const Flaw flaw = decode(channel_.body(), comparing);
    if (flaw != Flaw::none) return refuse_peer(to_string(flaw));
    if (comparing.position <= progress_.compared_bytes ||
        comparing.position > answer_->offset_bytes) {
        return refuse_peer("compares without an offer");
    }
    progress_.compared_bytes = comparing.position;
    channel_.expect();
}

// Sends the message and expects the next one. A sender that does not receive its answers is
// refused, so that they do not accumulate.
void Session::say(const Message& message) {
    if (!channel_.send(message)) return refuse_peer("does not receive answers");
    channel_.expect();
    wait_for_peer();
}

void Session::take_start() {
    Start start;
    const Flaw flaw = decode(channel_.body(), start);
    if (flaw != Flaw::none) return refuse_peer(to_string(flaw));
    begin(start.offset_bytes, {});
}

void Session::take_sparse_start() {
    SparseStart start;
    const Flaw flaw = decode(channel_.body(), start);
    if (flaw != Flaw::none) return refuse_peer(to_string(flaw));
    begin(start.offset_bytes, start.data_bytes);
}

// `data_bytes` is set for a sparse file, whose extents follow.
void Session::begin(std::uint64_t offset, std::optional<std::uint64_t> data_bytes) {
    if (offset != 0 && offset != answer_->offset_bytes) {
        return refuse_peer("resumes at a position that was not offered");
    }
    if (offset > 0) {
        handler_.log().info(
            fmt::format("{}: resumes at {} of {} bytes", file(), offset, open_.size_bytes));
    } else if (answer_->offset_bytes > 0) {
        handler_.log().info(
            file() + ": the existing part belongs to another file; starts from the beginning");
    }
    state_ = State::receiving;
    arrivals_.sparse = data_bytes.has_value();
    arrivals_.announced_position = arrivals_.position = offset;
    if (!arrivals_.sparse && offset < open_.size_bytes)
        arrivals_.announced.push_back({.position = offset, .bytes = open_.size_bytes - offset});
    on_disk(
        [this, offset, data_bytes](const std::stop_token&) { target_->start(offset, data_bytes); },
        [] {});
    receive_more();
}

void Session::receive_more() {
    try {
        post_receives();
    } catch (const netio::FabricError& error) { // no more memory may be locked
        fail(error.what());
    }
}

// Posts as many receives as there are buffers. After the last announced chunk a message follows.
void Session::post_receives() {
    while (channel_.has_free_buffer() && !arrivals_.announced.empty()) {
        Extent& next = arrivals_.announced.front();
        const Extent chunk{.position = next.position,
                           .bytes = std::min<std::uint64_t>(chunk_bytes, next.bytes)};
        next = {.position = chunk.end(), .bytes = next.bytes - chunk.bytes};
        if (next.bytes == 0) arrivals_.announced.pop_front();
        arrivals_.chunks.push_back(chunk);
        channel_.receive(channel_.take_buffer(), static_cast<std::size_t>(chunk.bytes));
    }
    if (arrivals_.chunks.empty() && !arrivals_.announced.empty()) {
        idle_timer_.cancel(); // waiting for the disk
    } else if (!idle_timer_.armed()) {
        wait_for_peer();
    }
    if (arrivals_.announced.empty() && !arrivals_.message_expected) {
        arrivals_.message_expected = true;
        channel_.expect();
    }
}

void Session::take_extents() {
    Extents extents;
    const Flaw flaw = decode(channel_.body(), extents);
    if (flaw != Flaw::none) return refuse_peer(to_string(flaw));
    for (const Extent& each : extents.all) {
        const std::uint64_t from = std::exchange(arrivals_.announced_position, each.end());
        if (each.position < from || each.end() <= from || each.end() > open_.size_bytes ||
            each.position - from > hole_step_bytes) {
            return refuse_peer("announces data at an invalid position");
        }
    }
    if (extents.all.front().bytes > 0) {
        arrivals_.announced.assign(extents.all.begin(), extents.all.end());
        return receive_more();
    }
    // A part of a hole. Its checksum takes time, and the next part waits for it.
    idle_timer_.cancel();
    on_disk([this, position = extents.all.front().position](
                const std::stop_token& stop) { target_->pass_hole(position, stop); },
            [this] { receive_more(); });
}

void Session::on_chunk(Channel::Buffer buffer, std::uint64_t received_bytes) {
    if (state_ == State::failing || state_ == State::closed) return;
    const Extent expected = arrivals_.chunks.front();
    const auto bytes = static_cast<std::size_t>(expected.bytes);
    if (received_bytes < chunk_header_bytes + bytes) return; // the end of the stream follows
    arrivals_.chunks.pop_front();
    Chunk chunk;
    const Flaw flaw = decode(channel_.header(buffer), chunk);
    if (flaw != Flaw::none || chunk.position != expected.position || chunk.bytes != bytes) {
        return refuse_peer("sent a chunk with a wrong position or size");
    }
    arrivals_.position = expected.end();
    const bool all_here = arrivals_.chunks.empty();
    if (all_here && !arrivals_.message_expected) {
        idle_timer_.cancel(); // waiting for the disk
    } else if (!idle_timer_.armed() || all_here) {
        wait_for_peer();
    }
    on_disk(
        [this, buffer, chunk](const std::stop_token& stop) {
            const auto memory = channel_.bytes(buffer, static_cast<std::size_t>(chunk.bytes));
            if (chunk_digest(memory) != chunk.digest) {
                throw std::runtime_error{
                    fmt::format("the {} bytes at {} were damaged during the transfer", chunk.bytes,
                                chunk.position)};
            }
            target_->pass_hole(chunk.position, stop);
            target_->write(memory);
        },
        [this, buffer, bytes] {
            moved_bytes_ += bytes;
            channel_.free_buffer(buffer);
            if (!arrivals_.announced.empty()) receive_more();
        });
}

// Attributes are accepted before the end of a file that is being received, or once for one that is
// present.
bool Session::may_take_attributes() const noexcept {
    return state_ == State::receiving ||
           (state_ == State::idle && answer_ && answer_->outcome == Answer::Outcome::present);
}

void Session::take_attributes() {
    Attributes attributes;
    const Flaw flaw = decode(channel_.body(), attributes);
    if (flaw != Flaw::none) return refuse_peer(to_string(flaw));
    if (state_ == State::idle) return repair(attributes);
    on_disk([this, attributes](const std::stop_token&) { target_->set(attributes); }, [] {});
    arrivals_.message_expected = true;
    channel_.expect();
}

// The sender has the same content. Changing the attributes counts as replacing the file.
void Session::repair(const Attributes& attributes) {
    idle_timer_.cancel();
    state_ = State::repairing;
    const bool may_change = options_.access == TargetFile::Access::full &&
                            (!options_.rights || options_.rights->may_write(open_.name, true));
    const auto notes = std::make_shared<std::string>();
    disk_->run(
        [this, attributes, may_change, notes](const std::stop_token&) {
            *notes = target_->repair(attributes, may_change);
            target_.reset();
        },
        [this, notes](const std::string& problem) {
            if (state_ != State::repairing) return;
            answer_.reset();
            state_ = State::idle;
            say(encode(Verdict{.kept = true, .text = problem.empty() ? *notes : problem}));
        });
}

void Session::take_end() {
    const Flaw flaw = decode(channel_.body(), end_);
    if (flaw != Flaw::none) return refuse_peer(to_string(flaw));
    if (arrivals_.sparse && open_.size_bytes - arrivals_.announced_position > hole_step_bytes)
        return refuse_peer("ended the file within a hole");
    idle_timer_.cancel();
    state_ = State::finishing;
    const auto notes = std::make_shared<std::string>();
    on_disk(
        [this, notes, digest = end_.digest](const std::stop_token& stop) {
            *notes = target_->finish(digest, stop);
            target_.reset();
        },
        [this, notes] {
            handler_.log().info(fmt::format("{}: kept, {} bytes, {} {}", file(), open_.size_bytes,
                                            to_string(open_.checksum),
                                            to_hex(open_.checksum, end_.digest)));
            if (!notes->empty()) handler_.log().warn(fmt::format("{}: {}", file(), *notes));
            handler_.on_file_kept(std::exchange(moved_bytes_, 0));
            answer_.reset();
            state_ = State::idle;
            say(encode(Verdict{.kept = true, .text = *notes}));
        });
}

void Session::on_disk(Disk::Task task, std::function<void()> then) {
    disk_->run(std::move(task), [this, then = std::move(then)](const std::string& problem) {
        if (state_ == State::failing || state_ == State::closed) return;
        if (!problem.empty()) return fail(problem);
        then();
    });
}

// The file has failed here. The sender is notified, and disconnects then.
void Session::fail(const std::string& why) {
    handler_.log().error(file() + ": " + why);
    handler_.on_file_failed(std::exchange(moved_bytes_, 0));
    state_ = State::failing;
    disk_->drop();
    disk_->run([this](const std::stop_token&) { target_.reset(); }, [](const std::string&) {});
    if (!channel_.send(encode(Verdict{.kept = false, .text = why}))) return channel_.abort();
    channel_.shutdown_send();
    idle_timer_.start(finish_timeout);
}

void Session::refuse_peer(std::string_view what) {
    handler_.log().error(fmt::format("{} {}", peer_, what));
    if (is_in_a_file()) handler_.on_file_failed(std::exchange(moved_bytes_, 0));
    state_ = State::failing;
    channel_.abort();
}

void Session::on_end() {
    channel_.close();
}

// The file is closed on its own thread, which may still be using it.
void Session::on_closed(const netio::Closed& closed) {
    const bool orderly =
        closed.reason == netio::CloseReason::orderly || closed.reason == netio::CloseReason::local;
    const bool here = closed.reason == netio::CloseReason::failed;
    const bool sent_away = closed.reason == netio::CloseReason::local;
    const char* const shown = sent_away ? "was aborted"
                              : orderly ? "disconnected"
                              : here    ? "could not be served"
                                        : "was lost";
    if (is_in_a_file()) {
        const std::string kept =
            arrivals_.position == 0
                ? "nothing was received"
                : fmt::format("{} of {} bytes were received and are kept for the next attempt",
                              arrivals_.position, open_.size_bytes);
        handler_.log().error(fmt::format("{}: the sender {}; {}{}{}", file(), shown, kept,
                                         closed.detail.empty() ? "" : ": ", closed.detail));
        handler_.on_file_failed(std::exchange(moved_bytes_, 0));
    } else if (here || (state_ == State::idle && !orderly)) {
        handler_.log().warn(fmt::format("{}: {}", peer_, explain(closed)));
    } else {
        handler_.log().info(peer_ + " has disconnected");
    }
    if (state_ == State::examining) disk_->drop(); // reading the existing bytes may take long
    state_ = State::closed;
    idle_timer_.cancel();
    if (!disk_->is_started()) return handler_.on_session_ended(*this); // no file was begun
    disk_->run([this](const std::stop_token&) { target_.reset(); },
               [this](const std::string&) { handler_.on_session_ended(*this); });
}

Server::Server(netio::EventLoop& loop, netio::Transport& transport, Options options)
    : log_{loop}, loop_{loop}, options_{std::move(options)}, places_{options_.sender_limit_count,
                                                                     options_.host_limit_count},
      folder_{options_.folder}, listener_{
                                    transport,
                                    {.listen = options_.listen,
                                     .allow_remote_anonymous = options_.allow_remote_anonymous,
                                     .keys = options_.keys},
                                    *this} {
    if (!folder_.limitation().empty()) log_.warn(folder_.limitation());
}

Server::Counters Server::counters() const {
    Counters sums = counters_;
    for (const auto& session : sessions_)
        sums.bytes += session->moved_bytes();
    return sums;
}

void Server::end(std::function<void()> then) {
    when_ended_ = std::move(then);
    if (sessions_.empty()) return when_ended_();
    for (const auto& session : sessions_)
        session->abort();
}

void Server::on_incoming(netio::stream::IncomingStream& incoming) {
    if (when_ended_) return incoming.reject("the server is ending");
    const std::string peer = incoming.peer_address();
    std::string refusal = places_.enter(peer);
    if (!refusal.empty()) {
        const std::size_t host_limit = options_.host_limit_count > 0
                                           ? options_.host_limit_count
                                           : (options_.sender_limit_count + 1) / 2;
        return incoming.reject(fmt::format("{} (--senders {}, --senders-per-host {})", refusal,
                                           options_.sender_limit_count, host_limit));
    }
    try {
        Session::Options options = options_.session;
        if (incoming.rights() != nullptr) options.rights = *incoming.rights();
        sessions_.push_back(std::make_unique<Session>(loop_, folder_, options, incoming,
                                                      static_cast<Session::Handler&>(*this)));
    } catch (...) {
        places_.leave(peer);
        throw;
    }
}

void Server::on_file_kept(std::uint64_t moved_bytes) {
    ++counters_.files;
    counters_.bytes += moved_bytes;
}

void Server::on_file_failed(std::uint64_t moved_bytes) {
    ++counters_.failures;
    counters_.bytes += moved_bytes;
}

void Server::on_session_ended(Session& session) {
    places_.leave(session.peer_address());
    std::erase_if(sessions_, [&](const auto& other) { return other.get() == &session; });
    if (when_ended_ && sessions_.empty()) when_ended_();
}

} // namespace apps::copy
