// SPDX-License-Identifier: Apache-2.0
#include "netio/messages/message_socket.hpp"

#include "netio/base/back_off.hpp"
#include "netio/base/check.hpp"
#include "netio/base/copy.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/slot_pool.hpp"
#include "netio/coalescing/reassembly.hpp"
#include "netio/loop/check_caller.hpp"
#include "netio/memory/page_pool.hpp"
#include "netio/messages/message_frames.hpp"
#include "netio/session/connector.hpp"
#include "netio/session/drain_timer.hpp"
#include "netio/session/session.hpp"
#include "netio/session/session_listener.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace netio::inline v0_3 {

void validate(const MessageSocket::Options& options) {
    validate(options.session);
    require_time("retry_interval", options.retry_interval);
    require_option(options.retry_limit <= longest_time, "retry_limit must be at most a year");
    require_between("largest_message_bytes", options.largest_message_bytes, 1, page::message_limit);
    require_between("page_size_bytes", options.page_size_bytes, 256, page::message_limit);
    require_between("page_count", options.page_count, 2, std::uint64_t{1} << 20);
    require_between("posted_limit", options.posted_limit, 1, std::uint64_t{1} << 20);
    require_between("protocol", options.protocol, 0, messages::request_protocol);
}

namespace {

// The functions must outlive the one that is running, which may destroy the socket.
struct HeldFunctions final : public Retired {
    explicit HeldFunctions(MessageSocket::Functions its_functions)
        : functions{std::move(its_functions)} {}
    const MessageSocket::Functions functions;
};

template <typename... Values>
void call(const std::function<void(Values...)>& function, std::type_identity_t<Values>... values) {
    if (function) function(values...);
}

// A copy of a message for which there were not enough pages. Counts its bytes.
struct LargeCopy {
    LargeCopy(std::size_t bytes, std::size_t& its_sum) : memory{bytes}, sum{its_sum} {
        sum += memory.size();
    }
    ~LargeCopy() { sum -= memory.size(); }
    LargeCopy(const LargeCopy&) = delete;
    LargeCopy& operator=(const LargeCopy&) = delete;

    RegisteredBuffer memory;
    std::size_t& sum;
};

// The memory that a send uses: a page, a part of a large copy, or the user's with this cookie.
struct InFlight {
    enum class Kind : std::uint8_t { page, large, of_user };
    Kind kind = Kind::of_user;
    std::uint64_t value = 0;
    std::shared_ptr<LargeCopy> large{};
};

} // namespace

// The implementation of a MessageSocket.
class MessageCore final : private Session::Handler, private Connector::Handler {
  public:
    MessageCore(Transport& transport, MessageSocket::Options options,
                MessageSocket::Functions functions);
    ~MessageCore() {
        if (destroyed_ != nullptr) *destroyed_ = true;
        loop().retire(std::move(held_));
    }
    MessageCore(const MessageCore&) = delete;
    MessageCore& operator=(const MessageCore&) = delete;

    EventLoop& loop() const noexcept { return transport_.loop(); }

    void connect(const Address& remote);
    void accept(IncomingSession& incoming);
    void finish();
    void close();
    void abort();

    Status send_parts(MessageParts parts);
    Status sendv(std::span<const Slice> slices, Cookie cookie,
                 std::optional<std::uint64_t> immediate);
    void flush();

    Status post_receive(std::span<std::byte> memory, Cookie cookie);
    void pause();
    void resume();
    KeptBytes keep(std::span<const std::byte> message);

    Session* current() const noexcept { return session_.get(); }
    bool is_connected() const noexcept { return session_ && session_->is_open(); }
    bool is_retrying() const noexcept { return retry_timer_.armed() && !closing_; }

    const MessageSocket::Options options;
    MessageSocket::Counters counters;
    std::string provider;
    // In bytes, on this connection.
    struct Limits {
        std::size_t page = 0;
        std::size_t fragment = 0;
        std::size_t message = 0; // by copy
        std::size_t frame = 0;   // without a copy
    } limits;
    struct Posted {
        std::span<std::byte> memory;
        Cookie cookie{};
    };
    std::deque<Posted> posted;

