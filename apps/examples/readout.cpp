// SPDX-License-Identifier: Apache-2.0
// Reads out an emulated card, zero-copy from its one DMA buffer: readout HOST:PORT
//
// The card writes events into a ring by itself, beginning with the first subscriber, and stops when
// the ring is full. A message has three separate blocks of the ring: the network gathers them
// without a copy. The status byte before them needs no memory in the ring. The key of a publication
// is the address of its first block: when the publication completes, the card may write there.
#include "apps/examples/readout_event.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>

using namespace readout;
constexpr std::size_t ring_events = 64;

class Card {
  public:
    Card(std::span<std::byte> ring, std::function<void()> interrupt)
        : ring_{ring}, interrupt_{std::move(interrupt)} {}

    void start() {
        thread_ = std::jthread{[this](const std::stop_token& stop) { run(stop); }};
    }
    void stop() { thread_ = {}; }
    std::uint64_t written() {
        const std::lock_guard lock{mutex_};
        return written_;
    }
    void free_up_to(std::uint64_t event) { // earlier events are not needed any more
        const std::lock_guard lock{mutex_};
        freed_ = event;
        room_.notify_one();
    }

  private:
    void run(const std::stop_token& stop) {
        for (std::uint64_t event = 0; !stop.stop_requested(); ++event) {
            std::unique_lock lock{mutex_};
            const auto has_capacity = [&] { return event - freed_ < ring_events; };
            if (!has_capacity() && !std::exchange(was_full_, true)) std::puts("the ring was full");
            if (!room_.wait(lock, stop, has_capacity)) return;
            lock.unlock();
            std::byte* const place = &ring_[event % ring_events * event_bytes];
            for (std::size_t link = 0; link < links; ++link)
                for (std::size_t i = 0; i < words; ++i) {
                    const std::size_t block = i * 8 / block_bytes * links + link;
                    const std::uint64_t value = word(event, link, i);
                    std::memcpy(place + block * block_bytes + i * 8 % block_bytes, &value, 8);
                }
            lock.lock();
            written_ = event + 1;
            interrupt_();
        }
    }

    std::span<std::byte> ring_;
    std::function<void()> interrupt_;
    std::mutex mutex_;
    std::condition_variable_any room_;
    std::uint64_t written_ = 0, freed_ = 0;
    bool was_full_ = false;
    std::jthread thread_; // last: joined first
};

class Readout final : netio::pubsub::PublishSocket::Handler {
  public:
    Readout(netio::Transport& transport, const netio::Address& address)
        : loop_{transport.loop()}, card_{ring_.memory(),
                                         [this] {
                                             // Not posted: enough equal tasks are queued.
                                             std::ignore = loop_.post([this] { publish(); });
                                         }},
          socket_{transport,
                  {.publisher = {.listen = {address}, .allow_remote_anonymous = true}},
                  *this} {
        std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
        const netio::Address bound = socket_.endpoints().front().address;
        std::printf("listening at %s\n", netio::to_string(bound).c_str());
    }
    void end() { // sends what the card has written
        card_.stop();
        ending_ = true;
        publish();
    }

  private:
    void on_subscribed(netio::pubsub::Publisher&, const netio::pubsub::SubscriberPeer&,
                       const netio::pubsub::FidRange&) override {
        if (std::exchange(started_, true)) return;
        std::puts("the card runs");
        card_.start();
    }
    void on_writable(netio::pubsub::Publisher&) override { publish(); }
    void on_publish_completed(netio::pubsub::PublishSocket&, netio::Cookie key,
                              const netio::pubsub::PublicationOutcome&) override {
        const auto address = static_cast<std::uintptr_t>(key);
        --unsent_[(address - reinterpret_cast<std::uintptr_t>(ring_.data())) / event_bytes];
        advance();
    }
    void on_closed(netio::pubsub::Publisher&, const netio::Closed&) override {
        std::printf("sent %llu events\n", static_cast<unsigned long long>(freed_));
        loop_.stop();
    }

    void publish() {
        for (const std::uint64_t end = card_.written() * links; next_ < end; ++next_) {
            const std::size_t place = next_ / links % ring_events, link = next_ % links;
            std::array<netio::Slice, blocks> slices;
            for (std::size_t i = 0; i < blocks; ++i)
                slices[i] = ring_.slice(place * event_bytes + (i * links + link) * block_bytes,
                                        block_bytes);
            const std::byte status{status_of(next_ / links)};
            const netio::Cookie key{reinterpret_cast<std::uintptr_t>(slices[0].data)};
            const netio::Status taken =
                socket_.publishv(netio::pubsub::Fid{link}, slices, key, {.header = {&status, 1}});
            if (taken == netio::Status::again) return; // on_writable
            if (taken == netio::Status::ok) ++unsent_[place];
        }
        advance(); // without subscribers it is free immediately
    }
    // Messages may complete in another order; the card's pointer moves forward only.
    void advance() {
        while (freed_ < next_ / links && unsent_[freed_ % ring_events] == 0)
            ++freed_;
        card_.free_up_to(freed_);
        if (ending_ && freed_ == card_.written()) socket_.close();
    }

    netio::EventLoop& loop_;
    netio::RegisteredBuffer ring_{ring_events * event_bytes};
    std::array<std::size_t, ring_events> unsent_{}; // messages of the event in this slot
    std::uint64_t next_ = 0, freed_ = 0;            // next_: next message to publish
    bool started_ = false, ending_ = false;
    Card card_;
    netio::pubsub::PublishSocket socket_;
};

int main(int argc, char** argv) {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    Readout readout{*transport, netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345")};
    netio::SignalWatch stop{loop, {SIGINT, SIGTERM}, [&](int) { readout.end(); }};
    loop.run();
}
