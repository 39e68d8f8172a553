// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pubsub/discovery/board.hpp"

#include <map>
#include <string>
#include <vector>

namespace netio::pubsub::test {

// What one look at a board has shown.
class SeenBoard final : public Board::Visitor {
  public:
    void on_text(const std::string& name, const std::string& text) override { texts[name] = text; }
    bool on_kept(const std::string& name) override {
        removed.push_back("kept " + name);
        return true;
    }
    void on_removed(const std::string& name) override { removed.push_back(name); }
    void on_unreadable(const std::string& what) override { unreadable.push_back(what); }

    std::map<std::string, std::string> texts;
    std::vector<std::string> removed;
    std::vector<std::string> unreadable;
};

} // namespace netio::pubsub::test
