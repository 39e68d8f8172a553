// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a Subscriptions is made of: the publishers, given or found, and who is asked for what.

#include "netio/loop/event_loop.hpp"
#include "pubsub/client/connection_places.hpp"
#include "pubsub/client/found_sources.hpp"
#include "pubsub/client/source_accounts.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/client/waiting_news.hpp"
#include "pubsub/core/assignment.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class SubscriptionsCore final : private SourceConnection::Owner, private Discovery::Handler {
  public:
    SubscriptionsCore(Transport& transport, Subscriptions::Options options,
                      Subscriptions::Handler& handler, Subscriptions& subscriptions);
    ~SubscriptionsCore();
    SubscriptionsCore(const SubscriptionsCore&) = delete;
    SubscriptionsCore& operator=(const SubscriptionsCore&) = delete;

    void subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy);
    void unsubscribe(const FidRange& range);
    void set_paused(bool paused);
    void close();

    EventLoop& loop() const noexcept { return transport_.loop(); }
    SourceAccounts& accounts() noexcept { return accounts_; }
    void
    for_each(const std::function<void(const Subscriptions::Source&, SubscribeSocket&)>& visit) {
        for (const auto& [id, connection] : sources_)
            if (connection->socket() != nullptr) visit(connection->source(), *connection->socket());
    }

  private:
    static constexpr std::size_t trial_limit = 8; // at a time

    struct Trial {
        SourceId id{};
        TimePoint since;
    };
    // Who is asked for nothing, and tried to see whether it is there.
    struct Trials {
        std::vector<Trial> going_on;
        SourceId last{};            // that was begun: they take turns
        std::set<SourceId> waiting; // without keys: owners that had not answered at the last look
    };

    void carry_out(std::span<const Assignment::Order> orders);
    // With what is left for the next turns. This may be destroyed.
    void carry_out(const Assignment::Outcome& outcome);
    // What waits for a turn: one that was passed over, a slice of what an announcement has changed,
    // or the next announcement.
    void go_on();
    void take(const Announcement& announcement);
    void let_go(const std::string& name);
    SourceConnection& enter(const std::string& name, std::vector<std::string> addresses);
    // There is a place for it.
    void open(SourceConnection& connection);
    // It is followed no more, but what it has brought counts, and goes on if it comes back.
    void drop(SourceId id);
    void check_ended();

    // Claimants that are no owners yet are tried beside those that are.
    void look_at_rivals();
    void try_rivals();
    void end_trials(bool all);
    bool is_awaited(SourceId id, SourceConnection& connection) const;
    void pass_on();

    void recognise(SourceConnection& answering, SourceConnection& named,
                   std::span<const FidRange> fids);
    bool on_source_met(SourceConnection& source) override;
    void on_source_connected(SourceConnection& source) override;
    void on_source_closed(SourceConnection& source, const Subscriptions::Ending& ending,
                          bool reached) override;
    void on_announced(const Announcement& announcement) override;
    void on_gone(const std::string& name) override;
    void on_trouble(const std::string& what) override;

    Transport& transport_;
    Subscriptions::Options options_;
    SourceConnection::User user_;
    Assignment assignment_;
    Sources sources_;
    FoundSources found_;
    ConnectionPlaces places_;
    SourceAccounts accounts_;
    WaitingNews news_; // behind what is being changed
    bool closing_ = false;
    bool paused_ = false;
    bool* destroyed_ = nullptr;
    Trials trials_;
    Timer next_slice_;
    Timer next_trial_;
    Timer ended_; // nothing will come any more
};

} // namespace netio::pubsub::inline v0_2
