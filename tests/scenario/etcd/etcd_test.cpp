// SPDX-License-Identifier: Apache-2.0
// A registry on etcd; a test starts, kills and empties a local etcd.

#include "apps/etcd/etcd_registry.hpp"
#include "apps/program/commands.hpp"
#include "pubsub/discovery/bus.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <arpa/inet.h>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace apps::etcd_test {
namespace {

using netio::Clock;
using netio::EventLoop;
using netio::pubsub::Announcement;
using netio::pubsub::Announcer;
using netio::pubsub::BusOptions;
using netio::pubsub::Discovery;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

int free_port() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    const bool bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0 &&
                       ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0;
    ::close(socket);
    return bound ? ntohs(address.sin_port) : 0;
}

class Etcd {
  public:
    ~Etcd() { kill(); }

    std::string where() const {
        return (tls_ ? "etcds://127.0.0.1:" : "etcd://127.0.0.1:") + std::to_string(client_port_);
    }
    std::string certificate() const { return (folder_.path() / "cert.pem").string(); }
    // Takes effect at the next start.
    void use_tls() {
        tls_ = true;
        const std::string command =
            std::string{NETIO_OPENSSL_PROGRAM} +
            " req -x509 -newkey ec -pkeyopt ec_paramgen_curve:" +
            "prime256v1 -nodes -days 2 -subj /CN=etcd -addext subjectAltName=IP:127.0.0.1 -out " +
            certificate() + " -keyout " + certificate() + ".key 2>/dev/null";
        ASSERT_EQ(std::system(command.c_str()), 0);
    }
    void start() {
        const std::string client =
            (tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(client_port_);
        const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
        std::vector<std::string> words{NETIO_ETCD_PROGRAM,
                                       "--data-dir=" + (folder_.path() / "data").string(),
                                       "--listen-client-urls=" + client,
                                       "--advertise-client-urls=" + client,
                                       "--listen-peer-urls=" + peer,
                                       "--initial-advertise-peer-urls=" + peer,
                                       "--initial-cluster=default=" + peer};
        if (tls_) {
            words.push_back("--cert-file=" + certificate());
            words.push_back("--key-file=" + certificate() + ".key");
        }
        std::vector<char*> arguments;
        for (std::string& word : words)
            arguments.push_back(word.data());
        arguments.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ == 0) {
            const int log =
                ::open((folder_.path() / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
            ::dup2(log, 1);
            ::dup2(log, 2);
            ::execv(arguments[0], arguments.data());
            ::_exit(127);
        }
        EtcdClient client_of_it{parse_etcd_place(where() + (tls_ ? "?ca=" + certificate() : ""))};
        for (const auto end = Clock::now() + seconds{60}; Clock::now() < end;) {
            try {
                client_of_it.ask("/v3/kv/range", {{"key", "YQ=="}});
                return;
            } catch (const netio::pubsub::RegistryError&) {
                ::poll(nullptr, 0, 50); // no event to wait for yet
            }
        }
        ADD_FAILURE() << "etcd does not start, see " << folder_.path();
    }
    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
    void lose_its_data() const { std::filesystem::remove_all(folder_.path() / "data"); }

  private:
    netio::test::TemporaryFolder folder_;
    int client_port_ = free_port();
    int peer_port_ = free_port();
    pid_t pid_ = 0;
    bool tls_ = false;
};

class Listener final : public Discovery::Handler, public Announcer::Handler {
  public:
    void on_announced(const Announcement& announcement) override {
        there[announcement.name] = announcement;
    }
    void on_gone(const std::string& name) override {
        there.erase(name);
        ++gone;
    }
    void on_warning(const std::string& what) override { troubles.push_back(what); }

    std::map<std::string, Announcement> there;
    int gone = 0;
    std::vector<std::string> troubles;
};

Announcement of(const std::string& name) {
    return {
        .name = name, .instance = netio::pubsub::draw_instance(), .addresses = {"tcp:127.0.0.1:1"}};
}

class EtcdBus : public testing::Test {
  protected:
    EtcdBus() {
        static const bool added = [] {
            add_etcd_bus();
            return true;
        }();
        static_cast<void>(added);
        etcd.start();
    }
    bool run_until(const std::function<bool()>& done) {
        const auto deadline = Clock::now() + seconds{60};
        while (!done()) {
            if (Clock::now() > deadline) return false;
            loop.run_once(Clock::now() + milliseconds{20});
        }
        return true;
    }
    void let_pass(milliseconds time) {
        const auto end = Clock::now() + time;
        static_cast<void>(run_until([&] { return Clock::now() >= end; }));
    }

    Etcd etcd;
    EventLoop loop;
    Listener listener;
    Listener own;
    BusOptions options{.lease = seconds{3}, .poll = milliseconds{100}};
};

TEST_F(EtcdBus, APublisherIsFoundKeptUpdatedAndGone) {
    const auto bus = open_bus(loop, etcd.where(), options);
    bus->watch(listener);
    auto announcer = announce(loop, etcd.where(), of("a"), own, options);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("a"); }));
    let_pass(3 * options.lease);
    EXPECT_EQ(listener.gone, 0);
    Announcement other = of("a");
    other.mode = "buffered";
    announcer->update(other);
    ASSERT_TRUE(run_until([&] { return listener.there["a"].mode == "buffered"; }));
    announcer.reset();
    ASSERT_TRUE(run_until([&] { return listener.there.empty(); }));
    EXPECT_THAT(listener.troubles, IsEmpty());
    EXPECT_THAT(own.troubles, IsEmpty());
}

