// SPDX-License-Identifier: Apache-2.0
#include "apps/list/list.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/fid_text.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/discovery/bus.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace apps {
namespace {

using Json = nlohmann::ordered_json;
using netio::pubsub::AnnouncedFids;
using netio::pubsub::Announcement;
using netio::pubsub::FidLayout;
using netio::pubsub::FidRange;

constexpr std::size_t shown_ranges = 8; // per meaning; the JSON has all ranges

std::string fids_of_one_meaning(const std::vector<const AnnouncedFids*>& fids,
                                const FidLayout* layout) {
    std::string line;
    for (std::size_t at = 0; at < std::min(fids.size(), shown_ranges); ++at)
        line += (at == 0 ? "" : ", ") + shown(fids[at]->fids, layout);
    if (fids.size() > shown_ranges)
        line += fmt::format(" and {} more ranges", fids.size() - shown_ranges);
    return line;
}

Json as_json(const Announcement& announcement) {
    Json fids = Json::array();
    for (const AnnouncedFids& each : announcement.fids) {
        fids.push_back({{"first", to_string(each.fids.first)},
                        {"last", to_string(each.fids.last)},
                        {"meaning", each.meaning}});
    }
    return {{"name", announcement.name},
            {"instance", fmt::format("{:#x}", announcement.instance)},
            {"host", announcement.host},
            {"pid", announcement.pid},
            {"started", announcement.started},
            {"mode", announcement.mode},
            {"addresses", announcement.addresses},
            {"fids", std::move(fids)},
            {"parameters", announcement.parameters},
            {"metrics", announcement.metrics}};
}

} // namespace

std::string listed_as_text(const Announcement& announcement, const FidLayout* layout) {
    std::string text =
        fmt::format("{}: {}, host {}, process {}, since {}\n", announcement.name, announcement.mode,
                    announcement.host, announcement.pid, announcement.started);
    text += fmt::format("  at {}\n", fmt::join(announcement.addresses, ", "));
    std::map<std::string, std::vector<const AnnouncedFids*>> by_meaning;
    for (const AnnouncedFids& each : announcement.fids)
        by_meaning[each.meaning].push_back(&each);
    for (const auto& [meaning, fids] : by_meaning)
        text += fmt::format("  fids {}{}{}\n", fids_of_one_meaning(fids, layout),
                            meaning.empty() ? "" : ": ", meaning);
    if (!announcement.metrics.empty()) text += fmt::format("  metrics {}\n", announcement.metrics);
    return text;
}

std::string listed_as_json(const Announcement& announcement, std::string_view event) {
    const Json body = as_json(announcement);
    if (event.empty()) return json_line(body);
    Json object{{"role", "list"}, {"report_version", report_version}, {"event", event}};
    object.update(body);
    return json_line(object);
}

std::string removed_as_json(const std::string& name) {
    return json_line(Json{
        {"role", "list"}, {"report_version", report_version}, {"event", "gone"}, {"name", name}});
}

std::string listed_as_json(const Publishers& publishers) {
    Json list = Json::array();
    for (const auto& [name, announcement] : publishers)
        list.push_back(as_json(announcement));
    return json_line(Json{
        {"role", "list"}, {"report_version", report_version}, {"publishers", std::move(list)}});
}

std::string listed_as_text(const PublishedFids& published, const FidLayout* layout) {
    if (published.fids.empty())
        return published.publisher + ": no fids are published there that this client may read\n";
    std::string text =
        fmt::format("{} ({}): {} range{} of fids{}\n", published.publisher, published.provider,
                    published.fids.size(), published.fids.size() == 1 ? "" : "s",
                    published.is_complete ? "" : ", and more that are not shown");
    for (const FidRange& range : published.fids)
        text += fmt::format("  {}\n", shown(range, layout));
    return text;
}

std::string listed_as_json(const PublishedFids& published) {
    Json fids = Json::array();
    for (const FidRange& range : published.fids)
        fids.push_back({{"first", to_string(range.first)}, {"last", to_string(range.last)}});
    return json_line(Json{{"role", "list"},
                          {"report_version", report_version},
                          {"publisher", published.publisher},
                          {"provider", published.provider},
                          {"complete", published.is_complete},
                          {"fids", std::move(fids)}});
}

