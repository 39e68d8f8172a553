// SPDX-License-Identifier: Apache-2.0
#include "apps/file/copy.hpp"

#include "apps/common/fid_text.hpp"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <queue>
#include <stdexcept>
#include <utility>

namespace apps::file {
namespace {

using netio::RecordedEvent;
using netio::RecordedMessage;
using netio::RecordingReader;
using netio::RecordingTime;
using netio::RecordingWriter;

std::uint64_t to_ns(RecordingTime time) {
    return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

RecordingTime time_of(const RecordingReader& reader) {
    const RecordedEvent* const event = reader.event();
    return event != nullptr ? event->time : reader.message().arrival_time;
}

netio::FidSet fids_of(const RecordedEvent& event) {
    try {
        if (!event.fids.empty()) return netio::FidSet{parse_fids(event.fids)};
    } catch (const std::invalid_argument&) { // of another program
    }
    return {};
}

class Copy {
  public:
    Copy(const std::string& path, RecordingWriter::Options options)
        : writer_{std::make_unique<RecordingWriter>(path, std::move(options))} {}
    ~Copy() {
        if (writer_ == nullptr) return;
        const std::vector<std::string> files = writer_->stats().files;
        writer_.reset();
        for (const std::string& each : files)
            ::unlink(each.c_str());
    }
    Copy(const Copy&) = delete;
    Copy& operator=(const Copy&) = delete;

    void take(const RecordingReader& reader) {
        if (const RecordedEvent* const event = reader.event()) {
            write(RecordingWriter::Event{.event = event->event,
                                         .publisher = event->publisher,
                                         .fids = fids_of(*event),
                                         .count = event->count,
                                         .reason = event->reason,
                                         .arrival_ns = to_ns(event->time)});
            ++report_.events;
            return;
        }
        const RecordedMessage& message = reader.message();
        RecordingWriter::Entry entry{.fid = message.fid,
                                     .bytes = message.bytes,
                                     .status = message.status,
                                     .sequence = message.sequence,
                                     .arrival_ns = to_ns(message.arrival_time),
                                     .publisher = message.publisher};
        if (message.has_publish_time) entry.publish_ns = to_ns(message.publish_time);
        write(entry);
        ++report_.messages;
        report_.bytes += message.bytes.size();
    }

    CopyReport finish() {
        writer_->close();
        report_.files = writer_->stats().files;
        writer_.reset();
        return std::move(report_);
    }

  private:
    template <typename Item>
    void write(const Item& item) {
        for (;;) {
            const netio::Status status = writer_->write(item);
            if (status == netio::Status::ok) return;
            if (status == netio::Status::closed) {
                writer_->close(); // throws why
                throw std::runtime_error{writer_->stats().failure};
            }
            static_cast<void>(writer_->wait_until_writable(std::chrono::seconds{1}));
        }
    }

    std::unique_ptr<RecordingWriter> writer_; // null: finished
    CopyReport report_;
};

} // namespace

CopyReport copy_recordings(std::vector<RecordingReader>& readers, const std::string& path,
                           RecordingWriter::Options options,
                           const std::function<void()>& on_progress) {
    Copy copy{path, std::move(options)};
    using Place = std::pair<RecordingTime, std::size_t>; // the earliest first
    std::priority_queue<Place, std::vector<Place>, std::greater<>> next;
    for (std::size_t i = 0; i < readers.size(); ++i)
        if (readers[i].next()) next.emplace(time_of(readers[i]), i);
    while (!next.empty()) {
        on_progress();
        const std::size_t i = next.top().second;
        next.pop();
        copy.take(readers[i]);
        if (readers[i].next()) next.emplace(time_of(readers[i]), i);
    }
    return copy.finish();
}

} // namespace apps::file
