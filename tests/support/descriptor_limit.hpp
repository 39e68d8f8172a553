// SPDX-License-Identifier: Apache-2.0
#pragma once

// While this object exists, the process may open only `more` further descriptors.

#include "netio/base/check.hpp"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

namespace netio::test {

class DescriptorLimit {
  public:
    explicit DescriptorLimit(rlim_t more) {
        const int lowest_free = ::eventfd(0, EFD_CLOEXEC);
        NETIO_CHECK(lowest_free >= 0 && ::getrlimit(RLIMIT_NOFILE, &before_) == 0);
        ::close(lowest_free);
        const rlimit limit{static_cast<rlim_t>(lowest_free) + more, before_.rlim_max};
        NETIO_CHECK(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    ~DescriptorLimit() { NETIO_CHECK(::setrlimit(RLIMIT_NOFILE, &before_) == 0); }
    DescriptorLimit(const DescriptorLimit&) = delete;
    DescriptorLimit& operator=(const DescriptorLimit&) = delete;

  private:
    rlimit before_{};
};

} // namespace netio::test
