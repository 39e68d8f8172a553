// SPDX-License-Identifier: Apache-2.0
#pragma once

// A registry in etcd: each text has a key PREFIX/NAME under an etcd lease. Keys under a lease
// belong to live publishers, and a watch reports changes. While etcd is unreachable, requests are
// repeated. If etcd returns without its data, publishers announce themselves again before any of
// them is considered removed.

#include "apps/etcd/etcd_client.hpp"
#include "pubsub/discovery/registry.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace apps {

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
