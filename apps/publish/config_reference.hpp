// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the table of keys (apps/publish/config_keys.hpp) says, for people and for editors. No I/O.

#include <string>

namespace apps {

// docs/configuration.md, in Markdown.
std::string config_reference();
// A JSON schema (draft 7) of a configuration: docs/configuration.schema.json. What is not in it is
// refused by the reader too; what depends on other values, or on this machine, only the reader
// knows.
std::string config_schema();

} // namespace apps
