// SPDX-License-Identifier: Apache-2.0

// UCX over its tcp transport: tagged messages, each sent alone (UCX coalesces none), between a
// listener and one endpoint per subscriber.

#include "bench/ucx_worker.hpp"

#include <memory>

namespace {

using bench::Arguments;
using bench::UcxEndpoint;
using bench::UcxListener;
using bench::UcxReceives;
using bench::UcxWorker;

constexpr ::ucp_tag_t data_tag = 1;
constexpr ::ucp_tag_t done_tag = 2;

// A publisher's connections, and its messages in flight. The memory of a message is free again when
// the last of its sends is complete.
class Fan {
  public:
    Fan(UcxWorker& worker, const Arguments& arguments)
        : worker_{worker}, size_{arguments.size}, window_{bench::window_of(arguments.size)},
          memory_(window_ * size_), sends_(window_ * arguments.subscribers) {
        const UcxListener listener{worker, arguments.port};
        bench::say("listening");
        while (listener.requests().size() < arguments.subscribers)
            worker.progress();
        for (const ::ucp_conn_request_h request : listener.requests())
            peers_.push_back(std::make_unique<UcxEndpoint>(worker, request));
    }

    template <typename Fill>
    void send(Fill fill) {
        const std::size_t slot = next_++ % window_;
        for (std::size_t i = 0; i < peers_.size(); ++i)
            worker_.wait(sends_[slot * peers_.size() + i]);
        std::byte* const message = memory_.data() + slot * size_;
        fill(message);
        for (std::size_t i = 0; i < peers_.size(); ++i)
            sends_[slot * peers_.size() + i] = peers_[i]->send({message, size_}, data_tag);
    }
    void flush() {
        for (void*& send : sends_)
            worker_.wait(send);
    }
    // Waits until all subscribers have received the last message.
    void wait_until_done() {
        flush();
        std::byte word{};
        for (std::size_t i = 0; i < peers_.size(); ++i)
            worker_.wait_for(worker_.receive({&word, 1}, done_tag));
    }

  private:
    UcxWorker& worker_;
    std::size_t size_;
    std::size_t window_;
    std::vector<std::byte> memory_;
    std::vector<void*> sends_; // requests, or null
    std::vector<std::unique_ptr<UcxEndpoint>> peers_;
    std::size_t next_ = 0;
};

void publish(const Arguments& arguments) {
    UcxWorker worker{arguments.mode == "busy"};
    Fan fan{worker, arguments};
    bench::Source source{arguments};
    bench::run_source(
        source, [&] { fan.send([&](std::byte* out) { source.prepare(out); }); },
        [&] { fan.flush(); });
    fan.wait_until_done();
    source.report();
}

void subscribe(const Arguments& arguments) {
    UcxWorker worker{arguments.mode == "busy"};
    UcxEndpoint publisher{worker, arguments.port};
    UcxReceives receives{worker, arguments.size, bench::window_of(arguments.size), data_tag};
    bench::Sink sink{arguments};
    for (bool last = false; !last;) {
        last = sink.take(receives.wait(), arguments.size);
        receives.post();
    }
    std::byte word{};
    worker.wait_for(publisher.send({&word, 1}, done_tag));
    publisher.flush();
    sink.report();
}

void measure_echo(const Arguments& arguments) {
    UcxWorker worker{arguments.mode == "busy"};
    Fan fan{worker, arguments};
    UcxReceives receives{worker, arguments.size, 1, data_tag};
    bench::RoundTrips trips{arguments};
    for (bool last = false; !last;) {
        fan.send([&](std::byte* out) { trips.prepare(out); });
        last = trips.take(receives.wait());
        receives.post();
    }
    fan.wait_until_done();
    trips.report();
}

void echo(const Arguments& arguments) {
    UcxWorker worker{arguments.mode == "busy"};
    UcxEndpoint peer{worker, arguments.port};
    UcxReceives receives{worker, arguments.size, 1, data_tag};
    for (bool last = false; !last;) {
        std::byte* const message = receives.wait();
        last = bench::is_last(message);
        worker.wait_for(peer.send({message, arguments.size}, data_tag));
        receives.post();
    }
    std::byte word{};
    worker.wait_for(peer.send({&word, 1}, done_tag));
    peer.flush();
}

} // namespace

int main(int argc, char** argv) {
    const Arguments arguments = bench::parse(argc, argv);
    if (arguments.pattern == "echo") {
        (arguments.publish ? measure_echo : echo)(arguments);
    } else {
        (arguments.publish ? publish : subscribe)(arguments);
    }
}
