// SPDX-License-Identifier: Apache-2.0
#pragma once

// Publish/subscribe: what most programs need. Installed as <netio/pubsub.hpp>.
//
//     netio::Publisher publisher{"127.0.0.1:12345"};
//     publisher.publish(7, "a text");
//
//     netio::Subscriber subscriber{"127.0.0.1:12345"};
//     subscriber.subscribe(7);

#include "netio/context.hpp"
#include "pubsub/client/publisher.hpp"
#include "pubsub/client/subscriber.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

namespace netio::inline v0_3 {

using pubsub::BufferedPublishSocket;
using pubsub::PublishSocket;
using pubsub::SlowPolicy;
using pubsub::SubscribeSocket;
using pubsub::Subscriptions;

} // namespace netio::inline v0_3
