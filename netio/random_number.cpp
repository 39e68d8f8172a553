// SPDX-License-Identifier: Apache-2.0
#include "netio/random_number.hpp"

#include "netio/base/status.hpp"
#include "netio/loop/process.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

namespace netio::inline v0_3 {

std::uint64_t random_number() {
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) == sizeof number) return number;
    const int refusal = errno;
    const int device = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool is_read = device >= 0 && ::read(device, &number, sizeof number) == sizeof number;
    if (device >= 0) ::close(device);
    if (!is_read) {
        throw FabricError{{refusal, std::system_category()},
                          "no random numbers: getrandom() is refused and /dev/urandom cannot "
                          "be read; allow getrandom in the seccomp filter of the container, "
                          "or give it /dev/urandom"};
    }
    return number;
}

std::uint64_t process_instance() {
    struct Instance {
        std::uint64_t number = random_number();
    };
    static PerProcess<Instance> instance;
    return (*instance).number;
}

} // namespace netio::inline v0_3
