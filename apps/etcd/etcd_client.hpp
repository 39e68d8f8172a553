// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"
#include "pubsub/discovery/registry.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace apps {

// Where an etcd is, and as whom it is asked:
//
//     etcd://HOST:PORT[/PREFIX][?user=FILE&ca=FILE]     etcds:// with TLS
//
// The file of the user has one line, NAME:PASSWORD, so that no password stands in a command line.
// It must belong to the user or root, and nobody else may have access to it (mode 0600), as a key
// file. No I/O.

struct EtcdPlace {
    netio::Address address;
    bool tls = false;
    std::string prefix = "netio"; // of the keys: /netio/NAME
    std::string user_file;        // empty: nobody in particular
    std::string ca_file;          // whose certificates are believed; empty: the system's
};

bool is_etcd_place(std::string_view text) noexcept;
// What a user should know of this place: the password travels unencrypted to another machine.
// "problem; remedy"; empty: nothing.
std::string warning_about(const EtcdPlace& place);
// Throws std::invalid_argument naming the text and what is allowed.
EtcdPlace parse_etcd_place(std::string_view text);

// Requests to the JSON gateway of an etcd (v3). It blocks, for so long at most; interrupt() may
// come from any thread.

// The server is there, and what it answers cannot be used: it is too long, or exceeds a limit.
class AnswerError : public netio::pubsub::RegistryError {
  public:
    using RegistryError::RegistryError;
};

class EtcdClient {
  public:
    // Of an answer, whatever the server is. One with the largest announcement that is allowed takes
    // 6 MiB, one with 40,000 names 10 MiB.
    struct Limits {
        std::size_t answer_bytes = std::size_t{16} << 20;
        std::size_t answer_depth = 16;       // of arrays and objects in one another
        std::size_t answer_values = 262'144; // texts, numbers, arrays, objects
        std::chrono::milliseconds silence{5000};
        std::chrono::milliseconds answer_time{10'000}; // the first byte to the last
    };

    explicit EtcdClient(EtcdPlace place) : EtcdClient{std::move(place), Limits()} {}
    EtcdClient(EtcdPlace place, const Limits& limits);
    ~EtcdClient();
    EtcdClient(const EtcdClient&) = delete;
    EtcdClient& operator=(const EtcdClient&) = delete;

    // The answer, or the first object of a stream of them. Throws netio::pubsub::RegistryError, and
    // AnswerError of an answer that exceeds a limit.
    nlohmann::json ask(const std::string& path, const nlohmann::json& request);
    // Each object of a stream as it comes, until `take` says false, `time` has passed without
    // anything, or with more than answers may take, or interrupt(), or it cannot be asked.
    void listen(const std::string& path, const nlohmann::json& request, netio::Duration time,
                const std::function<bool(const nlohmann::json&)>& take);
    void interrupt() noexcept;
    // For error messages.
    const std::string& name() const noexcept { return name_; }

  private:
    struct Connections;

    nlohmann::json ask_once(const std::string& path, const std::string& body, int& status);
    // Throws netio::pubsub::JsonError.
    nlohmann::json parse(std::string_view text) const;
    void authenticate();

    EtcdPlace place_;
    Limits limits_;
    std::string name_;
    std::string token_;
    std::unique_ptr<Connections> connections_;
};

} // namespace apps
