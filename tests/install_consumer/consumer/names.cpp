// SPDX-License-Identifier: Apache-2.0
// A program that uses these names for its own types and includes all our public headers.
#include "every_public_header.hpp"

#include <fstream>
#include <tuple>

std::ofstream stream;
namespace pubsub {
int messages = 0;
}
namespace fabric {
class Session {};
} // namespace fabric
struct Fid {};
struct Session {};
enum class Status { good };
int loop = 0;
int version = 0;

#if NETIO_VERSION < NETIO_MAKE_VERSION(0, 2, 0)
#error "the headers are of another version"
#endif

// Names some options and leaves the others at their defaults.
[[maybe_unused]] void name_some_options() {
    using namespace netio::pubsub;
    const Publisher::Options publisher{.allow_remote_anonymous = true};
    const PublishSocket::Options lent{.publisher = {.allow_remote_anonymous = true}};
    const BufferedPublishSocket::Options buffered{.page_size_bytes = 1024};
    const SubscribeSocket::Options subscriber{.reconnect = true};
    const netio::SendSocket::Options sender{.reconnect = true};
    const netio::BufferedSendSocket::Options pages{.page_size_bytes = 1024};
    const netio::ListenSocket::Options listener{.allow_remote_anonymous = true};
    const netio::Subscriber::Options reader{.queue_limit_messages = 1};
    const netio::Publisher::Options writer{.name = "a-name"};
    const netio::Sender::Options poster{.queue_limit_bytes = 1};
    const Subscriptions::Options several{.publisher_limit = 1};
    const netio::stream::StreamSocket::Options byte_stream{.frame_bytes = 2048};
    const netio::stream::StreamListener::Options streams{.allow_remote_anonymous = true};
    const netio::stream::BlockingStream::Options blocking{.allow_remote_anonymous = true};
    const netio::FabricOptions fabric{.provider = "tcp"};
    const netio::EventLoop::Options loop_options{.mode = netio::LoopMode::busy};
    const Announcement announcement{.pid = 1};
    static_cast<void>(std::tie(publisher, lent, buffered, subscriber, sender, pages, listener,
                               reader, writer, poster, several, byte_stream, streams, blocking,
                               fabric, loop_options, announcement));
}

int main() {
    stream << pubsub::messages << loop << version;
    return netio::version() != nullptr ? 0 : 1;
}
