// SPDX-License-Identifier: Apache-2.0

// Emulates libfabric 1.18 and later in one respect, on top of the installed one: a connection of
// the tcp provider has at most 1,024 receives, and a request for more gets no offer. The symbol
// versions are those of the installed one (short_libfabric.map).

#include "netio/fabric/libfabric.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace {

template <typename Function>
Function installed(const char* name, const char* version) {
    static void* const library = ::dlopen(NETIO_INSTALLED_LIBFABRIC, RTLD_NOW | RTLD_LOCAL);
    void* const found = library == nullptr ? nullptr : ::dlvsym(library, name, version);
    if (found == nullptr) std::abort();
    return reinterpret_cast<Function>(found);
}

} // namespace

extern "C" {

fi_info* fi_dupinfo(const fi_info* info) {
    return installed<decltype(&fi_dupinfo)>("fi_dupinfo", NETIO_VERSION_OF_FI_DUPINFO)(info);
}
int fi_fabric(fi_fabric_attr* attributes, fid_fabric** fabric, void* context) {
    return installed<decltype(&fi_fabric)>("fi_fabric",
                                           NETIO_VERSION_OF_FI_FABRIC)(attributes, fabric, context);
}
void fi_freeinfo(fi_info* info) {
    installed<decltype(&fi_freeinfo)>("fi_freeinfo", NETIO_VERSION_OF_FI_FREEINFO)(info);
}
int fi_getinfo(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
               const fi_info* hints, fi_info** found) {
    if (hints != nullptr && hints->rx_attr->size > 1024) return -ENODATA;
    return installed<decltype(&fi_getinfo)>("fi_getinfo", NETIO_VERSION_OF_FI_GETINFO)(
        version, node, service, flags, hints, found);
}
const char* fi_strerror(int error) {
    return installed<decltype(&fi_strerror)>("fi_strerror", NETIO_VERSION_OF_FI_STRERROR)(error);
}
std::uint32_t fi_version() {
    return installed<decltype(&fi_version)>("fi_version", NETIO_VERSION_OF_FI_VERSION)();
}

} // extern "C"
