// SPDX-License-Identifier: Apache-2.0

// A process that publishes two fids and is found on the bus.

#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "tests/world/actors/actor.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace netio::world {
namespace {

using pubsub::Fid;
using pubsub::FidRange;

class AnnouncedActor final : public Actor, public pubsub::Publisher::Handler {
  public:
    AnnouncedActor(World& world, Process& process)
        : Actor{world, process}, fids_{static_cast<std::uint64_t>(option("first")),
                                       static_cast<std::uint64_t>(option("first")) + 1},
          view_{world.bus()}, healed_{process.loop, [this] { view_.cut(false); }},
          retry_{process.loop, [this] { go_on(); }} {
        pubsub::BufferedPublishSocket::Options options;
        options.publisher.addresses = {World::address_of(number_)};
        options.publisher.open = true;
        options.publisher.close_timeout = std::chrono::milliseconds{2000};
        options.page_bytes = static_cast<std::size_t>(option("page_bytes", 1024));
        options.page_count = static_cast<std::size_t>(option("pages", 8));
        socket_ =
            std::make_unique<pubsub::BufferedPublishSocket>(process.transport, options, *this);
        const std::uint64_t life = world.incarnation_of(number_);
        world.found().opens(number_, life, fids_);
        pubsub::Announcement announcement{
            .name = "p" + std::to_string(number_),
            .instance = std::uint64_t{number_ + 1} << 32 | life,
            .fids = {
                {.fids = {.first = Fid{fids_.front()}, .last = Fid{fids_.back()}}, .meaning = {}}}};
        announcement.addresses = {"tcp:" + to_string(World::address_of(number_))};
        place_ = std::make_unique<BusPlace>(process.loop, view_, std::move(announcement));
    }

    void behave() override {
        Actor::behave();
        view_.cut(false);
        go_on();
    }
    bool is_idle() const override {
        return is_closed() || closing_ || std::ranges::all_of(left_, [](auto n) { return n == 0; });
    }
    void probe() override {
        if (is_closed() || closing_) return;
        for (std::size_t which = 0; which < fids_.size(); ++which)
            ++left_.at(which);
        go_on();
        socket_->flush();
    }
    void close() override {
        if (socket_ == nullptr || std::exchange(closing_, true)) return;
        note("close");
        world_.oracle().happens(Trouble::gone, number_);
        left_ = {};
        place_->withdraw();
        socket_->close();
        react(Event::closing);
    }
    bool is_closed() const override { return socket_ == nullptr || closed_; }
    bool serves() const override { return !is_closed() && !closing_; }
    bool ends_first() const override { return true; }
    std::string feature() const override { return "announced"; }
    std::string state() const override { return closing_ ? "closing" : "quiet"; }

  private:
    void carry_out(const Step& step) override {
        if (socket_ == nullptr || closing_) return;
        if (step.what == "publish") {
            bytes_ = static_cast<std::size_t>(step.with.get("bytes", 40));
            left_.at(static_cast<std::size_t>(step.with.get("fid")) % 2) +=
                step.with.get("count", 1);
            return go_on();
        }
        if (step.what == "bus_cut") {
            view_.cut(true);
            return healed_.start(std::chrono::microseconds{step.with.get("us")});
        }
        if (step.what == "close") return close();
        if (step.what == "abort" || step.what == "destroy") {
            world_.oracle().happens(Trouble::gone, number_);
            return destroy();
        }
        if (step.what == "busy") dawdle(std::chrono::microseconds{step.with.get("us")});
    }
    void destroy() override {
        note("destroy");
        left_ = {};
        place_.reset();
        socket_.reset();
    }
    void abort() override { destroy(); }
    void go_on() {
        for (std::size_t which = 0; which < fids_.size(); ++which) {
            const std::uint64_t fid = fids_.at(which);
            while (socket_ != nullptr && !closing_ && left_.at(which) > 0) {
                const Status status = socket_->publish(Fid{fid}, world_.found().next(fid, bytes_));
                note("publish", fid, static_cast<std::uint64_t>(status));
                if (status == Status::again) break;
                --left_.at(which);
                if (status == Status::ok || status == Status::no_subscribers)
                    world_.found().published(fid);
            }
        }
    }

    void on_subscribed(pubsub::Publisher&, const pubsub::SubscriberPeer& peer,
                       const FidRange& range) override {
        const std::uint32_t finder = world_.network().process_of(connection_of(peer.address));
        note("subscribed", finder, to_integer(range.first));
        world_.found().grants(finder, std::max(to_integer(range.first), fids_.front()),
                              std::min(to_integer(range.last), fids_.back()));
        react(Event::subscribed);
    }
    void on_subscriber_closed(pubsub::Publisher&, const pubsub::SubscriberPeer&,
                              const Closed&) override {
        react(Event::peer_closed);
    }
    void on_writable(pubsub::Publisher&) override {
        if (!react(Event::writable)) retry_.start(Duration{});
    }
    void on_closed(pubsub::Publisher&, const Closed& closed) override {
        note("closed", static_cast<std::uint64_t>(closed.reason));
        closed_ = true;
        react(Event::closed);
    }

    std::array<std::uint64_t, 2> fids_;
    std::array<std::int64_t, 2> left_{};
    std::size_t bytes_ = 40;
    bool closing_ = false;
    bool closed_ = false;
    BusView view_;
    Timer healed_;
    Timer retry_;
    std::unique_ptr<BusPlace> place_;
    std::unique_ptr<pubsub::BufferedPublishSocket> socket_; // last: goes first
};

} // namespace

std::unique_ptr<Actor> make_announced(World& world, Process& process) {
    return std::make_unique<AnnouncedActor>(world, process);
}

} // namespace netio::world
