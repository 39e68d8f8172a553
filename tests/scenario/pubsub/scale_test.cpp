// SPDX-License-Identifier: Apache-2.0

// A thousand subscribers, each with its own connection and fid, on one publisher over the real
// fabric, all with default options. They run in a second process, so that the resident memory of
// this one is the publisher's. Kernel memory of a connection is counted in neither.

#include "netio/loop/descriptor_watch.hpp"
#include "tests/scenario/pubsub/actors.hpp"
#include "tests/support/test_bed.hpp"

#include <gtest/gtest.h>

#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::test::scale_test {
namespace {

using netio::Status;
using netio::test::Bed;
using netio::test::TestBed;

constexpr std::size_t few = 100;
constexpr std::size_t many = 1000;
constexpr std::uint64_t messages_each = 5;
constexpr std::size_t message_bytes = 100;
constexpr rlim_t descriptors_needed = 2 * many; // one for each, and a large reserve
// The promised limit; sanitizer builds have no such test, so it needs no allowance for them.
constexpr std::size_t bytes_each_limit = std::size_t{80} * 1024;

// Enough requests, with their answers, to write to every receive buffer on either side, as
// heartbeats do after some time.
std::size_t requests_each() {
    return std::max(Publisher::Options{}.session.receive_count,
                    SubscribeSocket::Options{}.session.receive_count);
}

// Raises the descriptor limit and returns whether the process may have this many. An
// administrator's process may exceed the hard limit.
bool raise_descriptor_limit(rlim_t count) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    limit.rlim_max = std::max(limit.rlim_max, count);
    limit.rlim_cur = limit.rlim_max;
    return ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

std::size_t resident_bytes() {
    std::ifstream statm{"/proc/self/statm"};
    std::size_t size = 0;
    std::size_t resident = 0;
    statm >> size >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// The subscribers: `few` of them at first, the rest on request.
class Crowd {
  public:
    // Reports over the socket each time all present subscribers have been answered.
    Crowd(netio::Address publisher, int socket) : publisher_{std::move(publisher)} {
        const netio::DescriptorWatch watch{bed_.loop(), socket,
                                           netio::DescriptorWatch::Interest::readable, [&] {
                                               char order = 0;
                                               told_ = ::read(socket, &order, 1) == 1 || told_;
                                           }};
        for (const std::size_t count : {few, many}) {
            subscribe_up_to(count);
            if (!bed_.run_until([&] { return answered_ == count; })) return;
            const std::size_t resident = resident_bytes();
            if (::write(socket, &resident, sizeof resident) != sizeof resident) return;
            if (!bed_.run_until([&] { return told_; })) return;
        }
        ended_ = bed_.run_until([&] {
            return std::ranges::all_of(subscribers_, [](const auto& each) {
                return !each->actor.closed.empty() && !each->actor.last_retrying;
            });
        });
    }
    // An error text, or empty.
    std::string complaint() const {
        if (!ended_) {
            return std::to_string(answered_) + " of " + std::to_string(subscribers_.size()) +
                   " subscribers were answered, and not all have seen the end";
        }
        for (std::size_t i = 0; i < subscribers_.size(); ++i) {
            const SubscriberActor& actor = subscribers_[i]->actor;
            const std::string who = "subscriber " + std::to_string(i) + ": ";
            if (actor.closed.back().reason != netio::CloseReason::orderly) {
                return who + actor.closed.back().detail;
            }
            const auto own = actor.by_fid.find(Fid{i});
            if (actor.messages != messages_each || actor.totals != 1 || actor.lost != 0 ||
                own == actor.by_fid.end() || own->second.size() != messages_each) {
                return who + std::to_string(actor.messages) + " messages, " +
                       std::to_string(actor.lost) + " lost";
            }
            for (std::uint64_t n = 0; n < messages_each; ++n) {
                const Arrived& arrived = own->second[n];
                if (arrived.number != n || !arrived.intact) return who + "a wrong message";
            }
        }
        return {};
    }

  private:
    struct Subscription {
        SubscriberActor actor;
        std::unique_ptr<SubscribeSocket> socket;
    };

    // One in each turn of the loop, so that the present ones are served between.
    void subscribe_up_to(std::size_t count) {
        const Fid fid{subscribers_.size()};
        Subscription& made = *subscribers_.emplace_back(std::make_unique<Subscription>());
        made.socket = std::make_unique<SubscribeSocket>(
            bed_.transport(), SubscribeSocket::Options{.publisher = publisher_}, made.actor);
        made.actor.at_subscribed = [this, &made, fid](SubscribeSocket& socket) {
            const std::size_t answers = made.actor.subscribed.size();
            if (answers < requests_each()) socket.subscribe({.first = fid, .last = fid});
            if (answers == requests_each()) ++answered_;
        };
        made.socket->subscribe({.first = fid, .last = fid});
        if (subscribers_.size() < count) {
            ASSERT_TRUE(bed_.loop().post([this, count] { subscribe_up_to(count); }));
        }
    }

    netio::Address publisher_;
    TestBed bed_{Bed::fabric_tcp};
    std::vector<std::unique_ptr<Subscription>> subscribers_;
    std::size_t answered_ = 0;
    bool told_ = false; // the request for the others has arrived
    bool ended_ = false;
};

// The process is started before this one opens the fabric.
class CrowdProcess {
  public:
    CrowdProcess() {
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets_.data()), 0);
        process_ = ::fork();
        if (process_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::close(sockets_[0]);
        std::array<char, 64> address{};
        const ssize_t size = ::read(sockets_[1], address.data(), address.size());
        if (size <= 0) ::_exit(2);
        const Crowd crowd{netio::parse_address({address.data(), static_cast<std::size_t>(size)}),
                          sockets_[1]};
        const std::string complaint = crowd.complaint();
        if (!complaint.empty()) std::cerr << complaint << std::endl;
        ::_exit(complaint.empty() ? 0 : 1);
    }
    ~CrowdProcess() {
        ::close(sockets_[0]);
        ::close(sockets_[1]);
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
    }
    CrowdProcess(const CrowdProcess&) = delete;
    CrowdProcess& operator=(const CrowdProcess&) = delete;

    int socket() const { return sockets_[0]; }
    void tell(const std::string& text) const {
        ASSERT_EQ(::write(socket(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    int exit_status() {
        int status = 0;
        EXPECT_GT(::waitpid(std::exchange(process_, 0), &status, 0), 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

  private:
    std::array<int, 2> sockets_{};
    pid_t process_ = 0;
};

void print_and_record(const std::string& who, std::size_t bytes_each) {
    std::cout << "  " << bytes_each << " bytes of resident memory for each idle subscriber at "
              << who << '\n';
    testing::Test::RecordProperty(who + "_bytes_each", std::to_string(bytes_each));
}

template <typename Socket, typename Publish>
void serve_a_thousand(Publish publish) {
    if (!raise_descriptor_limit(descriptors_needed)) {
        FAIL() << "a thousand connections need " << descriptors_needed
               << " descriptors, and the hard limit is lower: run the tests as root, or raise it "
                  "(nofile in /etc/security/limits.conf; docker run --ulimit nofile=4096)";
    }
    ::malloc_trim(0); // memory freed by earlier tests must not serve these subscribers
    CrowdProcess crowd;
    TestBed bed{Bed::fabric_tcp};
    std::vector<std::size_t> reports; // resident memory of the second process
    const netio::DescriptorWatch watch{bed.loop(), crowd.socket(),
                                       netio::DescriptorWatch::Interest::readable, [&] {
                                           std::size_t bytes = 0;
                                           ASSERT_EQ(::read(crowd.socket(), &bytes, sizeof bytes),
                                                     static_cast<ssize_t>(sizeof bytes));
                                           reports.push_back(bytes);
                                       }};
    PublisherActor actor;
    typename Socket::Options options;
    options.publisher.listen = {bed.address()};
    options.publisher.allow_remote_anonymous = true;
    Socket socket{bed.transport(), options, actor};
    const auto are_answered = [&](std::size_t report, std::size_t count) {
        return bed.run_until(
            [&] { return reports.size() == report && socket.counters().subscribers == count; });
    };
    crowd.tell(to_string(socket.endpoints().front().address));
    ASSERT_TRUE(are_answered(1, few));
    const std::size_t with_few = resident_bytes();
    crowd.tell("!");
    ASSERT_TRUE(are_answered(2, many));
    const std::size_t at_publisher = (resident_bytes() - with_few) / (many - few);
    const std::size_t at_subscriber = (reports[1] - reports[0]) / (many - few);
    print_and_record("the publisher", at_publisher);
    print_and_record("the subscriber", at_subscriber);
    // As ctest runs them: a process that has done this before uses more memory because of the
    // allocator.
    static bool is_first = true;
    if (std::exchange(is_first, false)) {
        EXPECT_LT(at_publisher, bytes_each_limit);
        // Receive buffers use memory only after something has arrived in them.
        EXPECT_LT(at_subscriber, bytes_each_limit);
    }

    std::uint64_t next = 0; // fid and number alternate
    actor.at_room = [&] {
        for (; next < many * messages_each; ++next) {
            const Status status = publish(socket, Fid{next % many}, next / many);
            if (status == Status::again) return;
            EXPECT_EQ(status, Status::ok) << next;
        }
        socket.close();
    };
    actor.at_room();
    ASSERT_TRUE(bed.run_until([&] { return actor.ended == 1; }));
    EXPECT_EQ(socket.counters().messages, many * messages_each);
    EXPECT_EQ(crowd.exit_status(), 0);
}

TEST(Scale, AThousandBufferedSubscribersAreSmallAndGetTheirFids) {
    serve_a_thousand<BufferedPublishSocket>(
        [](BufferedPublishSocket& socket, Fid fid, std::uint64_t number) {
            return socket.publish(fid, make_message(fid, number, message_bytes));
        });
}

TEST(Scale, AThousandUnbufferedSubscribersAreSmallAndGetTheirFids) {
    netio::RegisteredBuffer memory{many * messages_each * message_bytes};
    std::size_t used = 0;
    serve_a_thousand<PublishSocket>([&](PublishSocket& socket, Fid fid, std::uint64_t number) {
        const netio::Slice slice = memory.slice(used, message_bytes);
        std::ranges::copy(make_message(fid, number, message_bytes), slice.data);
        const Status status = socket.publish(fid, slice, netio::Cookie{number});
        if (status == Status::ok) used += message_bytes;
        return status;
    });
}

} // namespace
} // namespace netio::pubsub::test::scale_test