bool has_any(const FidRange& range, const std::vector<FidRange>& fids) {
    return std::ranges::any_of(fids, [&](const FidRange& wanted) {
        return wanted.first <= range.last && range.first <= wanted.last;
    });
}

bool has_any(const Announcement& announcement, const std::vector<FidRange>& fids) {
    return fids.empty() || std::ranges::any_of(announcement.fids, [&](const AnnouncedFids& each) {
               return has_any(each.fids, fids);
           });
}

std::vector<std::string> shared_fids(const Publishers& publishers, std::size_t limit) {
    struct Claim {
        FidRange fids;
        const std::string* name;
    };
    std::vector<Claim> claims;
    for (const auto& [name, announcement] : publishers)
        for (const AnnouncedFids& each : announcement.fids)
            claims.push_back({.fids = each.fids, .name = &name});
    std::ranges::sort(claims, {}, [](const Claim& claim) { return claim.fids.first; });
    std::vector<std::string> lines;
    std::set<std::pair<const std::string*, const std::string*>> told;
    // The earlier claim with the highest end.
    const Claim* farthest = nullptr;
    for (const Claim& claim : claims) {
        if (farthest != nullptr && claim.fids.first <= farthest->fids.last &&
            farthest->name != claim.name && told.emplace(farthest->name, claim.name).second) {
            if (lines.size() >= limit) return lines;
            lines.push_back(fmt::format("{} is announced by {} and by {}",
                                        to_string(claim.fids.first), *farthest->name, *claim.name));
        }
        if (farthest == nullptr || farthest->fids.last < claim.fids.last) farthest = &claim;
    }
    return lines;
}

// netio list: shows the publishers on a bus, or the fids of one publisher.

namespace {

using netio::pubsub::Announcement;

struct ListArguments {
    std::string bus;
    FidsArguments publisher; // instead of a bus
    std::vector<std::string> fids;
    std::string decode;
    bool watch = false;
    bool alive = false;
    bool json = false;
    std::optional<netio::Duration> duration;
};

// Queries the publisher directly.
ExitStatus list_publisher(const ListArguments& arguments) {
    const netio::pubsub::FidQuery::Result result = ask_fids(arguments.publisher, {});
    if (!result.failure.empty()) {
        spdlog::error("{}: {}", arguments.publisher.publisher, result.failure);
        return ExitStatus::failed;
    }
    PublishedFids published{.publisher = arguments.publisher.publisher,
                            .provider = result.provider,
                            .fids = result.fids,
                            .is_complete = result.is_complete};
    if (!arguments.fids.empty()) {
        const auto wanted = parse_fids(arguments.fids);
        std::erase_if(published.fids, [&](const netio::pubsub::FidRange& range) {
            return !has_any(range, wanted);
        });
    }
    print_report(arguments.json ? listed_as_json(published) + "\n"
                                : listed_as_text(published, find_layout(arguments.decode)));
    return published.fids.empty() ? ExitStatus::nothing : ExitStatus::done;
}

class ListRun final : private netio::pubsub::Discovery::Handler {
  public:
    explicit ListRun(const ListArguments& arguments)
        : arguments_{arguments}, layout_{find_layout(arguments.decode)},
          bus_{netio::pubsub::open_bus(loop_, arguments.bus)} {
        for (const std::string& spec : arguments.fids) {
            const auto some = parse_fids(spec);
            wanted_.insert(wanted_.end(), some.begin(), some.end());
        }
        if (!arguments.watch || arguments.duration)
            end_timer_.start(arguments.duration.value_or(unread_limit));
    }

    ExitStatus run() {
        bus_->watch(*this);
        loop_.run();
        lines_.finish();
        if (arguments_.watch) return ExitStatus::done;
        if (!caught_up_) {
            spdlog::error("cannot read the bus '{}'", arguments_.bus);
            return ExitStatus::failed;
        }
        for (const std::string& line : shared_fids(publishers_))
            spdlog::warn("bus: {}", line);
        if (arguments_.json) {
            print_report(listed_as_json(publishers_) + "\n");
        } else {
            std::string text;
            for (const auto& [name, announcement] : publishers_)
                text += listed_as_text(announcement, layout_);
            print_report(text);
        }
        return publishers_.empty() ? ExitStatus::nothing : ExitStatus::done;
    }

  private:
    static constexpr std::chrono::seconds unread_limit{5};

