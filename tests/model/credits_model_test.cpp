// SPDX-License-Identifier: Apache-2.0
// R13, exhaustively: two endpoints send each other data and control messages in every order. No
// receive queue is ever overrun, both finish, and no execution goes on for ever.

#include "stream/credits.hpp"
#include "stream/fifo.hpp"
#include "tests/model/explore.hpp"
#include "tests/model/injected_flaws.hpp"

#include <gtest/gtest.h>

#include <array>

namespace stream {

struct CreditAction {
    enum class Kind : std::uint8_t { data, control, credit, receive };
    Kind kind{};
    std::uint8_t node = 0;
};

std::string to_string(const CreditAction& action) {
    constexpr std::array names{"data", "control", "credit", "receive"};
    return std::string{names[static_cast<std::size_t>(action.kind)]} + " at " +
           std::to_string(action.node);
}

template <class Flaws>
class CreditWorld {
  public:
    CreditWorld(std::uint32_t receive_count, std::uint32_t threshold, unsigned message_count,
                Flaws flaws)
        : receive_count_{receive_count}, nodes_{Node{receive_count, threshold, flaws, message_count},
                                                Node{receive_count, threshold, flaws, message_count}} {}

    std::vector<CreditAction> enabled() const {
        using Kind = CreditAction::Kind;
        std::vector<CreditAction> actions;
        for (std::uint8_t i = 0; i < 2; ++i) {
            const Node& node = nodes_[i];
            if (node.left > 0 && node.credits.can_send()) {
                actions.push_back({Kind::data, i});
                actions.push_back({Kind::control, i});
            }
            if (node.credits.must_return()) actions.push_back({Kind::credit, i});
            if (!node.inbox.empty()) actions.push_back({Kind::receive, i});
        }
        return actions;
    }
    void apply(const CreditAction& action) {
        Node& node = nodes_[action.node];
        switch (action.kind) {
        case CreditAction::Kind::data:
            node.credits.on_data_sent();
            --node.left;
            send(action.node, 0);
            break;
        case CreditAction::Kind::control:
            --node.left;
            send(action.node, node.credits.on_control_sent());
            break;
        case CreditAction::Kind::credit: send(action.node, node.credits.on_control_sent()); break;
        case CreditAction::Kind::receive:
            if (node.credits.on_received(node.inbox.pop_front()) != ProtocolError::none) {
                violation_ = "credits do not add up";
            }
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
            for (std::size_t i = 0; i < node.inbox.size(); ++i) sink(node.inbox[i]);
        }
    }

  private:
    struct Node {
        Node(std::uint32_t receive_count, std::uint32_t threshold, Flaws flaws, unsigned messages)
            : credits{{.receive_count = receive_count,
                       .peer_receive_count = receive_count,
                       .return_threshold_count = threshold},
                      flaws},
              left{messages} {}

        BasicCredits<Flaws> credits;
        unsigned left;
        Fifo<std::uint32_t> inbox; // credits returned by each message under way
    };

    void send(std::uint8_t from, std::uint32_t returned) {
        Node& to = nodes_[1U - from];
        to.inbox.push_back(returned);
        if (to.inbox.size() > receive_count_) violation_ = "receive queue overrun";
    }

    std::size_t receive_count_;
    std::array<Node, 2> nodes_;
    std::string violation_;
};

namespace {

template <class Flaws>
Exploration explore_credits(std::uint32_t receive_count, std::uint32_t threshold, Flaws flaws) {
    return explore(CreditWorld<Flaws>{receive_count, threshold, 2 * receive_count + 2, flaws},
                   {.find_cycles = true});
}

class CreditsModel : public testing::TestWithParam<std::array<std::uint32_t, 2>> {};

TEST_P(CreditsModel, R13NeverOverrunsNorStopsNorGoesOnForEver) {
    const auto [receive_count, threshold] = GetParam();

    const Exploration result = explore_credits(receive_count, threshold, NoFlaws{});

    EXPECT_EQ(result.violation, "");
    EXPECT_FALSE(result.hit_limit);
}

using Sizes = std::array<std::uint32_t, 2>;
INSTANTIATE_TEST_SUITE_P(Sizes, CreditsModel,
                         testing::Values(Sizes{3, 2}, Sizes{4, 2}, Sizes{4, 3}, Sizes{5, 2},
                                         Sizes{5, 4}),
                         [](const auto& parameter) {
                             return "Receives" + std::to_string(parameter.param[0]) + "Threshold" +
                                    std::to_string(parameter.param[1]);
                         });

TEST(CreditsModelMutation, R13WithoutTheReserveBothSidesWaitForEver) {
    const auto result = explore_credits(4, 2, InjectedFlaws{.no_credit_reserve = true});
    EXPECT_EQ(result.violation.substr(0, 5), "stuck") << result.violation;
}

TEST(CreditsModelMutation, R13WithoutTheCheckTheReceiveQueueIsOverrun) {
    const auto result = explore_credits(4, 2, InjectedFlaws{.no_credit_check = true});
    EXPECT_EQ(result.violation.substr(0, 21), "receive queue overrun") << result.violation;
}

TEST(CreditsModelMutation, R13ThresholdOfOneThanksForEver) {
    const auto result = explore_credits(3, 1, InjectedFlaws{.any_credit_threshold = true});
    EXPECT_EQ(result.violation, "an execution that never ends");
}

TEST(CreditsModelMutation, R13ThresholdOfAllReceivesIsNeverReached) {
    const auto result = explore_credits(4, 4, InjectedFlaws{.any_credit_threshold = true});
    EXPECT_EQ(result.violation.substr(0, 5), "stuck") << result.violation;
}

} // namespace
} // namespace stream
