// SPDX-License-Identifier: Apache-2.0
// A publisher on several cores: each loop has its own thread, network, socket, port and part of the
// fids. Only constant data is shared: several_loops HOST:PORT LOOPS COUNT
#include "netio/fabric.hpp"
#include "pubsub/core/fid_shards.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <thread>
#include <vector>

namespace pubsub = netio::pubsub;

class LoopOfFids final : private pubsub::Publisher::Handler {
  public:
    // Constructed on the thread that runs it, so that loops do not share cache lines.
    LoopOfFids(const netio::Address& address, const std::vector<pubsub::FidRange>& fids,
               std::uint64_t count)
        : fids_{fids}, count_{count}, next_{fids.front().first},
          transport_{netio::open_fabric(loop_)}, socket_{*transport_, options(address), *this} {
        std::printf("listening at %s\n", to_string(socket_.endpoints().at(0).address).c_str());
        std::fflush(stdout);
    }
    void run() { loop_.run(); }

  private:
    pubsub::BufferedPublishSocket::Options options(const netio::Address& address) const {
        pubsub::BufferedPublishSocket::Options options;
        options.publisher.listen = {address};
        options.publisher.allow_remote_anonymous =
            true; // any peer that reaches the address may connect
        options.publisher.fids = fids_;
        return options;
    }
    void on_subscribed(pubsub::Publisher&, const pubsub::SubscriberPeer&,
                       const pubsub::FidRange&) override {
        publish();
    }
    void on_writable(pubsub::Publisher&) override { publish(); }
    void on_closed(pubsub::Publisher&, const netio::Closed&) override { loop_.stop(); }

    void publish() {
        for (; sent_ < count_; ++sent_) {
            const auto bytes = std::as_bytes(std::span{&sent_, 1});
            // A fid of another loop gives Status::not_owned: pass its message to that loop's
            // thread, by post() or a queue.
            if (socket_.publish(next_, bytes) == netio::Status::again) return;
            next_ = contains(fids_.front(), pubsub::Fid{to_integer(next_) + 1})
                        ? pubsub::Fid{to_integer(next_) + 1}
                        : fids_.front().first;
        }
        socket_.close();
    }

    const std::vector<pubsub::FidRange> fids_;
    const std::uint64_t count_;
    pubsub::Fid next_;
    std::uint64_t sent_ = 0;
    netio::EventLoop loop_;
    std::unique_ptr<netio::Transport> transport_;
    pubsub::BufferedPublishSocket socket_;
};

int main(int argc, char** argv) try {
    const netio::Address first = netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345");
    const std::size_t loops = argc > 2 ? std::stoull(argv[2]) : 2;
    const std::uint64_t count = argc > 3 ? std::stoull(argv[3]) : 10000;
    const auto shards = pubsub::FidShards::divide({{0, 63}}, std::min<std::size_t>(loops, 64));

    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> problems(shards.count());
    for (std::size_t i = 0; i < shards.count(); ++i) {
        netio::Address address = first;
        if (first.port != 0) address.port = static_cast<std::uint16_t>(first.port + i);
        threads.emplace_back([&, i, address] {
            try {
                LoopOfFids{address, shards.of(i), count}.run();
            } catch (...) {
                problems[i] = std::current_exception();
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    for (const std::exception_ptr& problem : problems)
        if (problem) std::rethrow_exception(problem);
} catch (const std::exception& error) {
    std::fprintf(stderr, "several_loops: %s\n", error.what());
    return 1;
}
