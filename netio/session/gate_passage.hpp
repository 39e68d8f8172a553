// SPDX-License-Identifier: Apache-2.0
#pragma once

// A session's way through the gate: what this side puts behind its hello, what it makes of the
// other side's, and what was agreed on. Without a key it does nothing. Private to netio/session.

#include "netio/access/gate_client.hpp"
#include "netio/session/hello.hpp"
#include "netio/session/key_desk.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace netio::inline v0_2 {

class GatePassage {
  public:
    // One of both, or neither.
    void connects(std::shared_ptr<access::GateClient> client) noexcept {
        client_ = std::move(client);
    }
    void accepts(std::unique_ptr<Admittance> admittance,
                 std::shared_ptr<const void> place) noexcept {
        place_ = std::move(place);
        admittance_ = std::move(admittance);
    }

    // `size` bytes of the hello are there; the number of all that are to be sent.
    std::size_t complete(ConnectionData& data, std::size_t size);
    void take_rejection(RejectCode code, std::span<const std::byte> data);
    // The accepting side's answer, whose hello is in order. What is wrong with it; empty: nothing.
    std::string take_answer(std::span<const std::byte> data);

    access::Protection protection() const noexcept;
    access::Cipher cipher() const noexcept;
    // Once both have proved their key, where both have one.
    const std::optional<access::GateKeys>& keys() const noexcept { return keys_; }
    // Of the peer. Null: it may do everything.
    const access::Rights* rights() const noexcept {
        return admittance_ ? &admittance_->admission().rights() : nullptr;
    }
    Admittance* admittance() const noexcept { return admittance_.get(); }
    // Behind the reason that a rejection gives: what this side has not shown.
    std::string_view hint(RejectCode code) const noexcept;

  private:
    std::shared_ptr<access::GateClient> client_;
    std::shared_ptr<const void> place_; // Places::Place
    std::unique_ptr<Admittance> admittance_;
    std::optional<access::GateKeys> keys_;
};

} // namespace netio::inline v0_2
