// SPDX-License-Identifier: Apache-2.0

// Replays every input of the corpus, so that faults found by fuzzing do not return.

#include "tests/fuzz/target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <ostream>
#include <string>

namespace netio::fuzz {

static void PrintTo(const Target* target, std::ostream* out) {
    *out << target->name;
}

namespace {

std::vector<std::byte> from_hex(const std::string& line) {
    std::vector<std::byte> bytes;
    for (std::size_t at = 0; at + 2 <= line.size(); at += 2) {
        unsigned value = 0;
        const auto [end, error] =
            std::from_chars(line.data() + at, line.data() + at + 2, value, 16);
        if (error != std::errc{} || end != line.data() + at + 2) ADD_FAILURE() << "not hex";
        bytes.push_back(static_cast<std::byte>(value));
    }
    return bytes;
}

// Without the spare capacity of the vector, so that a sanitizer notices a read beyond the end.
void run_exactly(const Target& target, const std::vector<std::byte>& bytes) {
    const std::unique_ptr<std::byte[]> exact{new std::byte[bytes.size()]};
    std::ranges::copy(bytes, exact.get());
    target.run({exact.get(), bytes.size()});
}

class FuzzCorpus : public testing::TestWithParam<const Target*> {};

TEST_P(FuzzCorpus, IsSurvived) {
    const Target& target = *GetParam();
    std::ifstream corpus{std::string{NETIO_FUZZ_CORPUS "/"} + std::string{target.name} + ".hex"};
    ASSERT_TRUE(corpus) << "no corpus of " << target.name;
    run_exactly(target, {});
    for (std::string line; std::getline(corpus, line);) {
        if (line.starts_with('#')) continue;
        SCOPED_TRACE(line);
        run_exactly(target, from_hex(line));
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus, testing::ValuesIn(Target::all()),
                         [](const auto& parameter) { return std::string{parameter.param->name}; });

} // namespace
} // namespace netio::fuzz
