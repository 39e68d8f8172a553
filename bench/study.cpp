// SPDX-License-Identifier: Apache-2.0

// Prints the computed rows of the 2014 study, for bench/study.py.

#include "bench/stream_study.hpp"

#include <iostream>

int main() {
    std::cout << bench::to_csv(bench::compute_study());
}
