// SPDX-License-Identifier: Apache-2.0
#include "apps/top/asking.hpp"

#include "apps/common/descriptor.hpp"
#include "apps/metrics/http_door.hpp"

#include <gmock/gmock.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <thread>

namespace apps::top {
namespace {

using testing::HasSubstr;

// Says nothing to anybody, and hangs up once so many are there: then to all of them.
class Hush {
  public:
    Hush(std::size_t together, std::size_t rounds) : listening_{::socket(AF_INET, SOCK_STREAM, 0)} {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const general = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(::bind(listening_.get(), general, size), 0);
        EXPECT_EQ(::listen(listening_.get(), 64), 0);
        ::getsockname(listening_.get(), general, &size);
        where = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
        thread_ = std::thread{[this, together, rounds] { serve(together, rounds); }};
    }
    ~Hush() {
        ::shutdown(listening_.get(), SHUT_RDWR);
        thread_.join();
    }
    Hush(const Hush&) = delete;
    Hush& operator=(const Hush&) = delete;

    std::string where;
    std::atomic<bool> were_more = false; // than that, at the same time

  private:
    void serve(std::size_t together, std::size_t rounds) {
        for (std::size_t round = 0; round < rounds; ++round) {
            std::vector<Descriptor> visitors;
            while (visitors.size() < together) {
                visitors.emplace_back(::accept(listening_.get(), nullptr, nullptr));
                if (!visitors.back().is_open()) return;
            }
            pollfd another{.fd = listening_.get(), .events = POLLIN, .revents = 0};
            if (::poll(&another, 1, 0) > 0) were_more = true;
        }
    }

    Descriptor listening_;
    std::thread thread_;
};

// Time for a slow machine: whoever is asked one after the other takes all of it.
AskLimits patient(std::size_t at_once) {
    return {.each = {.until = netio::Clock::now() + std::chrono::minutes{1}}, .at_once = at_once};
}

TEST(Asking, NobodyWaitsUntilAnotherIsGivenUp) {
    const Hush hush{5, 1};
    HttpDoor door{{.addresses = addresses_of({.host = "127.0.0.1", .port = 0})}};
    std::thread thread{[&] {
        door.run([](std::span<const std::string> paths) {
            return std::vector<HttpAnswer>(paths.size(),
                                           {.text = std::make_shared<const std::string>("a 1\n")});
        });
    }};
    std::vector<std::string> sources(5, hush.where);
    sources.push_back("127.0.0.1:" + std::to_string(door.port()));
    sources.emplace_back("nonsense");
    NameSearch names;
    const std::vector<Look> looks = look_at(sources, names, patient(128));
    ASSERT_EQ(looks.size(), sources.size());
    for (std::size_t i = 0; i < looks.size(); ++i)
        EXPECT_EQ(looks[i].source, sources[i]);
    for (std::size_t i = 0; i < 5; ++i)
        EXPECT_THAT(looks[i].error, testing::Not(HasSubstr("not in time")));
    EXPECT_EQ(looks[5].error, "");
    EXPECT_THAT(looks[6].error, HasSubstr("HOST:PORT"));
    door.stop();
    thread.join();
}

TEST(Asking, NoMoreAreAskedAtOnceThanTheLimit) {
    const Hush hush{2, 3};
    NameSearch names;
    const std::vector<Look> looks =
        look_at(std::vector<std::string>(6, hush.where), names, patient(2));
    EXPECT_FALSE(hush.were_more);
    for (const Look& look : looks)
        EXPECT_THAT(look.error, testing::Not(HasSubstr("not in time")));
}

TEST(Asking, OfWhoIsNotAskedInTimeThatIsSaid) {
    const Hush hush{100, 1};
    NameSearch names;
    const std::vector<Look> looks = look_at(
        std::vector<std::string>(3, hush.where), names,
        {.each = {.until = netio::Clock::now() + std::chrono::milliseconds{20}}, .at_once = 1});
    for (const Look& look : looks)
        EXPECT_THAT(look.error, HasSubstr("not in time"));
}

TEST(Asking, ANameServerThatDoesNotAnswerHoldsUpNobody) {
    std::promise<void> end; // of its silence
    NameSearch names{[ended = end.get_future().share()](const std::string&) {
        ended.wait();
        return std::vector<SocketAddress>{};
    }};
    const Hush hush{1, 1};
    const std::vector<Look> looks =
        look_at({"somewhere.else:1", hush.where}, names,
                {.each = {.until = netio::Clock::now() + std::chrono::milliseconds{20}}});
    EXPECT_EQ(looks[0].error, "no answer: its name was not resolved in time");
    EXPECT_THAT(looks[1].error, testing::Not(HasSubstr("name")));
    end.set_value();
}

} // namespace
} // namespace apps::top
