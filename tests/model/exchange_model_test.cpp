// SPDX-License-Identifier: Apache-2.0

// Every execution of the key exchange that follows the authentication, in a network controlled by
// an attacker. The attacker has all messages of all connections, can deliver each message to any
// side, also back to its sender, and can change messages or make its own. It has a key of its own,
// with which it can authenticate, and knows what was sent during every authentication. What must
// hold:
//   - a side accepts only what the other side of its own authentication has sent, unchanged;
//   - a side that has both messages has the same keys as its partner, and no other side has them;
//   - sides that saw different authentications (another server, a lower level, another cipher,
//     another client) never complete the exchange, whatever is delivered.
// The behaviour of a side depends only on the one message that it receives. All executions are
// therefore the closure of "deliver every known message to every side".

#include "netio/access/crypto.hpp"
#include "tests/unit/netio/access/auth_fixture.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace netio::access::exchange_model_test {
namespace {

using Side = NoiseHandshake::Side;

constexpr std::size_t payload_bytes = 8;
constexpr std::size_t message_bytes = NoiseHandshake::overhead + payload_bytes;
constexpr int attackers_psk = 99;

struct Party {
    std::string name;
    Side side;
    int pass;            // number of the authentication that it saw
    int psk;             // number of the secret that it shares with its supposed partner
    std::string partner; // the only side that it may accept messages from
    Cipher cipher = Cipher::aes_256_gcm;
};

Message prologue_of(int pass) {
    return Message(140, static_cast<std::byte>(pass)); // transcript of the authentication
}

NoiseHandshake begin(const Party& party, int number) {
    return {party.side, party.cipher, prologue_of(party.pass), secret_of(party.psk),
            secret_of(100 + number)};
}

Message said_by(NoiseHandshake& noise, int number) {
    const Message payload(payload_bytes, static_cast<std::byte>(number));
    Message message(message_bytes);
    noise.write(payload, message);
    return message;
}

class Exploration {
  public:
    explicit Exploration(std::vector<Party> parties) : parties_{std::move(parties)} {
        for (std::size_t number = 0; number < parties_.size(); ++number) {
            const Party& party = parties_[number];
            if (party.side != Side::initiator) continue;
            NoiseHandshake noise = begin(party, static_cast<int>(number));
            publish(said_by(noise, static_cast<int>(number)), party.name);
        }
        make_messages();
    }

    void run() {
        // Every side receives the answers of a responder, also changed, until no message is new.
        for (std::size_t before = 0; before != network_.size();) {
            before = network_.size();
            const std::map<Message, std::string> now = network_;
            for (const auto& [message, speaker] : now) {
                for (std::size_t number = 0; number < parties_.size(); ++number)
                    deliver(message, speaker, static_cast<int>(number));
                if (testing::Test::HasFailure()) return;
            }
        }
    }

    std::size_t deliveries = 0;
    std::set<std::string> ended; // sides that have both messages

    // Among the sides that ended: both sides of an authentication have the same keys, and no two
    // authentications have the same keys.
    void compare_keys() const {
        std::map<std::string, int> owner;
        for (const Party& party : parties_) {
            const auto print = prints_.find(party.name);
            if (print == prints_.end()) continue;
            const auto [place, fresh] = owner.emplace(print->second, party.pass);
            EXPECT_TRUE(fresh || place->second == party.pass)
                << party.name << ": keys of another authentication";
        }
        for (const Party& party : parties_) {
            if (party.side != Side::initiator || !prints_.contains(party.name)) continue;
            ASSERT_TRUE(prints_.contains(party.partner)) << party.partner << " has not ended";
            EXPECT_EQ(prints_.at(party.name), prints_.at(party.partner)) << party.name;
        }
    }

  private:
    // `speaker` is "" if the attacker has made or changed the message.
    void publish(const Message& message, const std::string& speaker) {
        if (!network_.emplace(message, speaker).second || speaker.empty()) return;
        for (std::size_t at = 0; at < message.size(); at += 7)
            publish(changed(message, at, std::byte{1}), "");
        publish(changed(message, message.size() - 1, std::byte{128}), "");
        publish(Message(message.begin(), message.end() - 1), "");
        Message longer = message;
        longer.push_back(std::byte{0});
        publish(longer, "");
        Message weak = message; // a point of low order: every shared secret with it is zero
        std::fill_n(weak.begin(), sizeof(PublicKey), std::byte{0});
        publish(weak, "");
        // The public key of one message, the seal of another.
        for (const auto& [other, who] : std::map{network_}) {
            if (who.empty() || other == message || other.size() != message.size()) continue;
            Message mixed = message;
            std::copy_n(other.begin(), sizeof(PublicKey), mixed.begin());
            publish(mixed, "");
        }
    }
    static Message changed(Message message, std::size_t at, std::byte mask) {
        message[at] ^= mask;
        return message;
    }

