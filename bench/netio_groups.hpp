// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many groups of subscribers: each fid has two subscribers, and no two fids have the same two.
// Messages of a group are sent in their own pages, so that there can be more groups than pages.

#include "bench/netio_sockets.hpp"

#include <memory>

namespace bench {

// Enough subscribers for the number of pairs, but not more, because each has receive buffers.
inline constexpr std::size_t group_members = 52;

// The two members of a group: adjacent subscribers first, so that all members are used with few
// groups, too.
inline std::pair<std::size_t, std::size_t> members_of(std::size_t group) {
    std::size_t apart = 1;
    for (; group >= group_members - apart; ++apart)
        group -= group_members - apart;
    return {group, group + apart};
}

inline std::vector<FidRange> ranges_of_member(const Arguments& arguments, std::size_t member) {
    std::vector<FidRange> ranges;
    for (std::size_t group = 0; group < arguments.groups; ++group) {
        const auto [one, other] = members_of(group);
        if (one != member && other != member) continue;
        ranges.push_back({Fid{fid_at(group)}, Fid{fid_at(group)}});
    }
    return ranges;
}

inline void publish_to_groups(const Arguments& arguments, netio::EventLoop& loop,
                              netio::Transport& transport) {
    if (arguments.groups > group_members * (group_members - 1) / 2) fail("too many --groups");
    Source source{arguments}; // --fids is the number of groups
    std::optional<Output> output;
    const auto pump = [&] {
        while (!source.done()) {
            if (!output->publish(Fid{source.fid()}, [&](std::byte* out) { source.prepare(out); })) {
                return;
            }
            source.advance();
        }
        output->close();
    };
    netio::Timer timer{loop, pump};
    output.emplace(transport, arguments, 0, 2 * arguments.groups,
                   Output::Events{.on_ready =
                                      [&] {
                                          source.start();
                                          timer.start(netio::Duration{0});
                                      },
                                  .on_writable = pump,
                                  .on_closed = [&] { loop.stop(); }});
    say("listening");
    loop.run();
    source.report();
}

// One of the members, which all run in one process. Messages of several groups arrive in any order.
class GroupMember final : public Input {
  public:
    struct Arrived {
        std::uint64_t messages = 0;
        std::uint64_t first_ns = 0;
        std::uint64_t last_ns = 0;
        double cpu_at_first_s = 0;
        std::size_t ended = 0; // number of members that have ended
    };

    GroupMember(netio::Transport& transport, const Arguments& arguments, std::size_t member,
                netio::EventLoop& loop, Arrived& arrived)
        : Input{transport, arguments, 0, ranges_of_member(arguments, member)}, loop_{loop},
          arrived_{arrived} {}

  private:
    void on_message(netio::pubsub::SubscribeSocket&, Fid, std::span<const std::byte>,
                    std::uint8_t) override {
        if (arrived_.messages++ % 1024 == 0) arrived_.last_ns = now_ns();
        if (arrived_.messages > 1) return;
        arrived_.first_ns = arrived_.last_ns;
        arrived_.cpu_at_first_s = cpu_seconds();
    }
    void on_ended() override {
        arrived_.last_ns = now_ns();
        if (++arrived_.ended == group_members) loop_.stop();
    }

    netio::EventLoop& loop_;
    Arrived& arrived_;
};

inline void subscribe_in_groups(const Arguments& arguments, netio::EventLoop& loop,
                                netio::Transport& transport) {
    GroupMember::Arrived arrived;
    std::vector<std::unique_ptr<GroupMember>> members;
    for (std::size_t i = 0; i < group_members; ++i)
        members.push_back(std::make_unique<GroupMember>(transport, arguments, i, loop, arrived));
    loop.run();
    for (const auto& member : members)
        if (member->lost() > 0) fail("the publisher's totals show that messages were lost");
    std::printf("{\"role\": \"subscribe\", \"messages\": %llu, \"seconds\": %.6f, "
                "\"cpu_s\": %.6f}\n",
                static_cast<unsigned long long>(arrived.messages),
                static_cast<double>(arrived.last_ns - arrived.first_ns) * 1e-9,
                cpu_seconds() - arrived.cpu_at_first_s);
}

} // namespace bench
