// SPDX-License-Identifier: Apache-2.0
#include "stream/core/sender_impl.hpp"

namespace netio::stream::inline v0_2 {

template class BasicSender<NoFlaws>;

} // namespace netio::stream::inline v0_2
