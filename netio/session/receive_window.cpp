// SPDX-License-Identifier: Apache-2.0
#include "netio/session/receive_window.hpp"

#include "netio/session/handshake.hpp"

#include <algorithm>

namespace netio::inline v0_3 {

namespace {

std::uint32_t most_receives(const SessionOptions& options) noexcept {
    const std::size_t limit = options.receive_memory ? 0 : options.window_limit;
    const std::size_t most = limit / options.receive_buffer_bytes;
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(
        most, options.receive_count,
        std::max<std::size_t>(options.receive_count, most_session_receive_count)));
}

} // namespace

ReceiveWindow::ReceiveWindow(std::size_t receive_bytes, const SessionOptions& options,
                             ByteBudget& budget)
    : memory_{{.receive_bytes = receive_bytes,
               .count = static_cast<std::uint32_t>(options.receive_count)},
              budget,
              options.receive_memory},
      arrivals_(options.receive_count), autotuner_{memory_.count(), most_receives(options)},
      told_{memory_.count()}, keep_limit_{std::min(options.keep_limit_bytes,
                                                   ReceiveBuffers::no_limit - 1)} {}

ReceiveWindow::~ReceiveWindow() {
    loan_.reset();
    if (pool_) pool_->detach();
}

KeptBytes ReceiveWindow::keep(std::span<const std::byte> bytes, TimePoint now) {
    if (bytes.empty()) return {};
    if (!pool_) pool_ = std::make_shared<KeepPool>(memory_.receive_bytes());
    // With a limit below a slab one small message would use all of it.
    const bool copies = pool_->copies(bytes.size()) && keep_limit_ >= KeepPool::slab_bytes;
    if (copies) return pool_->copy(bytes, now);
    if (!loan_) {
        const std::uint32_t index = front().receive.value();
        loan_ = pool_->lend([&] { return memory_.lend(index); }, now);
    }
    return {loan_, bytes};
}

KeptBytes ReceiveWindow::keep(std::vector<std::byte> message, TimePoint now) {
    if (!pool_) pool_ = std::make_shared<KeepPool>(memory_.receive_bytes());
    return pool_->adopt(std::move(message), now);
}

bool ReceiveWindow::has_buffer(std::uint32_t index, MemoryDomain& domain) {
    const std::size_t extra = pool_->take_returned(returned_);
    for (KeepPool::Buffer& buffer : returned_)
        memory_.take_back(std::move(buffer));
    return extra <= keep_limit_ && memory_.supply(index, domain, keep_limit_ - extra);
}

bool ReceiveWindow::supply(std::uint32_t index, MemoryDomain& domain) {
    if (!pool_ || has_buffer(index, domain)) return true;
    // Before the second look, so that no return is missed.
    pool_->wake_on_return(wake_);
    memory_.wake_on_return(wake_);
    if (has_buffer(index, domain)) return true;
    starved_.push_back(index);
    return false;
}

std::uint32_t ReceiveWindow::grow(Connection& connection) {
    const std::uint32_t before = memory_.count();
    const std::uint32_t more = autotuner_.wanted() - before;
    // Memory last, because it is the most expensive.
    if (!connection.reserve_receives(before + more) || !memory_.add(more, connection.domain())) {
        autotuner_.on_changed(before);
        return 0;
    }
    std::vector<Arrival> larger(std::max<std::size_t>(memory_.count(), arrivals_.size()));
    for (std::size_t i = 0; i < count_; ++i)
        larger[i] = arrivals_[(first_ + i) % arrivals_.size()];
    arrivals_ = std::move(larger);
    first_ = 0;
    for (std::uint32_t index = before; index < memory_.count(); ++index) {
        if (!post(connection, index)) return 0;
    }
    autotuner_.on_changed(memory_.count());
    return more;
}

void ReceiveWindow::retire(std::uint32_t index) {
    if (memory_.drop(index)) autotuner_.on_changed(memory_.count());
}

} // namespace netio::inline v0_3
