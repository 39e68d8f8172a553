// SPDX-License-Identifier: Apache-2.0
// Variable windows, exhaustively: two endpoints send each other writes and frames in every order
// while one of them enlarges and shrinks its window at any time. No receive queue overruns, credits
// add up, both finish, and every execution ends.

#include "netio/session/send_window.hpp"
#include "stream/core/fifo.hpp"
#include "tests/model/explore.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace netio::stream::window_model_test {

struct WindowAction {
    // retire: a message is received, and its receive is not posted again. tell: reports the window
    // that has shrunk.
    enum class Kind : std::uint8_t { write, frame, credit, receive, retire, grow, tell };
    Kind kind{};
    std::uint8_t node = 0;
};

std::string to_string(const WindowAction& action) {
    constexpr std::array names{"write", "frame", "credit", "receive", "retire", "grow", "tell"};
    return std::string{names[static_cast<std::size_t>(action.kind)]} + " at " +
           std::to_string(action.node);
}

class WindowWorld {
  public:
    WindowWorld(std::uint32_t here, std::uint32_t there, unsigned messages)
        : nodes_{Node{here, there, messages}, Node{there, here, messages}} {}

    std::vector<WindowAction> enabled() const {
        using Kind = WindowAction::Kind;
        std::vector<WindowAction> actions;
        for (std::uint8_t i = 0; i < 2; ++i) {
            const Node& node = nodes_[i];
            const auto add = [&](Kind kind, bool may) {
                if (may) actions.push_back({kind, i});
            };
            const bool may_send = node.credits.can_send_frame();
            const bool is_large = node.credits.receive_count() > node.first;
            add(Kind::write, node.left > 0 && node.credits.can_write());
            add(Kind::frame, node.left > 0 && may_send);
            add(Kind::credit, node.credits.must_return());
            add(Kind::receive, !node.inbox.empty());
            add(Kind::retire, i == 0 && !node.inbox.empty() && is_large);
            add(Kind::grow, i == 0 && !node.has_grown && may_send);
            add(Kind::tell, node.told != node.credits.receive_count() && !is_large && may_send);
        }
        return actions;
    }
    void apply(const WindowAction& action) {
        Node& node = nodes_[action.node];
        const bool repost = action.kind != WindowAction::Kind::retire;
        switch (action.kind) {
        case WindowAction::Kind::write:
            node.credits.on_write_sent();
            --node.left;
            return send(action.node, {});
        case WindowAction::Kind::frame:
            --node.left;
            return send(action.node, {.returned = node.credits.on_frame_sent()});
        case WindowAction::Kind::credit:
            return send(action.node, {.returned = node.credits.on_frame_sent()});
        case WindowAction::Kind::grow:
            node.has_grown = true;
            node.credits.grow(added);
            return tell(action.node);
        case WindowAction::Kind::tell:
            return tell(action.node);
        case WindowAction::Kind::receive:
        case WindowAction::Kind::retire:
            const Message message = node.inbox.pop_front();
            if (node.credits.on_received(message.returned) != CreditError::none ||
                (message.window != 0 &&
                 node.credits.on_window(message.window) != CreditError::none)) {
                violation_ = "credits do not add up";
            }
            repost ? node.credits.on_reposted() : node.credits.on_retired();
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
            sink(node.credits.receive_count());
            sink(node.credits.peer_receive_count());
            sink(node.told);
            sink(node.has_grown ? 1U : 0U);
            sink(node.left);
            sink(node.inbox.size());
            for (std::size_t i = 0; i < node.inbox.size(); ++i) {
                sink(node.inbox[i].returned);
                sink(node.inbox[i].window);
            }
        }
    }

  private:
    static constexpr std::uint32_t added = 2;
    struct Message {
        std::uint32_t returned = 0;
        std::uint32_t window = 0; // 0: no window in this message
    };
    struct Node {
        Node(std::uint32_t own, std::uint32_t peer, unsigned messages)
            : credits{{.receive_count = own, .peer_receive_count = peer}}, first{own}, told{own},
              left{messages} {}

        Credits credits;
        std::uint32_t first;
        std::uint32_t told;
        unsigned left;
        bool has_grown = false;
        Fifo<Message> inbox;
    };

    void tell(std::uint8_t from) {
        Node& node = nodes_[from];
        node.told = node.credits.receive_count();
        send(from, {.returned = node.credits.on_frame_sent(), .window = node.told});
    }
    void send(std::uint8_t from, const Message& message) {
        Node& to = nodes_[1U - from];
        to.inbox.push_back(message);
        if (to.inbox.size() > to.credits.receive_count()) violation_ = "receive queue overrun";
    }

    std::array<Node, 2> nodes_;
    std::string violation_;
};

namespace {

struct Sizes {
    std::uint32_t here;
    std::uint32_t there;
};

class WindowModel : public testing::TestWithParam<Sizes> {};

TEST_P(WindowModel, R13HoldsWhileAWindowGrowsAndShrinks) {
    const auto [here, there] = GetParam();
    const Exploration result =
        explore(WindowWorld{here, there, std::max(here, there) + 3}, {.find_cycles = true});
    EXPECT_EQ(result.violation, "");
    EXPECT_FALSE(result.hit_limit);
    EXPECT_GT(result.state_count, 1000U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, WindowModel,
                         testing::Values(Sizes{3, 3}, Sizes{3, 4}, Sizes{4, 3}, Sizes{4, 4}),
                         [](const auto& parameter) {
                             return std::to_string(parameter.param.here) + "And" +
                                    std::to_string(parameter.param.there);
                         });

} // namespace
} // namespace netio::stream::window_model_test
