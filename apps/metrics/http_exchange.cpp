// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/http_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace apps {
namespace {

std::string_view reason(unsigned status) {
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    default:
        return "Service Unavailable";
    }
}

constexpr std::string_view method = "GET ";

// GET PATH HTTP/1.x; empty: it is none.
std::string_view path_of(std::string_view line) {
    line.remove_prefix(method.size());
    const std::size_t end = line.find(' ');
    if (end == std::string_view::npos || !line.substr(end).starts_with(" HTTP/1.")) return {};
    const std::string_view target = line.substr(0, end);
    return target.starts_with('/') ? target.substr(0, target.find('?')) : std::string_view{};
}

} // namespace

void HttpExchange::take(std::string_view bytes) {
    if (answered_ || !path_.empty()) return;
    request_ += bytes.substr(0, request_limit_bytes - request_.size());
    const std::string_view request = request_;
    if (!method.starts_with(request.substr(0, method.size()))) return refuse(405);
    const std::size_t end = request.find("\r\n\r\n");
    if (end == std::string_view::npos) {
        if (request.size() == request_limit_bytes) refuse(431);
        return;
    }
    path_ = path_of(request.substr(0, request.find("\r\n")));
    if (path_.empty()) return refuse(400);
    request_ = {};
}

void HttpExchange::answer(const HttpAnswer& answer) {
    text_ = answer.text;
    head_ = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
                        "Connection: close\r\n\r\n",
                        answer.status, reason(answer.status), answer.type, text_->size());
    path_.clear();
    answered_ = true;
}

std::string_view HttpExchange::rest() const noexcept {
    if (!answered_) return {};
    if (sent_ < head_.size()) return std::string_view{head_}.substr(sent_);
    return std::string_view{*text_}.substr(std::min(sent_ - head_.size(), text_->size()));
}

void HttpExchange::refuse(unsigned status) {
    request_ = {};
    answer({.status = status,
            .text = std::make_shared<const std::string>(std::string{reason(status)} + "\n")});
}

} // namespace apps
