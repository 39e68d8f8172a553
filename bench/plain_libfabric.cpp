// SPDX-License-Identifier: Apache-2.0

// The provider without us: a bare fi_send/fi_recv loop on connected (MSG) endpoints of `tcp`. What
// it does not reach, this framework cannot reach either; the rest is ours.

#include "bench/subject.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

namespace {

using bench::Arguments;

constexpr std::uint32_t api_version = FI_VERSION(1, 17);
constexpr std::uint64_t spin_ns = 50'000; // adaptive

void require(long result, const char* step) {
    if (result < 0)
        bench::fail(std::string{step} + ": " + ::fi_strerror(static_cast<int>(-result)));
}

// As many messages as may be under way, each with its buffer.
std::size_t window_of(std::size_t size) {
    return std::clamp<std::size_t>((std::size_t{4} << 20) / size, 4, 64);
}

class Endpoint {
  public:
    explicit Endpoint(const Arguments& arguments)
        : busy_{arguments.mode == "busy"}, adaptive_{arguments.mode == "adaptive"} {
        ::fi_info* const hints = ::fi_allocinfo();
        hints->ep_attr->type = FI_EP_MSG;
        hints->caps = FI_MSG;
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
            bench::say("listening");
            ::fi_info* const request = wait_event(FI_CONNREQ);
            make_endpoint(request);
        } else {
            make_endpoint(info_);
        }
        buffers_.resize(2 * window_of(arguments.size) * arguments.size);
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
    void send(std::size_t index, std::size_t size) {
        require(::fi_send(endpoint_, buffer(index, size), size, nullptr, 0, context(index)),
                "fi_send");
    }

    // Calls done(index) for what is complete; waits until there is something.
    template <typename Done>
    void wait(Done done) {
        ::fi_cq_data_entry entries[64];
        const std::uint64_t begin = adaptive_ ? bench::now_ns() : 0;
        for (;;) {
            const auto count = ::fi_cq_read(queue_, entries, 64);
            if (count > 0) {
                for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
                    done(reinterpret_cast<std::size_t>(entries[i].op_context) - 1);
                return;
            }
            if (count != -FI_EAGAIN) bench::fail("the connection broke");
            if (busy_ || (adaptive_ && bench::now_ns() - begin < spin_ns)) continue;
            ::fid* handle = &queue_->fid;
            if (::fi_trywait(fabric_, &handle, 1) != 0) continue;
            epoll_event event{};
            ::epoll_wait(epoll_, &event, 1, -1);
        }
    }

  private:
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
            if (got < 0 || event != expected) bench::fail("cannot connect");
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
    std::vector<std::byte> buffers_;
};

void publish(const Arguments& arguments) {
    Endpoint endpoint{arguments};
    bench::Source source{arguments};
    const std::size_t window = window_of(arguments.size);
    std::vector<std::size_t> free;
    for (std::size_t i = 2 * window; i > window; --i)
        free.push_back(i - 1);
    const auto give_back = [&](std::size_t index) {
        if (index < window) bench::fail("nothing was to come");
        free.push_back(index);
    };
    bench::run_source(
        source,
        [&] {
            while (free.empty())
                endpoint.wait(give_back);
            const std::size_t index = free.back();
            free.pop_back();
            source.prepare(endpoint.buffer(index, arguments.size));
            endpoint.send(index, arguments.size);
        },
        [] {});
    while (free.size() < window)
        endpoint.wait(give_back);
    source.report();
    // The end of this process would end the connection: wait for the subscriber's word.
    for (bool answered = false; !answered;)
        endpoint.wait([&](std::size_t) { answered = true; });
}

void subscribe(const Arguments& arguments) {
    Endpoint endpoint{arguments};
    bench::Sink sink{arguments};
    for (bool last = false; !last;) {
        endpoint.wait([&](std::size_t index) {
            last = sink.take(endpoint.buffer(index, arguments.size), arguments.size) || last;
            if (!last) endpoint.receive(index, arguments.size);
        });
    }
    sink.report();
    const std::size_t answer = window_of(arguments.size);
    endpoint.send(answer, arguments.size);
    for (bool sent = false; !sent;)
        endpoint.wait([&](std::size_t index) { sent = index == answer; });
}

// --- round trips ------------------------------------------------------------------------------

// One message at a time: sends `out`, or waits for `in` and posts it again.
void send_and_wait(Endpoint& endpoint, std::size_t window, std::size_t size, bool& arrived,
                   std::size_t& in) {
    endpoint.send(window, size);
    for (bool sent = false; !sent;) {
        endpoint.wait([&](std::size_t index) {
            if (index >= window) {
                sent = true;
            } else {
                in = index;
                arrived = true;
            }
        });
    }
}

void echo(const Arguments& arguments) {
    Endpoint endpoint{arguments};
    bench::RoundTrips trips{arguments};
    const std::size_t size = arguments.size;
    const std::size_t window = window_of(size);
    std::byte* const out = endpoint.buffer(window, size);
    bool arrived = false;
    std::size_t in = 0;
    for (bool last = false; !last;) {
        if (arguments.publish) {
            trips.prepare(out);
            send_and_wait(endpoint, window, size, arrived, in);
        }
        while (!arrived) {
            endpoint.wait([&](std::size_t index) {
                in = index;
                arrived = true;
            });
        }
        arrived = false;
        std::byte* const message = endpoint.buffer(in, size);
        last = arguments.publish ? trips.take(message) : bench::is_last(message);
        if (!arguments.publish) std::memcpy(out, message, size);
        endpoint.receive(in, size);
        if (!arguments.publish) send_and_wait(endpoint, window, size, arrived, in);
    }
    if (arguments.publish) trips.report();
}

} // namespace

int main(int argc, char** argv) {
    const Arguments arguments = bench::parse(argc, argv);
    if (arguments.pattern == "echo") {
        echo(arguments);
    } else {
        (arguments.publish ? publish : subscribe)(arguments);
    }
}
