// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/connection.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/fabric/addresses.hpp"
#include "netio/fabric/kernel_socket.hpp"
#include "netio/fabric/provider.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <utility>

namespace netio::fabric {

// --- the endpoint ----------------------------------------------------------------------------

namespace {

std::string for_operations(const QueueLimits& limits) {
    return " for " + std::to_string(limits.send_count) + " sends and " +
           std::to_string(limits.receive_count) + " receives";
}

} // namespace

EndpointHandle Endpoint::open(Domain& domain, ::fi_info& info, const QueueLimits& limits) {
    require_segments(info);
    // For a connector, the sizes requested with fi_getinfo apply. An accepting endpoint gets its
    // sizes here, because the info of the request has the listener's sizes.
    info.tx_attr->size = send_queue_size(info.fabric_attr->prov_name, limits);
    info.rx_attr->size = receive_queue_size(info, limits);
    ::fid_ep* endpoint = nullptr;
    require(::fi_endpoint(&domain.handle(), &info, &endpoint, nullptr),
            "cannot open an endpoint" + for_operations(limits));
    return EndpointHandle{endpoint};
}

Endpoint::Endpoint(Domain& domain, Info info, EndpointHandle handle)
    : domain_{domain}, info_{std::move(info)},
      capabilities_{capabilities_of(*info_)}, handle_{std::move(handle)} {}

void Endpoint::enable(::fid_eq& events, ::fid_cq& completions, const QueueLimits& limits) {
    require(::fi_ep_bind(handle_.get(), &events.fid, 0),
            "cannot bind an endpoint to its event queue");
    require(::fi_ep_bind(handle_.get(), &completions.fid, FI_TRANSMIT | FI_RECV),
            "cannot bind an endpoint to its completion queue");
    require_memory(::fi_enable(handle_.get()), "cannot enable an endpoint" + for_operations(limits),
                   domain_.needs_registration());
}

std::string Endpoint::peer_address() const {
    if (info_->dest_addr == nullptr) return "unknown peer";
    return to_string(to_address(info_->dest_addr));
}

// A listener over kernel sockets waits for the longest possible request
// (netio/fabric/kernel_socket.hpp).
int Endpoint::connect(std::span<const std::byte> data) noexcept {
    std::array<std::byte, tcp_message_data_bytes> padded{};
    std::ranges::copy(data, padded.begin());
    const bool pads = domain_.fabric().uses_kernel_sockets();
    const int result = ::fi_connect(handle_.get(), info_->dest_addr, padded.data(),
                                    pads ? padded.size() : data.size());
    is_unanswered_ = result == 0;
    return result;
}

int Endpoint::accept(std::span<const std::byte> data) noexcept {
    const int result = ::fi_accept(handle_.get(), data.data(), data.size());
    is_unanswered_ = result == 0;
    return result;
}

void Endpoint::gather(std::span<const Slice> slices, std::size_t limit, Vectors& vectors) {
    NETIO_CHECK_MSG(slices.size() <= limit && slices.size() <= vectors.pieces.size(),
                    "more slices than the provider takes corrupt memory silently");
    for (const Slice& slice : slices) {
        // An empty piece among others crashes a kernel (siw, Linux 6.1), and means 2 GiB to some
        // hardware. A single empty piece is a message without bytes.
        if (slice.size == 0 && slices.size() > 1) continue;
        vectors.pieces[vectors.count] = {slice.data, slice.size};
        vectors.descriptors[vectors.count] = nullptr;
        // Also if the provider does not need it: code that works with one provider must not abort
        // with another.
        NETIO_CHECK_MSG(slice.buffer != nullptr, "a slice without its registered buffer");
        if (domain_.needs_registration()) {
            vectors.descriptors[vectors.count] = slice.buffer->registration(domain_).descriptor();
        }
        ++vectors.count;
    }
    if (vectors.count == 1 && domain_.splits_at_pages()) {
        vectors.count = split_at_page(vectors.pieces, vectors.descriptors);
    }
}

long Endpoint::send(std::span<const Slice> slices, void* context) {
    Vectors vectors;
    gather(slices, capabilities_.segment_limit, vectors);
    return ::fi_sendv(handle_.get(), vectors.pieces.data(), vectors.descriptors.data(),
                      vectors.count, 0, context);
}

long Endpoint::receive(std::span<const Slice> slices, void* context) {
    Vectors vectors;
    gather(slices, info_->rx_attr->iov_limit, vectors);
    return ::fi_recvv(handle_.get(), vectors.pieces.data(), vectors.descriptors.data(),
                      vectors.count, 0, context);
}

long Endpoint::write(std::span<const Slice> slices, const RemoteSlice& target,
                     std::optional<std::uint32_t> immediate, void* context) {
    Vectors vectors;
    gather(slices, capabilities_.segment_limit, vectors);
    ::fi_rma_iov remote{};
    remote.addr = target.address;
    remote.key = target.key;
    for (const Slice& slice : slices)
        remote.len += slice.size;
    ::fi_msg_rma message{};
    message.msg_iov = vectors.pieces.data();
    message.desc = vectors.descriptors.data();
    message.iov_count = vectors.count;
    message.rma_iov = &remote;
    message.rma_iov_count = 1;
    message.context = context;
    message.data = immediate.value_or(0);
    return ::fi_writemsg(handle_.get(), &message,
                         FI_COMPLETION | (immediate ? FI_REMOTE_CQ_DATA : 0));
}

long Endpoint::write_nothing(void* context) noexcept {
    const ::fi_rma_iov nowhere{};
    ::fi_msg_rma message{};
    message.rma_iov = &nowhere;
    message.rma_iov_count = 1;
    message.context = context;
    return ::fi_writemsg(handle_.get(), &message, FI_COMPLETION);
}

void Endpoint::close(bool was_used) noexcept {
    // Without it, verbs waits for a time-out. It fails if not connected, which is harmless.
    if (was_used) ::fi_shutdown(handle_.get(), 0);
    handle_.reset();
}

// --- the connection --------------------------------------------------------------------------

namespace {

CloseReason reason_of(int error, bool opening) {
    switch (error) {
    case FI_ECONNREFUSED:
        return opening ? CloseReason::refused : CloseReason::lost;
    case FI_EHOSTUNREACH:
    case FI_ENETUNREACH:
    case FI_EADDRNOTAVAIL:
        return opening ? CloseReason::unreachable : CloseReason::lost;
    case FI_ETRUNC:
        return CloseReason::protocol_error;
    default:
        return opening ? CloseReason::failed : CloseReason::lost;
    }
}

// The tcp provider reports these leftover values of errno if the other side ended the connection
// before its answer or during it. They have a different meaning then.
bool is_unanswered_end(int error) {
    switch (error) {
    case FI_ECONNREFUSED:
    case FI_EHOSTUNREACH:
    case FI_ENETUNREACH:
    case FI_EADDRNOTAVAIL:
    case FI_ETIMEDOUT:
    case FI_ENOMEM:
    case ENOPROTOOPT:
    case EPROTO:
        return false;
    default:
        return true;
    }
}

std::string text_of(int error, bool opening) {
    if (opening && error == ENOPROTOOPT) return "what listens there does not speak this protocol";
    if (opening && error == ECONNREFUSED)
        return fabric_error_text(error) + "; no program listens there";
    return fabric_error_text(error);
}

// The number of completion queue entries that a connection may need: see send_queue_size().
std::size_t entries_for(const QueueLimits& limits) {
    return 1 + limits.send_count + limits.receive_count;
}

// `info`: of a connector, or of a request.
bool needs_own_queue(const Domain& domain, const ::fi_info& info, const QueueLimits& limits) {
    if (limits.checks_answer && domain.fabric().reads_all_sockets()) return true;
    return limits.remote_writes && !capabilities_of(info).write_consumes_receive;
}

} // namespace

Connection::Connection(Domain& domain, Info info, EndpointHandle endpoint, Origin origin,
                       const QueueLimits& limits, Handler& handler)
    : domain_{domain}, own_events_{domain.fabric(),
                                   limits.checks_answer && domain.fabric().uses_kernel_sockets()},
      events_{own_events_.get() != nullptr ? *own_events_.get()
                                           : domain.fabric().events_for(origin.accepting)},
      accepting_{origin.accepting}, limits_{limits}, handler_{handler},
      queue_ref_{domain, *this, entries_for(limits), needs_own_queue(domain, *info, limits)},
      endpoint_{domain, std::move(info), std::move(endpoint)},
      life_{.socket = std::move(origin.socket),
            .account = ReceivedByteAudit{limits.receive_count},
            .descriptor_guess = origin.descriptor_guess} {
    // A provider that uses devices parses nothing that a peer sends.
    limits_.checks_answer = own_events_.get() != nullptr;
    if (queue_ref_.is_alone() && limits_.checks_answer && domain.fabric().reads_all_sockets())
        queue_ref_.queue().hold();
    endpoint_.enable(events_.handle(), queue_ref_.queue().handle(), limits);
    events_.join(&endpoint_.handle().fid, *this);
}

Connection::~Connection() {
    if (destroyed_ != nullptr) *destroyed_ = true;
    close_endpoint();
    while (outstanding_ != OperationTable::none)
        operations().release(std::exchange(outstanding_, operations()[outstanding_].next));
}

void Connection::open(std::span<const std::byte> data) {
    NETIO_CHECK(data.size() <= connection_data_limit);
    if (state_ == State::closing) return; // a receive was refused, or a queue had failed before
    NETIO_CHECK(state_ == State::idle);
    state_ = State::opening;
    const int result = accepting_ ? endpoint_.accept(data) : endpoint_.connect(data);
    domain_.loop().activate(events_);
    if (result < 0) {
        return break_off(reason_of(-result, true),
                         std::string{accepting_ ? "cannot accept " : "cannot connect to "} +
                             peer_address() + ": " + fabric_error_text(result));
    }
    if (limits_.checks_answer) guard_answer();
}

// --- the answer -----------------------------------------------------------------------------

void Connection::guard_answer() {
    life_.socket = find_attempt(endpoint_.handle(), endpoint_.remote(), life_.descriptor_guess);
    if (life_.socket) return static_cast<void>(answer_check_.emplace(life_.socket));
    break_off(CloseReason::failed, "cannot connect to " + peer_address() +
                                       ": the socket of the provider cannot be found, so that the "
                                       "answer could not be checked first");
    close_endpoint();
}

bool Connection::provider_may_read() {
    if (!answer_check_) return true;
    if (state_ != State::opening) return answer_check_->is_open();
    switch (answer_check_->look()) {
    case AnswerCheck::Next::read:
        return true;
    case AnswerCheck::Next::wait:
        return false;
    case AnswerCheck::Next::ended:
        answer_check_->error() == 0 || is_unanswered_end(answer_check_->error())
            ? end_unanswered()
            : break_off(reason_of(answer_check_->error(), true),
                        "connecting to " + peer_address() + ": " +
                            text_of(answer_check_->error(), true));
        close_endpoint();
        return false;
    case AnswerCheck::Next::judge:
        break;
    }
    const DestructionWatch watch{destroyed_};
    handler_.on_answer(answer_check_->answer()); // may destroy this connection
    if (watch.destroyed() || state_ != State::opening) return false;
    answer_check_->open();
    if (domain_.fabric().reads_all_sockets()) queue_ref_.queue().release();
    return true;
}

void Connection::end_unanswered() {
    break_off(CloseReason::failed,
              "connecting to " + peer_address() +
                  ": the connection was ended there without an answer; what listens there may not "
                  "speak this protocol, or has more unfinished connections of this machine than "
                  "its pending_handshakes_per_host: raise that there, or connect fewer sockets at "
                  "once here (attempts_per_address_limit)");
    closed_.ended_unanswered = true;
}

// --- posting --------------------------------------------------------------------------------

std::uint32_t Connection::begin(Completion::Kind kind, Cookie cookie) {
    return operations().begin(*this, kind, cookie, outstanding_);
}

Status Connection::posted(long result, std::uint32_t operation, const char* step) {
    queue_ref_.queue().activate();
    if (result == 0) return Status::ok;
    operations().end(operation, outstanding_);
    break_off(CloseReason::lost, "cannot " + std::string{step} + " " + peer_address() + ": " +
                                     fabric_error_text(result));
    return Status::closed;
}

Status Connection::post_send(std::span<const Slice> slices, Cookie cookie) {
    if (state_ != State::open) return Status::closed;
    NETIO_CHECK_MSG(sends_outstanding_ < limits_.send_count, "more sends than announced");
    const std::uint32_t operation = begin(Completion::Kind::send, cookie);
    const long result = endpoint_.send(slices, operations().name_of(operation));
    const Status status = posted(result, operation, "send to");
    if (status == Status::ok) ++sends_outstanding_;
    return status;
}

Status Connection::post_receive(std::span<const Slice> slices, Cookie cookie) {
    if (state_ == State::closing || state_ == State::closed) return Status::closed;
    NETIO_CHECK_MSG(receives_outstanding_ < limits_.receive_count, "more receives than announced");
    const std::uint32_t operation = begin(Completion::Kind::receive, cookie);
    const long result = endpoint_.receive(slices, operations().name_of(operation));
    const Status status = posted(result, operation, "receive from");
    if (status == Status::ok) ++receives_outstanding_;
    std::size_t bytes = 0;
    for (const Slice& slice : slices)
        bytes += slice.size;
    life_.account.on_receive_posted(bytes);
    return status;
}

// Over kernel sockets, the queue of receives is a list that was created with its maximum length.
bool Connection::reserve_receives(std::size_t receive_count) {
    const std::size_t before = limits_.receive_count;
    if (receive_count <= before) return true;
    if (receive_count > endpoint_.receive_limit() || !queue_ref_.reserve(receive_count - before)) {
        return false;
    }
    limits_.receive_count = receive_count;
    life_.account.allow(receive_count);
    return true;
}

Status Connection::post_write(std::span<const Slice> slices, const RemoteSlice& target,
                              std::optional<std::uint32_t> immediate, Cookie cookie) {
    if (state_ != State::open) return Status::closed;
    NETIO_CHECK_MSG(sends_outstanding_ < limits_.send_count, "more writes than announced");
    NETIO_CHECK(!immediate || capabilities().immediate_bytes >= sizeof(std::uint32_t));
    const std::uint32_t operation = begin(Completion::Kind::write, cookie);
    const long result = endpoint_.write(slices, target, immediate, operations().name_of(operation));
    const Status status = posted(result, operation, "write to");
    if (status == Status::ok) ++sends_outstanding_;
    return status;
}

// --- completions and events -----------------------------------------------------------------

bool Connection::establish(std::span<const std::byte> data) {
    state_ = State::open;
    endpoint_.on_answer();
    life_.last_acknowledged = domain_.loop().now();
    if (domain_.fabric().uses_kernel_sockets() && !life_.socket) {
        life_.socket = find_connection(endpoint_.handle(), life_.descriptor_guess);
    }
    const DestructionWatch watch{destroyed_};
    handler_.on_connected(data); // may destroy this connection
    if (watch.destroyed()) return false;
    for (const Held& held : std::exchange(held_, {})) {
        if (watch.destroyed()) return false;
        if (held.operation == OperationTable::none) {
            complete_remote_write(held.completion);
        } else {
            complete(held.operation, held.completion);
        }
    }
    return !watch.destroyed();
}

// On RDMA, the first message of a fast peer may arrive before the event that the connection is
// established, because the connection managers send the event over another path; on tcp this
// happens when many peers connect at once. The accepting side can process the message at once. The
// connecting side has not seen the listener's answer yet, so it must wait.
bool Connection::must_wait(const Held& held) {
    if (state_ != State::opening) return false;
    if (accepting_) return !establish({});
    held_.push_back(held);
    return true;
}

bool Connection::is_settled() const noexcept {
    const bool was_open = life_.last_acknowledged != TimePoint::min();
    // Writes of the peer that use up no receive are not counted as outstanding operations.
    return !was_open || (outstanding_ == OperationTable::none && !queue_ref_.is_alone());
}

void Connection::complete_remote_write(const Completion& completion) {
    if (must_wait({.operation = OperationTable::none, .completion = completion})) return;
    handler_.on_completion(completion); // may destroy this connection
}

void Connection::complete(std::uint32_t operation, const Completion& completion) {
    if (must_wait({.operation = operation, .completion = completion})) return;
    if (operation == life_.question) {
        life_.last_acknowledged = domain_.loop().now();
        life_.question = OperationTable::none;
        return operations().end(operation, outstanding_);
    }
    if (operations()[operation].kind == Completion::Kind::receive) {
        --receives_outstanding_;
        life_.account.on_message(completion.bytes);
    } else {
        --sends_outstanding_;
        life_.last_acknowledged = domain_.loop().now();
    }
    operations().end(operation, outstanding_);
    handler_.on_completion(completion); // may destroy this connection
}

void Connection::complete_with_error(std::uint32_t operation, int error) {
    const bool flushed = error == FI_ECANCELED;
    const bool own = operation == life_.question;
    Completion completion{};
    completion.kind = operations()[operation].kind;
    completion.cookie = operations()[operation].cookie;
    completion.outcome = flushed ? Completion::Outcome::canceled : Completion::Outcome::failed;
    if (own) {
        life_.question = OperationTable::none;
    } else {
        --(completion.kind == Completion::Kind::receive ? receives_outstanding_
                                                        : sends_outstanding_);
    }
    operations().end(operation, outstanding_);
    // A flushed operation announces the end that an event will explain; any other error is the
    // explanation. Not every provider sends an event after it.
    if (!flushed) {
        break_off(reason_of(error, false),
                  "connection to " + peer_address() + ": " + fabric_error_text(error));
    }
    if (!own) handler_.on_completion(completion);
}

void Connection::on_event(const CmEvent& event) {
    endpoint_.on_answer();
    if (event.type == FI_CONNECTED && state_ == State::opening) {
        // Not observed so far; a provider that reads in another way must not bypass the check.
        if (is_unchecked()) {
            break_off(CloseReason::failed, "connecting to " + peer_address() +
                                               ": the provider has connected before the answer "
                                               "was checked");
            return close_endpoint();
        }
        establish(event.data);
    } else if (event.type == FI_SHUTDOWN) {
        break_off(CloseReason::lost, "the connection to " + peer_address() + " was shut down");
    }
}

void Connection::on_event_error(const CmError& error) {
    endpoint_.on_answer();
    const bool opening = state_ == State::opening;
    const std::string where = (opening ? "connecting to " : "connection to ") + peer_address();
    if (opening && error.error == FI_ECONNREFUSED && !error.data.empty()) {
        break_off(CloseReason::rejected, where + ": rejected by the listener");
        handler_.on_rejected(error.data);
        return;
    }
    if (opening && domain_.fabric().uses_kernel_sockets() && is_unanswered_end(error.error))
        return end_unanswered();
    break_off(reason_of(error.error, opening), where + ": " + text_of(error.error, opening));
}

// --- the end --------------------------------------------------------------------------------

void Connection::break_off(CloseReason reason, std::string detail) {
    if (state_ == State::closing || state_ == State::closed) return;
    state_ = State::closing;
    closed_ = {.reason = reason, .detail = std::move(detail)};
    queue_ref_.queue().settle_connection(*this);
}

void Connection::close() {
    if (state_ == State::closing || state_ == State::closed) return;
    break_off(CloseReason::local, {});
    close_endpoint();
}

void Connection::close_endpoint() noexcept {
    if (!endpoint_.is_open()) return;
    events_.leave(&endpoint_.handle().fid);
    answer_check_.reset();
    life_.socket = {};
    if (endpoint_.waits_to_close() && events_.reports_abandoned(accepting_)) {
        return events_.abandon(
            std::make_unique<AbandonedEndpoint>(queue_ref_.reservation(), endpoint_.release()));
    }
    endpoint_.close(state_ != State::idle);
}

void Connection::give_up_outstanding() {
    close_endpoint();
    state_ = State::closed;
    // The list has the latest operation first; reports come in the order of posting.
    while (outstanding_ != OperationTable::none) {
        const std::uint32_t index = outstanding_;
        const Operation& operation = operations()[index];
        if (index != life_.question) {
            given_up_.push_back({.kind = operation.kind,
                                 .outcome = Completion::Outcome::canceled,
                                 .cookie = operation.cookie});
        }
        outstanding_ = operation.next;
        operations().release(index); // the provider may still report it
    }
    sends_outstanding_ = receives_outstanding_ = 0;
    life_.question = OperationTable::none;
}

bool Connection::finish_close() {
    if (state_ != State::closed) give_up_outstanding();
    if (given_up_.empty()) {
        const Closed closed = std::move(closed_);
        handler_.on_closed(closed); // may destroy this connection
        return true;
    }
    const Completion next = given_up_.back();
    given_up_.pop_back();
    handler_.on_completion(next); // may destroy this connection
    return false;
}

// --- the peer -------------------------------------------------------------------------------

TimePoint Connection::last_sign_of_life(Duration interval) {
    if (domain_.fabric().uses_kernel_sockets()) {
        if (!life_.socket) return TimePoint::min();
        if (!std::exchange(life_.probed, true)) life_.socket.probe_when_idle(interval);
        return domain_.loop().now() - life_.socket.silence();
    }
    // On iWARP, the completion of a write only means that it was passed to TCP, so it is no sign of
    // life.
    if (capabilities().connector_speaks_first) return TimePoint::min();
    probe_peer();
    return life_.last_acknowledged;
}

// Remote writes into memory are not all reported, so the number of bytes has no meaning then.
void Connection::audit(bool all_told) {
    if (state_ != State::open || limits_.remote_writes || !life_.socket) return;
    const auto read = life_.socket.read_bytes();
    if (!read || !life_.account.is_exceeded(*read, all_told)) return;
    break_off(CloseReason::protocol_error, peer_address() + " sends bytes that are not messages");
}

// Writes zero bytes. The peer's device acknowledges this, whether its process runs, is stopped or
// has no receive left. The write needs neither a credit nor a key (InfiniBand Architecture 1.x,
// C9-88: the key of a request of no bytes is not checked).
void Connection::probe_peer() {
    const bool answer_due = sends_outstanding_ > 0 || life_.question != OperationTable::none;
    if (state_ != State::open || answer_due) return;
    life_.question = begin(Completion::Kind::write, Cookie{});
    const long result = endpoint_.write_nothing(operations().name_of(life_.question));
    if (posted(result, life_.question, "ask for a sign of life of") != Status::ok) {
        life_.question = OperationTable::none;
    }
}

} // namespace netio::fabric