  private:
    // A page to be sent, or a part of a large copy.
    struct Departure {
        std::uint32_t page = 0;
        std::size_t bytes = 0;
        std::optional<FragmentPlace> fragment{}; // for a part of a large message
        std::shared_ptr<LargeCopy> large{};
    };
    // What the two sides have sent and received on this connection.
    struct Ends {
        bool connected = false; // the user has had on_connected
        bool finishing = false; // finish() was called
        bool finished = false;  // and the peer is notified
        bool peer_finished = false;
    };

    const MessageSocket::Functions& user() const noexcept { return held_->functions; }
    Hello hello() const noexcept {
        return messages::two_way_hello(static_cast<std::uint32_t>(options.largest_message_bytes),
                                       options.protocol);
    }
    RetryPolicy::Proof proof() const noexcept {
        return options.key ? RetryPolicy::Proof::by_key : RetryPolicy::Proof::none;
    }
    void start();
    void retry();
    void conclude(const Closed& closed, bool may_change);
    Closed explained(const Closed& closed, RejectCode rejection) const;
    void forget_connection(Closed& last);

    void on_route(const Session::Target& target) override;
    void on_connect_failed(const Closed& closed) override;
    void on_open(Session& session) override;
    void on_frame(Session& session, const IncomingFrame& frame) override;
    void on_sent(Session& session, Cookie cookie, Completion::Outcome outcome) override;
    void on_writable(Session& session) override;
    void on_closed(Session& session, const Closed& closed) override;

    bool may_send() const noexcept { return is_connected() && !closing_ && !ends_.finishing; }
    Status refuse(bool& wanted);
    std::byte* reserve(std::size_t bytes);
    Status send_large(MessageParts parts, std::size_t bytes);
    void depart(Departure departure);
    Status post(const Departure& departure);
    Status post(const OutgoingFrame& frame, InFlight memory);
    void send_what_waits();
    void end_if_finished();
    void close_when_drained();
    std::size_t pages_in_use() const noexcept { return pages_.page_count() - pages_.free_count(); }

    // These return the problem of the frame; empty if it is valid.
    std::string_view take_frame(const IncomingFrame& frame);
    std::string_view take_message(const IncomingFrame& frame);
    std::string_view take_page(std::span<const std::byte> body);
    std::string_view take_fragment(std::span<const std::byte> body);
    std::string_view take_into_slice(const FragmentPlace& place, std::span<const std::byte> body);
    void set_aside(std::span<const std::byte> rest);
    bool hand_over(std::span<const std::byte> message, std::optional<std::uint64_t> immediate);
    bool find_slice(std::size_t bytes);
    void complete_slice(std::size_t bytes, std::optional<std::uint64_t> immediate);
    void count_received(std::size_t bytes) noexcept {
        ++counters.messages_received;
        counters.bytes_received += bytes;
    }
    void go_on_receiving() {
        if (session_ && !paused_ && !starved_) session_->resume();
    }

    Transport& transport_;
    std::unique_ptr<HeldFunctions> held_;
    Connector connector_;
    std::optional<Address> remote_; // after connect()
    TimePoint opened_{};            // of this connection
    BackOff back_off_;
    RetryPolicy retry_policy_;
    bool closing_ = false; // close() or abort() was called
    Timer retry_timer_;

    PagePool pages_;
    PageWriter writer_; // of the open page
    std::optional<std::uint32_t> open_page_;
    std::size_t large_bytes_ = 0; // of large copies; before what holds them
    std::deque<Departure> waiting_;
    std::size_t copies_in_flight_ = 0;
    SlotPool<InFlight> in_flight_;
    bool page_wanted_ = false;  // a call was refused because no page was free
    bool frame_wanted_ = false; // a call was refused because frames wait, or all are in flight
    Ends ends_;
    GracefulClose graceful_;

