// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/buffered_send_socket.hpp"

#include "netio/base/check.hpp"
#include "netio/base/option_check.hpp"
#include "netio/coalescing/page.hpp"
#include "netio/loop/check_caller.hpp"
#include "netio/memory/page_pool.hpp"
#include "netio/messages/message_frames.hpp"
#include "netio/session/drain_timer.hpp"
#include "netio/session/session.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace netio::inline v0_3 {

void validate(const BufferedSendSocket::Options& options) {
    validate(options.socket);
    const auto require = [](bool good, const char* rule) {
        if (!good) throw std::invalid_argument{rule};
    };
    require(options.page_size_bytes >= 256 && options.page_size_bytes <= page::message_limit,
            "page_size_bytes must be from 256 to 1073741823");
    require(options.page_count >= 2 && options.page_count <= (std::size_t{1} << 20),
            "page_count must be from 2 to 1048576");
    require(options.watermark_bytes <= options.page_size_bytes,
            "watermark_bytes must not exceed page_size_bytes");
    require(options.flush_time.count() >= 0 && options.flush_time <= longest_time,
            "flush_time must be from 0 to a year");
}

namespace {

BufferedSendSocket::Options checked_options(BufferedSendSocket::Options options) {
    validate(options);
    if (options.watermark_bytes == 0) options.watermark_bytes = options.page_size_bytes;
    return options;
}

} // namespace

// The implementation of a BufferedSendSocket: its pages, the queued pages, and the connection.
class BufferedSendCore final : private SendSocket::Handler {
  public:
    BufferedSendCore(BufferedSendSocket& socket, Transport& transport,
                     const BufferedSendSocket::Options& options,
                     BufferedSendSocket::Handler& handler);

    void connect(const Address& remote) { connection_.connect(remote); }
    void close();
    void abort();
    Status sendv(MessageParts parts);
    void flush();

    EventLoop& loop() const noexcept { return loop_; }
    bool is_connected() const noexcept { return connection_.is_connected(); }
    bool is_retrying() const noexcept { return connection_.is_retrying(); }
    std::size_t message_limit() const noexcept { return limits_.message; }
    std::size_t pages_in_use() const noexcept { return pages_.page_count() - pages_.free_count(); }
    const std::string& provider() const noexcept { return connection_.provider(); }
    SendSnapshot snapshot() const noexcept;

  private:
    // A page to be sent.
    struct Departure {
        std::uint32_t page = 0;
        std::size_t bytes = 0;
        TimePoint since{};                     // when it was full or due
        std::optional<FragmentPlace> fragment; // for a part of a large message
    };

    // In bytes, on this connection.
    struct Limits {
        std::size_t page = 0;
        std::size_t fragment = 0;
        std::size_t message = 0;
    };

    void on_connected(SendSocket& connection) override;
    void on_send_completed(SendSocket& connection, Cookie cookie,
                           Completion::Outcome outcome) override;
    void on_writable(SendSocket& connection) override;
    void on_closed(SendSocket& connection, const Closed& closed) override;

    std::byte* reserve(std::size_t bytes);
    Status send_large(MessageParts parts, std::size_t bytes);
    Status refuse();
    void depart(const Departure& departure);
    Status post(const Departure& departure);
    void close_when_drained();
    Session& session() noexcept { return connection_.session(); }

    BufferedSendSocket& socket_;
    BufferedSendSocket::Filling& filling_; // of the open page
    EventLoop& loop_;
    BufferedSendSocket::Options options_;
    BufferedSendSocket::Handler& handler_;
    PagePool pages_;
    FlushPace flush_pace_;
    std::optional<std::uint32_t> open_page_;
    std::deque<Departure> waiting_;
    Limits limits_;
    bool capacity_wanted_ = false;
    Timer flush_timer_;
    GracefulClose closing_;
    SendSocket connection_; // last member, so that it is destroyed first
};

// --- opening --------------------------------------------------------------------------------

