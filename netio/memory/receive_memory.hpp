// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory of the user's that sockets receive into: huge pages, a memfd, memory of a NUMA node or of
// another library (docs/guide.md, "Receive into your own memory").
//
//     const auto memory = std::make_shared<netio::ReceiveMemory>(std::span{data, size});
//     netio::ListenSocket socket{*transport, {.listen = {{"10.0.0.1", 1234}},
//                                             .session = {.receive_memory = memory}}, handler};
//
// Each connection takes receive_count buffers from this memory; their number does not grow. The
// connections of a listen socket share the memory, and a peer is rejected if too little of it is
// free. A kept message stays in its buffer, and another part of this memory replaces that buffer.
// While no part is free, the connection receives nothing, as it does beyond keep_limit_bytes.
//
// The memory must outlive the transport, and all messages that are kept in it. This object is used
// on one loop; the sockets share its ownership. It must be destroyed before the transport.

#include "netio/base/export.hpp"
#include "netio/memory/buffer.hpp"
#include "netio/memory/keep_pool.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace netio::inline v0_3 {

class NETIO_EXPORT ReceiveMemory {
  public:
    // Throws std::invalid_argument if the memory has 0 bytes.
    explicit ReceiveMemory(std::span<std::byte> memory);
    ~ReceiveMemory(); // deregisters it
    ReceiveMemory(const ReceiveMemory&) = delete;
    ReceiveMemory& operator=(const ReceiveMemory&) = delete;

    // Any thread.
    std::size_t size() const noexcept;
    // The bytes that are neither in a receive buffer nor kept. They may be in several pieces.
    std::size_t free_bytes() const;

    // --- for sessions

    // Bytes that a buffer of this size uses: whole cache lines.
    static constexpr std::size_t bytes_in_use(std::size_t bytes) noexcept {
        return (bytes + line_bytes - 1) / line_bytes * line_bytes;
    }
    RegisteredBuffer& buffer() noexcept;
    // Takes a free part, which is free again when the last copy of its `memory` is destroyed, on
    // any thread. Returns nullopt if no free piece is large enough.
    std::optional<KeepPool::Buffer> take(std::size_t bytes);
    // `wake` is called once, on any thread, when a part becomes free; not after forget(owner). It
    // must not call this object.
    void wake_on_return(const void* owner, std::function<void()> wake);
    void forget(const void* owner);

  private:
    static constexpr std::size_t line_bytes = 64;

    class State; // that parts in use own, too
    class Part;
    std::shared_ptr<State> state_;
};

} // namespace netio::inline v0_3
