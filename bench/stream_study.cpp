// SPDX-License-Identifier: Apache-2.0
#include "bench/stream_study.hpp"

#include "netio/base/check.hpp"
#include "stream/core/receiver.hpp"
#include "stream/core/rtt_estimator.hpp"
#include "stream/core/sender.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <iomanip>
#include <queue>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

namespace {

// Queue of events by time; events of the same time run in the order of scheduling.
class Agenda {
  public:
    using Task = std::function<void()>;

    double now() const { return now_; }
    void at(double time, Task task) {
        entries_.push(Entry{std::max(time, now_), count_++, std::move(task)});
    }
    bool run_next() {
        if (entries_.empty()) return false;
        const Entry entry = entries_.top();
        entries_.pop();
        now_ = entry.time;
        entry.task();
        return true;
    }

  private:
    struct Entry {
        double time;
        std::uint64_t number;
        Task task;

        bool operator<(const Entry& other) const { // std::priority_queue returns the greatest first
            return time != other.time ? time > other.time : number > other.number;
        }
    };

    double now_ = 0;
    std::uint64_t count_ = 0;
    std::priority_queue<Entry> entries_;
};

// A core that runs one operation after another, and their costs.
class Core {
  public:
    explicit Core(Agenda& agenda) : agenda_{agenda} {}

    bool is_busy() const { return busy_; }
    double busy_ns() const { return busy_ns_; }
    void work(double cost_ns, Agenda::Task then) {
        busy_ = true;
        busy_ns_ += cost_ns;
        agenda_.at(agenda_.now() + cost_ns, [this, then = std::move(then)] {
            busy_ = false;
            then();
        });
    }

  private:
    Agenda& agenda_;
    bool busy_ = false;
    double busy_ns_ = 0;
};

std::chrono::nanoseconds nanoseconds(double count) {
    return std::chrono::nanoseconds{static_cast<std::int64_t>(count)};
}

// The sent and received operations.
struct Sends {
    double wire_free_ns = 0;
    std::uint64_t bytes = 0;
    std::uint64_t number = 0;
};
struct Receives {
    std::uint64_t to_post = 0;
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
};

class Simulation {
  public:
    Simulation(const StreamLink& link, const StreamLoad& load, const StreamPolicy& policy)
        : link_{link}, load_{load}, sender_{policy.sender}, receiver_{policy.receiver},
          gauge_{nanoseconds(2 * (link.one_way_ns + link.control_ns))} {}

    StreamStudy run();

  private:
    double wire_ns(std::uint64_t bytes) const {
        return static_cast<double>(bytes) * 8 / link_.gigabits_per_second;
    }

    void submit();
    void run_sender();
    void post(const netio::stream::Transfer& transfer);
    void take_control(const netio::stream::ControlMessage& message);

    void post_receive();
    void run_receiver();
    void take_arrival();
    void copy(const netio::stream::Copy& run);
    void tell(const netio::stream::ControlMessage& message);
    std::optional<std::uint64_t> wanted_ring();
    void grow_ring(std::uint64_t bytes);
    void settle_receiver();

    StreamLink link_;
    StreamLoad load_;
    Agenda agenda_;

    netio::stream::Sender sender_;
    Core sender_core_{agenda_};
    std::deque<netio::stream::ControlMessage> control_inbox_;
    Sends sends_;