BufferedSendCore::BufferedSendCore(BufferedSendSocket& socket, Transport& transport,
                                   const BufferedSendSocket::Options& options,
                                   BufferedSendSocket::Handler& handler)
    : socket_{socket}, filling_{socket.filling_}, loop_{transport.loop()},
      options_{checked_options(options)}, handler_{handler}, pages_{options_.page_size_bytes,
                                                                    options_.page_count},
      flush_pace_{options_.flush_time}, flush_timer_{loop_,
                                                     [this] {
                                                         flush_pace_.on_flushed(loop_.now());
                                                         flush();
                                                     }},
      closing_{loop_, options_.socket.session}, connection_{
                                                    transport, options_.socket,
                                                    static_cast<SendSocket::Handler&>(*this)} {}

void BufferedSendCore::on_connected(SendSocket&) {
    const std::size_t body = session().body_limit();
    limits_.page = std::min(options_.page_size_bytes, body);
    filling_.watermark_bytes = std::min(options_.watermark_bytes, limits_.page);
    limits_.fragment =
        std::min(options_.page_size_bytes, body - messages::fragment_extension_bytes);
    const std::size_t in_fragments =
        std::min<std::size_t>({messages::largest_message_bytes(session().peer()),
                               limits_.fragment * options_.page_count, page::message_limit});
    limits_.message = std::max(limits_.page - page::record_header_bytes, in_fragments);
    handler_.on_connected(socket_);
}

// --- into the pages -------------------------------------------------------------------------

Status BufferedSendCore::sendv(MessageParts parts) {
    if (!is_connected() || closing_.has_begun()) return Status::closed;
    const std::size_t bytes = size_of(parts);
    if (bytes > limits_.message) return Status::too_large;
    if (bytes + page::record_header_bytes > limits_.page) {
        const Status status = send_large(parts, bytes);
        if (status != Status::ok) return status;
    } else {
        std::byte* const out = reserve(bytes);
        if (out == nullptr) return refuse();
        copy_parts(parts, 0, {out, bytes});
    }
    socket_.count(bytes);
    return Status::ok;
}

Status BufferedSendCore::refuse() {
    ++filling_.counters.again;
    capacity_wanted_ = true;
    return Status::again;
}

// Space for a message in the open page or in a new one; nullptr: none now.
std::byte* BufferedSendCore::reserve(std::size_t bytes) {
    std::byte* const out = filling_.writer.append(bytes);
    if (out != nullptr) return out;
    flush();
    open_page_ = pages_.take();
    if (!open_page_) return nullptr;
    filling_.writer = PageWriter{pages_.memory(*open_page_).first(limits_.page)};
    if (options_.flush_time.count() > 0) flush_timer_.start_at(flush_pace_.next(loop_.now()));
    return filling_.writer.append(bytes);
}

Status BufferedSendCore::send_large(MessageParts parts, std::size_t bytes) {
    flush(); // to keep the order
    const std::size_t needed = (bytes + limits_.fragment - 1) / limits_.fragment;
    if (pages_.free_count() < needed) return refuse();
    for (std::size_t offset = 0; offset < bytes; offset += limits_.fragment) {
        const std::uint32_t page = *pages_.take();
        const std::size_t part = std::min(limits_.fragment, bytes - offset);
        copy_parts(parts, offset, pages_.memory(page).first(part));
        depart({.page = page,
                .bytes = part,
                .since = loop_.now(),
                .fragment = FragmentPlace{.offset = static_cast<std::uint32_t>(offset),
                                          .total = static_cast<std::uint32_t>(bytes)}});
    }
    return Status::ok;
}

SendSnapshot BufferedSendCore::snapshot() const noexcept {
    SendSnapshot snapshot = connection_.snapshot();
    snapshot.messages = filling_.counters.messages;
    snapshot.bytes = filling_.counters.bytes;
    snapshot.frames = filling_.counters.pages;
    snapshot.again = filling_.counters.again;
    snapshot.waiting = waiting_.size();
    return snapshot;
}

// --- on their way ---------------------------------------------------------------------------

void BufferedSendCore::flush() {
    if (!open_page_) return;
    flush_timer_.cancel();
    const std::uint32_t page = *std::exchange(open_page_, std::nullopt);
    const std::size_t bytes = std::exchange(filling_.writer, PageWriter{}).used();
    depart({.page = page, .bytes = bytes, .since = loop_.now(), .fragment = std::nullopt});
}

