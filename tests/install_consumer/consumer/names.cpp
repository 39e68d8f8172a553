// SPDX-License-Identifier: Apache-2.0
// A program that has used these names for its own things, beside all our public headers.
#include "every_public_header.hpp"

#include <fstream>

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

int main() {
    stream << pubsub::messages << loop << version;
    return netio::version() != nullptr ? 0 : 1;
}