    void on_announced(const Announcement& announcement) override {
        if (!has_any(announcement, wanted_)) return on_gone(announcement.name);
        publishers_.insert_or_assign(announcement.name, announcement);
        show(announcement.name);
    }
    void on_gone(const std::string& name) override {
        if (publishers_.erase(name) > 0) show(name);
    }
    // With --watch: shows a change of this publisher. While standard output is blocked, later
    // changes of one publisher replace earlier ones.
    void show(const std::string& name) {
        if (!arguments_.watch) return;
        const auto publisher = publishers_.find(name);
        const bool is_there = publisher != publishers_.end();
        const bool was_there = shown_.contains(name);
        waiting_.erase(name);
        if (!is_there && !was_there) return;
        if (lines_.is_full()) {
            waiting_.insert(name);
        } else if (is_there) {
            shown_.insert(name);
            show_present(publisher->second, was_there);
        } else {
            shown_.erase(name);
            lines_.print(arguments_.json ? removed_as_json(name) + "\n" : "gone " + name + "\n");
        }
    }
    void show_present(const Announcement& announcement, bool was_there) {
        const std::string event = was_there ? "changed" : "found";
        lines_.print(arguments_.json ? listed_as_json(announcement, event) + "\n"
                                     : event + " " + listed_as_text(announcement, layout_));
    }
    void show_waiting() {
        while (!waiting_.empty() && !lines_.is_full())
            show(std::string{*waiting_.begin()});
    }
    void on_warning(const std::string& what) override { log_.warn("bus: " + what); }
    void on_caught_up() override {
        caught_up_ = true;
        if (arguments_.watch) return;
        if (!arguments_.alive) return loop_.stop();
        if (arguments_.duration) return; // the user limits the wait
        // After a lease all dead publishers are removed.
        std::chrono::milliseconds lease = netio::pubsub::BusOptions{}.lease;
        for (const auto& [name, announcement] : publishers_)
            lease = std::max(lease, announcement.lease);
        end_timer_.start(lease + lease / 10);
    }

    const ListArguments& arguments_;
    const netio::pubsub::FidLayout* layout_;
    netio::EventLoop loop_;
    PeerLog log_{loop_};
    ShownLines lines_{loop_, [this] { show_waiting(); }};
    std::vector<netio::pubsub::FidRange> wanted_;
    Publishers publishers_;
    std::set<std::string> shown_;   // names of publishers, as last written to standard output
    std::set<std::string> waiting_; // publishers that have changed while the queue is full
    bool caught_up_ = false;
    netio::Timer end_timer_{loop_, [this] { loop_.stop(); }};
    std::unique_ptr<netio::pubsub::Discovery> bus_;
    netio::SignalWatch signals_{loop_, end_signals(), [this](int) { loop_.stop(); }};
};

} // namespace

Command add_list(CLI::App& program) {
    auto* command = program.add_subcommand(
        "list", "Show the publishers on a bus, or the fids of one publisher");
    const auto arguments = std::make_shared<ListArguments>();
    auto* const publisher = command->add_option(
        "publisher", arguments->publisher.publisher,
        "HOST:PORT of a publisher: list the fids that it has published since its start");
    auto* const bus = add_bus(*command, arguments->bus)->excludes(publisher);
    command->callback([publisher, bus] {
        if (publisher->empty() && bus->empty()) throw CLI::RequiredError{"publisher or --bus"};
    });
    add_key(*command, arguments->publisher.key);
    add_provider(*command, arguments->publisher.provider)->capture_default_str();
    command->add_option("--fid", arguments->fids,
                        "Show only publishers with any of these fids; may be repeated");
    add_decoding(*command, arguments->decode);
    command->add_flag("--watch", arguments->watch, "Keep running, and show changes")->needs(bus);
    command
        ->add_flag("--alive", arguments->alive,
                   "Wait for one lease and show only live publishers; without it a killed "
                   "publisher may still be listed")
        ->needs(bus);
    add_duration(*command, "--duration", arguments->duration, "End this long after the start");
    command->add_flag("--json", arguments->json, "Print one JSON object per line");
    return [arguments] {
        return to_integer(arguments->bus.empty() ? list_publisher(*arguments)
                                                 : ListRun{*arguments}.run());
    };
}

} // namespace apps