    netio::stream::Receiver receiver_;
    netio::stream::RingGauge gauge_;
    Core receiver_core_{agenda_};
    std::deque<netio::stream::Transfer> data_inbox_;
    Receives receives_;
    double user_free_ns_ = 0;
    double copy_ns_ = 0;
    std::uint64_t control_count_ = 0;
};

// Copies are done in steps, so that arriving events are handled in between.
constexpr std::uint64_t copy_step_bytes = 256 * 1024;

StreamStudy Simulation::run() {
    const double begin_ns = std::max(0.0, load_.receiver_lead_ns);
    agenda_.at(std::max(0.0, -load_.receiver_lead_ns), [this] {
        receives_.to_post = load_.receive_count;
        run_receiver();
    });
    agenda_.at(begin_ns, [this] {
        for (std::uint64_t i = 0; i < load_.send_count; ++i)
            submit();
        run_sender();
    });
    while (receives_.bytes < load_.total_bytes) {
        NETIO_CHECK_MSG(agenda_.run_next(), "the stream is stuck");
        NETIO_CHECK(sender_.error() == netio::stream::ProtocolError::none);
        NETIO_CHECK(receiver_.error() == netio::stream::ProtocolError::none);
    }
    const double elapsed_ns = agenda_.now() - begin_ns;
    const netio::stream::SenderCounters& counters = sender_.counters();
    StreamStudy study;
    study.gigabits_per_second = static_cast<double>(receives_.bytes) * 8 / elapsed_ns;
    study.link_share = study.gigabits_per_second / link_.gigabits_per_second;
    study.direct_share = static_cast<double>(counters.direct_bytes) /
                         static_cast<double>(counters.direct_bytes + counters.indirect_bytes);
    study.copy_share = copy_ns_ / elapsed_ns;
    study.receiver_busy_share = receiver_core_.busy_ns() / elapsed_ns;
    study.transfers = counters.direct_transfers + counters.indirect_transfers;
    study.control_messages = control_count_;
    study.phase_switches = counters.phase_switches;
    study.ring_bytes = counters.ring_bytes;
    study.ring_growths = counters.ring_growths;
    return study;
}

// --- The sending side ---------------------------------------------------------------------------

void Simulation::submit() {
    const std::uint64_t left = load_.total_bytes - sends_.bytes;
    if (left == 0) return;
    const std::uint64_t bytes = std::min(left, load_.message_bytes);
    sends_.bytes += bytes;
    sender_.submit(netio::stream::SendId{sends_.number++}, bytes);
}

void Simulation::run_sender() {
    if (sender_core_.is_busy()) return;
    if (!control_inbox_.empty()) {
        const netio::stream::ControlMessage message = control_inbox_.front();
        control_inbox_.pop_front();
        const double cost_ns =
            link_.control_ns + link_.advert_ns * static_cast<double>(message.advert_count);
        sender_core_.work(cost_ns, [this, message] { take_control(message); });
        return;
    }
    std::array<netio::stream::Piece, 8> pieces{};
    const auto transfer = sender_.next_transfer(pieces);
    if (!transfer) return;
    sender_core_.work(link_.post_ns, [this, transfer = *transfer] { post(transfer); });
}

void Simulation::post(const netio::stream::Transfer& transfer) {
    sends_.wire_free_ns = std::max(sends_.wire_free_ns, agenda_.now()) + wire_ns(transfer.bytes);
    agenda_.at(sends_.wire_free_ns + link_.one_way_ns, [this, transfer] {
        data_inbox_.push_back(transfer);
        run_receiver();
    });
    // A write completes when the hardware of the other end has acknowledged it.
    agenda_.at(sends_.wire_free_ns + 2 * link_.one_way_ns, [this, number = transfer.number] {
        sender_.on_transfer_done(number);
        while (sender_.next_completion())
            submit();
        run_sender();
    });
    run_sender();
}

void Simulation::take_control(const netio::stream::ControlMessage& message) {
    for (std::size_t i = 0; i < message.advert_count; ++i) {
        NETIO_CHECK(sender_.on_advert(message.adverts[i]) == netio::stream::ProtocolError::none);
    }
    if (message.acknowledged_bytes) {
        NETIO_CHECK(sender_.on_ack(*message.acknowledged_bytes) ==
                    netio::stream::ProtocolError::none);
    }
    run_sender();
}

// --- The receiving side -------------------------------------------------------------------------

// Handles arrivals first, then adverts and acknowledgements.
void Simulation::run_receiver() {
    if (receiver_core_.is_busy()) return;
    if (!data_inbox_.empty()) {
        return receiver_core_.work(link_.arrival_ns, [this] { take_arrival(); });
    }
    if (receives_.to_post > 0) {
        return receiver_core_.work(link_.receive_ns, [this] { post_receive(); });
    }
    netio::stream::ControlMessage message;
    netio::stream::collect_control(
        receiver_,
        [](const netio::stream::LocalAdvert& advert) {
            return netio::stream::Advert{.terms = advert.terms};
        },
        message);
    if (message.item_count() > 0) return tell(message);
    if (const auto bytes = wanted_ring()) return grow_ring(*bytes);
    if (const auto run = receiver_.next_copy(copy_step_bytes)) copy(*run);
}

void Simulation::take_arrival() {
    const netio::stream::Transfer transfer = data_inbox_.front();
    data_inbox_.pop_front();
    const auto error = receiver_.on_transfer(transfer.kind, transfer.bytes, transfer.notice);
    NETIO_CHECK(error == netio::stream::ProtocolError::none);
    settle_receiver();
}

void Simulation::copy(const netio::stream::Copy& run) {
    constexpr double start_ns = 50;
    const double cost_ns =
        start_ns + static_cast<double>(run.bytes) / link_.copy_gigabytes_per_second;
    copy_ns_ += cost_ns;
    receiver_core_.work(cost_ns, [this] {
        receiver_.on_copied();
        static_cast<void>(receiver_.next_unused_ring());
        settle_receiver();
    });
}

std::optional<std::uint64_t> Simulation::wanted_ring() {
    const auto bytes = receiver_.wanted_ring();
    if (!bytes) return std::nullopt;
    const netio::stream::ReceiverCounters& counters = receiver_.counters();
    const std::uint64_t bytes_so_far = counters.direct_bytes + counters.indirect_bytes;
    const bool is_worth_it =
        gauge_.confirms(nanoseconds(agenda_.now()), bytes_so_far, counters.ring_bytes);
    if (is_worth_it) return bytes;
    receiver_.postpone_ring();
    return std::nullopt;
}

void Simulation::grow_ring(std::uint64_t bytes) {
    ++control_count_;
    const double cost_ns =
        link_.control_ns + static_cast<double>(bytes) / link_.register_gigabytes_per_second;
    receiver_core_.work(cost_ns, [this, bytes] {
        receiver_.announce_ring();
        agenda_.at(agenda_.now() + link_.one_way_ns, [this, bytes] {
            NETIO_CHECK(sender_.on_ring(bytes) == netio::stream::ProtocolError::none);
            run_sender();
        });
        run_receiver();
    });
}

void Simulation::tell(const netio::stream::ControlMessage& message) {
    ++control_count_;
    const double cost_ns =
        link_.control_ns + link_.advert_ns * static_cast<double>(message.advert_count);
    receiver_core_.work(cost_ns, [this, message] {
        agenda_.at(agenda_.now() + link_.one_way_ns, [this, message] {
            control_inbox_.push_back(message);
            run_sender();
        });
        run_receiver();
    });
}

void Simulation::post_receive() {
    --receives_.to_post;
    receiver_.post(netio::stream::ReceiveId{receives_.number++}, load_.receive_bytes,
                   load_.wait_all);
    settle_receiver();
}

// The user takes completed receives, uses the data, and posts the receives again.
void Simulation::settle_receiver() {
    while (const auto completion = receiver_.next_completion()) {
        receives_.bytes += completion->bytes;
        if (load_.consume_ns == 0) {
            ++receives_.to_post;
            continue;
        }
        user_free_ns_ = std::max(user_free_ns_, agenda_.now()) + load_.consume_ns;
        agenda_.at(user_free_ns_, [this] {
            ++receives_.to_post;
            run_receiver();
        });
    }
    run_receiver();
}

void require(bool condition, const char* option, const char* rule) {
    if (!condition)
        throw std::invalid_argument{std::string{"stream study: "} + option + ' ' + rule};
}

} // namespace

