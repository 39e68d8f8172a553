// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/buffered_send_socket.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace netio::inline v0_2 {
namespace {

BufferedSendSocket::Options checked(BufferedSendSocket::Options options) {
    const auto require = [](bool good, const char* rule) {
        if (!good) throw std::invalid_argument{rule};
    };
    require(options.page_bytes >= 256 && options.page_bytes <= page::message_limit,
            "page_bytes must be from 256 to 1073741823");
    require(options.page_count >= 2 && options.page_count <= (std::size_t{1} << 20),
            "page_count must be from 2 to 1048576");
    require(options.watermark_bytes <= options.page_bytes,
            "watermark_bytes must not exceed page_bytes");
    require(options.flush_time.count() >= 0, "flush_time must not be negative");
    if (options.watermark_bytes == 0) options.watermark_bytes = options.page_bytes;
    return options;
}

} // namespace

BufferedSendSocket::BufferedSendSocket(Transport& transport, const Options& options,
                                       Handler& handler)
    : loop_{transport.loop()}, options_{checked(options)}, handler_{handler},
      pages_{options_.page_bytes, options_.page_count},
      flush_pace_{options_.flush_time}, timer_{transport.loop(), [this] { on_timer(); }},
      socket_{transport, options_.socket, static_cast<SendSocket::Handler&>(*this)} {}

void BufferedSendSocket::on_connected(SendSocket& socket) {
    const std::size_t body = socket.session_->body_limit();
    limits_.page = std::min(options_.page_bytes, body);
    limits_.watermark = std::min(options_.watermark_bytes, limits_.page);
    limits_.fragment = std::min(options_.page_bytes, body - messages::fragment_extension_bytes);
    const std::size_t in_fragments =
        std::min<std::size_t>({messages::largest_message_bytes(socket.session_->peer()),
                               limits_.fragment * options_.page_count, page::message_limit});
    limits_.message = std::max(limits_.page - page::record_header_bytes, in_fragments);
    handler_.on_connected(*this);
}

// --- into the pages -------------------------------------------------------------------------

Status BufferedSendSocket::sendv(MessageParts parts) {
    if (!is_connected() || close_by_) return Status::closed;
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
    count(bytes);
    return Status::ok;
}

Status BufferedSendSocket::refuse() {
    ++counters_.again;
    capacity_wanted_ = true;
    return Status::again;
}

// Room for a message in the open page, or in a new one; nullptr: none now.
std::byte* BufferedSendSocket::reserve(std::size_t bytes) {
    std::byte* const out = writer_.append(bytes);
    if (out != nullptr) return out;
    flush();
    open_page_ = pages_.take();
    if (!open_page_) return nullptr;
    writer_ = PageWriter{pages_.memory(*open_page_).first(limits_.page)};
    if (options_.flush_time.count() > 0) timer_.start_at(flush_pace_.next(loop_.now()));
    return writer_.append(bytes);
}

Status BufferedSendSocket::send_large(MessageParts parts, std::size_t bytes) {
    flush(); // the order
    const std::size_t needed = (bytes + limits_.fragment - 1) / limits_.fragment;
    if (pages_.free_count() < needed) return refuse();
    for (std::size_t offset = 0; offset < bytes; offset += limits_.fragment) {
        const std::uint32_t page = *pages_.take();
        const std::size_t part = std::min(limits_.fragment, bytes - offset);
        copy_parts(parts, offset, pages_.memory(page).first(part));
        depart({.page = page,
                .bytes = part,
                .fragment = FragmentPlace{.offset = static_cast<std::uint32_t>(offset),
                                          .total = static_cast<std::uint32_t>(bytes)}});
    }
    return Status::ok;
}

// --- on their way ---------------------------------------------------------------------------

void BufferedSendSocket::flush() {
    if (!open_page_) return;
    timer_.cancel();
    const std::uint32_t page = *std::exchange(open_page_, std::nullopt);
    const std::size_t bytes = std::exchange(writer_, PageWriter{}).used();
    depart({.page = page, .bytes = bytes, .fragment = std::nullopt});
}

void BufferedSendSocket::depart(const Departure& departure) {
    ++counters_.pages;
    if (waiting_.empty() && post(departure) == Status::ok) return;
    waiting_.push_back(departure);
}

// ok: the page is in the fabric's hands. Otherwise on_writable or on_closed follows.
Status BufferedSendSocket::post(const Departure& departure) {
    const Slice slice = pages_.slice(departure.page, departure.bytes);
    OutgoingFrame frame{
        .kind = messages::page_kind, .flags = 0, .extension = {}, .slices = {&slice, 1}};
    messages::FragmentExtension extension;
    if (departure.fragment) {
        extension = messages::encode(*departure.fragment);
        frame.kind = messages::fragment_kind;
        frame.extension = extension;
    }
    return socket_.session_->send(frame, Cookie{departure.page});
}

void BufferedSendSocket::on_writable(SendSocket&) {
    while (!waiting_.empty() && post(waiting_.front()) == Status::ok)
        waiting_.pop_front();
}

void BufferedSendSocket::on_send_completed(SendSocket&, Cookie cookie, Completion::Outcome) {
    // Whatever the outcome, the page is free; a connection that failed says so by on_closed.
    pages_.release(static_cast<std::uint32_t>(cookie));
    if (!is_connected()) return;
    if (close_by_) return close_when_drained();
    if (std::exchange(capacity_wanted_, false)) handler_.on_writable(*this);
}

// --- the end --------------------------------------------------------------------------------

void BufferedSendSocket::close() {
    if (close_by_) return;
    if (!is_connected()) return socket_.close(); // nothing has been accepted
    flush();
    close_by_ = loop_.now() + options_.socket.session.close_limit;
    close_when_drained();
}

// The session closes when all pages have left; until then the same time-outs count here.
void BufferedSendSocket::close_when_drained() {
    if (pages_in_use() > 0) {
        return timer_.start_at(
            std::min(loop_.now() + options_.socket.session.close_timeout, *close_by_));
    }
    timer_.cancel();
    socket_.close();
}

void BufferedSendSocket::on_timer() {
    if (!close_by_) {
        flush_pace_.on_flushed(loop_.now());
        return flush();
    }
    const bool limit = loop_.now() >= *close_by_;
    const auto& session = options_.socket.session;
    socket_.session_->fail(
        CloseReason::unconfirmed,
        socket_.session_->peer_address() +
            (limit ? " has not taken everything within " : " has taken nothing more for ") +
            std::to_string((limit ? session.close_limit : session.close_timeout).count()) + " ms");
}

void BufferedSendSocket::on_closed(SendSocket&, const Closed& closed) {
    timer_.cancel();
    Closed last = closed;
    const std::size_t unsent = waiting_.size() + (open_page_ ? 1 : 0);
    if (unsent > 0) {
        last.unconfirmed_frames += unsent;
        last.detail += std::string{last.detail.empty() ? "" : "; "} +
                       "pages that have not left: " + std::to_string(unsent);
    }
    for (const Departure& departure : std::exchange(waiting_, {}))
        pages_.release(departure.page);
    if (open_page_) pages_.release(*std::exchange(open_page_, std::nullopt));
    writer_ = PageWriter{};
    NETIO_CHECK(pages_in_use() == 0); // every frame in the fabric's hands has been answered
    capacity_wanted_ = false;
    close_by_.reset();
    handler_.on_closed(*this, last);
}

} // namespace netio::inline v0_2
