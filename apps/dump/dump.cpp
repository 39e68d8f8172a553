// SPDX-License-Identifier: Apache-2.0
#include "apps/dump/dump.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/fid_text.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/discovery/bus.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace apps {
namespace {

template <class Number>
std::optional<Number> number(std::string_view text, int base) {
    Number value{};
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value, base);
    if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
    return value;
}

// Returns an empty vector if the text is not bytes in hex.
std::vector<std::byte> bytes_in_hex(std::string_view text) {
    std::vector<std::byte> bytes;
    if (text.size() % 2 != 0) return bytes;
    for (; !text.empty(); text.remove_prefix(2)) {
        const auto value = number<std::uint8_t>(text.substr(0, 2), 16);
        if (!value) return {};
        bytes.push_back(std::byte{*value});
    }
    return bytes;
}

} // namespace

bool MessageFilter::add(std::string_view condition) {
    static constexpr std::string_view of_status = "status:";
    if (condition.starts_with(of_status)) {
        const auto status = number<std::uint8_t>(condition.substr(of_status.size()), 10);
        if (status) statuses_.push_back(*status);
        return status.has_value();
    }
    Bytes wanted;
    if (const std::size_t colon = condition.find(':'); colon != std::string_view::npos) {
        wanted.at = number<std::size_t>(condition.substr(0, colon), 10);
        if (!wanted.at) return false;
        condition.remove_prefix(colon + 1);
    }
    wanted.bytes = bytes_in_hex(condition);
    if (wanted.bytes.empty()) return false;
    bytes_.push_back(std::move(wanted));
    return true;
}

bool MessageFilter::wants(std::span<const std::byte> message, std::uint8_t status) const {
    const auto has = [message](const Bytes& wanted) {
        if (!wanted.at)
            return std::search(message.begin(), message.end(), wanted.bytes.begin(),
                               wanted.bytes.end()) != message.end();
        return *wanted.at <= message.size() && wanted.bytes.size() <= message.size() - *wanted.at &&
               std::ranges::equal(message.subspan(*wanted.at, wanted.bytes.size()), wanted.bytes);
    };
    return std::ranges::all_of(bytes_, has) &&
           std::ranges::all_of(statuses_, [status](std::uint8_t each) { return each == status; });
}

namespace {

constexpr std::size_t bytes_per_line = 16;

void append_line(std::string& text, std::size_t offset, std::span<const std::byte> bytes) {
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "  {:06x} ", offset);
    for (std::size_t i = 0; i < bytes_per_line; ++i) {
        if (i % 8 == 0) text += ' ';
        if (i < bytes.size()) {
            fmt::format_to(out, "{:02x} ", std::to_integer<unsigned>(bytes[i]));
        } else {
            text += "   ";
        }
    }
    text += " |";
    for (const std::byte each : bytes) {
        const auto value = std::to_integer<unsigned char>(each);
        text += value >= 0x20 && value < 0x7f ? static_cast<char>(value) : '.';
    }
    text += "|\n";
}

} // namespace

std::string hex_lines(std::span<const std::byte> bytes, std::size_t shown_bytes) {
    std::string text;
    const std::size_t shown = std::min(bytes.size(), shown_bytes);
    for (std::size_t offset = 0; offset < shown; offset += bytes_per_line)
        append_line(text, offset, bytes.subspan(offset, std::min(bytes_per_line, shown - offset)));
    if (shown < bytes.size()) text += fmt::format("  and {} bytes more\n", bytes.size() - shown);
    return text;
}

// netio dump: shows messages, byte by byte. While standard output is blocked it receives nothing,
// and the publishers drop messages for it.

namespace {

using netio::pubsub::Fid;
using netio::pubsub::FidRange;
using netio::pubsub::SlowPolicy;
using netio::pubsub::Subscriptions;

struct DumpArguments {
    std::vector<std::string> publishers;
    std::string bus; // empty: none
    std::vector<std::string> fids;
    std::string decode;
    MessageFilter filter;
    std::optional<std::uint64_t> messages;
    std::optional<netio::Duration> duration;
    std::size_t shown_bytes = 256;
    netio::pubsub::SubscribeSocket::Options socket; // except the options above
    std::string provider = "auto";
    KeyArguments key;
};

class DumpRun final : private Subscriptions::Handler {
  public:
    explicit DumpRun(const DumpArguments& arguments)
        : arguments_{arguments}, layout_{find_layout(arguments.decode)},
          transport_{netio::open_fabric(loop_, {.provider = arguments.provider})},
          bus_{arguments.bus.empty() ? nullptr : netio::pubsub::open_bus(loop_, arguments.bus)},
          all_{*transport_, options(), *this} {
        all_.subscribe(parse_fids(arguments.fids), SlowPolicy::drop);
        if (arguments.duration) duration_timer_.start(*arguments.duration);
    }

    ExitStatus run() {
        loop_.run();
        lines_.finish();
        if (refused_) return ExitStatus::failed;
        if (!reached_) return ExitStatus::unreached;
        if (shown_ == 0) return ExitStatus::nothing;
        return arguments_.messages.value_or(0) <= shown_ ? ExitStatus::done
                                                         : ExitStatus::incomplete;
    }

  private:
    Subscriptions::Options options() const {
        Subscriptions::Options options;
        for (const std::string& publisher : arguments_.publishers)
            options.publishers.push_back(peer_address(publisher));
        options.bus = bus_.get();
        options.socket = arguments_.socket;
        options.socket.key = client_key(arguments_.key);
        options.socket.silence_hint = silence_hint;
        // Publishers on a bus are removed when their lease ends, not when their connection ends.
        options.socket.reconnect = bus_ != nullptr;
        return options;
    }
    std::string name_of(Fid fid) const { return shown(FidRange{fid, fid}, layout_); }

