// SPDX-License-Identifier: Apache-2.0

// A process that publishes two fids and is found in the registry. With two loops, each loop
// publishes one of them and is found separately.

#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "tests/world/actors/actor.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace netio::world {
namespace {

using pubsub::Fid;
using pubsub::FidRange;

// What one loop of it owns: a socket for its fids and a registry entry. All calls except queries
// are made on that loop.
class AnnouncedLoop final : public pubsub::Publisher::Handler {
  public:
    // Reports an event of the socket.
    using OnEvent = std::function<bool(Event)>;
    struct Seat {
        EventLoop& loop;
        Transport& transport;
        std::uint32_t process;
        std::uint32_t which; // index among its loops
    };

    AnnouncedLoop(World& world, const Seat& seat, pubsub::BufferedPublishSocket::Options options,
                  std::vector<std::uint64_t> fids, OnEvent on_event)
        : world_{world}, process_{seat.process}, fids_{std::move(fids)},
          left_(fids_.size()), on_event_{std::move(on_event)}, view_{world.bus()},
          healed_{seat.loop, [this] { view_.cut(false); }}, retry_{seat.loop, [this] { go_on(); }} {
        const Address address = World::address_of(process_, seat.which);
        const FidRange range{.first = Fid{fids_.front()}, .last = Fid{fids_.back()}};
        options.publisher.listen = {address};
        options.publisher.fids = std::vector{range};
        socket_ = std::make_unique<pubsub::BufferedPublishSocket>(seat.transport, options, *this);
        const std::uint64_t life = world.incarnation_of(process_);
        // For other processes each loop is a publisher.
        const std::uint32_t publisher = 2 * process_ + seat.which;
        world.found().opens(publisher, life, fids_);
        pubsub::Announcement announcement{.name = "p" + std::to_string(publisher),
                                          .instance = std::uint64_t{publisher + 1} << 32 | life,
                                          .fids = {{.fids = range, .meaning = {}}}};
        announcement.addresses = {"tcp:" + to_string(address)};
        place_ = std::make_unique<BusPlace>(seat.loop, view_, std::move(announcement));
    }

    bool is_closed() const { return socket_ == nullptr || closed_; }
    bool is_idle() const {
        return is_closed() || closing_ || std::ranges::all_of(left_, [](auto n) { return n == 0; });
    }

    void cut_bus(Duration time) {
        view_.cut(true);
        healed_.start(time);
    }
    void behave() {
        view_.cut(false);
        go_on();
    }
    void probe() {
        if (is_closed() || closing_) return;
        for (auto& left : left_)
            ++left;
        go_on();
        socket_->flush();
    }
    void publish(std::size_t which, std::int64_t count, std::size_t bytes) {
        bytes_ = bytes;
        left_.at(which) += count;
        go_on();
    }
    void close() {
        if (socket_ == nullptr || std::exchange(closing_, true)) return;
        left_.assign(left_.size(), 0);
        place_->withdraw();
        socket_->close();
    }
    void destroy() {
        left_.assign(left_.size(), 0);
        place_.reset();
        socket_.reset();
    }
    // A fid of another loop, which must never be accepted here.
    void try_foreign(std::uint64_t fid) {
        if (is_closed() || closing_) return;
        const Status status = socket_->publish(Fid{fid}, world_.found().next(fid, bytes_));
        if (status == Status::not_owned || status == Status::too_large) return;
        world_.oracle().violate(RuleId::accounted_for, "a loop has taken a message of another's: " +
                                                           std::string{to_string(status)});
    }

  private:
    void note(const char* what, std::uint64_t one = 0, std::uint64_t two = 0) {
        world_.oracle().note(process_, what, one, two);
    }
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
        const std::uint64_t connection = Actor::connection_of(peer.address);
        note("subscribed", connection, to_integer(range.first));
        world_.found().grants(connection, std::max(to_integer(range.first), fids_.front()),
                              std::min(to_integer(range.last), fids_.back()));
        on_event_(Event::subscribed);
    }
    void on_subscriber_closed(pubsub::Publisher&, const pubsub::SubscriberPeer&,
                              const Closed&) override {
        on_event_(Event::peer_closed);
    }
    void on_writable(pubsub::Publisher&) override {
        if (!on_event_(Event::writable)) retry_.start(Duration{});
    }
    void on_closed(pubsub::Publisher&, const Closed& closed) override {
        note("closed", static_cast<std::uint64_t>(closed.reason));
        closed_ = true;
        on_event_(Event::closed);
    }

    World& world_;
    std::uint32_t process_;
    std::vector<std::uint64_t> fids_;
    std::vector<std::int64_t> left_;
    OnEvent on_event_;
    std::size_t bytes_ = 40;
    bool closing_ = false;
    bool closed_ = false;
    BusView view_;
    Timer healed_;
    Timer retry_;
    std::unique_ptr<BusPlace> place_;
    std::unique_ptr<pubsub::BufferedPublishSocket> socket_; // last member: destroyed first
};