    Reassembly reassembly_;
    std::optional<FragmentPlace> filling_; // the first slice: bytes so far, and of the message
    bool paused_ = false;
    bool starved_ = false; // a message waits for a slice
    Timer next_slice_;     // goes on in the next turn
    bool* destroyed_ = nullptr;
    std::unique_ptr<Session> session_; // last: destroyed first
};

// --- connecting -----------------------------------------------------------------------------

MessageCore::MessageCore(Transport& transport, MessageSocket::Options its_options,
                         MessageSocket::Functions functions)
    : options{(validate(its_options), std::move(its_options))},
      transport_{transport}, held_{std::make_unique<HeldFunctions>(std::move(functions))},
      connector_{transport, *this, options.session.connect_timeout},
      back_off_{{.first = options.retry_interval,
                 .limit = std::max(options.retry_interval, options.retry_limit),
                 .seed = transport.draw_number()}},
      retry_policy_{proof()}, retry_timer_{loop(), [this] { retry(); }},
      pages_{options.page_size_bytes, options.page_count}, graceful_{loop(), options.session},
      reassembly_{options.largest_message_bytes}, next_slice_{loop(),
                                                              [this] { go_on_receiving(); }} {}

void MessageCore::connect(const Address& remote) {
    NETIO_CHECK_MSG(!session_ && !connector_.is_connecting(),
                    "the socket is connected or connecting");
    retry_timer_.cancel();
    closing_ = false;
    remote_ = remote;
    retry_policy_ = RetryPolicy{proof()};
    start();
}

void MessageCore::accept(IncomingSession& incoming) {
    session_ = incoming.accept(hello(), options.session, static_cast<Session::Handler&>(*this));
}

void MessageCore::start() {
    retry_policy_.begin_attempt();
    connector_.connect(*remote_, options.local_host, options.key);
}

void MessageCore::retry() {
    if (!closing_) return start();
    conclude({.reason = CloseReason::local, .detail = "closed before it was connected again"},
             false);
}

void MessageCore::on_route(const Session::Target& target) {
    session_ = std::make_unique<Session>(transport_, target, hello(), options.session,
                                         static_cast<Session::Handler&>(*this));
}

void MessageCore::on_connect_failed(const Closed& closed) {
    conclude(closed, retry_policy_.may_change(closed));
}

void MessageCore::conclude(const Closed& closed, bool may_change) {
    if (options.reconnect && remote_ && may_change && !closing_)
        retry_timer_.start(back_off_.next());
    posted.clear();
    call(user().on_closed, closed);
}

void MessageCore::on_open(Session& session) {
    const Hello& peer = session.peer();
    if (!messages::is_two_way(peer) || messages::two_way_protocol(peer) != options.protocol) {
        return session.fail(CloseReason::protocol_error,
                            session.peer_address() +
                                " has accepted and is no MessageListener of the same protocol");
    }
    connector_.cancel();
    retry_policy_.on_admitted();
    ++counters.connections;
    opened_ = loop().now();
    provider = session.capabilities().provider;
    const std::size_t body = session.body_limit();
    limits.frame = body - messages::immediate_bytes;
    limits.page = std::min(options.page_size_bytes, body);
    limits.fragment = std::min(options.page_size_bytes, body - messages::fragment_extension_bytes);
    const std::size_t in_fragments =
        messages::largest_message_bytes(peer) & messages::two_way_size_mask;
    limits.message = std::max(limits.page - page::record_header_bytes, in_fragments);
    if (paused_) session.pause();
    ends_.connected = true;
    call(user().on_connected);
}

// --- sending --------------------------------------------------------------------------------

Status MessageCore::refuse(bool& wanted) {
    ++counters.again;
    wanted = true;
    return Status::again;
}