TEST_F(EtcdBus, APublisherBeyondTheLimitIsFoundWhenAnotherLeaves) {
    BusOptions one_only = options;
    one_only.publisher_limit = 1;
    const auto bus = open_bus(loop, etcd.where(), one_only);
    bus->watch(listener);
    auto first = announce(loop, etcd.where(), of("a"), own, options);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("a"); }));
    const auto second = announce(loop, etcd.where(), of("b"), own, options);
    ASSERT_TRUE(run_until([&] { return !listener.troubles.empty(); }));
    EXPECT_FALSE(listener.there.contains("b"));
    first.reset();
    ASSERT_TRUE(run_until([&] { return listener.there.contains("b"); }));
    EXPECT_FALSE(listener.there.contains("a"));
}

TEST_F(EtcdBus, AKilledPublisherIsGoneAfterItsLease) {
    const pid_t killed = ::fork();
    ASSERT_GE(killed, 0);
    if (killed == 0) {
        EventLoop its_loop;
        Listener handler;
        const auto announcer = announce(its_loop, etcd.where(), of("a"), handler, options);
        for (;;)
            its_loop.run_once(Clock::now() + seconds{1});
    }
    const auto bus = open_bus(loop, etcd.where(), options);
    bus->watch(listener);
    EXPECT_TRUE(run_until([&] { return listener.there.contains("a"); }));
    ::kill(killed, SIGKILL);
    ::waitpid(killed, nullptr, 0);
    EXPECT_TRUE(run_until([&] { return listener.there.empty(); }));
}

TEST_F(EtcdBus, WhileEtcdIsDownNoPublisherIsLostAndWorkResumes) {
    const auto bus = open_bus(loop, etcd.where(), options);
    bus->watch(listener);
    const auto announcer = announce(loop, etcd.where(), of("a"), own, options);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("a"); }));
    etcd.kill();
    ASSERT_TRUE(run_until([&] { return !listener.troubles.empty() && !own.troubles.empty(); }));
    EXPECT_THAT(listener.troubles[0], HasSubstr("cannot reach " + etcd.where()));
    let_pass(2 * options.lease);
    etcd.start();
    const auto later = announce(loop, etcd.where(), of("b"), own, options);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("b"); }));
    let_pass(2 * options.lease);
    EXPECT_TRUE(listener.there.contains("a"));
    EXPECT_EQ(listener.gone, 0);
}

