// SPDX-License-Identifier: Apache-2.0
#include "apps/common/remote_writes.hpp"

#include "apps/common/option_values.hpp"
#include "netio/base/never_destroyed.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <string>

namespace apps {

CLI::Option* add_remote_writes(CLI::App& command, netio::stream::RemoteWrites& value) {
    using netio::stream::RemoteWrites;
    using Words = std::map<std::string, RemoteWrites>;
    static netio::NeverDestroyed<Words> words{Words{{"guarded", RemoteWrites::guarded},
                                                    {"trusted", RemoteWrites::trusted},
                                                    {"never", RemoteWrites::never}}};
    return command
        .add_option_function<std::string>(
            "--remote-writes", [&value](const std::string& word) { value = words->at(word); },
            "Into memory of this side: guarded (where a device checks them), never, or trusted "
            "(over tcp the peer can then reach all of this process)")
        ->type_name("WORD")
        ->default_str("guarded")
        ->check(one_of({"guarded", "trusted", "never"}));
}

} // namespace apps
