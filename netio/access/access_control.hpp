// SPDX-License-Identifier: Apache-2.0
#pragma once

// All that a listening side needs to decide who is let in: its key file, the gate, and how many are
// there already. Whoever owns the connections asks it, and does what it says.

#include "netio/access/attendance.hpp"
#include "netio/access/gate.hpp"
#include "netio/access/key_file.hpp"

#include <optional>
#include <string>
#include <vector>

namespace netio::access::inline v0_2 {

class AccessControl {
  public:
    struct Options {
        std::string key_file;
        Protection least = Protection::none;
        Protection most = Protection::privacy;
        bool lacks_aes = false;                // this processor has no instructions for it
        std::uint32_t links_per_host = 256;    // connections of one host, whatever their keys
        std::vector<GateAddress> dialled_as{}; // Gate::Options
    };

    // `boot` is random, and of this run only. Throws KeyFileError.
    AccessControl(const Options& options, KeySource& source, const Secret& boot);

    // As many as are permitted are there already: busy. Admitted: `place` is theirs.
    Gate::Verdict judge(const Gate::Request& request, TimePoint now, Attendance::Place& place);

    struct News {
        std::vector<KeyId> revoked; // their connections must end
        std::string problem;        // of the key file, each once; the keys of before stay
    };
    // Looks at the key file; to be called from time to time, also when nobody connects. Nothing:
    // there is none.
    std::optional<News> look();

    // Who has no key is let in nowhere.
    bool keeps_strangers_out() const {
        return least_ > Protection::none || find(anyone) == nullptr;
    }
    const Key* find(KeyId id) const { return file_.ring().find(id); }
    const Gate::Counters& counters() const noexcept { return gate_.counters(); }
    const Attendance& attendance() const noexcept { return attendance_; }

  private:
    Protection least_;
    KeyFile file_;
    Gate gate_;
    Attendance attendance_;
};

} // namespace netio::access::inline v0_2
