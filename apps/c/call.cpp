// SPDX-License-Identifier: Apache-2.0
#include "apps/c/call.hpp"

#include "netio/base/version.hpp"
#include "netio/context.hpp"
#include "stream/socket/blocking_stream.hpp"

#include <exception>
#include <new>
#include <system_error>
#include <utility>

namespace netiodaq {
namespace {

constexpr std::pair<netiodaq_result, const char*> result_texts[] = {
    {NETIODAQ_OK, "ok"},
    {NETIODAQ_NO_SUBSCRIBERS, "no subscribers"},
    {NETIODAQ_PARTIAL, "partial"},
    {NETIODAQ_AGAIN, "again"},
    {NETIODAQ_TIMED_OUT, "timed out"},
    {NETIODAQ_END, "end"},
    {NETIODAQ_CLOSED, "closed"},
    {NETIODAQ_TOO_LARGE, "too large"},
    {NETIODAQ_TOO_MANY_SEGMENTS, "too many segments"},
    {NETIODAQ_NOT_OWNED, "not owned"},
    {NETIODAQ_STALE_TICKET, "stale ticket"},
    {NETIODAQ_INVALID_ARGUMENT, "invalid argument"},
    {NETIODAQ_NETWORK_ERROR, "network error"},
    {NETIODAQ_OUT_OF_MEMORY, "out of memory"},
    {NETIODAQ_WRONG_THREAD, "wrong thread"},
    {NETIODAQ_ENDED_EARLY, "ended early"},
    {NETIODAQ_FAILED, "failed"}};

// Constant texts need no memory, so that they can be reported when there is none.
struct LastError {
    const char* constant = "";
    std::string text; // if constant is null
};

LastError& last_error() noexcept {
    thread_local LastError error;
    return error;
}

netiodaq_result failed(netiodaq_result result, std::string_view prefix, std::string_view text) {
    LastError& error = last_error();
    try {
        error.text.assign(prefix).append(prefix.empty() ? "" : ": ").append(text);
        error.constant = nullptr;
    } catch (const std::bad_alloc&) {
        error.constant = netiodaq_error_text(result);
    }
    return result;
}

netiodaq_result code_of(netio::Status status) noexcept {
    switch (status) {
    case netio::Status::ok:
        return NETIODAQ_OK;
    case netio::Status::no_subscribers:
        return NETIODAQ_NO_SUBSCRIBERS;
    case netio::Status::again:
        return NETIODAQ_AGAIN;
    case netio::Status::partial:
        return NETIODAQ_PARTIAL;
    case netio::Status::too_many_segments:
        return NETIODAQ_TOO_MANY_SEGMENTS;
    case netio::Status::too_large:
        return NETIODAQ_TOO_LARGE;
    case netio::Status::closed:
        return NETIODAQ_CLOSED;
    case netio::Status::stale_ticket:
        return NETIODAQ_STALE_TICKET;
    case netio::Status::not_owned:
        return NETIODAQ_NOT_OWNED;
    }
    return NETIODAQ_FAILED;
}

netiodaq_result code_of(netio::stream::StreamError::Kind kind) noexcept {
    switch (kind) {
    case netio::stream::StreamError::Kind::timed_out:
        return NETIODAQ_TIMED_OUT;
    case netio::stream::StreamError::Kind::ended:
        return NETIODAQ_ENDED_EARLY;
    case netio::stream::StreamError::Kind::closed:
        return NETIODAQ_CLOSED;
    }
    return NETIODAQ_FAILED;
}

} // namespace

netiodaq_result failed(netiodaq_result result) noexcept {
    last_error().constant = netiodaq_error_text(result);
    return result;
}

netiodaq_result result_of(netio::Status status) noexcept {
    const netiodaq_result result = code_of(status);
    return result < 0 ? failed(result) : result;
}

netiodaq_result result_of_exception(const char* call) noexcept {
    try {
        throw;
    } catch (const Failure& failure) {
        return failed(failure.code(), call, failure.what());
    } catch (const netio::Error& error) {
        const netiodaq_result code = code_of(error.status());
        return failed(code < 0 ? code : NETIODAQ_FAILED, "", error.what());
    } catch (const netio::stream::StreamError& error) {
        return failed(code_of(error.kind()), "", error.what());
    } catch (const std::invalid_argument& error) {
        return failed(NETIODAQ_INVALID_ARGUMENT, "", error.what());
    } catch (const std::system_error& error) { // FabricError is one
        return failed(NETIODAQ_NETWORK_ERROR, "", error.what());
    } catch (const std::bad_alloc&) {
        return failed(NETIODAQ_OUT_OF_MEMORY);
    } catch (const std::length_error&) {
        return failed(NETIODAQ_OUT_OF_MEMORY);
    } catch (const std::exception& error) {
        return failed(NETIODAQ_FAILED, "", error.what());
    } catch (...) {
        return failed(NETIODAQ_FAILED);
    }
}

} // namespace netiodaq

