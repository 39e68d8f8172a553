// SPDX-License-Identifier: Apache-2.0
// Level 1 of the C interface: requests and replies.
#include "apps/c/call.hpp"

#include <atomic>
#include <optional>
#include <string>
#include <utility>

using netiodaq::done;
using netiodaq::guarded;
using netiodaq::required;

struct netiodaq_requester {
    netio::Requester requester;
};

struct netiodaq_reply {
    netio::Reply reply;
    netio::KeptBytes message; // the last one that netiodaq_reply_next has returned
};

struct netiodaq_responder {
    netiodaq_responder(netio::AddressList listen, netio::Responder::Options options)
        : responder{std::move(listen), std::move(options)},
          address{netio::to_string(responder.endpoints().front().address)} {}
    netio::Responder responder;
    std::string address;
    std::atomic<bool> closing{false}; // no request follows; is_closed() is true later
};

struct netiodaq_request {
    netio::Request request;
};

// --- requester -------------------------------------------------------------------------------

netiodaq_result netiodaq_requester_new(netiodaq_context* context, const char* address,
                                       const netiodaq_options* options, netiodaq_requester** out) {
    return netiodaq::new_object(out, [&] {
        auto settings = netiodaq::settings_of<netiodaq::RequesterSettings>(options);
        if (context != nullptr) settings.options.context = context->context;
        settings.options.key = netiodaq::key_of(settings.key);
        const netio::AddressList responder = netiodaq::addresses_of(address);
        return new netiodaq_requester{netio::Requester{responder, settings.options}};
    });
}

netiodaq_result netiodaq_requester_send(netiodaq_requester* requester, const void* data,
                                        std::uint64_t size_bytes, std::int64_t timeout_ms,
                                        netiodaq_reply** out) {
    return netiodaq::new_object(out, [&] {
        netio::Requester& to = required(requester, "requester").requester;
        return new netiodaq_reply{.reply = to.send(netiodaq::bytes_of(data, size_bytes),
                                                   netiodaq::timeout_of(timeout_ms)),
                                  .message = {}};
    });
}

netiodaq_result netiodaq_requester_close(netiodaq_requester* requester) {
    return done([&] { required(requester, "requester").requester.close(); });
}

netiodaq_result netiodaq_requester_get_stats(const netiodaq_requester* requester,
                                             netiodaq_requester_stats* stats) {
    return done([&] {
        const auto now = required(requester, "requester").requester.stats();
        netiodaq::fill(stats, "stats",
                       netiodaq_requester_stats{.size_bytes = 0,
                                                .outstanding = now.outstanding,
                                                .replied = now.replied,
                                                .timed_out = now.timed_out,
                                                .canceled = now.canceled,
                                                .disconnected = now.disconnected,
                                                .failed = now.failed,
                                                .late = now.late,
                                                .queued_bytes = now.queued_bytes,
                                                .reply_bytes = now.reply_bytes,
                                                .connected = now.connected ? 1U : 0U});
    });
}

void netiodaq_requester_free(netiodaq_requester* requester) {
    delete requester;
}

// --- reply -----------------------------------------------------------------------------------

netiodaq_result netiodaq_reply_next(netiodaq_reply* reply, std::int64_t timeout_ms,
                                    const void** data, std::uint64_t* size_bytes) {
    return guarded([&]() -> netiodaq_result {
        const void*& at = required(data, "data");
        std::uint64_t& size = required(size_bytes, "size_bytes");
        at = nullptr;
        size = 0;
        netiodaq_reply& its = required(reply, "reply");
        its.message = {};
        if (!its.reply.wait_for(netiodaq::timeout_of(timeout_ms)))
            return netiodaq::failed(NETIODAQ_TIMED_OUT);
        std::optional<netio::KeptBytes> next = its.reply.next();
        if (!next) return netiodaq::failed(NETIODAQ_END);
        its.message = *std::move(next);
        at = its.message.bytes().data();
        size = its.message.size();
        return NETIODAQ_OK;
    });
}

std::int32_t netiodaq_reply_end(const netiodaq_reply* reply) {
    using netio::RequestEnd;
    static_assert(static_cast<int>(RequestEnd::open) == NETIODAQ_REQUEST_OPEN);
    static_assert(static_cast<int>(RequestEnd::replied) == NETIODAQ_REQUEST_REPLIED);
    static_assert(static_cast<int>(RequestEnd::timed_out) == NETIODAQ_REQUEST_TIMED_OUT);
    static_assert(static_cast<int>(RequestEnd::canceled) == NETIODAQ_REQUEST_CANCELED);
    static_assert(static_cast<int>(RequestEnd::disconnected) == NETIODAQ_REQUEST_DISCONNECTED);
    static_assert(static_cast<int>(RequestEnd::no_reply) == NETIODAQ_REQUEST_NO_REPLY);
    static_assert(static_cast<int>(RequestEnd::failed) == NETIODAQ_REQUEST_FAILED);
    static_assert(static_cast<int>(RequestEnd::too_large) == NETIODAQ_REQUEST_TOO_LARGE);
    return reply != nullptr ? static_cast<std::int32_t>(reply->reply.end()) : -1;
}

