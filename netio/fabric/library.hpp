// SPDX-License-Identifier: Apache-2.0
#pragma once

// The door to libfabric, which is not linked: it is loaded by the first call that needs it, once
// for the process, and stays. Loading it costs 0.2 s where Debian's is built with psm, which
// commands and programs that use no fabric should not wait for (docs/decisions/0014). What its
// headers define inline needs no door; what it exports is called through this table.

#include <rdma/fabric.h>

namespace netio::fabric {

struct Library {
    decltype(&::fi_dupinfo) dupinfo;
    decltype(&::fi_fabric) fabric;
    decltype(&::fi_freeinfo) freeinfo;
    decltype(&::fi_getinfo) getinfo;
    decltype(&::fi_strerror) strerror;
    decltype(&::fi_version) version;
};

// Any thread. Throws FabricError with the remedy where libfabric cannot be loaded or is older than
// the one that this was built with; the next call tries again.
const Library& library();

} // namespace netio::fabric
