// SPDX-License-Identifier: Apache-2.0

// The headers that all tests share need a program of their own (tests/CMakeLists.txt); it does
// nothing.
