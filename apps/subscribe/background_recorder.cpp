// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/background_recorder.hpp"

#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

namespace apps::subscribe {
namespace {

// Before each message in the queue.
struct Head {
    netio::pubsub::Fid fid{};
    std::size_t bytes = 0;
};

std::size_t write_first(Recorder& recorder, std::span<const std::byte> queued) {
    Head head;
    std::memcpy(&head, queued.data(), sizeof head);
    recorder.write(head.fid, queued.subspan(sizeof head, head.bytes));
    return sizeof head + head.bytes;
}

} // namespace

BackgroundRecorder::BackgroundRecorder(netio::EventLoop& loop, std::unique_ptr<Recorder> recorder,
                                       Events events)
    : recorder_{std::make_shared<std::unique_ptr<Recorder>>(std::move(recorder))},
      writer_{[recorder = recorder_](std::span<const std::byte> queued) {
                  return write_first(**recorder, queued);
              },
              queue_limit_bytes},
      watch_{loop, writer_.event_descriptor(), netio::DescriptorWatch::Interest::readable,
             [this, events = std::move(events)] {
                 writer_.clear_event();
                 try {
                     if (const auto failure = writer_.failure()) std::rethrow_exception(failure);
                 } catch (const std::exception& error) {
                     return events.on_failure(error.what());
                 }
                 if (!writer_.is_full()) events.on_writable();
             }} {}

void BackgroundRecorder::write(netio::pubsub::Fid fid, std::span<const std::byte> message) {
    const Head head{.fid = fid, .bytes = message.size()};
    writer_.put(std::as_bytes(std::span{&head, 1}), message);
}

void BackgroundRecorder::finish(std::optional<std::set<netio::pubsub::Fid>> whole) {
    writer_.finish([recorder = recorder_, whole = std::move(whole)] {
        if (whole)
            (*recorder)->finish([&](netio::pubsub::Fid fid) { return whole->contains(fid); });
        recorder->reset();
    });
    if (!writer_.wait())
        throw std::runtime_error{"the recording is not finished: the disk takes nothing, and a "
                                 "signal has ended the wait"};
}

} // namespace apps::subscribe
