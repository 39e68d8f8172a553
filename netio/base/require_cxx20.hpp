// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included first by every public header, before any standard header whose content depends on the
// language version. _MSVC_LANG: with MSVC, __cplusplus is that of C++98 by default.
#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) <= 201703L
#error                                                                                             \
    "netio needs C++20: compile with -std=c++20 (in CMake: target_compile_features(TARGET PRIVATE cxx_std_20))"
#endif
