// SPDX-License-Identifier: Apache-2.0
#pragma once

// Point-to-point messages. Installed as <netio/messages.hpp>.
//
//     netio::Sender sender{"10.0.0.1:12345"};
//     sender.send("a text");

#include "netio/context.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/message_socket.hpp"
#include "netio/messages/requester.hpp"
#include "netio/messages/responder.hpp"
#include "netio/messages/send_socket.hpp"
#include "netio/messages/sender.hpp"
