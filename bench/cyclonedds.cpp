// SPDX-License-Identifier: Apache-2.0

// Cyclone DDS: one reliable topic, messages kept until acknowledged; small messages are batched.
// Round trips use two topics.

#include "bench/subject.hpp"

#include <cyclonedds_message.h> // generated

#include <atomic>
#include <dds/dds.h>

namespace {

using bench::Arguments;

constexpr int take_limit = 128;
constexpr std::size_t batching_limit = 8192; // larger messages are sent alone

::dds_entity_t checked(::dds_return_t result, const char* step) {
    if (result < 0) bench::fail(std::string{step} + ": " + ::dds_strretcode(-result));
    return result;
}

class Node {
  public:
    explicit Node(const Arguments& arguments)
        : domain_{arguments.port % 200U}, batching_{arguments.pattern != "echo" &&
                                                    arguments.size <= batching_limit},
          participant_{checked(::dds_create_participant(domain_, nullptr, nullptr), "participant")},
          qos_{::dds_create_qos()} {
        ::dds_qset_reliability(qos_, DDS_RELIABILITY_RELIABLE, DDS_SECS(30));
        // A listener must not wait for acknowledgements, because it runs on the thread that
        // receives them.
        const bool echo = arguments.pattern == "echo";
        ::dds_qset_history(qos_, echo ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL, 1);
        // Beyond this limit the writer is blocked.
        const auto limit = std::max<std::size_t>(64, (std::size_t{32} << 20) / arguments.size);
        ::dds_qset_resource_limits(qos_, static_cast<int>(std::min<std::size_t>(limit, 20'000)),
                                   DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED);
        ::dds_write_set_batch(batching_);
    }
    // Waits until everything is acknowledged.
    ~Node() {
        if (writer_ > 0) ::dds_wait_for_acks(writer_, DDS_SECS(30));
        ::dds_delete_qos(qos_);
        ::dds_delete(participant_);
    }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    void make_writer(const char* topic) {
        writer_ = checked(::dds_create_writer(participant_, new_topic(topic), qos_, nullptr),
                          "dds_create_writer");
    }
    void make_reader(const char* topic) {
        reader_ = checked(::dds_create_reader(participant_, new_topic(topic), qos_, nullptr),
                          "dds_create_reader");
        waitset_ = checked(::dds_create_waitset(participant_), "dds_create_waitset");
        ::dds_set_status_mask(reader_, DDS_DATA_AVAILABLE_STATUS);
        checked(::dds_waitset_attach(waitset_, reader_, 0), "dds_waitset_attach");
    }

    void wait_for_readers(std::size_t count) const {
        ::dds_publication_matched_status_t status{};
        do {
            ::dds_sleepfor(DDS_MSECS(10));
            checked(::dds_get_publication_matched_status(writer_, &status), "matched");
        } while (status.current_count < count);
        // A writer discovers its reader before the reader discovers the writer.
        ::dds_sleepfor(DDS_MSECS(300));
    }
    void wait_for_writer() const {
        ::dds_subscription_matched_status_t status{};
        do {
            ::dds_sleepfor(DDS_MSECS(10));
            checked(::dds_get_subscription_matched_status(reader_, &status), "matched");
        } while (status.current_count == 0);
    }

    void write(std::uint64_t fid, std::span<std::byte> payload) const {
        bench_Message message{};
        message.fid = fid;
        message.payload._buffer = reinterpret_cast<std::uint8_t*>(payload.data());
        message.payload._length = message.payload._maximum =
            static_cast<std::uint32_t>(payload.size());
        checked(::dds_write(writer_, &message), "dds_write");
    }
    void flush() const {
        if (batching_) ::dds_write_flush(writer_);
    }

    void listen(::dds_on_data_available_fn handler, void* state) const {
        ::dds_listener_t* const listener = ::dds_create_listener(state);
        ::dds_lset_data_available(listener, handler);
        checked(::dds_set_listener(reader_, listener), "dds_set_listener");
        ::dds_delete_listener(listener);
    }

    // Calls visit(bytes) for each message that has arrived; returns their number.
    template <typename Visit>
    int take_now(Visit visit) const {
        void* samples[take_limit] = {};
        ::dds_sample_info_t about[take_limit];
        const int count =
            checked(::dds_take(reader_, samples, about, take_limit, take_limit), "dds_take");
        for (int i = 0; i < count; ++i) {
            if (!about[i].valid_data) continue;
            const auto& payload = static_cast<const bench_Message*>(samples[i])->payload;
            visit(std::span{reinterpret_cast<std::byte*>(payload._buffer), payload._length});
        }
        if (count > 0) ::dds_return_loan(reader_, samples, count);
        return count;
    }
    // The same; waits until a message has arrived.
    template <typename Visit>
    void take(Visit visit) const {
        while (take_now(visit) == 0)
            ::dds_waitset_wait(waitset_, nullptr, 0, DDS_SECS(10));
    }

  private:
    ::dds_entity_t new_topic(const char* name) const {
        return checked(
            ::dds_create_topic(participant_, &bench_Message_desc, name, nullptr, nullptr),
            "dds_create_topic");
    }

    ::dds_domainid_t domain_;
    bool batching_;
    ::dds_entity_t participant_;
    ::dds_qos_t* qos_;
    ::dds_entity_t writer_ = 0;
    ::dds_entity_t reader_ = 0;
    ::dds_entity_t waitset_ = 0;
};

void publish(const Arguments& arguments) {
    bench::Source source{arguments};
    {
        Node node{arguments};
        node.make_writer("messages");
        bench::say("listening");
        node.wait_for_readers(arguments.subscribers);
        std::vector<std::byte> message(arguments.size);
        bench::run_source(
            source,
            [&] {
                source.prepare(message.data());
                node.write(source.fid(), message);
            },
            [&] { node.flush(); });
    }
    source.report();
}

void subscribe(const Arguments& arguments) {
    Node node{arguments};
    node.make_reader("messages");
    bench::Sink sink{arguments};
    for (bool last = false; !last;) {
        node.take([&](std::span<const std::byte> message) {
            last = sink.take(message.data(), message.size());
        });
    }
    sink.report();
}

// Uses listeners, because they run on the receiving thread, without a switch to another one.
struct Echo {
    const Arguments& arguments;
    Node& node;
    bench::RoundTrips trips{arguments};
    std::vector<std::byte> message = std::vector<std::byte>(arguments.size);
    std::atomic<bool> over{false};

    void send_next() {
        trips.prepare(message.data());
        node.write(0, message);
    }
    void take() {
        node.take_now([this](std::span<std::byte> arrived) {
            if (!arguments.publish) {
                const bool last = bench::is_last(arrived.data());
                node.write(0, arrived);
                over = last;
            } else if (trips.take(arrived.data())) {
                over = true;
            } else {
                send_next();
            }
        });
    }
};

void echo(const Arguments& arguments) {
    Node node{arguments};
    node.make_writer(arguments.publish ? "requests" : "answers");
    node.make_reader(arguments.publish ? "answers" : "requests");
    Echo state{arguments, node};
    node.listen([](::dds_entity_t, void* echo) { static_cast<Echo*>(echo)->take(); }, &state);
    if (arguments.publish) bench::say("listening");
    node.wait_for_writer();
    node.wait_for_readers(1);
    if (arguments.publish) state.send_next();
    while (!state.over)
        ::dds_sleepfor(DDS_MSECS(5));
    node.listen(nullptr, nullptr);
    if (arguments.publish) state.trips.report();
}

} // namespace

int main(int argc, char** argv) {
    const Arguments arguments = bench::parse(argc, argv);
    if (arguments.pattern == "echo") {
        echo(arguments);
    } else {
        (arguments.publish ? publish : subscribe)(arguments);
    }
}