StreamPolicy our_stream_policy(std::uint64_t ring_bytes) {
    return {netio::stream::improved_sender(ring_bytes),
            netio::stream::improved_receiver(ring_bytes)};
}

StreamPolicy published_stream_policy(std::uint64_t ring_bytes) {
    return {netio::stream::published_sender(ring_bytes),
            netio::stream::published_receiver(ring_bytes)};
}

StreamPolicy growing_stream_policy(std::uint64_t ring_bytes, std::uint64_t ring_limit_bytes) {
    StreamPolicy policy = indirect_only_stream_policy(ring_bytes);
    policy.receiver.ring_limit_bytes = ring_limit_bytes;
    return policy;
}

StreamPolicy direct_only_stream_policy(std::uint64_t ring_bytes) {
    StreamPolicy policy = our_stream_policy(ring_bytes);
    policy.sender.mode = policy.receiver.mode = netio::stream::TransferMode::direct_only;
    policy.receiver.advert_threshold_bytes = 0;
    return policy;
}

StreamPolicy indirect_only_stream_policy(std::uint64_t ring_bytes) {
    StreamPolicy policy = our_stream_policy(ring_bytes);
    policy.sender.mode = policy.receiver.mode = netio::stream::TransferMode::indirect_only;
    return policy;
}

