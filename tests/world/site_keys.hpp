// SPDX-License-Identifier: Apache-2.0
#pragma once

// The key file of a world's site and of each of its processes: a listener admits the keys of the
// site's file, a connecting process uses its own key.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/support/key_files.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace netio::world {

class SiteKeys {
  public:
    // How often a listener rereads the file.
    static constexpr std::chrono::seconds look_interval{2};

    explicit SiteKeys(access::Protection level) : level_{level} {}

    void permit(std::uint32_t process) {
        files_.permit(id_of(process), "services=all rma connections=1000 folder=.:overwrite "
                                      "fids=0-18446744073709551615:block");
    }
    void revoke(std::uint32_t process) { files_.revoke(id_of(process)); }

    std::shared_ptr<ServerKeys> server(EventLoop& loop) const {
        return std::make_shared<ServerKeys>(loop,
                                            ServerKeys::Options{.file = files_.site(),
                                                                .min_protection = level_,
                                                                .connections_per_host = 1000,
                                                                .look_interval = look_interval});
    }
    std::shared_ptr<const ClientKey> client(std::uint32_t process) {
        return std::make_shared<ClientKey>(
            ClientKey::Options{.file = files_.client(id_of(process)), .protection = level_});
    }

  private:
    static int id_of(std::uint32_t process) { return static_cast<int>(process) + 1; }

    access::Protection level_;
    test::KeyFiles files_;
};

} // namespace netio::world
