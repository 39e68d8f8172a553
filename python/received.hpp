// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages that a Subscriber of the Python module has received, and batches of them.

#include "netio/base/kept_bytes.hpp"
#include "pubsub/core/message_batch.hpp"
#include "pubsub/core/time_stamp.hpp"
#include "python/support.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netio::python {

// A message: a small one is a copy, a large one holds the memory that it was received into.
struct PythonMessage {
    Fid fid{};
    std::uint8_t status = 0;
    std::uint64_t lost_before = 0;
    std::int64_t time_ns = 0;                 // when it was taken from the queue, since 1970
    std::optional<std::int64_t> publish_ns{}; // the publisher's time, if it sends it
    bool is_copied = true; // it does not hold the memory that it was received into
    KeptBytes bytes;
};

// A batch of the queue. Any number of Python objects share it; its memory returns to the pool.
struct Taken {
    pubsub::MessageBatch batch;
    std::size_t next = 0; // the first one that was not delivered
    std::int64_t time_ns = 0;

    std::size_t left() const noexcept { return batch.size() - next; }
};

// The bytes of a message of the batch, without its time stamp.
inline KeptBytes keep(const pubsub::MessageBatch& batch, const pubsub::MessageBatch::Item& item) {
    const KeptBytes all = batch.keep(time_stamp::with_stamp(item.bytes, item.stamps));
    return all.part(all.bytes().subspan(time_stamp::bytes_of(item.stamps)));
}

inline std::optional<std::int64_t> publish_ns(const pubsub::MessageBatch::Item& item) {
    const std::optional<TimeStamp> time = item.time();
    return time ? time->utc_ns() : std::nullopt;
}

inline PythonMessage message_of(const Taken& taken, std::size_t index) {
    const pubsub::MessageBatch::Item item = taken.batch[index];
    return {.fid = item.fid,
            .status = item.status,
            .lost_before = item.lost_before,
            .time_ns = taken.time_ns,
            .publish_ns = publish_ns(item),
            .is_copied = !item.is_kept,
            .bytes = keep(taken.batch, item)};
}

// A row of Batch.records.
struct Record {
    std::uint64_t fid;
    std::int64_t offset; // in Batch.buffer; -1: the message has memory of its own
    std::uint64_t lost_before;
    std::int64_t time;
    std::uint32_t size;
    std::uint8_t status;
};

class PythonBatch {
  public:
    // Takes up to `limit` messages. No GIL is needed.
    PythonBatch(std::shared_ptr<Taken> taken, std::size_t limit) : taken_{std::move(taken)} {
        records_->reserve(std::min(limit, taken_->left()));
        for (; taken_->left() > 0 && size() < limit; ++taken_->next) {
            const pubsub::MessageBatch::Item item = taken_->batch[taken_->next];
            if (item.is_gap) {
                gaps_.emplace_back(to_integer(item.fid), item.lost_before);
            } else if (gaps_.empty()) { // gaps follow messages
                add(item);
            } else {
                break;
            }
        }
    }

    std::size_t size() const noexcept { return records_->size(); }
    PythonMessage at(const py::object& index) const { return message_of(*taken_, place(index)); }
    pubsub::MessageBatch::Item item(std::size_t index) const {
        return taken_->batch[first_ + index];
    }
    // The same memory as that of the item, which must be a kept one.
    KeptBytes memory(std::size_t index) const { return keep(taken_->batch, item(index)); }
    std::int64_t time_ns() const noexcept { return taken_->time_ns; }
    py::array view(const py::object& index) const {
        const pubsub::MessageBatch::Item item = taken_->batch[place(index)];
        if (!item.is_kept) return bytes_array(item.bytes, taken_);
        const auto kept = std::make_shared<const KeptBytes>(keep(taken_->batch, item));
        return bytes_array(kept->bytes(), kept);
    }
    py::object records() {
        if (array_) return array_;
        const py::capsule base{new std::shared_ptr{records_}, [](void* pointer) {
                                   delete static_cast<std::shared_ptr<std::vector<Record>>*>(
                                       pointer);
                               }};
        py::array array =
            py::array_t<Record>{static_cast<py::ssize_t>(size()), records_->data(), base};
        make_read_only(array); // as_array() relies on them
        array_ = std::move(array);
        return array_;
    }
    py::array buffer() const { return bytes_array(buffer_, taken_); }
    py::object as_array(const py::object& type) const {
        const py::dtype wanted = py::dtype::from_args(type);
        if (wanted.attr("hasobject").cast<bool>())
            throw py::type_error{"the bytes of a message are no Python objects: use another dtype"};
        const auto item_size = static_cast<std::size_t>(wanted.itemsize());
        for (const Record& record : *records_) {
            if (record.size == item_size && record.offset >= 0) continue;
            throw py::value_error{"a message of fid " + to_string(Fid{record.fid}) + " has " +
                                  std::to_string(record.size) + " bytes, and an element has " +
                                  std::to_string(item_size) +
                                  "; view(index) has the bytes of one message of any size"};
        }
        if (buffer_.size() == size() * item_size) return buffer().attr("view")(wanted);
        py::array_t<std::uint8_t> packed{static_cast<py::ssize_t>(size() * item_size)};
        std::uint8_t* to = packed.mutable_data();
        for (const Record& record : *records_) {
            std::memcpy(to, buffer_.data() + record.offset, item_size);
            to += item_size;
        }
        make_read_only(packed); // as the view is
        return packed.attr("view")(wanted);
    }
    const std::vector<std::pair<std::uint64_t, std::uint64_t>>& gaps() const { return gaps_; }

  private:
    void add(const pubsub::MessageBatch::Item& item) {
        if (records_->empty()) first_ = taken_->next;
        std::int64_t offset = -1;
        if (!item.is_kept) {
            if (buffer_.data() == nullptr) buffer_ = {item.bytes.data(), 0};
            offset = item.bytes.data() - buffer_.data();
            buffer_ = {buffer_.data(), static_cast<std::size_t>(offset) + item.bytes.size()};
        }
        records_->push_back({.fid = to_integer(item.fid),
                             .offset = offset,
                             .lost_before = item.lost_before,
                             .time = taken_->time_ns,
                             .size = static_cast<std::uint32_t>(item.bytes.size()),
                             .status = item.status});
    }
    std::size_t place(const py::object& its_index) const {
        if (PyIndex_Check(its_index.ptr()) == 0) {
            throw py::type_error{"the index of a message is an integer, and not " +
                                 py::repr(its_index).cast<std::string>()};
        }
        const py::ssize_t index = PyNumber_AsSsize_t(its_index.ptr(), nullptr); // the nearest one
        if (PyErr_Occurred() != nullptr) throw py::error_already_set{};
        const auto count = static_cast<py::ssize_t>(size());
        if (index < -count || index >= count) throw py::index_error{"no such message in the batch"};
        return first_ + static_cast<std::size_t>(index < 0 ? index + count : index);
    }

    std::shared_ptr<Taken> taken_;
    std::shared_ptr<std::vector<Record>> records_ = std::make_shared<std::vector<Record>>();
    std::size_t first_ = 0;
    // Of the messages without memory of their own, with the time stamps between them.
    std::span<const std::byte> buffer_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> gaps_;
    py::object array_;
};

} // namespace netio::python