Status MessageCore::send_parts(MessageParts parts) {
    if (!may_send()) return Status::closed;
    const std::size_t bytes = size_of(parts);
    if (bytes > limits.message) return Status::too_large;
    if (bytes + page::record_header_bytes > limits.page) {
        const Status status = send_large(parts, bytes);
        if (status != Status::ok) return status;
    } else {
        std::byte* const out = reserve(bytes);
        if (out == nullptr) return refuse(page_wanted_);
        copy_parts(parts, 0, {out, bytes});
    }
    ++counters.messages_sent;
    counters.bytes_sent += bytes;
    // Otherwise it is sent with the messages that follow, when an earlier page has been sent.
    if (copies_in_flight_ == 0 && waiting_.empty()) flush();
    return Status::ok;
}

// Space for a message in the open page or in a new one; nullptr: none now.
std::byte* MessageCore::reserve(std::size_t bytes) {
    std::byte* const out = writer_.append(bytes);
    if (out != nullptr) return out;
    flush();
    open_page_ = pages_.take();
    if (!open_page_) return nullptr;
    writer_ = PageWriter{pages_.memory(*open_page_).first(limits.page)};
    return writer_.append(bytes);
}

Status MessageCore::send_large(MessageParts parts, std::size_t bytes) {
    flush(); // to keep the order
    const std::size_t needed = (bytes + limits.fragment - 1) / limits.fragment;
    std::shared_ptr<LargeCopy> large;
    if (pages_.free_count() < needed) {
        const std::size_t limit = options.page_count * options.page_size_bytes;
        if (large_bytes_ > 0 && large_bytes_ + bytes > limit) return refuse(frame_wanted_);
        try {
            large = std::make_shared<LargeCopy>(bytes, large_bytes_);
        } catch (const std::bad_alloc&) {
            return Status::too_large;
        }
        copy_parts(parts, 0, large->memory.memory().first(bytes));
    }
    for (std::size_t offset = 0; offset < bytes; offset += limits.fragment) {
        const std::size_t part = std::min(limits.fragment, bytes - offset);
        Departure departure{.bytes = part,
                            .fragment = FragmentPlace{.offset = static_cast<std::uint32_t>(offset),
                                                      .total = static_cast<std::uint32_t>(bytes)},
                            .large = large};
        if (!large) {
            departure.page = *pages_.take();
            copy_parts(parts, offset, pages_.memory(departure.page).first(part));
        }
        depart(std::move(departure));
    }
    return Status::ok;
}

Status MessageCore::sendv(std::span<const Slice> slices, Cookie cookie,
                          std::optional<std::uint64_t> immediate) {
    std::ranges::for_each(slices, check_slice);
    if (!may_send()) return Status::closed;
    flush(); // to keep the order
    if (!waiting_.empty()) return refuse(frame_wanted_);
    std::size_t bytes = 0;
    for (const Slice& slice : slices)
        bytes += slice.size;
    if (bytes > limits.frame) return Status::too_large;
    std::array<std::byte, messages::immediate_bytes> extension{};
    if (immediate) wire::store(extension.data(), *immediate);
    const OutgoingFrame frame{.kind = messages::message_kind,
                              .flags = immediate ? messages::immediate_flag : std::uint8_t{0},
                              .extension =
                                  std::span{extension}.first(immediate ? extension.size() : 0),
                              .slices = slices};
    const Status status =
        post(frame, {.kind = InFlight::Kind::of_user, .value = static_cast<std::uint64_t>(cookie)});
    if (status == Status::again) return refuse(frame_wanted_);
    if (status != Status::ok) return status;
    ++counters.messages_sent;
    counters.bytes_sent += bytes;
    return Status::ok;
}

void MessageCore::flush() {
    if (!open_page_) return;
    const std::uint32_t page = *std::exchange(open_page_, std::nullopt);
    const std::size_t bytes = std::exchange(writer_, PageWriter{}).used();
    depart({.page = page, .bytes = bytes});
}

