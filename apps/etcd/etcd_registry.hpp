// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"
#include "pubsub/discovery/registry.hpp"

#include <nlohmann/json_fwd.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace apps {

// The address of an etcd server, and the user for its requests:
//
//     etcd://HOST:PORT[/PREFIX][?user=FILE&ca=FILE]     etcds:// with TLS
//
// The user's file has one line, NAME:PASSWORD, so that the command line has no password. The file
// must belong to the user or root, with mode 0600, like a key file. No I/O.

struct EtcdPlace {
    netio::Address address;
    bool tls = false;
    std::string prefix = "netio"; // of the keys: /netio/NAME
    std::string user_file;        // empty: no user
    std::string ca_file;          // trusted certificates; empty: the system's
};

bool is_etcd_place(std::string_view text) noexcept;
// Returns a warning "problem; remedy" if the password is sent unencrypted to another machine;
// otherwise empty.
std::string warning_about(const EtcdPlace& place);
// Throws std::invalid_argument that names the text and what is allowed.
EtcdPlace parse_etcd_place(std::string_view text);

// Client for the JSON gateway of etcd (v3). Requests block, with a time limit; any thread may call
// interrupt().

// The server answers, but the answer is unusable: it is too long or exceeds another limit.
class AnswerError : public netio::pubsub::RegistryError {
  public:
    using RegistryError::RegistryError;
};

class EtcdClient {
  public:
    // Limits of an answer from any server. An answer with the largest allowed announcement has 6
    // MiB, one with 40,000 names 10 MiB.
    struct Limits {
        std::size_t answer_bytes = std::size_t{16} << 20;
        std::size_t answer_depth = 16;       // nested arrays and objects
        std::size_t answer_values = 262'144; // texts, numbers, arrays, objects
        std::chrono::milliseconds silence{5000};
        std::chrono::milliseconds answer_time{10'000}; // from the first byte to the last
    };

    explicit EtcdClient(EtcdPlace place) : EtcdClient{std::move(place), Limits()} {}
    EtcdClient(EtcdPlace place, const Limits& limits);
    ~EtcdClient();
    EtcdClient(const EtcdClient&) = delete;
    EtcdClient& operator=(const EtcdClient&) = delete;

    // Returns the answer, or the first object of a stream of answers. Throws
    // netio::pubsub::RegistryError, and AnswerError if an answer exceeds a limit.
    nlohmann::json ask(const std::string& path, const nlohmann::json& request);
    // Calls `take` for each object of a stream as it arrives. Ends when `take` returns false, when
    // nothing has arrived for `time`, when an answer exceeds a limit, after interrupt(), or if the
    // request fails.
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

// A registry in etcd: each text has a key PREFIX/NAME under an etcd lease. Keys under a lease
// belong to live publishers, and a watch reports changes. While etcd is unreachable, requests are
// repeated. If etcd returns without its data, publishers announce themselves again before any of
// them is considered removed.

class EtcdRegistry final : public netio::pubsub::Registry {
  public:
    // `retry` is the interval of requests while etcd does not answer.
    EtcdRegistry(const EtcdPlace& place, std::chrono::milliseconds lease,
                 std::chrono::milliseconds retry);

    void put(const std::string& name, const std::string& text) override;
    bool has_leases() const noexcept override { return true; }
    bool keep(const std::string& name) override;
    std::optional<std::string> get(const std::string& name) override;
    void remove(const std::string& name) override;
    void look(Visitor& visitor) override;
    void wait(netio::TimePoint until) override;
    void interrupt() noexcept override;

  private:
    std::string key(const std::string& name) const { return prefix_ + name; }
    nlohmann::json all_keys() const;
    void grant();
    void write(const std::string& name, const std::string& text);
    void read(std::set<std::string> names, std::int64_t since, Visitor& visitor);
    void pause_until(netio::TimePoint until);
    void take_revision(const nlohmann::json& answer);

    EtcdClient client_;
    std::string prefix_;
    std::chrono::milliseconds lease_;
    std::chrono::milliseconds retry_;
    std::string lease_id_;                      // as text, as in etcd's answers; empty: none
    std::map<std::string, std::int64_t> known_; // by name: the revision last read
    std::string cluster_;
    std::int64_t revision_ = 0; // 0: nothing read yet
    bool reads_ = false;        // used for reading, not only for writing
    bool reached_ = true;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<bool> interrupted_{false};
};

} // namespace apps
