// SPDX-License-Identifier: Apache-2.0
#include "netio/session/client_key.hpp"

#include "netio/access/aead.hpp"
#include "netio/access/gate_client.hpp"
#include "netio/access/key_file.hpp"
#include "netio/access/key_source.hpp"

namespace netio::inline v0_2 {
namespace {

access::Key read_only_key(const std::string& path) {
    access::SystemKeySource source;
    access::KeyFile file{path, source};
    file.load();
    const auto& keys = file.ring().keys();
    if (keys.size() != 1 || keys.begin()->first == access::anyone) {
        throw access::KeyFileError{
            path + ": it must hold one key, that of this client; take the file that `netio key new "
                   "--client` has written"};
    }
    return keys.begin()->second;
}

} // namespace

ClientKey::ClientKey(const Options& options)
    : key_{std::make_unique<access::Key>(read_only_key(options.file))}, protection_{
                                                                            options.protection} {}

ClientKey::~ClientKey() = default;

std::shared_ptr<access::GateClient> ClientKey::dial(const access::GateAddress& dialled) const {
    return std::make_shared<access::GateClient>(
        *key_,
        access::GateClient::Options{.protection = protection_,
                                    .lacks_aes = !access::processor_has_aes()},
        dialled);
}

} // namespace netio::inline v0_2
