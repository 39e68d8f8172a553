// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/outlet.hpp"

#include "netio/access/host.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <ctime>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace apps {
namespace {

using netio::Cookie;
using netio::Status;
using netio::pubsub::BufferedPublishSocket;
using netio::pubsub::PublishSocket;

std::span<const std::byte> header_of(const MessageFeed::Message& message) {
    return std::span{message.header}.first(message.header_bytes);
}

std::size_t largest_published(const PublisherConfig& config) {
    std::size_t most = 0;
    for (const StreamConfig& stream : config.streams) {
        if (std::holds_alternative<RecordingConfig>(stream.source)) continue;
        most = std::max(most, largest(stream.sizes) + bytes_of(stream.header));
    }
    return most;
}

// Calls take(at, bytes) for each slice of the message. All slices have the same length except the
// last, and none is empty.
template <typename Take>
void cut(const MessageFeed::Message& message, Take take) {
    const std::size_t slices = std::clamp<std::size_t>(message.bytes, 1, message.slices);
    const std::size_t length = message.bytes / slices;
    for (std::size_t i = 0; i < slices; ++i)
        take(i * length, i + 1 == slices ? message.bytes - i * length : length);
}

// A message is copied into pages, so one buffer is enough.
class BufferedOutlet final : public Outlet {
  public:
    BufferedOutlet(netio::Transport& transport, const PublisherConfig& config,
                   std::size_t largest_bytes, PublishSocket::Handler& handler)
        : socket_{transport, config.buffered_options, handler}, memory_(largest_bytes) {
        if (largest_published(config) <= socket_.message_limit()) return;
        refuse_at(config, "streams",
                  fmt::format("messages of up to {} bytes do not fit into {} pages of {} bytes; "
                              "allowed: at most {} bytes, or more or larger pages",
                              largest_published(config), config.buffered_options.page_count,
                              config.buffered_options.page_size_bytes, socket_.message_limit()));
    }

    std::span<std::byte> place() override { return memory_; }
    Status offer(const MessageFeed::Message& message) override {
        const std::span<const std::byte> body = std::span{memory_}.first(message.bytes);
        if (message.header_bytes == 0 && message.slices == 1)
            return socket_.publish(message.fid, body, message.status);
        parts_.clear();
        if (message.header_bytes > 0) parts_.push_back(header_of(message));
        cut(message,
            [&](std::size_t at, std::size_t bytes) { parts_.push_back(body.subspan(at, bytes)); });
        return socket_.publishv(message.fid, parts_, message.status);
    }
    bool release(Cookie) override { return false; }
    netio::pubsub::Publisher& publisher() noexcept override { return socket_; }
    replay::Player::Socket socket() noexcept override { return {.buffered = &socket_}; }

  private:
    BufferedPublishSocket socket_;
    std::vector<std::byte> memory_;
    std::vector<std::span<const std::byte>> parts_;
};

// Every message in flight has its own buffer, as large as the largest message.
class UnbufferedOutlet final : public Outlet {
  public:
    UnbufferedOutlet(netio::Transport& transport, const PublisherConfig& config,
                     std::size_t largest_bytes, PublishSocket::Handler& handler)
        : largest_bytes_{std::max<std::size_t>(largest_bytes, 1)},
          place_bytes_{(largest_bytes_ + alignment - 1) / alignment * alignment},
          place_count_{std::clamp<std::size_t>(
              (config.memory_bytes > 0 ? config.memory_bytes : default_memory) / place_bytes_, 3,
              config.unbuffered_options.outstanding_limit + 1)},
          memory_{place_count_ * place_bytes_}, socket_{transport,
                                                        within_places(config.unbuffered_options),
                                                        handler} {
        for (std::size_t i = place_count_; i > 0; --i)
            free_.push_back(static_cast<std::uint32_t>(i - 1));
    }

