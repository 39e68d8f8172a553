// SPDX-License-Identifier: Apache-2.0

// netio cat: standard input to a stream, and the stream to standard output.

#include "apps/cat/conversation.hpp"
#include "apps/common/exit_status.hpp"
#include "apps/common/fabric_faults.hpp"
#include "apps/common/keys.hpp"
#include "apps/common/log_observer.hpp"
#include "apps/common/option_values.hpp"
#include "apps/common/remote_writes.hpp"
#include "apps/program/commands.hpp"
#include "netio/fabric.hpp"
#include "stream/socket/stream_listener.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace apps::cat {
namespace {

struct Arguments {
    std::string peer;
    std::string listen;
    bool open = false;
    Until until = Until::automatic;
    std::string provider = "auto";
    netio::stream::RemoteWrites remote_writes = netio::stream::RemoteWrites::guarded;
    double timeout_s = 0;
    KeyArguments keys;
};

Settings settings_of(const Arguments& arguments) {
    Settings settings{.until = arguments.until,
                      .listens = !arguments.listen.empty(),
                      .timeout =
                          std::chrono::milliseconds{static_cast<long>(1000 * arguments.timeout_s)}};
    settings.stream.remote_writes = arguments.remote_writes;
    settings.stream.key = client_key(arguments.keys);
    return settings;
}

// The one conversation of a run: with the peer that is connected to, or with the first one that
// connects here.
class Run final : private netio::stream::StreamListener::Handler {
  public:
    explicit Run(const Arguments& arguments)
        : settings_{settings_of(arguments)}, keys_{loop_, arguments.keys},
          transport_{netio::open_fabric(loop_, {.provider = arguments.provider})} {
        if (!settings_.listens) {
            conversation_ = std::make_unique<Conversation>(
                loop_, *transport_, peer_address(arguments.peer), settings_,
                Conversation::Events{.on_connected = {}, .on_end = [this] { loop_.stop(); }});
            return;
        }
        listener_.emplace(*transport_,
                          netio::stream::StreamListener::Options{
                              .addresses = {netio::parse_address(arguments.listen)},
                              .open = arguments.open,
                              .keys = keys_.keys()},
                          static_cast<netio::stream::StreamListener::Handler&>(*this));
        tell_listening(listener_->endpoints());
        if (settings_.timeout.count() > 0) nobody_came_.start(settings_.timeout);
    }

    int run() {
        loop_.run();
        return to_integer(error_.empty() && conversation_ && conversation_->error().empty()
                              ? ExitStatus::done
                              : ExitStatus::failed);
    }

  private:
    // Peers that have connected and not finished the handshake of the stream.
    static constexpr std::size_t candidate_limit = 64;

    void on_incoming(netio::stream::IncomingStream& incoming) override {
        if (candidates_.size() >= candidate_limit)
            return incoming.reject("too many peers are connecting at once");
        const auto place = candidates_.insert(candidates_.end(), nullptr);
        try {
            *place = std::make_unique<Conversation>(
                loop_, incoming, settings_,
                Conversation::Events{
                    .on_connected = [this, place](Conversation&) { choose(place); },
                    .on_end =
                        [this, place] {
                            if (conversation_) return loop_.stop();
                            candidates_.erase(place);
                        }});
        } catch (...) {
            candidates_.erase(place);
            throw;
        }
    }
    // Everyone else is refused from now on.
    void choose(std::list<std::unique_ptr<Conversation>>::iterator place) {
        conversation_ = std::move(*place);
        candidates_.clear();
        nobody_came_.cancel();
        listener_.reset();
    }
    void on_accept_failed(const std::string& peer, const netio::FabricError& why) override {
        fail(fmt::format("cannot accept {}: {}", peer, why.what()));
    }
    void fail(std::string what) {
        error_ = std::move(what);
        spdlog::error("{}", error_);
        loop_.stop();
    }

    Settings settings_;
    netio::EventLoop loop_;
    const LogObserver observer_{loop_};
    ServedKeys keys_;
    std::unique_ptr<netio::Transport> transport_;
    std::optional<netio::stream::StreamListener> listener_;
    std::list<std::unique_ptr<Conversation>> candidates_;
    std::unique_ptr<Conversation> conversation_;
    std::string error_;
    netio::Timer nobody_came_{loop_, [this] {
                                  fail(fmt::format("nobody has connected within {} ms (--timeout)",
                                                   settings_.timeout.count()));
                              }};
};

Command add(CLI::App& program) {
    auto* command = program.add_subcommand(
        "cat", "Standard input to a stream, and the stream to standard output");
    const auto arguments = std::make_shared<Arguments>();
    auto* const peer = command->add_option("peer", arguments->peer, "HOST:PORT to connect to");
    auto* const listen =
        command->add_option("--listen", arguments->listen, "Wait here for one peer instead");
    listen->excludes(peer);
    add_open(*command, arguments->open)->needs(listen);
    add_provider(*command, arguments->provider)->capture_default_str();
    add_remote_writes(*command, arguments->remote_writes);
    add_seconds(*command, "--timeout", arguments->timeout_s,
                "Give up when no byte has moved for this many seconds; 0: never", Zero::taken);
    static const std::map<std::string, Until> ends{
        {"auto", Until::automatic}, {"peer", Until::peer}, {"both", Until::both}};
    command
        ->add_option_function<std::string>(
            "--until", [arguments](const std::string& word) { arguments->until = ends.at(word); },
            "End with the peer, or when both directions have ended; auto: both, but do not wait "
            "for "
            "a terminal or a silent pipe on standard input after a transfer")
        ->type_name("WORD")
        ->check(one_of({"auto", "peer", "both"}));
    add_key(*command, arguments->keys);
    add_keys(*command, arguments->keys);
    return [arguments] {
        if (arguments->peer.empty() && arguments->listen.empty()) {
            throw std::invalid_argument{"netio cat needs a peer's HOST:PORT, or --listen"};
        }
        return Run{*arguments}.run();
    };
}

} // namespace
} // namespace apps::cat

apps::Command apps::add_cat(CLI::App& program) {
    return cat::add(program);
}