const char* netiodaq_error_text(netiodaq_result result) {
    for (const auto& [code, text] : netiodaq::result_texts)
        if (code == result) return text;
    return "unknown result";
}

const char* netiodaq_last_error() {
    const netiodaq::LastError& error = netiodaq::last_error();
    return error.constant != nullptr ? error.constant : error.text.c_str();
}

const char* netiodaq_version() {
    return netio::version();
}

netiodaq_result netiodaq_set_log(netiodaq_log_function function, void* user) {
    return netiodaq::done([&] {
        if (function == nullptr) return netio::set_log({});
        netio::set_log(
            [function, user](std::string_view line) { function(std::string{line}.c_str(), user); });
    });
}

const char* netiodaq_close_reason_text(std::int32_t reason) {
    using netio::CloseReason;
    static_assert(static_cast<int>(CloseReason::local) == NETIODAQ_CLOSE_LOCAL);
    static_assert(static_cast<int>(CloseReason::orderly) == NETIODAQ_CLOSE_ORDERLY);
    static_assert(static_cast<int>(CloseReason::unconfirmed) == NETIODAQ_CLOSE_UNCONFIRMED);
    static_assert(static_cast<int>(CloseReason::lost) == NETIODAQ_CLOSE_LOST);
    static_assert(static_cast<int>(CloseReason::refused) == NETIODAQ_CLOSE_REFUSED);
    static_assert(static_cast<int>(CloseReason::unreachable) == NETIODAQ_CLOSE_UNREACHABLE);
    static_assert(static_cast<int>(CloseReason::rejected) == NETIODAQ_CLOSE_REJECTED);
    static_assert(static_cast<int>(CloseReason::connect_timeout) == NETIODAQ_CLOSE_CONNECT_TIMEOUT);
    static_assert(static_cast<int>(CloseReason::handshake_timeout) ==
                  NETIODAQ_CLOSE_HANDSHAKE_TIMEOUT);
    static_assert(static_cast<int>(CloseReason::silent) == NETIODAQ_CLOSE_SILENT);
    static_assert(static_cast<int>(CloseReason::too_slow) == NETIODAQ_CLOSE_TOO_SLOW);
    static_assert(static_cast<int>(CloseReason::protocol_error) == NETIODAQ_CLOSE_PROTOCOL_ERROR);
    static_assert(static_cast<int>(CloseReason::not_admitted) == NETIODAQ_CLOSE_NOT_ADMITTED);
    static_assert(static_cast<int>(CloseReason::failed) == NETIODAQ_CLOSE_FAILED);
    if (reason < NETIODAQ_CLOSE_LOCAL || reason > NETIODAQ_CLOSE_FAILED) return "unknown reason";
    return netio::to_string(static_cast<CloseReason>(reason)).data(); // a constant
}