    std::span<std::byte> place() override {
        if (free_.empty()) return {};
        return memory_.memory().subspan(free_.back() * place_bytes_, largest_bytes_);
    }
    Status offer(const MessageFeed::Message& message) override {
        const std::uint32_t place = free_.back();
        slices_.clear();
        cut(message, [&](std::size_t at, std::size_t bytes) {
            slices_.push_back(memory_.slice(place * place_bytes_ + at, bytes));
        });
        const Status status =
            socket_.publishv(message.fid, slices_, Cookie{place},
                             {.status = message.status, .header = header_of(message)});
        if (status == Status::ok) free_.pop_back();
        return status;
    }
    bool release(Cookie cookie) override {
        free_.push_back(static_cast<std::uint32_t>(cookie));
        return free_.size() == 1;
    }
    netio::pubsub::Publisher& publisher() noexcept override { return socket_; }
    replay::Player::Socket socket() noexcept override { return {.unbuffered = &socket_}; }

  private:
    static constexpr std::size_t alignment = 64;
    static constexpr std::size_t default_memory = std::size_t{256} << 20;

    // Limits and policies depend on outstanding_limit. With fewer buffers than that, a few stopped
    // subscribers would occupy all of them and no policy would act. One buffer is reserved for the
    // message that the socket refuses.
    PublishSocket::Options within_places(PublishSocket::Options options) const {
        options.outstanding_limit = std::min(options.outstanding_limit, place_count_ - 1);
        return options;
    }

    std::size_t largest_bytes_;
    std::size_t place_bytes_;
    std::size_t place_count_;
    netio::RegisteredBuffer memory_;
    std::vector<std::uint32_t> free_;
    std::vector<netio::Slice> slices_;
    PublishSocket socket_; // last: destroyed first, so that no buffer is in flight
};

// Returns the key of the refused address; empty if the error is of another kind.
std::string key_of(const PublisherConfig& config, const std::string& error) {
    const std::vector<netio::Address>& used = config.buffered_options.publisher.listen;
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (error.find(to_string(used[i])) == std::string::npos &&
            error.find("'" + used[i].host + "'") == std::string::npos) // cannot be resolved
            continue;
        std::string key = "listen[" + std::to_string(i) + "]";
        return config.places.contains(key) ? key : "listen";
    }
    return {};
}

} // namespace

std::unique_ptr<Outlet> make_outlet(netio::Transport& transport, const PublisherConfig& config,
                                    std::size_t largest_bytes, PublishSocket::Handler& handler) {
    const auto make = [&]() -> std::unique_ptr<Outlet> {
        if (config.buffered)
            return std::make_unique<BufferedOutlet>(transport, config, largest_bytes, handler);
        return std::make_unique<UnbufferedOutlet>(transport, config, largest_bytes, handler);
    };
    try {
        return make();
    } catch (const ConfigError&) {
        throw;
    } catch (const std::exception& error) {
        const std::string key = key_of(config, error.what());
        if (key.empty() || config.place_of(key).starts_with("--")) throw;
        refuse_at(config, key, error.what());
    }
}