TEST_F(EtcdBus, AfterADataLossEntriesAreRestoredAndNoPublisherIsLost) {
    const auto bus = open_bus(loop, etcd.where(), options);
    bus->watch(listener);
    const auto announcer = announce(loop, etcd.where(), of("a"), own, options);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("a"); }));
    etcd.kill();
    etcd.lose_its_data();
    etcd.start();
    EtcdRegistry look_there{parse_etcd_place(etcd.where()), options.lease, options.poll};
    ASSERT_TRUE(run_until([&] { return look_there.get("a").has_value(); }));
    let_pass(2 * options.lease);
    EXPECT_TRUE(listener.there.contains("a"));
    EXPECT_EQ(listener.gone, 0);
    EXPECT_THAT(own.troubles, testing::Not(testing::Contains(HasSubstr("lease not found"))));
}

TEST_F(EtcdBus, TheLaterOfTwoPublishersWithOneNameIsFoundWhileItRuns) {
    const auto bus = open_bus(loop, etcd.where(), options);
    bus->watch(listener);
    const auto earlier = announce(loop, etcd.where(), of("a"), own, options);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("a"); }));
    const std::uint64_t first = listener.there["a"].instance;
    Listener of_later;
    auto later = announce(loop, etcd.where(), of("a"), of_later, options);
    ASSERT_TRUE(run_until([&] { return listener.there["a"].instance != first; }));
    const std::uint64_t second = listener.there["a"].instance;
    let_pass(3 * options.lease);
    EXPECT_EQ(listener.there["a"].instance, second);
    EXPECT_THAT(of_later.troubles, IsEmpty());
    EXPECT_THAT(own.troubles, testing::ElementsAre(HasSubstr("give each a different name")));
    later.reset();
    ASSERT_TRUE(run_until(
        [&] { return listener.there.contains("a") && listener.there["a"].instance == first; }));
}

TEST_F(EtcdBus, WithTlsOnlyOneWithABelievedCertificateIsAsked) {
    etcd.kill();
    etcd.lose_its_data();
    ASSERT_NO_FATAL_FAILURE(etcd.use_tls());
    etcd.start();
    const std::string where = etcd.where() + "?ca=" + etcd.certificate();
    const auto bus = open_bus(loop, where, options);
    bus->watch(listener);
    const auto announcer = announce(loop, where, of("a"), own, options);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("a"); }));
    EtcdClient doubting{parse_etcd_place(etcd.where())};
    EXPECT_THROW(doubting.ask("/v3/kv/range", {{"key", "YQ=="}}), netio::pubsub::RegistryError);
}

TEST_F(EtcdBus, AUserIsAdmittedByAPasswordOfAFile) {
    EtcdClient root{parse_etcd_place(etcd.where())};
    root.ask("/v3/auth/user/add", {{"name", "root"}, {"password", "secret"}});
    root.ask("/v3/auth/role/add", {{"name", "root"}});
    root.ask("/v3/auth/user/grant", {{"user", "root"}, {"role", "root"}});
    root.ask("/v3/auth/enable", nlohmann::json::object());
    netio::test::TemporaryFolder folder;
    const std::string file = (folder.path() / "user").string();
    std::ofstream{file} << "root:wrong\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_read |
                                           std::filesystem::perms::owner_write);
    const std::string where = etcd.where() + "/netio?user=" + file;
    const auto bus = open_bus(loop, where, options);
    bus->watch(listener);
    ASSERT_TRUE(run_until([&] { return !listener.troubles.empty(); }));
    EXPECT_THAT(listener.troubles[0], HasSubstr("rejects the user of '" + file + "'"));
    std::ofstream{file} << "root:secret\n";
    const auto announcer = announce(loop, where, of("a"), own, options);
    ASSERT_TRUE(run_until([&] { return listener.there.contains("a"); }));
    EtcdClient nobody{parse_etcd_place(etcd.where())};
    EXPECT_THROW(nobody.ask("/v3/kv/range", {{"key", "YQ=="}}), netio::pubsub::RegistryError);
}

} // namespace
} // namespace apps::etcd_test