void MessageCore::depart(Departure departure) {
    if (waiting_.empty() && post(departure) == Status::ok) return;
    waiting_.push_back(std::move(departure));
}

// ok: the page is in flight. Otherwise on_writable or on_closed follows.
Status MessageCore::post(const Departure& departure) {
    const Slice slice =
        departure.large ? departure.large->memory.slice(departure.fragment->offset, departure.bytes)
                        : pages_.slice(departure.page, departure.bytes);
    messages::FragmentExtension extension;
    const Status status =
        post(messages::page_frame(slice, departure.fragment, extension),
             {.kind = departure.large ? InFlight::Kind::large : InFlight::Kind::page,
              .value = departure.page,
              .large = departure.large});
    if (status == Status::ok) ++copies_in_flight_;
    return status;
}

Status MessageCore::post(const OutgoingFrame& frame, InFlight memory) {
    const std::uint32_t number = in_flight_.take(std::move(memory));
    const Status status = session_->send(frame, Cookie{number});
    if (status != Status::ok) static_cast<void>(in_flight_.release(number));
    return status;
}

void MessageCore::on_sent(Session&, Cookie cookie, Completion::Outcome outcome) {
    InFlight memory = in_flight_.release(static_cast<std::uint32_t>(cookie));
    memory.large.reset();
    const DestructionWatch watch{destroyed_};
    if (memory.kind != InFlight::Kind::of_user) {
        // With any outcome the memory is free; a failed connection is reported by on_closed.
        --copies_in_flight_;
        if (memory.kind == InFlight::Kind::page)
            pages_.release(static_cast<std::uint32_t>(memory.value));
    } else {
        call(user().on_sent, Cookie{memory.value}, outcome);
        if (watch.destroyed()) return;
    }
    if (!is_connected()) return;
    if (graceful_.has_begun()) graceful_.on_progress();
    send_what_waits();
}

void MessageCore::on_writable(Session&) {
    send_what_waits();
}

void MessageCore::send_what_waits() {
    while (!waiting_.empty() && post(waiting_.front()) == Status::ok)
        waiting_.pop_front();
    if (!is_connected()) return; // on_closed follows
    if (graceful_.has_begun()) return close_when_drained();
    if (copies_in_flight_ == 0) flush();
    if (ends_.finishing) return end_if_finished();
    const bool is_worth_trying = page_wanted_ || (frame_wanted_ && waiting_.empty());
    if (!is_worth_trying || pages_.free_count() == 0) return;
    page_wanted_ = false;
    frame_wanted_ = false;
    call(user().on_writable); // may destroy the socket
}

// --- the end --------------------------------------------------------------------------------

void MessageCore::finish() {
    if (!ends_.connected || closing_ || std::exchange(ends_.finishing, true)) return;
    // If the connection is lost, which is reported after the messages that wait, it is not made
    // again.
    if (!is_connected()) return;
    flush();
    end_if_finished();
}

void MessageCore::end_if_finished() {
    if (!ends_.finished && waiting_.empty()) {
        const OutgoingFrame frame{
            .kind = messages::finish_kind, .flags = 0, .extension = {}, .slices = {}};
        ends_.finished = session_->send(frame, std::nullopt) == Status::ok;
    }
    if (ends_.finished && ends_.peer_finished) session_->close();
}

void MessageCore::close() {
    if (closing_) return;
    closing_ = true;
    if (!session_) {
        if (connector_.is_connecting()) return connector_.close();
        if (retry_timer_.armed()) retry_timer_.start(Duration::zero());
        return;
    }
    if (!is_connected()) {
        session_->close();
    } else {
        flush();
        graceful_.begin(*session_);
        close_when_drained();
    }
    session_->resume(); // messages that wait are discarded
}

void MessageCore::abort() {
    if (!session_) return close();
    closing_ = true;
    session_->abort();
    session_->resume();
}

