// SPDX-License-Identifier: Apache-2.0
// A bridge: one program that uses FELIX's netio and this library in the same source file.
#include "netio/fabric.hpp"
#include "netio/netio.hpp" // FELIX's
#include "pubsub/publisher/publish_socket.hpp"

int main() {
    netio::context context{"posix"};
    netio::buffered_send_socket theirs{&context};
    theirs.connect(netio::endpoint{"127.0.0.1", 12345});
    netio::publish_socket publisher{&context, 12346};
    publisher.publish(netio::tag{7}, netio::message{});
    context.loop()->run();

    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop, {.provider = "tcp"});
    loop.run_once();
    return theirs.is_open() && publisher.published == 1 && context.loop()->turns == 1 ? 0 : 1;
}
