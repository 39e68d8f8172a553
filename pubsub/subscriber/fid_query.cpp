// SPDX-License-Identifier: Apache-2.0
#include "pubsub/subscriber/fid_query.hpp"

#include "netio/base/wire.hpp"
#include "netio/session/client_key.hpp"
#include "netio/session/connector.hpp"
#include "netio/session/session.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/wire.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

constexpr std::uint32_t nearest_count = 3;

SessionOptions session_options(std::size_t receive_buffer_bytes) {
    return {.receive_buffer_bytes = receive_buffer_bytes,
            .receive_count = 4,
            .window_limit = 0,
            .send_count = 4};
}

bool overlap(const FidRange& one, const FidRange& other) {
    return one.first <= other.last && other.first <= one.last;
}

} // namespace

class FidQuery::Core final : private Session::Handler, private Connector::Handler {
  public:
    Core(Transport& transport, Options options, OnEnd on_end)
        : transport_{transport}, options_{std::move(options)}, on_end_{std::move(on_end)},
          connector_{transport, *this}, end_timer_{transport.loop(), [this] { on_time(); }} {
        std::vector<Address> addresses{options_.publisher};
        addresses.insert(addresses.end(), options_.fallback_addresses.begin(),
                         options_.fallback_addresses.end());
        connector_.connect(std::move(addresses), options_.local_host, options_.key);
        end_timer_.start(options_.timeout);
    }

  private:
    // The size that a publisher with default pages requires, as in SubscribeSocket.
    static constexpr std::size_t first_receive_bytes = std::size_t{258} * 1024;

    void on_route(const Session::Target& target) override {
        target_ = target;
        receive_bytes_ = std::min(first_receive_bytes, options_.receive_buffer_limit_bytes);
        enlarged_ = false;
        connect();
    }
    void connect() {
        Hello hello{.service = Service::publish_subscribe,
                    .features = time_stamps_feature,
                    .service_data = {}};
        wire::store(hello.service_data.bytes.data(),
                    UINT32_MAX); // accepts every publisher; no message is received
        hello.service_data.size = 4;
        result_.provider = target_.provider;
        session_ =
            std::make_unique<Session>(transport_, target_, hello, session_options(receive_bytes_),
                                      static_cast<Session::Handler&>(*this));
    }
    void on_connect_failed(const Closed& closed) override {
        fail(to_string(closed));
        end();
    }

    void on_open(Session&) override {
        connector_.cancel();
        ask();
    }
    // Sends the next question, or closes.
    void ask() {
        if (!is_listing() && result_.near.size() == options_.near.size()) return close();
        const FidsQuestion question{.from = is_listing() ? next_
                                                         : options_.near[result_.near.size()].first,
                                    .limit = is_listing() ? fids_answer_limit : nearest_count,
                                    .number = ++number_};
        std::array<std::byte, fids_question_bytes> body{};
        encode(question, body);
        asked_limit_ = question.limit;
        due_ = session_->send(
                   {.kind = fids_question_kind, .flags = 0, .extension = body, .slices = {}},
                   std::nullopt) != Status::ok;
        if (due_) --number_;
    }
    void on_writable(Session&) override {
        if (due_) ask();
    }
    void on_sent(Session&, Cookie, Completion::Outcome) override {}

