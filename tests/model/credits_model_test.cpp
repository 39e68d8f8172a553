// SPDX-License-Identifier: Apache-2.0
// R13, exhaustively: two endpoints send each other writes and frames in every order. No receive
// queue overruns, both finish, and every execution ends.

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
};

class CreditWorld {
  public:
    CreditWorld(const CreditSizes& sizes, unsigned message_count)
        : receive_counts_{sizes.receive_counts}, nodes_{Node{sizes, 0, message_count},
                                                        Node{sizes, 1, message_count}} {}

    std::vector<CreditAction> enabled() const {
        using Kind = CreditAction::Kind;
        std::vector<CreditAction> actions;
        for (std::uint8_t i = 0; i < 2; ++i) {
            const Node& node = nodes_[i];
            if (node.left > 0 && node.credits.can_write()) actions.push_back({Kind::write, i});
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
            break;
        case CreditAction::Kind::credit:
            send(action.node, node.credits.on_frame_sent());
            break;
        case CreditAction::Kind::receive:
            if (node.credits.on_received(node.inbox.pop_front()) != netio::CreditError::none) {
                violation_ = "credits do not add up";
            }
            node.credits.on_reposted();
            break;
        }
    }
    const std::string& violation() const { return violation_; }
    bool is_complete() const {
        return nodes_[0].left == 0 && nodes_[1].left == 0 && nodes_[0].inbox.empty() &&
               nodes_[1].inbox.empty();
    }
    template <class Sink>
    void describe(Sink&& sink) const {
        for (const Node& node : nodes_) {
            sink(node.credits.available());
            sink(node.credits.owed());
            sink(node.left);
            sink(node.inbox.size());
            for (std::size_t i = 0; i < node.inbox.size(); ++i)
                sink(node.inbox[i]);
        }
    }

  private:
    struct Node {
        Node(const CreditSizes& sizes, std::size_t index, unsigned messages)
            : credits{{.receive_count = sizes.receive_counts[index],
                       .peer_receive_count = sizes.receive_counts[1 - index],
                       .return_threshold_count = sizes.thresholds[index]}},
              left{messages} {}

        netio::Credits credits;
        unsigned left;
        Fifo<std::uint32_t> inbox; // credits returned by each message in flight
    };

    void send(std::uint8_t from, std::uint32_t returned) {
        Node& to = nodes_[1U - from];
        to.inbox.push_back(returned);
        if (to.inbox.size() > receive_counts_[1U - from]) violation_ = "receive queue overrun";
    }

    std::array<std::uint32_t, 2> receive_counts_;
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
    return "Receives" + pair(sizes.receive_counts) + "Thresholds" + pair(sizes.thresholds);
}

// A line of the output of `./dev verify`.
void report(const std::string& name, const char* verdict, const Exploration& result,
            const char* what) {
    std::cout << "  " << std::left << std::setw(36) << name << std::setw(7) << verdict << std::right
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

} // namespace
} // namespace netio::stream::credits_model_test
