// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/verifier.hpp"

#include <algorithm>
#include <chrono>

namespace apps::subscribe {

void Verifier::check(std::string_view publisher, netio::pubsub::Fid fid,
                     std::span<const std::byte> message, std::uint64_t nanoseconds) {
    const std::size_t header = std::min(header_bytes_, message.size());
    const auto published = pattern_.check(fid, message.subspan(header), number_of(publisher));
    if (!published) return;
    if (*published > nanoseconds) ++ahead_;
    latency_.add(netio::Duration{
        static_cast<netio::Duration::rep>(nanoseconds - std::min(*published, nanoseconds))});
}

void Verifier::begin_anew(std::string_view publisher) {
    publishers_.insert_or_assign(std::string{publisher}, ++numbers_given_);
    last_publisher_.clear();
}

std::uint32_t Verifier::number_of(std::string_view publisher) {
    if (publisher == last_publisher_) return last_number_;
    auto known = publishers_.find(publisher);
    if (known == publishers_.end()) known = publishers_.emplace(publisher, ++numbers_given_).first;
    last_publisher_ = publisher;
    last_number_ = known->second;
    return last_number_;
}

std::optional<LatencyReport> Verifier::latency() const {
    if (latency_.count() == 0) return {};
    const auto us = [](netio::Duration time) {
        return std::chrono::duration<double, std::micro>(time).count();
    };
    return LatencyReport{.messages = latency_.count(),
                         .ahead = ahead_,
                         .p50_us = us(latency_.quantile(0.5)),
                         .p90_us = us(latency_.quantile(0.9)),
                         .p99_us = us(latency_.quantile(0.99)),
                         .p99_9_us = us(latency_.quantile(0.999)),
                         .longest_us = us(latency_.longest())};
}

} // namespace apps::subscribe
