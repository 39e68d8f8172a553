// SPDX-License-Identifier: Apache-2.0
#pragma once

// A page as a subscriber receives it: messages of several fids that the publisher has sent in one
// frame. The handler gets the page as a whole, so that a program can keep, queue or store many
// small messages at the cost of one:
//
//     functions.on_page = [&](netio::PageView page) {
//         for (const netio::MessageView& message : page) std::cout << message.text();
//         pages.push_back(page.keep());
//     };

#include "netio/base/kept_bytes.hpp"
#include "pubsub/core/message.hpp"
#include "pubsub/core/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

namespace netio::inline v0_3 {

// The messages of a page, in order. lost_before() of each is 0; losses are reported separately.
class PageIterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using iterator_concept = std::input_iterator_tag;
    using value_type = Message;
    using difference_type = std::ptrdiff_t;
    using pointer = const Message*;
    using reference = const Message&;

    // `records`: of a page that was checked. `left`: its messages.
    PageIterator(std::span<const std::byte> records, std::size_t left, const MessageKeeper* keeper,
                 StampFormat stamps) noexcept
        : records_{records}, left_{left}, keeper_{keeper}, stamps_{stamps} {
        if (left_ > 0) read({});
    }
    explicit PageIterator(const Message& only) noexcept : left_{1}, message_{only} {}

    const Message& operator*() const noexcept { return message_; }
    const Message* operator->() const noexcept { return &message_; }
    PageIterator& operator++() noexcept {
        if (--left_ > 0) read(message_.fid());
        return *this;
    }
    void operator++(int) noexcept { ++*this; }
    friend bool operator==(const PageIterator& iterator, std::default_sentinel_t) noexcept {
        return iterator.left_ == 0;
    }

  private:
    void read(std::optional<Fid> before) noexcept {
        const auto take = [&](Fid fid, std::span<const std::byte> message, std::uint8_t status) {
            message_ = {fid,    message.subspan(time_stamp::bytes_of(stamps_)), status, 0, keeper_,
                        stamps_};
            const auto end =
                static_cast<std::size_t>(message.data() + message.size() - records_.data());
            records_ = records_.subspan(end);
            return false;
        };
        static_cast<void>(pubsub::visit_page(records_, take, before));
    }

    std::span<const std::byte> records_;
    std::size_t left_ = 0;
    const MessageKeeper* keeper_ = nullptr;
    StampFormat stamps_;
    Message message_;
};

class KeptPage;

// A received page, or a message that came alone: a page with one message. Valid during the call.
class PageView {
  public:
    PageView(std::span<const std::byte> records, std::size_t count, const MessageKeeper* keeper,
             StampFormat stamps = {}) noexcept
        : bytes_{records}, count_{count}, keeper_{keeper}, stamps_{stamps} {}
    explicit PageView(const Message& only, const MessageKeeper* keeper) noexcept
        : bytes_{time_stamp::with_stamp(only.bytes(), only.stamps())}, keeper_{keeper},
          stamps_{only.stamps()}, only_{only} {}

    // Number of messages.
    std::size_t size() const noexcept { return count_; }
    // The memory of the page: its messages with their headers, or the message that came alone.
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    PageIterator begin() const noexcept {
        return only_ ? PageIterator{*only_} : PageIterator{bytes_, count_, keeper_, stamps_};
    }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

    // Returns the page with memory that stays valid after the call; 8 KiB or more are not copied.
    // The page counts once for keep_limit_bytes, whatever the number of its messages.
    inline KeptPage keep() const;

  private:
    std::span<const std::byte> bytes_;
    std::size_t count_ = 1;
    const MessageKeeper* keeper_ = nullptr;
    StampFormat stamps_;
    std::optional<Message> only_;
};

// A page that the user keeps. Its memory is valid until this object, its copies, and everything
// that was kept from them are destroyed. Any thread.
class KeptPage final : public MessageKeeper {
  public:
    KeptPage() = default;
    KeptPage(KeptBytes bytes, std::size_t count, const std::optional<Message>& only,
             StampFormat stamps)
        : bytes_{std::move(bytes)}, count_{count}, stamps_{stamps} {
        if (only) only_ = Only{.fid = only->fid(), .status = only->status()};
    }

    std::size_t size() const noexcept { return count_; }
    std::span<const std::byte> bytes() const noexcept { return bytes_.bytes(); }
    // The messages refer to this object; keep() of one shares the page's memory.
    PageIterator begin() const noexcept {
        if (!only_) return PageIterator{bytes(), count_, this, stamps_};
        return PageIterator{Message{only_->fid, bytes().subspan(time_stamp::bytes_of(stamps_)),
                                    only_->status, 0, this, stamps_}};
    }
    std::default_sentinel_t end() const noexcept { return std::default_sentinel; }
    KeptBytes keep(std::span<const std::byte> message) const override {
        return bytes_.part(message);
    }

  private:
    struct Only {
        Fid fid{};
        std::uint8_t status = 0;
    };

    KeptBytes bytes_;
    std::size_t count_ = 0;
    StampFormat stamps_;
    std::optional<Only> only_;
};

inline KeptPage PageView::keep() const {
    return {keeper_ != nullptr ? keeper_->keep(bytes_) : KeptBytes::copy_of(bytes_), count_, only_,
            stamps_};
}

} // namespace netio::inline v0_3
