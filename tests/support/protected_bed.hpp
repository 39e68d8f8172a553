// SPDX-License-Identifier: Apache-2.0
#pragma once

// A bed with a protection level for its connections, for scenarios that must behave the same at
// each level.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/test_bed.hpp"

#include <memory>
#include <string>
#include <tuple>

namespace netio::test {

using ProtectedBed = std::tuple<Bed, access::Protection>;

inline auto all_protected_beds() {
    using access::Protection;
    return testing::Combine(all_beds(),
                            testing::Values(Protection::none, Protection::peers,
                                            Protection::integrity, Protection::privacy));
}

inline std::string protected_bed_name(const testing::TestParamInfo<ProtectedBed>& info) {
    return bed_name({std::get<0>(info.param), 0}) + "_" +
           std::string{to_string(std::get<1>(info.param))};
}

// The keys of a server and its clients, which agree on one protection level.
class AgreedKeys {
  public:
    AgreedKeys(EventLoop& loop, access::Protection level) : level_{level} {
        files_.permit(7, "services=all rma fids=0-63:block");
        server_ = std::make_shared<ServerKeys>(
            loop, ServerKeys::Options{.file = files_.site(), .min_protection = level});
    }
    std::shared_ptr<ServerKeys> server() const { return server_; }
    std::shared_ptr<const ClientKey> client() {
        return std::make_shared<ClientKey>(
            ClientKey::Options{.file = files_.client(7), .protection = level_});
    }
    ServerKeys::Options server_options() const {
        return {.file = files_.site(), .min_protection = level_};
    }

  private:
    access::Protection level_;
    KeyFiles files_;
    std::shared_ptr<ServerKeys> server_;
};

} // namespace netio::test