    void on_frame(Session& session, const IncomingFrame& frame) override {
        if (done_) return;
        const auto answer = frame.kind == fids_answer_kind && frame.flags <= more_flag
                                ? decode_fids_answer(frame.body)
                                : std::nullopt;
        if (!answer || answer->number != number_ ||
            page_.size() + answer->ranges.size() > fids_answer_limit) {
            return session.fail(CloseReason::protocol_error,
                                session.peer_address() + " sent a malformed frame of kind " +
                                    std::to_string(frame.kind));
        }
        page_.insert(page_.end(), answer->ranges.begin(), answer->ranges.end());
        if (frame.flags == more_flag) return;
        is_listing() ? take_page(std::exchange(page_, {})) : take_near(std::exchange(page_, {}));
    }
    void take_near(std::vector<FidRange> page) {
        Near near;
        near.asked = options_.near[result_.near.size()];
        near.is_published = std::ranges::any_of(
            page, [&](const FidRange& range) { return overlap(range, near.asked); });
        near.nearest = std::move(page);
        result_.near.push_back(std::move(near));
        ask();
    }
    void take_page(const std::vector<FidRange>& page) {
        result_.fids.insert(result_.fids.end(), page.begin(), page.end());
        result_.fids = normalised(result_.fids);
        const bool is_last = page.size() < asked_limit_ || page.back().last == Fid{UINT64_MAX};
        if (result_.fids.size() > options_.range_limit) {
            result_.fids.resize(options_.range_limit);
            result_.is_complete = false;
        }
        if (is_last || !result_.is_complete) return close();
        const Fid next{to_integer(page.back().last) + 1};
        if (next <= next_) return close(); // the publisher repeats itself
        next_ = next;
        ask();
    }
    void close() {
        done_ = true;
        session_->close();
    }

    void on_closed(Session& session, const Closed& closed) override {
        const Closed last = closed; // NOLINT: a needed copy, since the session is destroyed here
        const std::string peer = session.peer_address();
        session_.reset();
        if (connector_.is_connecting()) return attempt_failed(last);
        if (!done_) {
            fail(to_string(last) + (number_ > 0 && last.reason == CloseReason::lost
                                        ? "; a publisher of version 0.2 cannot say which fids it "
                                          "publishes, and ends the connection"
                                        : ""));
        }
        end();
    }
    void attempt_failed(const Closed& closed) {
        const bool wants_larger =
            closed.reason == CloseReason::rejected &&
            closed.required_receive_bytes > receive_bytes_ &&
            closed.required_receive_bytes <= options_.receive_buffer_limit_bytes;
        if (!wants_larger || std::exchange(enlarged_, true)) return connector_.try_next(closed);
        receive_bytes_ = closed.required_receive_bytes;
        try {
            connect();
        } catch (const FabricError& error) {
            connector_.try_next({.reason = CloseReason::failed, .detail = error.what()});
        }
    }
    void on_time() {
        if (!done_)
            fail("no answer from " + to_string(options_.publisher) + " within " +
                 std::to_string(options_.timeout.count()) + " ms");
        end();
    }
    void fail(std::string why) {
        if (result_.failure.empty()) result_.failure = std::move(why);
    }
    // May destroy this.
    void end() {
        end_timer_.cancel();
        connector_.cancel();
        session_.reset();
        const OnEnd on_end = std::exchange(on_end_, {});
        const Result result = std::move(result_);
        if (on_end) on_end(result);
    }

    bool is_listing() const noexcept { return options_.near.empty(); }

    Transport& transport_;
    Options options_;
    OnEnd on_end_;
    Connector connector_;
    Timer end_timer_;
    Session::Target target_;
    std::size_t receive_bytes_ = 0;
    bool enlarged_ = false; // on this route
    Result result_;
    std::vector<FidRange> page_; // of the incomplete answer
    Fid next_{0};
    std::uint32_t number_ = 0; // of the last question; 0: none
    std::uint32_t asked_limit_ = 0;
    bool due_ = false;
    bool done_ = false;
    std::unique_ptr<Session> session_; // last, so that it is destroyed first
};

FidQuery::FidQuery(Transport& transport, Options options, OnEnd on_end)
    : core_{std::make_unique<Core>(transport, std::move(options), std::move(on_end))} {}

FidQuery::~FidQuery() = default;

std::string to_string(const FidQuery::Near& near) {
    if (near.is_published) return to_string(near.asked) + " is published";
    std::string text = "nothing is published under " + to_string(near.asked) + " so far";
    if (near.nearest.empty()) return text + ", nor under any other fid that may be read here";
    text += "; the nearest published fids are ";
    for (std::size_t i = 0; i < near.nearest.size(); ++i) {
        if (i > 0) text += i + 1 == near.nearest.size() ? " and " : ", ";
        text += to_string(near.nearest[i]);
    }
    return text;
}

} // namespace netio::pubsub::inline v0_3