netiodaq_result netiodaq_reply_cancel(netiodaq_reply* reply) {
    return done([&] { required(reply, "reply").reply.cancel(); });
}

void netiodaq_reply_free(netiodaq_reply* reply) {
    delete reply;
}

// --- responder -------------------------------------------------------------------------------

netiodaq_result netiodaq_responder_new(netiodaq_context* context, const char* addresses,
                                       const netiodaq_options* options, netiodaq_responder** out) {
    return netiodaq::new_object(out, [&] {
        auto settings = netiodaq::settings_of<netiodaq::ResponderSettings>(options);
        auto listen = netiodaq::addresses_of(addresses);
        const netio::Context its = context != nullptr ? context->context : netio::Context{};
        settings.options.context = its;
        settings.options.keys = netiodaq::keys_of(settings.keys, its);
        return new netiodaq_responder{std::move(listen), std::move(settings.options)};
    });
}

const char* netiodaq_responder_address(const netiodaq_responder* responder) {
    return responder != nullptr ? responder->address.c_str() : nullptr;
}

netiodaq_result netiodaq_responder_receive(netiodaq_responder* responder, std::int64_t timeout_ms,
                                           netiodaq_request** out) {
    return guarded([&]() -> netiodaq_result {
        netiodaq::store_null(out);
        netio::Responder& from = required(responder, "responder").responder;
        std::optional<netio::Request> request = from.receive(netiodaq::timeout_of(timeout_ms));
        if (!request)
            return netiodaq::failed(responder->closing ? NETIODAQ_END : NETIODAQ_TIMED_OUT);
        *out = new netiodaq_request{*std::move(request)};
        return NETIODAQ_OK;
    });
}

netiodaq_result netiodaq_responder_close(netiodaq_responder* responder) {
    return done([&] {
        netiodaq_responder& its = required(responder, "responder");
        its.closing = true;
        its.responder.close();
    });
}

netiodaq_result netiodaq_responder_get_stats(const netiodaq_responder* responder,
                                             netiodaq_responder_stats* stats) {
    return done([&] {
        const auto now = required(responder, "responder").responder.stats();
        netiodaq::fill(stats, "stats",
                       netiodaq_responder_stats{.size_bytes = 0,
                                                .peers = now.peers,
                                                .waiting = now.waiting,
                                                .open = now.open,
                                                .requests = now.requests,
                                                .replied = now.replied,
                                                .failed = now.failed,
                                                .no_reply = now.no_reply,
                                                .canceled = now.canceled,
                                                .too_slow = now.too_slow});
    });
}

void netiodaq_responder_free(netiodaq_responder* responder) {
    delete responder;
}

// --- request ---------------------------------------------------------------------------------

namespace {

// For work that returns whether the request was open.
template <typename Work>
netiodaq_result answered(netiodaq_request* request, Work work,
                         const char* call = __builtin_FUNCTION()) {
    return done(
        [&] {
            if (work(required(request, "request").request)) return;
            throw netiodaq::Failure{NETIODAQ_CLOSED,
                                    "the request has ended before: it was replied to, its "
                                    "requester has canceled or is gone, or the responder is "
                                    "closed"};
        },
        call);
}

} // namespace

const void* netiodaq_request_data(const netiodaq_request* request) {
    return request != nullptr ? request->request.bytes().data() : nullptr;
}

std::uint64_t netiodaq_request_size_bytes(const netiodaq_request* request) {
    return request != nullptr ? request->request.size() : 0;
}

const char* netiodaq_request_peer_address(const netiodaq_request* request) {
    return request != nullptr ? request->request.peer_address().c_str() : nullptr;
}

std::int32_t netiodaq_request_is_canceled(const netiodaq_request* request) {
    return request != nullptr && request->request.is_canceled() ? 1 : 0;
}

netiodaq_result netiodaq_request_reply(netiodaq_request* request, const void* data,
                                       std::uint64_t size_bytes) {
    return answered(request, [&](netio::Request& its) {
        return its.reply(netiodaq::bytes_of(data, size_bytes));
    });
}

netiodaq_result netiodaq_request_reply_part(netiodaq_request* request, const void* data,
                                            std::uint64_t size_bytes) {
    return answered(request, [&](netio::Request& its) {
        return its.reply_part(netiodaq::bytes_of(data, size_bytes));
    });
}

netiodaq_result netiodaq_request_fail(netiodaq_request* request, const char* why) {
    return answered(request,
                    [&](netio::Request& its) { return its.fail(netiodaq::text_of(why, "why")); });
}

void netiodaq_request_free(netiodaq_request* request) {
    delete request;
}
