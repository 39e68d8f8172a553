// SPDX-License-Identifier: Apache-2.0
#pragma once

// One request over HTTP and its answer, without a socket: as much of a request is kept as a scraper
// sends, whoever asks, and an answer is shared by all who ask at the same time.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace apps {

struct HttpAnswer {
    unsigned status = 200;
    std::string_view type = "text/plain"; // of a text that lives as long as the program
    std::shared_ptr<const std::string> text;
};

class HttpExchange {
  public:
    static constexpr std::size_t request_limit_bytes = 8192;

    // What has arrived. What is no request, too long for one, or not to read is answered here.
    void take(std::string_view bytes);
    // It wants to have this; empty: nothing yet, or no more.
    const std::string& path() const noexcept { return path_; }
    void answer(const HttpAnswer& answer);
    bool is_answered() const noexcept { return answered_; }
    // What is to be sent next of the answer; empty: nothing is left.
    std::string_view rest() const noexcept;
    void sent(std::size_t bytes) noexcept { sent_ += bytes; }

  private:
    void refuse(unsigned status);

    std::string request_;
    std::string path_;
    std::string head_;
    std::shared_ptr<const std::string> text_;
    std::size_t sent_ = 0;
    bool answered_ = false;
};

} // namespace apps
