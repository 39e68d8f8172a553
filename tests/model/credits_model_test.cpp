// SPDX-License-Identifier: Apache-2.0
// R13, exhaustively: two endpoints send each other writes and frames in every order. No receive
// queue overruns, both finish, and every execution ends. On a two-way connection there are no
// writes, and the user of the first endpoint is paused until it has sent everything.

#include "netio/session/send_window.hpp"
#include "stream/core/fifo.hpp"
#include "tests/model/explore.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iomanip>
#include <iostream>
#include <string>

namespace netio::stream::credits_model_test {

struct CreditAction {
    enum class Kind : std::uint8_t { write, frame, credit, receive };
    Kind kind{};
    std::uint8_t node = 0;
};

std::string to_string(const CreditAction& action) {
    constexpr std::array names{"write", "frame", "credit", "receive"};
    return std::string{names[static_cast<std::size_t>(action.kind)]} + " at " +
           std::to_string(action.node);
}

struct CreditSizes {
    std::array<std::uint32_t, 2> receive_counts{};
    std::array<std::uint32_t, 2> thresholds{};
    bool pauses = false;
    bool two_way = false; // CreditOptions::two_way
};

class CreditWorld {
  public:
    CreditWorld(const CreditSizes& sizes, unsigned message_count)
        : receive_counts_{sizes.receive_counts}, pauses_{sizes.pauses},
          nodes_{Node{sizes, 0, message_count}, Node{sizes, 1, message_count}} {}

    std::vector<CreditAction> enabled() const {
        using Kind = CreditAction::Kind;
        std::vector<CreditAction> actions;
        for (std::uint8_t i = 0; i < 2; ++i) {
            const Node& node = nodes_[i];
            if (!pauses_ && node.left > 0 && node.credits.can_write())
                actions.push_back({Kind::write, i});
            if (node.left > 0 && node.credits.can_send_frame()) {
                actions.push_back({Kind::frame, i});
            }
            if (node.credits.must_return()) actions.push_back({Kind::credit, i});
            if (!node.inbox.empty()) actions.push_back({Kind::receive, i});
        }
        return actions;
    }
    void apply(const CreditAction& action) {
        Node& node = nodes_[action.node];
        switch (action.kind) {
        case CreditAction::Kind::write:
            node.credits.on_write_sent();
            --node.left;
            send(action.node, 0);
            break;
        case CreditAction::Kind::frame:
            --node.left;
            send(action.node, node.credits.on_frame_sent());
            if (node.left == 0) resume(node);
            break;
        case CreditAction::Kind::credit:
            send(action.node, node.credits.on_frame_sent(), true);
            break;
        case CreditAction::Kind::receive:
            receive(node, pauses_ && action.node == 0 && node.left > 0);
            break;
        }
    }
    const std::string& violation() const { return violation_; }
    bool is_complete() const {
        return nodes_[0].left == 0 && nodes_[1].left == 0 && nodes_[0].inbox.empty() &&
               nodes_[1].inbox.empty() && nodes_[0].held == 0;
    }
    template <class Sink>
    void describe(Sink&& sink) const {
        for (const Node& node : nodes_) {
            sink(node.credits.available());
            sink(node.credits.owed());
            sink(node.left);
            sink(node.held);
            sink(node.inbox.size());
            for (std::size_t i = 0; i < node.inbox.size(); ++i)
                sink(2 * node.inbox[i].credits + (node.inbox[i].is_own ? 1 : 0));
        }
    }

  private:
    struct Arrival {
        std::uint32_t credits = 0;
        bool is_own = false; // of the session
    };
    struct Node {
        Node(const CreditSizes& sizes, std::size_t index, unsigned messages)
            : credits{{.receive_count = sizes.receive_counts[index],
                       .peer_receive_count = sizes.receive_counts[1 - index],
                       .return_threshold_count = sizes.thresholds[index],
                       .two_way = sizes.two_way}},
              left{messages} {}

        netio::Credits credits;
        unsigned left;
        std::uint32_t held = 0; // receives with messages that a paused user has not taken
        Fifo<Arrival> inbox;    // the messages in flight
    };