void BufferedSendCore::depart(const Departure& departure) {
    ++filling_.counters.pages;
    if (waiting_.empty() && post(departure) == Status::ok) return;
    waiting_.push_back(departure);
}

// ok: the page is in flight. Otherwise on_writable or on_closed follows.
Status BufferedSendCore::post(const Departure& departure) {
    const Slice slice = pages_.slice(departure.page, departure.bytes);
    messages::FragmentExtension extension;
    return connection_.send_frame(messages::page_frame(slice, departure.fragment, extension),
                                  Cookie{departure.page}, departure.since);
}

void BufferedSendCore::on_writable(SendSocket&) {
    while (!waiting_.empty() && post(waiting_.front()) == Status::ok)
        waiting_.pop_front();
}

void BufferedSendCore::on_send_completed(SendSocket&, Cookie cookie, Completion::Outcome) {
    const auto page = static_cast<std::uint32_t>(cookie);
    // With any outcome the page is free; a failed connection is reported by on_closed.
    pages_.release(page);
    if (!is_connected()) return;
    if (closing_.has_begun()) {
        closing_.on_progress();
        return close_when_drained();
    }
    if (std::exchange(capacity_wanted_, false)) handler_.on_writable(socket_);
}

// --- the end --------------------------------------------------------------------------------

void BufferedSendCore::close() {
    if (closing_.has_begun()) return;
    flush(); // also if nothing can be sent any more: send() finds no open page
    if (!is_connected()) return connection_.close();
    closing_.begin(session());
    connection_.stop_reconnecting();
    close_when_drained();
}

void BufferedSendCore::abort() {
    connection_.abort();
    flush(); // it is not sent any more: send() finds no open page, and on_closed counts it
}

void BufferedSendCore::close_when_drained() {
    if (pages_in_use() == 0) closing_.finish();
}

void BufferedSendCore::on_closed(SendSocket&, const Closed& closed) {
    flush_timer_.cancel();
    closing_.forget();
    Closed last = closed;
    messages::add_unsent(last, waiting_.size() + (open_page_ ? 1 : 0));
    for (const Departure& departure : std::exchange(waiting_, {}))
        pages_.release(departure.page);
    if (open_page_) pages_.release(*std::exchange(open_page_, std::nullopt));
    filling_.writer = PageWriter{};
    NETIO_CHECK(pages_in_use() == 0); // every frame in flight has been completed
    capacity_wanted_ = false;
    handler_.on_closed(socket_, last);
}

// --- the user's calls -----------------------------------------------------------------------

BufferedSendSocket::BufferedSendSocket(Transport& transport, const Options& options,
                                       Handler& handler)
    : core_{std::make_unique<BufferedSendCore>(*this, transport, options, handler)} {}

BufferedSendSocket::~BufferedSendSocket() {
    check_destructor(core_->loop(), "BufferedSendSocket", core_);
}

void BufferedSendSocket::connect(const Address& remote) {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    core_->connect(remote);
}

void BufferedSendSocket::close() {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    core_->close();
}

void BufferedSendSocket::abort() {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    core_->abort();
}

Status BufferedSendSocket::sendv(MessageParts parts) {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->sendv(parts);
}

void BufferedSendSocket::flush() {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    core_->flush();
}

bool BufferedSendSocket::is_retrying() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->is_retrying();
}

bool BufferedSendSocket::is_connected() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->is_connected();
}

std::size_t BufferedSendSocket::message_limit() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->message_limit();
}

std::size_t BufferedSendSocket::pages_in_use() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->pages_in_use();
}

SendSnapshot BufferedSendSocket::snapshot() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->snapshot();
}

const std::string& BufferedSendSocket::provider() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "BufferedSendSocket");
    return core_->provider();
}

void BufferedSendSocket::check_caller(const char* type, const char* call) const noexcept {
    core_->loop().check_caller(type, call);
}

} // namespace netio::inline v0_3