    void on_connected(Subscriptions&, const Subscriptions::Source& source,
                      const std::string&) override {
        waiting_.erase(source.name);
    }
    void on_subscribed(Subscriptions&, const Subscriptions::Source&, const FidRange&) override {
        reached_ = true;
    }
    void on_message(Subscriptions&, const Subscriptions::Source&, Fid fid,
                    std::span<const std::byte> message, std::uint8_t status) override {
        if (ended_) return;
        if (!arguments_.filter.wants(message, status)) return;
        const std::string with_status = status == 0 ? "" : fmt::format(", status {}", status);
        print(fmt::format("{}: {} bytes{}\n{}", name_of(fid), message.size(), with_status,
                          hex_lines(message, arguments_.shown_bytes)));
        if (++shown_ == arguments_.messages) end();
    }
    void on_gap(Subscriptions&, const Subscriptions::Source&, Fid fid,
                std::uint64_t count) override {
        if (!ended_) print(fmt::format("{}: {} messages dropped\n", name_of(fid), count));
    }
    void on_lost_while_disconnected(Subscriptions&, const Subscriptions::Source&, Fid fid,
                                    std::uint64_t count) override {
        if (ended_) return;
        print(fmt::format("{}: {} messages lost while not connected\n", name_of(fid), count));
    }
    void on_refused(Subscriptions&, const Subscriptions::Source& source, const FidRange& range,
                    Subscriptions::Refusal why) override {
        if (ended_) return; // only the first of several ranges is reported
        spdlog::error("{} refuses {}: {}", source.name, shown(range, layout_),
                      why == Subscriptions::Refusal::not_permitted
                          ? "the key does not permit it"
                          : "its limit of subscriptions is reached");
        refused_ = true;
        end();
    }
    void on_nothing_published(Subscriptions&, const Subscriptions::Source& source,
                              const netio::pubsub::FidQuery::Near& near) override {
        log_.warn(fmt::format("{}: {}", source.name, shown(near, layout_)));
    }
    void on_closed(Subscriptions&, const Subscriptions::Source& source,
                   const Subscriptions::Ending& ending) override {
        const std::string why = to_string(ending.closed);
        // Logged once, for any number of attempts.
        if (ending.retrying && !waiting_.insert(source.name).second) return;
        log_.info(
            fmt::format("{}: {}{}", source.name, ending.retrying ? "waiting for it: " : "", why));
    }
    void on_warning(Subscriptions&, const std::string& what) override { log_.warn(what); }
    void on_ended(Subscriptions&) override { loop_.stop(); }
    void print(std::string_view text) {
        lines_.print(text);
        if (lines_.is_full()) all_.pause();
    }
    // The second call does not wait.
    void end() {
        if (std::exchange(ended_, true) || all_.connected_count() == 0) return loop_.stop();
        all_.close();
    }

    const DumpArguments& arguments_;
    const netio::pubsub::FidLayout* layout_;
    netio::EventLoop loop_;
    LogObserver observer_{loop_};
    PeerLog log_{loop_};
    ShownLines lines_{loop_, [this] { all_.resume(); }};
    std::unique_ptr<netio::Transport> transport_;
    std::set<std::string> waiting_; // publishers, by name
    std::uint64_t shown_ = 0;
    bool reached_ = false; // a publisher has accepted a subscription
    bool refused_ = false; // a publisher has refused a subscription
    bool ended_ = false;
    std::unique_ptr<netio::pubsub::Discovery> bus_;
    netio::Timer duration_timer_{loop_, [this] { end(); }};
    Subscriptions all_;
    netio::SignalWatch signals_{loop_, end_signals(), [this](int) { end(); }};
};

} // namespace

Command add_dump(CLI::App& program) {
    auto* command = program.add_subcommand("dump", "Show messages byte by byte");
    const auto arguments = std::make_shared<DumpArguments>();
    auto* const publishers = command->add_option(
        "publisher", arguments->publishers, "Publishers to subscribe to: one or more HOST:PORT");
    auto* const bus = add_bus(*command, arguments->bus);
    command->callback([publishers, bus] {
        if (publishers->empty() && bus->empty()) throw CLI::RequiredError{"publisher or --bus"};
    });
    command
        ->add_option("--fid", arguments->fids,
                     "Fids to subscribe to: 7, 0-63, {link: 3}; may be repeated")
        ->required();
    add_count(*command, "--messages,--count", arguments->messages,
              "End after showing this many messages");
    command
        ->add_option_function<std::vector<std::string>>(
            "--filter",
            [arguments](const std::vector<std::string>& conditions) {
                for (const std::string& condition : conditions) {
                    if (!arguments->filter.add(condition))
                        throw CLI::ValidationError{
                            "--filter",
                            fmt::format("'{}'; allowed: {}", condition, filter_spelling)};
                }
            },
            fmt::format("Show only messages that match: {}; may be repeated", filter_spelling))
        ->type_name("BYTES");
    add_duration(*command, "--duration", arguments->duration, "End this long after the start");
    add_bytes(*command, "--bytes", arguments->shown_bytes, "Show this many bytes of each message",
              {.min = 0, .max = 1U << 30});
    add_receive_buffer_limit(*command, arguments->socket.receive_buffer_limit_bytes);
    add_largest_message(*command, arguments->socket.largest_message_bytes);
    add_decoding(*command, arguments->decode);
    add_key(*command, arguments->key);
    add_provider(*command, arguments->provider)->capture_default_str();
    return [arguments] { return to_integer(DumpRun{*arguments}.run()); };
}

} // namespace apps