    // Messages of an attacker with its own key, as either side of any authentication, after any
    // message.
    void make_messages() {
        for (const Party& party : std::vector{parties_}) {
            NoiseHandshake first{Side::initiator, party.cipher, prologue_of(party.pass),
                                 secret_of(attackers_psk), secret_of(98)};
            publish(said_by(first, 98), "");
        }
        for (const auto& [message, speaker] : std::map{network_}) {
            for (const Party& party : parties_) {
                NoiseHandshake answers{Side::responder, party.cipher, prologue_of(party.pass),
                                       secret_of(attackers_psk), secret_of(97)};
                Message payload(payload_bytes);
                if (message.size() == message_bytes && answers.read(message, payload))
                    publish(said_by(answers, 97), "");
            }
        }
    }

    void deliver(const Message& message, const std::string& speaker, int number) {
        const Party& party = parties_[static_cast<std::size_t>(number)];
        ++deliveries;
        NoiseHandshake noise = begin(party, number);
        if (party.side == Side::initiator) said_by(noise, number);
        Message payload(payload_bytes);
        if (message.size() != message_bytes || !noise.read(message, payload)) return;
        const bool is_own = party.psk == attackers_psk; // it may send itself anything
        EXPECT_TRUE(is_own || speaker == party.partner)
            << party.name << " accepts a message of " << speaker;
        if (party.side == Side::responder)
            publish(said_by(noise, number), is_own ? "" : party.name);
        if (!noise.result()) return; // a point of low order, from the holder of the key
        ended.insert(party.name);
        const auto print = [](Bytes bytes) {
            return std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
        };
        const std::string keys = print(noise.result()->up.bytes()) +
                                 print(noise.result()->down.bytes()) + print(noise.result()->hash);
        if (!is_own) prints_[party.name] = keys;
    }

    std::vector<Party> parties_;
    std::map<Message, std::string> network_; // with its sender
    std::map<std::string, std::string> prints_;
};

TEST(ExchangeModel, OnlyTheTwoSidesOfOnePassComeToAnEndAndWithTheSameKeys) {
    Exploration exploration{{
        {"client to A", Side::initiator, 1, 1, "A"},
        {"A", Side::responder, 1, 1, "client to A"},
        {"client to A again", Side::initiator, 2, 2, "A again"},
        {"A again", Side::responder, 2, 2, "client to A again"},
        {"client to B", Side::initiator, 3, 3, "B"},
        {"B", Side::responder, 3, 3, "client to B"},
        {"A for the attacker", Side::responder, 4, attackers_psk, "anybody"},
    }};
    exploration.run();
    exploration.compare_keys();
    std::printf("%zu deliveries\n", exploration.deliveries);
    for (const char* const side :
         {"client to A", "A", "client to A again", "A again", "client to B", "B"})
        EXPECT_TRUE(exploration.ended.contains(side)) << side;
}

TEST(ExchangeModel, SidesThatSawDifferentPassesNeverComeToAnEnd) {
    Exploration exploration{{
        // The level was changed on the way, or one side pretended to be another server.
        {"client, integrity", Side::initiator, 1, 1, "nobody"},
        {"server, privacy", Side::responder, 2, 1, "nobody"},
        // The same authentication but different secrets: an unknown key share.
        {"client with one key", Side::initiator, 3, 3, "nobody"},
        {"server with another", Side::responder, 3, 4, "nobody"},
        // One side was made to believe that the other does not support AES.
        {"client, AES", Side::initiator, 5, 5, "nobody", Cipher::aes_256_gcm},
        {"server, ChaCha20", Side::responder, 5, 5, "nobody", Cipher::chacha20_poly1305},
        // Both wait for the same side to send, and receive their own and each other's messages.
        {"client to client", Side::initiator, 6, 6, "nobody"},
        {"client to client too", Side::initiator, 6, 6, "nobody"},
    }};
    exploration.run();
    std::printf("%zu deliveries\n", exploration.deliveries);
    EXPECT_TRUE(exploration.ended.empty()) << *exploration.ended.begin();
}

} // namespace
} // namespace netio::access::exchange_model_test
