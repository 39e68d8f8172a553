// SPDX-License-Identifier: Apache-2.0
#include "netio/session/client_key.hpp"

#include "netio/access/auth.hpp"
#include "netio/access/crypto.hpp"
#include "netio/access/key_file.hpp"
#include "netio/access/key_source.hpp"

#include <mutex>

namespace netio::inline v0_3 {
namespace {

const access::Key& only_key(const access::KeyFile& file) {
    const auto& keys = file.ring().keys();
    if (keys.size() != 1 || keys.begin()->first == access::anyone) {
        throw access::KeyFileError{
            file.path() + ": it must hold one key, that of this client; take the file that `netio "
                          "key new --client` has written"};
    }
    return keys.begin()->second;
}

} // namespace

struct ClientKey::InUse {
    explicit InUse(const std::string& path) : file{path, source} {
        file.load();
        key = only_key(file);
    }

    std::mutex mutex; // several loops may share the key
    access::SystemKeySource source;
    access::KeyFile file;
    access::Key key;
};

ClientKey::ClientKey(const Options& options)
    : in_use_{std::make_unique<InUse>(options.file)}, protection_{options.protection} {}

ClientKey::~ClientKey() = default;

std::string ClientKey::look() const {
    const std::lock_guard lock{in_use_->mutex};
    access::KeyFile& file = in_use_->file;
    switch (file.refresh()) {
    case access::KeyFile::Refreshed::unchanged:
        return {};
    case access::KeyFile::Refreshed::broken:
        return file.problem();
    case access::KeyFile::Refreshed::changed:
        break;
    }
    try {
        in_use_->key = only_key(file);
        return {};
    } catch (const access::KeyFileError& error) {
        return error.what();
    }
}

std::shared_ptr<access::AuthClient> ClientKey::dial(const access::AuthAddress& dialled) const {
    const std::lock_guard lock{in_use_->mutex};
    return std::make_shared<access::AuthClient>(
        in_use_->key,
        access::AuthClient::Options{.protection = protection_,
                                    .lacks_aes = !access::processor_has_aes()},
        dialled);
}

} // namespace netio::inline v0_3
