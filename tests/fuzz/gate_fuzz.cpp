// SPDX-License-Identifier: Apache-2.0

// Authentication of a server with hostile clients, and of a client with hostile servers. Their
// messages are those of a correct exchange, with some bytes overwritten.

#include "netio/access/auth.hpp"
#include "netio/access/crypto.hpp"
#include "netio/access/rights.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>
#include <set>

namespace netio::fuzz::gate_fuzz {
namespace {

using namespace netio::access;
using Message = std::vector<std::byte>;

constexpr AuthAddress address{.host = {}, .port = 12345};

// Each exchange has its own secrets. With common secrets, the fuzzer could learn a proof from the
// comparisons that it observes in one exchange and use it in another.
class Secrets {
  public:
    explicit Secrets(Bytes conversation) : all_{sha256({conversation})} {}

    Secret of(KeyId id) const {
        return Secret{hmac_sha256(all_.bytes(), {std::array{std::byte{id}}})};
    }
    Key key(KeyId id) const {
        return {.id = id, .name = "key", .secret = of(id), .rights = parse_rights("services=all")};
    }

  private:
    Secret all_;
};

class Conversation {
  public:
    explicit Conversation(const Secrets& secrets)
        : gate_{secrets.of(anyone), {.proofs_per_key = 4}}, client_{secrets.key(1), options,
                                                                    address} {
        KeyRing ring;
        ring.add(secrets.key(1));
        ring.add(secrets.key(2));
        gate_.use(ring);
    }

    void request(Input& input) {
        std::array<std::byte, auth_request_bytes> data{};
        data[auth_service_at] = std::byte{1};
        ClientNonce nonce{};
        nonce[0] = static_cast<std::byte>(++requests_);
        const std::size_t size = client_.request(data, nonce);
        const Message honest{data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
        if (size == auth_request_bytes) made_.insert(honest);
        judge(spoiled(honest, input));
    }
    void judge(const Message& message) {
        const auto verdict = gate_.judge({.data = message, .dialled = address}, now_);
        look_at(verdict.challenge);
        answer_.clear();
        switch (verdict.outcome) {
        case AuthServer::Verdict::Outcome::challenged:
            answer_.resize(auth_rejection_bytes);
            answer_.insert(answer_.end(), verdict.challenge.begin(), verdict.challenge.end());
            break;
        case AuthServer::Verdict::Outcome::admitted: {
            // Only what the client has sent, and padding.
            Message first = message;
            first.resize(auth_request_bytes);
            NETIO_CHECK(made_.contains(first));
            answer_.resize(auth_answer_bytes);
            NETIO_CHECK(verdict.admission->answer(std::span{answer_}.first<auth_answer_bytes>()) ==
                        auth_answer_bytes);
            genuine_.insert(answer_);
            break;
        }
        case AuthServer::Verdict::Outcome::refused:
        case AuthServer::Verdict::Outcome::busy:
            break;
        }
    }
    void answer(Input& input) {
        Message message = spoiled(answer_, input);
        if (client_.take_answer(message) == AuthClient::Answer::genuine) {
            message.resize(auth_answer_bytes);
            NETIO_CHECK(genuine_.contains(message));
            NETIO_CHECK(client_.keys().has_value());
        }
    }
    void reject(Input& input) {
        if (input.flag()) {
            static_cast<void>(client_.take_refusal());
        } else {
            static_cast<void>(client_.take_challenge(spoiled(answer_, input)));
        }
    }
    void wait(std::uint64_t seconds) { now_ += std::chrono::seconds{seconds}; }

  private:
    static constexpr AuthClient::Options options{.protection = Protection::peers};

    static Message spoiled(Message message, Input& input) {
        if (input.flag()) return message;
        message.resize(input.below(80));
        const std::size_t at = message.empty() ? 0 : input.below(message.size());
        const Bytes bytes = input.take(input.below(message.size() - at + 1));
        std::ranges::copy(bytes, message.begin() + static_cast<std::ptrdiff_t>(at));
        return message;
    }

    AuthServer gate_;
    AuthClient client_;
    TimePoint now_{};
    std::set<Message> made_;
    std::set<Message> genuine_;
    Message answer_; // last answer of the server
    int requests_ = 0;
};

const Target gate{"gate", [](Bytes bytes) {
                      Input input{bytes};
                      Conversation conversation{Secrets{bytes}};
                      while (!input.empty()) {
                          switch (input.below(5)) {
                          case 0:
                              conversation.request(input);
                              break;
                          case 1: {
                              const Bytes raw = input.take(input.below(70));
                              conversation.judge({raw.begin(), raw.end()});
                              break;
                          }
                          case 2:
                              conversation.answer(input);
                              break;
                          case 3:
                              conversation.reject(input);
                              break;
                          default:
                              conversation.wait(input.below(32));
                              break;
                          }
                      }
                  }};

} // namespace
} // namespace netio::fuzz::gate_fuzz