void MessageCore::close_when_drained() {
    while (!waiting_.empty() && post(waiting_.front()) == Status::ok)
        waiting_.pop_front();
    if (waiting_.empty() && copies_in_flight_ == 0) graceful_.finish();
}

Closed MessageCore::explained(const Closed& closed, RejectCode rejection) const {
    Closed last = closed;
    if (rejection != RejectCode::service_data) return last;
    last.detail +=
        options.protocol == messages::request_protocol
            ? "; a Requester connects to a Responder"
            : "; a MessageSocket connects to a MessageListener of the same protocol, not "
              "to a ListenSocket";
    return last;
}

// Everything that belonged to the connection is free again. Posted slices wait for the next route.
void MessageCore::forget_connection(Closed& last) {
    messages::add_unsent(last, waiting_.size() + (open_page_ ? 1 : 0));
    for (const Departure& departure : std::exchange(waiting_, {}))
        if (!departure.large) pages_.release(departure.page);
    if (open_page_) pages_.release(*std::exchange(open_page_, std::nullopt));
    writer_ = PageWriter{};
    NETIO_CHECK(pages_in_use() == 0 && in_flight_.size() == 0); // every send has been completed
    page_wanted_ = false;
    frame_wanted_ = false;
    ends_ = {};
    graceful_.forget();
    reassembly_.abandon();
    filling_.reset();
    starved_ = false;
}

void MessageCore::on_closed(Session& over, const Closed& closed) {
    retry_policy_.on_refused(refusal_of(over.rejection()));
    Closed last = explained(closed, over.rejection());
    const bool may_change = !ends_.finishing; // after finish() nothing more is to be sent
    // After a listener has accepted this socket, or a connection lasted, the first retry is soon.
    const bool is_attempt = connector_.is_connecting();
    const bool stood = !is_attempt && loop().now() - opened_ >= options.retry_limit;
    if (stood || over.has_received()) back_off_.reset();
    forget_connection(last);
    session_.reset();
    if (!is_attempt) return conclude(last, may_change);
    // After close() or abort() no other route is tried, even if this attempt failed before.
    closing_ ? connector_.close() : connector_.try_next(last);
}

// --- receiving ------------------------------------------------------------------------------

void MessageCore::on_frame(Session& session, const IncomingFrame& frame) {
    if (closing_) {
        if (frame.kind != messages::finish_kind) session.add_unread(1);
        return;
    }
    const DestructionWatch watch{destroyed_};
    const std::string_view problem = take_frame(frame);
    if (watch.destroyed() || problem.empty()) return;
    session.fail(CloseReason::protocol_error,
                 session.peer_address() + " sent " + std::string{problem});
}

std::string_view MessageCore::take_frame(const IncomingFrame& frame) {
    if (ends_.peer_finished) return "a frame after its last message";
    if (frame.flags != 0 && frame.kind != messages::message_kind) return "a flag that is not known";
    if (frame.kind == messages::fragment_kind) return take_fragment(frame.body);
    if (reassembly_.in_progress() || filling_) return "another frame before the last fragment";
    if (frame.kind == messages::page_kind) return take_page(frame.body);
    if (frame.kind == messages::message_kind) return take_message(frame);
    if (frame.kind != messages::finish_kind || !frame.body.empty())
        return "a frame of a kind that is not known";
    ends_.peer_finished = true;
    const DestructionWatch watch{destroyed_};
    call(user().on_peer_finished);
    if (!watch.destroyed() && is_connected() && ends_.finishing && !closing_) end_if_finished();
    return {};
}

std::string_view MessageCore::take_message(const IncomingFrame& frame) {
    const auto message = messages::decode_message(frame);
    if (!message) return "a malformed message frame";
    const DestructionWatch watch{destroyed_};
    if (!hand_over(message->bytes, message->immediate) && !watch.destroyed()) set_aside(frame.body);
    return {};
}

