// SPDX-License-Identifier: Apache-2.0

// The entry point of libFuzzer in a program with one target.

#include "tests/fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    netio::fuzz::Target::all().front()->run(std::as_bytes(std::span{data, size}));
    return 0;
}
