// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test vectors of Noise NNpsk0, from cacophony (https://github.com/haskell-cryptography/cacophony,
// vectors/cacophony.txt at commit 8ee9d41e34a1a596cfa3ab12aa4069ff87dc1247), which its authors have
// released into the public domain (The Unlicense, https://unlicense.org). Both sides send in turn,
// beginning with the initiator; the first two messages are the handshake.

#include <array>
#include <string_view>

namespace netio::access {

struct NoiseVector {
    struct Message {
        std::string_view payload;
        std::string_view ciphertext;
    };
    std::string_view name;
    std::string_view prologue;
    std::string_view psk;
    std::string_view initiator_ephemeral;
    std::string_view responder_ephemeral;
    std::string_view handshake_hash;
    std::array<Message, 6> messages;
};

// clang-format off
inline constexpr std::array<NoiseVector, 2> noise_vectors{{
    {"Noise_NNpsk0_25519_AESGCM_SHA256",
     "4a6f686e2047616c74",
     "54686973206973206d7920417573747269616e20706572737065637469766521",
     "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
     "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
     "9f3b1f9afd7767767b5b9d1069844a6154fdbdcc36dfb3e31c0fffc5c973d530",
     {{
         {"4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79447c37a89fc17813788d30df2d59501d6066f5f8aecc3406bbd9829f2d24a531b1"},
         {"4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088432f29d79368ef9de4e1ae7a362fb05bf0ad668e026bf5714554497b3a720461"},
         {"462e20412e20486179656b",
          "7c01e898a6201f36aecee532e29cd0b7f8ffa29d3366ad0dce39a6"},
         {"4361726c204d656e676572",
          "a9ff535aace3db6a1da1a7fb00fe2de2622bb373abad9fb42c00e0"},
         {"4a65616e2d426170746973746520536179",
          "6cfc49a3e65472edc2d0152abe5ce950170a8a47c959f30bd48b5f0aacf29adbfd"},
         {"457567656e2042f6686d20766f6e2042617765726b",
          "9bc86e6d974ed21ba04604a94aa68de21677eb409ead070c0cd569b069ee19ba142aa4c1a9"},
     }}},
    {"Noise_NNpsk0_25519_ChaChaPoly_SHA256",
     "4a6f686e2047616c74",
     "54686973206973206d7920417573747269616e20706572737065637469766521",
     "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
     "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
     "f4d03dc34495c95729ea6de9e1b59004b59733102488b3e24bc441e0be208eaf",
     {{
         {"4c756477696720766f6e204d69736573",
          "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c794479b962b8aff8485742ac32f905ba45369e2465fb59e138a93d67a0d1266b6a54"},
         {"4d757272617920526f746862617264",
          "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843d6062704d5a9c422a8e834423f8c1feada7e8d0d910a1a2cd030fb584221e3"},
         {"462e20412e20486179656b",
          "e632c3763d7669067383433197a3baddf146e9e70ad4b4e9e59e0f"},
         {"4361726c204d656e676572",
          "64c6bee32ea91c8474bb4c21d7a700109ad45af77b29764ba5eb1e"},
         {"4a65616e2d426170746973746520536179",
          "e2fa0bed0603b62d3ccac2ecabbf3fe33f3e86514909b323361626266cb2471cc8"},
         {"457567656e2042f6686d20766f6e2042617765726b",
          "0c01dc9cec1fe4ddd692e8dd32188aa351088dc91183639a53b57aa4692b5ebdef8b8ca111"},
     }}},
}};
// clang-format on

} // namespace netio::access