std::string_view MessageCore::take_page(std::span<const std::byte> body) {
    const DestructionWatch watch{destroyed_};
    const bool sound = visit_page(body, [&](std::span<const std::byte> message) {
        // A call that a function has made on the socket applies from this message on.
        const bool is_taken = !closing_ && !paused_ && hand_over(message, std::nullopt);
        if (watch.destroyed()) return false;
        if (is_taken) return true;
        const std::byte* const record = message.data() - page::record_header_bytes;
        set_aside(body.last(static_cast<std::size_t>(body.data() + body.size() - record)));
        return false;
    });
    return sound || watch.destroyed() ? "" : "a malformed page";
}

// The rest of a frame that has to wait, or that is not delivered any more.
void MessageCore::set_aside(std::span<const std::byte> rest) {
    if (closing_) return session_->add_unread(1);
    session_->put_back(rest);
    // Slices were posted meanwhile, which may be too small again.
    if (!posted.empty() && std::exchange(starved_, false)) next_slice_.start(Duration::zero());
}

// Returns false if the message has to wait, or nothing is received any more.
bool MessageCore::hand_over(std::span<const std::byte> message,
                            std::optional<std::uint64_t> immediate) {
    if (!options.receive_into_posted) {
        count_received(message.size());
        call(user().on_message, IncomingMessage{*this, message, immediate});
        return true;
    }
    if (!find_slice(message.size())) return false;
    copy_bytes(posted.front().memory.data(), message);
    complete_slice(message.size(), immediate);
    return true;
}

// Whether the first slice can hold the message. Returns slices that are too small to the user, who
// may post others of the same size at once: the peer must not keep this turn going by that.
bool MessageCore::find_slice(std::size_t bytes) {
    const DestructionWatch watch{destroyed_};
    for (std::size_t left = posted.size(); left > 0 && !closing_ && !paused_; --left) {
        if (posted.front().memory.size() >= bytes) return true;
        const Cookie cookie = posted.front().cookie;
        posted.pop_front();
        ++counters.too_large;
        call(user().on_received, MessageSocket::Received{.cookie = cookie,
                                                         .status = Status::too_large,
                                                         .bytes = bytes,
                                                         .immediate = std::nullopt});
        if (watch.destroyed()) return false;
    }
    if (closing_) return false;
    starved_ = true;
    session_->pause();
    return false;
}

void MessageCore::complete_slice(std::size_t bytes, std::optional<std::uint64_t> immediate) {
    const Cookie cookie = posted.front().cookie;
    posted.pop_front();
    count_received(bytes);
    ++counters.copied;
    call(user().on_received,
         MessageSocket::Received{
             .cookie = cookie, .status = Status::ok, .bytes = bytes, .immediate = immediate});
}

std::string_view MessageCore::take_fragment(std::span<const std::byte> body) {
    if (body.size() < messages::fragment_extension_bytes) return "a fragment without its header";
    const FragmentPlace place = messages::decode_fragment(body);
    if (options.receive_into_posted) return take_into_slice(place, body);
    const Reassembly::Outcome outcome =
        reassembly_.take(place, body.subspan(messages::fragment_extension_bytes));
    if (outcome == Reassembly::Outcome::complete) {
        const DestructionWatch watch{destroyed_};
        static_cast<void>(hand_over(reassembly_.message(), std::nullopt));
        if (!watch.destroyed()) reassembly_.end_of_message();
        return {};
    }
    return outcome == Reassembly::Outcome::incomplete ? "" : to_string(outcome);
}

