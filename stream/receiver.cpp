// SPDX-License-Identifier: Apache-2.0
#include "stream/receiver_impl.hpp"

namespace stream {

template class BasicReceiver<NoFlaws>;

} // namespace stream