namespace {

using netio::pubsub::AnnouncedFids;
using netio::pubsub::Announcement;
using netio::pubsub::FidRange;

// Reduces a host name to letters, digits and hyphens; the first character is a letter or a digit.
std::string as_name(std::string host) {
    std::ranges::replace_if(
        host, [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-'; }, '-');
    if (host.empty() || std::isalnum(static_cast<unsigned char>(host.front())) == 0)
        host.insert(0, "host");
    return host.substr(0, 64);
}

bool stands_for_all(const std::string& text) {
    const auto host = netio::access::parse_host(text);
    return host && netio::access::is_any(*host);
}

std::vector<AnnouncedFids> announced(const std::vector<StreamConfig>& streams) {
    std::map<std::string, std::vector<FidRange>> by_meaning;
    for (const StreamConfig& stream : streams) {
        auto& ranges = by_meaning[stream.meaning];
        ranges.insert(ranges.end(), stream.fids.begin(), stream.fids.end());
    }
    std::vector<AnnouncedFids> fids;
    for (const auto& [meaning, ranges] : by_meaning)
        for (const FidRange& range : netio::pubsub::normalised(ranges))
            fids.push_back({.fids = range, .meaning = meaning});
    return fids;
}

} // namespace

Process this_process() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    std::array<char, 32> started{};
    std::strftime(started.data(), started.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return {.host = netio::pubsub::this_host(),
            .pid = static_cast<int>(::getpid()),
            .started = started.data()};
}

void refuse_unannounceable(const PublisherConfig& config) {
    if (config.bus.where.empty()) return;
    const std::size_t ranges = announced(config.streams).size();
    if (ranges <= netio::pubsub::announced_ranges_limit) return;
    refuse_at(config, "bus",
              fmt::format("the fids are {} separate ranges, but an announcement has at most {}; "
                          "divide them among publishers or loops, or publish them without a bus",
                          ranges, netio::pubsub::announced_ranges_limit));
}

Announcement announcement_of(const PublisherConfig& config,
                             const std::vector<netio::Endpoint>& endpoints,
                             const Process& process) {
    Announcement announcement{
        .name = config.bus.name.empty()
                    ? fmt::format("{}-{}-{}", as_name(process.host), process.pid, config.position)
                    : config.bus.name,
        .instance = netio::pubsub::draw_instance(),
        .fids = announced(config.streams),
        .mode = config.buffered ? "buffered" : "unbuffered",
        .parameters = {{"largest_message", std::to_string(config.publisher.largest_message_bytes)}},
        .host = process.host,
        .pid = process.pid,
        .started = process.started};
    if (config.buffered) {
        announcement.parameters.emplace("page_size",
                                        std::to_string(config.buffered_options.page_size_bytes));
    }
    const auto as_others_see = [&](netio::Address address) {
        const std::string& self =
            config.bus.advertise.empty() ? process.host : config.bus.advertise;
        if (stands_for_all(address.host)) address.host = self;
        return address;
    };
    for (const netio::Endpoint& endpoint : endpoints) {
        announcement.addresses.push_back(netio::pubsub::to_announced_address(
            {.provider = endpoint.provider, .address = as_others_see(endpoint.address)}));
    }
    if (!config.metrics.listen.empty()) {
        const netio::Address metrics = netio::parse_address(config.metrics.listen);
        if (metrics.port != 0) announcement.metrics = to_string(as_others_see(metrics));
    }
    return announcement;
}

BusPlace::BusPlace(netio::EventLoop& loop, const BusConfig& config,
                   const Announcement& announcement)
    : log_{loop}, place_{fmt::format("{} at {}", announcement.name, config.where)} {
    announcer_ =
        netio::pubsub::announce(loop, config.where, announcement, *this, {.lease = config.lease});
}

void BusPlace::on_written() {
    spdlog::info("announced as {}", place_);
}

void BusPlace::on_warning(const std::string& what) {
    log_.warn("bus: " + what);
}

namespace {

Announcement announcement_here(const PublisherConfig& config,
                               const std::vector<netio::Endpoint>& endpoints) {
    PublisherConfig shown = config;
    if (!config.metrics.listen.empty()) // an interface name is valid on this machine only
        shown.metrics.listen = to_string(metrics_address(config.metrics));
    return announcement_of(shown, endpoints, this_process());
}

} // namespace

std::unique_ptr<BusPlace> announce_publisher(netio::EventLoop& loop, const PublisherConfig& config,
                                             const std::vector<netio::Endpoint>& endpoints) {
    if (config.bus.where.empty()) return nullptr;
    return with_config_key(config, "bus", [&] {
        return std::make_unique<BusPlace>(loop, config.bus, announcement_here(config, endpoints));
    });
}

void check_announcement(netio::EventLoop& loop, const PublisherConfig& config,
                        const std::vector<netio::Endpoint>& endpoints) {
    if (config.bus.where.empty()) return;
    with_config_key(config, "bus", [&] {
        static_cast<void>(to_text(announcement_here(config, endpoints)));
        static_cast<void>(
            netio::pubsub::open_bus(loop, config.bus.where, {.lease = config.bus.lease}));
    });
}

} // namespace apps
