// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads and writes key files of this machine: all I/O of netio/access.

#include "netio/access/key_file.hpp"

namespace netio::access::inline v0_3 {

class SystemKeySource final : public KeySource {
  public:
    FileFacts look(const std::string& path) override;
    Content read(const std::string& path) override;
    std::uint32_t user() const override;
};

// Writes a file atomically, readable by its owner only. `replace` false: throws if the file exists.
// Throws std::system_error.
void write_key_file(const std::string& path, const std::string& text, bool replace);

} // namespace netio::access::inline v0_3