StreamStudy study_stream(const StreamLink& link, const StreamLoad& load,
                         const StreamPolicy& policy) {
    require(link.gigabits_per_second > 0, "gigabits_per_second", "must be more than 0");
    require(link.copy_gigabytes_per_second > 0, "copy_gigabytes_per_second", "must be more than 0");
    require(link.register_gigabytes_per_second > 0, "register_gigabytes_per_second",
            "must be more than 0");
    require(link.one_way_ns >= 0 && link.post_ns >= 0 && link.arrival_ns >= 0 &&
                link.control_ns >= 0 && link.advert_ns >= 0 && link.receive_ns >= 0 &&
                load.consume_ns >= 0,
            "a cost", "must be at least 0");
    require(load.message_bytes > 0, "message_bytes", "must be at least 1");
    require(load.send_count > 0, "send_count", "must be at least 1");
    require(load.receive_count > 0, "receive_count", "must be at least 1");
    StreamLoad filled = load;
    if (filled.receive_bytes == 0) filled.receive_bytes = load.message_bytes;
    if (filled.total_bytes == 0) {
        const double bytes_in_flight = link.gigabits_per_second / 8 * 2 * link.one_way_ns;
        filled.total_bytes = std::max({400 * load.message_bytes, std::uint64_t{64} << 20U,
                                       static_cast<std::uint64_t>(40 * bytes_in_flight)});
    }
    if (load.wait_all) filled.total_bytes -= filled.total_bytes % filled.receive_bytes;
    require(filled.total_bytes > 0, "total_bytes", "must fill a wait-all receive");
    return Simulation{link, filled, policy}.run();
}

// --- the study of 2014 ----------------------------------------------------------------------

namespace {

StreamPolicy policy_of(std::string_view subject, std::uint64_t ring_bytes) {
    if (subject == "direct") return direct_only_stream_policy(ring_bytes);
    if (subject == "indirect") return indirect_only_stream_policy(ring_bytes);
    if (subject == "published") return published_stream_policy(ring_bytes);
    return our_stream_policy(ring_bytes);
}

struct ComputedLink {
    const char* name;
    StreamLink link;
    std::uint64_t message_bytes;
    std::uint64_t ring_bytes;
};

} // namespace

std::vector<StudyRow> compute_study() {
    const std::array<ComputedLink, 2> links{{{"100 Gb/s over 3 us",
                                              {.gigabits_per_second = 100, .one_way_ns = 1'500},
                                              256 << 10,
                                              1 << 20},
                                             {"10 Gb/s over 48 ms",
                                              {.gigabits_per_second = 10, .one_way_ns = 24e6},
                                              2 << 20,
                                              4 << 20}}};
    std::vector<StudyRow> rows;
    for (const ComputedLink& each : links) {
        for (const std::uint64_t receives_per_send : {1U, 2U}) {
            for (const std::uint64_t sends : {1U, 2U, 4U, 8U, 16U, 32U}) {
                for (const char* const subject : {"direct", "indirect", "published", "improved"}) {
                    const StreamLoad load{.message_bytes = each.message_bytes,
                                          .send_count = sends,
                                          .receive_count = receives_per_send * sends};
                    rows.push_back(
                        {each.name, subject, load.message_bytes, sends, load.receive_count,
                         study_stream(each.link, load, policy_of(subject, each.ring_bytes))});
                }
            }
        }
    }
    return rows;
}

std::string to_csv(const std::vector<StudyRow>& rows) {
    std::ostringstream csv;
    csv << std::fixed << std::setprecision(4);
    for (const StudyRow& row : rows) {
        csv << row.link << ',' << row.subject << ',' << row.message_bytes << ',' << row.sends << ','
            << row.receives << ',' << row.study.gigabits_per_second << ",0,"
            << row.study.receiver_busy_share << ',' << row.study.direct_share << '\n';
    }
    return csv.str();
}

} // namespace bench
