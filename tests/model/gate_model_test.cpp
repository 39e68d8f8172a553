// SPDX-License-Identifier: Apache-2.0

// Every execution of the authentication, up to a bound, in a network controlled by an attacker. The
// attacker has all messages, can deliver each of them to any side, from its own host or the
// client's host, any number of times, can let time pass, and can change or make messages. It has a
// key of its own, which both servers know. What must hold:
//   - a server admits the client only for a request that the client made for this server, and each
//     request once;
//   - the client accepts an answer only from the server that it dialled, if that server admitted
//     exactly this request; then both have the same keys and the same protection.

#include "netio/access/crypto.hpp"
#include "tests/unit/netio/access/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <utility>

namespace netio::access::gate_model_test {
namespace {

constexpr KeyId clients = 1;
constexpr KeyId attackers = 2;

struct Limits {
    int changed_messages;
    int client_requests;
    int slots;
};

struct World {
    TestClient client{key_of(clients), address_a, {.protection = Protection::integrity}};
    std::array<TestServer, 2> servers{TestServer{address_a, {key_of(1), key_of(2)}, 200},
                                      TestServer{address_b, {key_of(1), key_of(2)}, 201}};
    bool waiting = false; // the client has connected and has no answer yet
    bool ended = false;
    int changed = 0;
    int slots = 0;
    std::set<Message> network; // all messages that the attacker has
    // What really happened.
    std::vector<Message> made;                 // the client's requests
    std::array<std::set<Message>, 2> admitted; // the client's requests that each server admitted
    std::map<Message, std::pair<Message, Digest>> given; // the servers' answers and keys
    std::string told; // what the client received; with `made` it is its state

    std::string name() const {
        std::string name = told + char(waiting) + char(ended) + char(changed) + char(slots);
        const auto add = [&](const Message& message) {
            name += static_cast<char>(message.size());
            for (const std::byte byte : message)
                name += static_cast<char>(byte);
        };
        std::ranges::for_each(network, add);
        for (const auto& of_server : admitted) {
            name += '|';
            std::ranges::for_each(of_server, add);
        }
        return name;
    }
};

Digest print_of(const AuthKeys& keys) {
    Digest print{};
    std::ranges::copy(keys.tags_up.bytes(), print.begin());
    for (std::size_t at = 0; at < print.size(); ++at)
        print[at] ^= keys.tags_down.bytes()[at] ^ keys.psk.bytes()[at];
    return print;
}

class Exploration {
  public:
    explicit Exploration(const Limits& limits) : limits_{limits} {}

    void run() {
        push(World{});
        while (!open_.empty() && !testing::Test::HasFailure()) {
            const World world = std::move(open_.front());
            open_.pop_front();
            client_connects(world);
            time_passes(world);
            for (const Message& message : world.network) {
                for (const std::size_t server : {0U, 1U}) {
                    for (const Host& source : {client_host, attacker_host})
                        enter(world, message, server, source);
                }
                if (world.waiting) to_client(world, message);
            }
            if (world.changed < limits_.changed_messages) attack(world);
        }
    }

    std::size_t states() const { return seen_.size(); }
    int admissions = 0;
    int genuine = 0;

  private:
    void push(World world) {
        if (seen_.insert(std::hash<std::string>{}(world.name())).second)
            open_.push_back(std::move(world));
    }

    // All servers receive a message immediately when it is new to the network. The answer of a
    // server to a peer that it does not admit changes no state, so it is not a separate step.
    static void publish(World& world, const Message& message) {
        if (!world.network.insert(message).second) return;
        // Without the key flag it is a request without a key, which is answered and never admitted
        // here.
        if ((message[auth_flags_at] & std::byte{1}) == std::byte{0}) return;
        for (TestServer& server : world.servers) {
            for (const Host& source : {client_host, attacker_host}) {
                TestServer copy = server;
                const Message answer = copy.take(message, source);
                if (copy.verdict.outcome != Outcome::admitted) publish(world, answer);
            }
        }
    }

    void client_connects(World world) {
        if (world.waiting || world.ended || world.client.requests >= limits_.client_requests)
            return;
        world.made.push_back(world.client.request());
        publish(world, world.made.back());
        world.waiting = true;
        push(std::move(world));
    }

    void time_passes(World world) {
        if (world.slots >= limits_.slots) return;
        ++world.slots;
        for (TestServer& server : world.servers)
            server.now += AuthServer::slot_length;
        const std::set<Message> before = std::exchange(world.network, {});
        for (const Message& message : before)
            publish(world, message);
        push(std::move(world));
    }

