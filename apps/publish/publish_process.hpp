// SPDX-License-Identifier: Apache-2.0
#pragma once

// All publishers of one `netio publish`, on one loop or several, from their configuration to the
// report.

#include "apps/common/cli.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/publish/publisher_config.hpp"
#include "netio/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace apps {

struct PublishArguments {
    std::string config;
    std::string listen;
    std::string bus;
    std::string decode; // layout of fids in the log
    bool allow_remote_anonymous = false;
    KeyArguments keys;
    MetricsArguments metrics;
    std::string provider;
    std::optional<std::uint64_t> messages;
    std::optional<netio::Duration> duration;
    std::optional<std::uint64_t> wait_subscribers;
    bool json = false;
    bool progress = false;
};

// Publishes until the end, and prints the report. The first loop runs on the calling thread and
// handles the signals. Throws ConfigError if a publisher cannot be divided among the loops, and
// what the constructors of the sockets throw.
ExitStatus publish(const PublishConfig& config, const PublishArguments& arguments);

// Opens everything that publish() opens, at free ports, and closes it. Fails if a start would fail,
// except that it does not detect ports in use. Returns a line for each publisher.
std::string check_publish(const PublishConfig& config);

} // namespace apps
