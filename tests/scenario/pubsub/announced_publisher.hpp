// SPDX-License-Identifier: Apache-2.0
#pragma once

// A publisher over tcp on its own thread, optionally announced and with keys.

#include "netio/fabric.hpp"
#include "netio/session/server_keys.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace netio::pubsub::test {

// It publishes its name once for each fid that is subscribed.
class AnnouncedPublisher final : private Publisher::Handler, private Announcer::Handler {
  public:
    struct Place {
        std::string bus;      // empty: no registry
        std::string key_file; // empty: every peer is admitted
    };
    AnnouncedPublisher(const Place& place, std::string name, const FidRange& fids)
        : name_{std::move(name)}, thread_{[this, place, fids] { run(place, fids); }} {}
    ~AnnouncedPublisher() {
        runs_future_.wait();
        loop_.stop();
        thread_.join();
    }
    const Address& address() {
        runs_future_.wait();
        return address_;
    }

  private:
    void run(const Place& place, const FidRange& fids) {
        const auto transport = open_fabric(loop_, {.provider = "tcp"});
        BufferedPublishSocket::Options options;
        options.publisher.listen = {{.host = "127.0.0.1", .port = 0}};
        if (!place.key_file.empty())
            options.publisher.keys =
                std::make_shared<ServerKeys>(loop_, ServerKeys::Options{.file = place.key_file});
        BufferedPublishSocket socket{*transport, options, static_cast<Publisher::Handler&>(*this)};
        socket_ = &socket;
        address_ = socket.endpoints().front().address;
        std::unique_ptr<Announcer> announcer;
        if (!place.bus.empty())
            announcer = announce(loop_, place.bus,
                                 {.name = name_,
                                  .instance = draw_instance(),
                                  .fids = {{.fids = fids, .meaning = {}}},
                                  .addresses = {to_announced_address(socket.endpoints().front())}},
                                 static_cast<Announcer::Handler&>(*this));
        runs_.set_value();
        loop_.run();
    }
    void on_subscribed(Publisher&, const SubscriberPeer&, const FidRange& fids) override {
        EXPECT_EQ(socket_->publish(fids.first, std::as_bytes(std::span{name_})), Status::ok);
        socket_->flush();
    }
    void on_closed(Publisher&, const Closed&) override {}
    void on_warning(const std::string& what) override { ADD_FAILURE() << what; }

    std::string name_;
    EventLoop loop_; // outlives its thread, which is stopped through it
    std::promise<void> runs_;
    std::shared_future<void> runs_future_{runs_.get_future().share()};
    Address address_;
    BufferedPublishSocket* socket_ = nullptr;
    std::thread thread_;
};

} // namespace netio::pubsub::test
