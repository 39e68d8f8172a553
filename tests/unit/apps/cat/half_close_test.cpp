// SPDX-License-Identifier: Apache-2.0
#include "apps/cat/cat.hpp"

#include <gtest/gtest.h>

#include <string>

namespace apps::cat::half_close_test {
namespace {

constexpr auto end = AfterPeersEnd::end;
constexpr auto wait = AfterPeersEnd::wait_for_input;
constexpr auto first_byte = AfterPeersEnd::wait_for_first_byte;

struct Case {
    const char* what;
    Situation situation;
    AfterPeersEnd expected;
};

constexpr Case cases[] = {
    {"a listener at a terminal, after a transfer",
     {.listens = true, .input = Input::terminal, .received_bytes = 1},
     end},
    {"a listener at a terminal, after an empty file",
     {.listens = true, .input = Input::terminal},
     end},
    {"a client at a terminal, after a transfer",
     {.input = Input::terminal, .received_bytes = 1},
     end},
    {"a client at a terminal, at a peer that only receives", {.input = Input::terminal}, wait},
    {"a silent pipe, after a transfer into a file",
     {.listens = true, .input = Input::endless_pipe, .received_bytes = 1},
     first_byte},
    {"a pipe that is in use",
     {.listens = true, .input = Input::endless_pipe, .received_bytes = 1, .input_bytes = 1},
     wait},
    {"a filter that has not answered yet",
     {.listens = true,
      .input = Input::endless_pipe,
      .output_has_reader = true,
      .received_bytes = 1},
     wait},
    {"a late producer, at a peer that only receives",
     {.listens = true, .input = Input::endless_pipe},
     wait},
    {"a file", {.listens = true, .input = Input::file, .received_bytes = 1}, wait},
    {"--until peer",
     {.until = Until::peer,
      .input = Input::endless_pipe,
      .output_has_reader = true,
      .input_bytes = 1},
     end},
    {"--until both",
     {.until = Until::both, .listens = true, .input = Input::terminal, .received_bytes = 1},
     wait},
};

TEST(HalfClose, WaitsOnlyForAnInputThatMayBeInUse) {
    for (const Case& each : cases)
        EXPECT_EQ(after_peers_end(each.situation), each.expected) << each.what;
}

} // namespace
} // namespace apps::cat::half_close_test
