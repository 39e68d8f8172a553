// SPDX-License-Identifier: Apache-2.0
#pragma once

// Key files of this machine.

#include "netio/access/key_file.hpp"

namespace netio::access::inline v0_2 {

class SystemKeySource final : public KeySource {
  public:
    FileFacts look(const std::string& path) override;
    Content read(const std::string& path) override;
    std::uint32_t user() const override;
};

// Puts a file with this text in place of what is there, or where nothing is: readable by its owner
// only, and whole or not at all. `replace` false: throws if there is one. Throws std::system_error.
void write_key_file(const std::string& path, const std::string& text, bool replace);

} // namespace netio::access::inline v0_2