    void enter(World world, const Message& message, std::size_t number, const Host& source) {
        TestServer& server = world.servers[number];
        const Message answer = server.take(message, source);
        if (server.verdict.outcome != Outcome::admitted) return;
        if (server.verdict.admission->id() == clients) {
            ++admissions;
            EXPECT_EQ(number, 0U) << "the client dialled the other server";
            EXPECT_TRUE(std::ranges::count(world.made, message)) << "the client did not send it";
            EXPECT_TRUE(world.admitted[number].insert(message).second) << "admitted twice";
            EXPECT_EQ(server.verdict.admission->protection(), Protection::integrity);
            world.given[message] = {answer, print_of(*server.keys)};
        }
        publish(world, answer);
        push(std::move(world));
    }

    // As a rejection, with or without a challenge, or as an answer.
    void to_client(const World& world, const Message& message) {
        World challenged = world;
        challenged.waiting = false;
        if (challenged.client.gate.take_challenge(message) == AuthClient::Next::again) {
            challenged.told += "c" + std::string{reinterpret_cast<const char*>(message.data()),
                                                 auth_challenge_bytes};
            push(std::move(challenged));
        }
        World refused = world;
        refused.waiting = false;
        refused.told += "r";
        refused.ended = refused.client.gate.take_refusal() == AuthClient::Next::give_up;
        push(std::move(refused));

        World answered = world;
        answered.waiting = false;
        answered.ended = true; // whatever the message is, the connection was accepted
        answered.told += "a";
        if (answered.client.gate.take_answer(message) == AuthClient::Answer::genuine) {
            ++genuine;
            const auto given = world.given.find(world.made.back());
            ASSERT_NE(given, world.given.end()) << "the server has not admitted this request";
            EXPECT_EQ(given->second.first, message);
            EXPECT_EQ(given->second.second, print_of(*answered.client.gate.keys()));
        }
        push(std::move(answered));
    }

    // The attacker makes one message from one that it has; it is delivered like any other.
    void attack(const World& world) {
        std::set<Message> fresh;
        for (const Message& message : world.network) {
            const auto change = [&](std::size_t at, std::byte mask) {
                if (at >= message.size()) return;
                Message other = message;
                other[at] ^= mask;
                fresh.insert(other);
            };
            for (const unsigned mask : {1U, 2U, 4U, 6U, 8U})
                change(auth_flags_at, static_cast<std::byte>(mask));
            for (const std::size_t at : {auth_service_at, auth_instance_at, auth_kind_at,
                                         auth_slot_at, auth_nonce_at, auth_proof_at})
                change(at, std::byte{1});
            change(auth_id_at, std::byte{clients ^ attackers});
            make_proofs(world, message, fresh);
        }
        for (const Message& message : fresh) {
            if (world.network.contains(message)) continue;
            World next = world;
            publish(next, message);
            ++next.changed;
            push(std::move(next));
        }
    }

    // Proofs with the attacker's own key, for any request and any nonce, under either key id.
    static void make_proofs(const World& world, const Message& message, std::set<Message>& fresh) {
        if (message.size() != auth_request_bytes) return;
        const Secret key = derive(secret_of(attackers), Purpose::auth);
        for (const Message& challenge : world.network) {
            if (challenge.size() != auth_challenge_bytes) continue;
            ServerNonce nonce;
            std::copy_n(challenge.begin() + 14, nonce.size(), nonce.begin());
            for (const KeyId id : {clients, attackers}) {
                Message request = message;
                request[auth_id_at] = std::byte{id};
                const AuthTranscript transcript{Bytes{request}.first<auth_proof_at>(), nonce,
                                                address_a};
                std::ranges::copy(transcript.client_proof(key), request.begin() + auth_proof_at);
                fresh.insert(request);
                Message answer = hello_of(66);
                answer[auth_flags_at] = request[auth_flags_at];
                const Proof proof =
                    transcript.server_proof(key, Bytes{answer}.first<auth_hello_bytes>());
                answer.insert(answer.end(), proof.begin(), proof.end());
                fresh.insert(answer);
            }
        }
    }

    Limits limits_;
    std::set<std::size_t> seen_;
    std::deque<World> open_;
};

TEST(GateModel, OnlyTheClientIsAdmittedAndItBelievesOnlyItsServer) {
    Exploration exploration{{.changed_messages = 0, .client_requests = 3, .slots = 1}};
    exploration.run();
    std::printf("%zu states, %d admissions, %d genuine answers\n", exploration.states(),
                exploration.admissions, exploration.genuine);
    EXPECT_GT(exploration.genuine, 0);
}

TEST(GateModel, HoldsWithMessagesThatAnAttackerChangedOrMade) {
    Exploration exploration{{.changed_messages = 1, .client_requests = 2, .slots = 0}};
    exploration.run();
    std::printf("%zu states, %d admissions, %d genuine answers\n", exploration.states(),
                exploration.admissions, exploration.genuine);
    EXPECT_GT(exploration.genuine, 0);
}

} // namespace
} // namespace netio::access::gate_model_test
