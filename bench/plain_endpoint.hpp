// SPDX-License-Identifier: Apache-2.0
#pragma once

// A connected (MSG) endpoint of the provider `tcp` without any layer above it, and buffers to send
// and to receive. Used by the subjects plain-libfabric and plain-write.

#include "bench/subject.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/epoll.h>

namespace bench {

inline constexpr std::uint32_t api_version = FI_VERSION(1, 17);
inline constexpr std::uint64_t spin_ns = 50'000; // adaptive

inline void require(long result, const char* step) {
    if (result < 0) fail(std::string{step} + ": " + ::fi_strerror(static_cast<int>(-result)));
}

class Endpoint {
  public:
    static constexpr std::size_t peer_wrote = SIZE_MAX;

    explicit Endpoint(const Arguments& arguments)
        : busy_{arguments.mode == "busy"}, adaptive_{arguments.mode == "adaptive"} {
        ::fi_info* const hints = ::fi_allocinfo();
        hints->ep_attr->type = FI_EP_MSG;
        hints->caps = FI_MSG | FI_RMA;
        hints->mode = FI_CONTEXT | FI_CONTEXT2;
        hints->fabric_attr->prov_name = ::strdup("tcp"); // freed by fi_freeinfo
        const std::string port = std::to_string(arguments.port);
        require(::fi_getinfo(api_version, "127.0.0.1", port.c_str(),
                             arguments.publish ? FI_SOURCE : 0, hints, &info_),
                "fi_getinfo");
        ::fi_freeinfo(hints);
        require(::fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
        ::fi_eq_attr events{};
        events.wait_obj = FI_WAIT_FD;
        require(::fi_eq_open(fabric_, &events, &event_queue_, nullptr), "fi_eq_open");
        if (arguments.publish) {
            ::fid_pep* listener = nullptr;
            require(::fi_passive_ep(fabric_, info_, &listener, nullptr), "fi_passive_ep");
            require(::fi_pep_bind(listener, &event_queue_->fid, 0), "fi_pep_bind");
            require(::fi_listen(listener), "fi_listen");
            say("listening");
            ::fi_info* const request = wait_event(FI_CONNREQ);
            make_endpoint(request);
        } else {
            make_endpoint(info_);
        }
        buffers_.resize(2 * window_of(arguments.size) * arguments.size);
        // Keys and offsets can be chosen freely, because no mr_mode was requested.
        require(::fi_mr_reg(domain_, buffers_.data(), buffers_.size(), FI_REMOTE_WRITE, 0,
                            memory_key, 0, &memory_, nullptr),
                "fi_mr_reg");
        for (std::size_t i = 0; i < window_of(arguments.size); ++i)
            receive(i, arguments.size);
        require(arguments.publish ? ::fi_accept(endpoint_, nullptr, 0)
                                  : ::fi_connect(endpoint_, info_->dest_addr, nullptr, 0),
                "connecting");
        wait_event(FI_CONNECTED);
    }

    // The first half of the buffers is for receiving.
    std::byte* buffer(std::size_t index, std::size_t size) { return &buffers_[index * size]; }
    void receive(std::size_t index, std::size_t size) {
        require(::fi_recv(endpoint_, buffer(index, size), size, nullptr, 0, context(index)),
                "fi_recv");
    }
    void send(std::size_t index, std::size_t size) { send(index, size, size); }
    // The first bytes of a buffer.
    void send(std::size_t index, std::size_t size, std::size_t bytes) {
        require(::fi_send(endpoint_, buffer(index, size), bytes, nullptr, 0, context(index)),
                "fi_send");
    }

    // Writes buffer `from` into the peer's buffer `to`, and notifies the peer.
    void write(std::size_t from, std::size_t to, std::size_t size) {
        require(::fi_writedata(endpoint_, buffer(from, size), size, nullptr, to, 0, to * size,
                               memory_key, context(from)),
                "fi_writedata");
    }

    // Calls done(index) for completed operations, and done(peer_wrote) for a write of the peer;
    // waits for at least one.
    template <typename Done>
    void wait(Done done) {
        ::fi_cq_data_entry entries[64];
        const std::uint64_t begin = adaptive_ ? now_ns() : 0;
        for (;;) {
            const auto count = ::fi_cq_read(queue_, entries, 64);
            if (count > 0) {
                for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
                    done(reinterpret_cast<std::size_t>(entries[i].op_context) - 1);
                return;
            }
            if (count != -FI_EAGAIN) fail("the connection broke");
            if (busy_ || (adaptive_ && now_ns() - begin < spin_ns)) continue;
            ::fid* handle = &queue_->fid;
            if (::fi_trywait(fabric_, &handle, 1) != 0) continue;
            epoll_event event{};
            ::epoll_wait(epoll_, &event, 1, -1);
        }
    }

  private:
    static constexpr std::uint64_t memory_key = 1;
    static void* context(std::size_t index) { return reinterpret_cast<void*>(index + 1); }

    void make_endpoint(::fi_info* info) {
        require(::fi_domain(fabric_, info, &domain_, nullptr), "fi_domain");
        ::fi_cq_attr attributes{};
        attributes.size = 1024;
        attributes.format = FI_CQ_FORMAT_DATA;
        attributes.wait_obj = FI_WAIT_FD;
        require(::fi_cq_open(domain_, &attributes, &queue_, nullptr), "fi_cq_open");
        require(::fi_endpoint(domain_, info, &endpoint_, nullptr), "fi_endpoint");
        require(::fi_ep_bind(endpoint_, &event_queue_->fid, 0), "fi_ep_bind");
        require(::fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        require(::fi_enable(endpoint_), "fi_enable");
        epoll_ = ::epoll_create1(0);
        int fd = -1;
        require(::fi_control(&queue_->fid, FI_GETWAIT, &fd), "FI_GETWAIT");
        epoll_event event{};
        event.events = EPOLLIN;
        require(::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
    }

    ::fi_info* wait_event(std::uint32_t expected) {
        for (;;) {
            ::fi_eq_cm_entry entry{};
            std::uint32_t event = 0;
            const auto got = ::fi_eq_sread(event_queue_, &event, &entry, sizeof entry, 10, 0);
            if (got == -FI_EAGAIN) continue;
            if (got < 0 || event != expected) fail("cannot connect");
            return entry.info;
        }
    }

    bool busy_;
    bool adaptive_;
    int epoll_ = -1;
    ::fi_info* info_ = nullptr;
    ::fid_fabric* fabric_ = nullptr;
    ::fid_eq* event_queue_ = nullptr;
    ::fid_domain* domain_ = nullptr;
    ::fid_cq* queue_ = nullptr;
    ::fid_ep* endpoint_ = nullptr;
    ::fid_mr* memory_ = nullptr;
    std::vector<std::byte> buffers_;
};

} // namespace bench
