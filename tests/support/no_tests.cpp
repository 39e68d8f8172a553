// SPDX-License-Identifier: Apache-2.0

// A program is needed for the headers that all tests share (tests/CMakeLists.txt); it has nothing
// to do.
