// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two faults of Linux's soft iWARP (siw), and how to stay out of their way. A Domain knows whether
// its device is one.

#include "netio/fabric/handles.hpp"

#include <cstddef>
#include <span>
#include <sys/uio.h>

namespace netio::fabric {

bool is_soft_iwarp(const ::fi_info& info);

// The library of soft iWARP (siw, up to rdma-core 44 and later) takes 0x90000 for the mark of a
// mapping that failed, while Linux since 5.5 numbers mappings by their place, where it is the 144th
// page: any queue that begins there cannot be opened, now and at every further try, since the place
// is free again. Mappings take the first place they fit in, so one that begins below that page and
// ends behind it, made before all others, keeps it from being anybody's beginning. It holds for all
// domains of the process while this one is open. Throws FabricError.
CompletionQueueHandle cover_ill_numbered_page(::fid_domain& domain);

// siw (Linux up to 6.1 at least, siw_try_1seg) copies a short message that is one piece and lies in
// two pages from the wrong places, unless it happens to be sent within the call. Two pieces it
// sends as they are, so such a message becomes two where the pages meet. The first piece is all of
// it, and there is room for another; returns how many it is now.
std::size_t split_at_page(std::span<::iovec> pieces, std::span<void*> descriptors);

} // namespace netio::fabric
