// SPDX-License-Identifier: Apache-2.0
#include "stream/sender_impl.hpp"

namespace stream {

template class BasicSender<NoFlaws>;

} // namespace stream
