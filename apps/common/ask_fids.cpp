// SPDX-License-Identifier: Apache-2.0
#include "apps/common/ask_fids.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/logging.hpp"
#include "netio/fabric.hpp"

#include <utility>

namespace apps {

netio::pubsub::FidQuery::Result ask_fids(const FidsArguments& arguments,
                                         std::vector<netio::pubsub::FidRange> near) {
    netio::EventLoop loop;
    const LogObserver observer{loop};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    netio::pubsub::FidQuery::Result result;
    const netio::pubsub::FidQuery query{*transport,
                                        {.publisher = peer_address(arguments.publisher),
                                         .key = client_key(arguments.key),
                                         .near = std::move(near)},
                                        [&](const netio::pubsub::FidQuery::Result& found) {
                                            result = found;
                                            loop.stop();
                                        }};
    loop.run();
    return result;
}

} // namespace apps