    void send(std::uint8_t from, std::uint32_t returned, bool is_own = false) {
        Node& to = nodes_[1U - from];
        to.inbox.push_back({.credits = returned, .is_own = is_own});
        if (to.inbox.size() + to.held > receive_counts_[1U - from])
            violation_ = "receive queue overrun";
    }
    void receive(Node& node, bool is_paused) {
        const Arrival arrival = node.inbox.pop_front();
        if (node.credits.on_received(arrival.credits) != netio::CreditError::none)
            violation_ = "credits do not add up";
        if (is_paused && !arrival.is_own) {
            ++node.held;
        } else {
            node.credits.on_reposted();
        }
    }
    static void resume(Node& node) {
        for (; node.held > 0; --node.held)
            node.credits.on_reposted();
    }

    std::array<std::uint32_t, 2> receive_counts_;
    bool pauses_;
    std::array<Node, 2> nodes_;
    std::string violation_;
};

namespace {

Exploration explore_credits(const CreditSizes& sizes) {
    const std::uint32_t most = std::max(sizes.receive_counts[0], sizes.receive_counts[1]);
    return explore(CreditWorld{sizes, 2 * most + 2}, {.find_cycles = true});
}

std::string name_of(const CreditSizes& sizes) {
    const auto pair = [](const auto& two) {
        return std::to_string(two[0]) + "And" + std::to_string(two[1]);
    };
    return "Receives" + pair(sizes.receive_counts) + "Thresholds" + pair(sizes.thresholds) +
           (sizes.two_way ? "TwoWay" : "") + (sizes.pauses ? "Paused" : "");
}

// A line of the output of `./dev verify`.
void report(const std::string& name, const char* verdict, const Exploration& result,
            const char* what) {
    std::cout << "  " << std::left << std::setw(44) << name << std::setw(7) << verdict << std::right
              << std::setw(9) << result.state_count << " states  " << what << '\n';
}

class CreditsModel : public testing::TestWithParam<CreditSizes> {};

TEST_P(CreditsModel, R13NeverOverrunsNorStopsNorLoops) {
    const Exploration result = explore_credits(GetParam());

    EXPECT_EQ(result.violation, "");
    EXPECT_FALSE(result.hit_limit);
    report(name_of(GetParam()), "holds", result, "every execution ends");
}

INSTANTIATE_TEST_SUITE_P(Sizes, CreditsModel,
                         testing::Values(CreditSizes{{3, 3}, {2, 2}}, CreditSizes{{4, 4}, {2, 2}},
                                         CreditSizes{{4, 4}, {3, 3}}, CreditSizes{{4, 4}, {2, 3}},
                                         CreditSizes{{3, 5}, {2, 4}}, CreditSizes{{3, 5}, {2, 2}},
                                         CreditSizes{{5, 5}, {2, 2}}, CreditSizes{{5, 5}, {4, 4}}),
                         [](const auto& parameter) { return name_of(parameter.param); });

INSTANTIATE_TEST_SUITE_P(TwoWay, CreditsModel,
                         testing::Values(CreditSizes{{3, 3}, {2, 2}, false, true},
                                         CreditSizes{{4, 4}, {2, 3}, false, true},
                                         CreditSizes{{3, 5}, {2, 4}, false, true},
                                         CreditSizes{{3, 3}, {2, 2}, true, true},
                                         CreditSizes{{4, 4}, {2, 2}, true, true},
                                         CreditSizes{{4, 4}, {2, 3}, true, true},
                                         CreditSizes{{3, 5}, {2, 4}, true, true},
                                         CreditSizes{{5, 3}, {4, 2}, true, true}),
                         [](const auto& parameter) { return name_of(parameter.param); });

// Why only own frames use the reserve there.
TEST(CreditsModel, R13APausedEndpointStopsIfEveryFrameMayUseTheReserve) {
    const CreditSizes sizes{{4, 4}, {2, 2}, true, false};
    EXPECT_NE(explore_credits(sizes).violation, "");
}

} // namespace
} // namespace netio::stream::credits_model_test