// Its calls come from the first loop and are posted to the second.
class AnnouncedActor final : public Actor {
  public:
    AnnouncedActor(World& world, Process& process) : Actor{world, process} {
        pubsub::BufferedPublishSocket::Options options;
        options.publisher.allow_remote_anonymous = true;
        options.publisher.close_timeout = std::chrono::milliseconds{2000};
        options.page_size_bytes = static_cast<std::size_t>(option("page_size_bytes", 1024));
        options.page_count = static_cast<std::size_t>(option("pages", 8));
        const auto fid = static_cast<std::uint64_t>(option("first"));
        const auto react_here = [this](Event event) { return react(event); };
        const bool one = process.second == nullptr;
        first_ = std::make_unique<AnnouncedLoop>(
            world, AnnouncedLoop::Seat{process.loop, process.transport, number_, 0}, options,
            one ? std::vector{fid, fid + 1} : std::vector{fid}, react_here);
        if (one) return;
        // A user's reaction in a handler runs on the loop of that handler, here the first one.
        second_ = std::make_unique<AnnouncedLoop>(
            world, AnnouncedLoop::Seat{process.second->loop, process.second->transport, number_, 1},
            options, std::vector{fid + 1}, [](Event) { return false; });
    }

    void behave() override {
        Actor::behave();
        for_each([](AnnouncedLoop& each) { each.behave(); });
    }
    bool is_idle() const override {
        return first_->is_idle() && (second_ == nullptr || second_->is_idle());
    }
    void probe() override {
        for_each([](AnnouncedLoop& each) { each.probe(); });
    }
    void close() override {
        if (gone_ || std::exchange(closing_, true)) return;
        note("close");
        world_.oracle().happens(Trouble::gone, number_);
        for_each([](AnnouncedLoop& each) { each.close(); });
        react(Event::closing);
    }
    bool is_closed() const override {
        return first_->is_closed() && (second_ == nullptr || second_->is_closed());
    }
    bool serves() const override { return !gone_ && !closing_ && !is_closed(); }
    bool ends_first() const override { return true; }
    std::string feature() const override { return second_ ? "announced twice" : "announced"; }
    std::string state() const override { return closing_ ? "closing" : "quiet"; }

  private:
    void carry_out(const Step& step) override {
        if (gone_ || closing_) return;
        if (step.what == "publish") return publish(step);
        if (step.what == "bus_cut") {
            const Duration time = std::chrono::microseconds{step.with.get("us")};
            return for_each([time](AnnouncedLoop& each) { each.cut_bus(time); });
        }
        if (step.what == "close") return close();
        if (step.what == "abort" || step.what == "destroy") {
            world_.oracle().happens(Trouble::gone, number_);
            return destroy();
        }
        if (step.what == "busy") dawdle(std::chrono::microseconds{step.with.get("us")});
    }
    void publish(const Step& step) {
        const auto which = static_cast<std::size_t>(step.with.get("fid")) % 2;
        const std::int64_t count = step.with.get("count", 1);
        const auto bytes = static_cast<std::size_t>(step.with.get("bytes", 40));
        if (second_ == nullptr) return first_->publish(which, count, bytes);
        const auto fid = static_cast<std::uint64_t>(option("first"));
        if (which == 0) {
            first_->publish(0, count, bytes);
        } else {
            first_->try_foreign(fid + 1);
        }
        on_second([which, count, bytes, fid](AnnouncedLoop& second) {
            if (which == 1) {
                second.publish(0, count, bytes);
            } else {
                second.try_foreign(fid);
            }
        });
    }
    void destroy() override {
        note("destroy");
        gone_ = true;
        for_each([](AnnouncedLoop& each) { each.destroy(); });
    }
    void abort() override { destroy(); }

    void for_each(const std::function<void(AnnouncedLoop&)>& what) {
        on_second(what);
        what(*first_);
    }
    void on_second(std::function<void(AnnouncedLoop&)> what) {
        if (second_ == nullptr) return;
        const bool posted =
            process_.second->loop.post([this, what = std::move(what)] { what(*second_); });
        if (!posted) world_.oracle().violate(RuleId::time_goes_on, "a loop has no room for a task");
    }

    bool closing_ = false;
    bool gone_ = false;
    std::unique_ptr<AnnouncedLoop> first_;
    std::unique_ptr<AnnouncedLoop> second_; // null: only one loop
};

} // namespace

std::unique_ptr<Actor> make_announced(World& world, Process& process) {
    return std::make_unique<AnnouncedActor>(world, process);
}

} // namespace netio::world