std::string_view MessageCore::take_into_slice(const FragmentPlace& place,
                                              std::span<const std::byte> body) {
    const std::span<const std::byte> piece = body.subspan(messages::fragment_extension_bytes);
    const FragmentPlace expected =
        filling_.value_or(FragmentPlace{.offset = 0, .total = place.total});
    if (place.offset != expected.offset || place.total != expected.total || piece.empty() ||
        piece.size() > place.total - place.offset)
        return to_string(Reassembly::Outcome::out_of_order);
    if (place.total > options.largest_message_bytes)
        return to_string(Reassembly::Outcome::too_large);
    if (!filling_) {
        const DestructionWatch watch{destroyed_};
        const bool is_found = find_slice(place.total);
        if (watch.destroyed()) return {};
        if (!is_found) {
            set_aside(body);
            return {};
        }
        filling_ = place;
    }
    copy_bytes(posted.front().memory.data() + place.offset, piece);
    filling_->offset += static_cast<std::uint32_t>(piece.size());
    if (filling_->offset < filling_->total) return {};
    filling_.reset();
    complete_slice(place.total, std::nullopt);
    return {};
}

Status MessageCore::post_receive(std::span<std::byte> memory, Cookie cookie) {
    NETIO_CHECK_MSG(options.receive_into_posted, "post_receive() needs receive_into_posted");
    if (posted.size() >= options.posted_limit) return Status::again;
    posted.push_back({.memory = memory, .cookie = cookie});
    if (std::exchange(starved_, false)) go_on_receiving();
    return Status::ok;
}

void MessageCore::pause() {
    if (closing_) return; // only the end is still to be reported
    paused_ = true;
    if (session_) session_->pause();
}

void MessageCore::resume() {
    paused_ = false;
    go_on_receiving();
}

KeptBytes MessageCore::keep(std::span<const std::byte> message) {
    auto joined = reassembly_.keep(
        message, [&](std::vector<std::byte> memory) { return session_->keep(std::move(memory)); });
    return joined ? *std::move(joined) : session_->keep(message);
}

KeptBytes IncomingMessage::keep() const {
    NETIO_CHECK_CALLER(core_.loop(), "IncomingMessage");
    return core_.keep(bytes_);
}

// --- the user's calls -----------------------------------------------------------------------

MessageSocket::MessageSocket(Transport& transport, Options options, Functions functions)
    : core_{std::make_unique<MessageCore>(transport, std::move(options), std::move(functions))} {}

MessageSocket::~MessageSocket() {
    check_destructor(core_->loop(), "MessageSocket", core_);
}

void MessageSocket::connect(const Address& remote) {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    core_->connect(remote);
}

void MessageSocket::accept(IncomingSession& incoming) {
    core_->accept(incoming);
}

void MessageSocket::finish() {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    core_->finish();
}

void MessageSocket::close() {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    core_->close();
}

void MessageSocket::abort() {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    core_->abort();
}

Status MessageSocket::send_parts(MessageParts parts) {
    NETIO_CHECK_FREQUENT_CALLER(core_->loop(), "MessageSocket");
    return core_->send_parts(parts);
}

Status MessageSocket::sendv(std::span<const Slice> slices, Cookie cookie,
                            std::optional<std::uint64_t> immediate) {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->sendv(slices, cookie, immediate);
}

void MessageSocket::flush() {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    core_->flush();
}

Status MessageSocket::post_receive(std::span<std::byte> memory, Cookie cookie) {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->post_receive(memory, cookie);
}

std::size_t MessageSocket::posted_count() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->posted.size();
}

void MessageSocket::pause() {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    core_->pause();
}

void MessageSocket::resume() {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    core_->resume();
}

bool MessageSocket::is_connected() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->is_connected();
}

bool MessageSocket::is_retrying() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->is_retrying();
}

std::size_t MessageSocket::message_limit() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->is_connected() ? core_->limits.message : 0;
}

std::size_t MessageSocket::frame_limit() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->is_connected() ? core_->limits.frame : 0;
}

std::string MessageSocket::peer_address() const {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->current() != nullptr ? core_->current()->peer_address() : std::string{};
}

const std::string& MessageSocket::provider() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->provider;
}

KeepStats MessageSocket::kept() const {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->current() != nullptr ? core_->current()->kept() : KeepStats{};
}

const MessageSocket::Counters& MessageSocket::counters() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "MessageSocket");
    return core_->counters;
}

} // namespace netio::inline v0_3
