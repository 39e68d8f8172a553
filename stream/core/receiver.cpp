// SPDX-License-Identifier: Apache-2.0
#include "stream/core/receiver_impl.hpp"

namespace netio::stream::inline v0_2 {

template class BasicReceiver<NoFlaws>;

} // namespace netio::stream::inline v0_2
