// SPDX-License-Identifier: Apache-2.0
#pragma once

// Point-to-point messages. Installed as <netio/messages.hpp>.

#include "netio/context.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_socket.hpp"
