// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes and objects of OpenSSL. For source files only: no header of this library includes
// OpenSSL's.

#include <cstddef>

namespace netio::access::inline v0_3 {

// The deleter of a std::unique_ptr: Free<EVP_PKEY_free>.
template <auto free_it>
struct Free {
    template <typename Object>
    void operator()(Object* object) const noexcept {
        free_it(object);
    }
};

inline unsigned char* raw(std::byte* bytes) noexcept {
    return reinterpret_cast<unsigned char*>(bytes);
}
inline const unsigned char* raw(const std::byte* bytes) noexcept {
    return reinterpret_cast<const unsigned char*>(bytes);
}

} // namespace netio::access::inline v0_3
