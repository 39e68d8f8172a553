// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace netio::inline v0_2 {

// Debian's libfabric loads libinfinipath, whose constructor installs handlers for crashes and for
// SIGINT and SIGTERM in every process; with them even SIGTERM ends as a backtrace and status 1.
// Puts back the default for those signals whose handler lies in that library, and only those.
void undo_foreign_signal_handlers() noexcept;

} // namespace netio::inline v0_2
