// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of UCX that the subject `ucx` uses: a worker that waits, listeners and endpoints over
// tcp, and a ring of receives. One thread; every failure ends the program.

#include "bench/subject.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <ucp/api/ucp.h>
#include <utility>

namespace bench {

inline void require_ucx(::ucs_status_t status, const char* step) {
    if (status != UCS_OK) fail(std::string{step} + ": " + ::ucs_status_string(status));
}

// Owns the worker and the context. A request is the result of the calls: null if it is already
// complete.
class UcxWorker {
  public:
    explicit UcxWorker(bool busy) : busy_{busy} {
        ::setenv("UCX_TCP_CM_REUSEADDR", "y", 1); // as the other subjects do
        ::ucp_config_t* config = nullptr;
        require_ucx(::ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
        require_ucx(::ucp_config_modify(config, "TLS", "tcp"), "ucp_config_modify");
        ::ucp_params_t context{};
        context.field_mask = UCP_PARAM_FIELD_FEATURES;
        context.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
        require_ucx(::ucp_init(&context, config, &context_), "ucp_init");
        ::ucp_config_release(config);
        ::ucp_worker_params_t worker{};
        worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        worker.thread_mode = UCS_THREAD_MODE_SINGLE;
        require_ucx(::ucp_worker_create(context_, &worker, &worker_), "ucp_worker_create");
        require_ucx(::ucp_worker_get_efd(worker_, &descriptor_), "ucp_worker_get_efd");
    }
    ~UcxWorker() {
        ::ucp_worker_destroy(worker_);
        ::ucp_cleanup(context_);
    }
    UcxWorker(const UcxWorker&) = delete;
    UcxWorker& operator=(const UcxWorker&) = delete;

    ::ucp_worker_h handle() const noexcept { return worker_; }

    // Does all pending work; sleeps if there is none and sleeping is allowed.
    void progress() {
        if (::ucp_worker_progress(worker_) != 0 || busy_) return;
        const ::ucs_status_t armed = ::ucp_worker_arm(worker_);
        if (armed == UCS_ERR_BUSY) return;
        require_ucx(armed, "ucp_worker_arm");
        pollfd waited{descriptor_, POLLIN, 0};
        ::poll(&waited, 1, -1);
    }
    // Waits until the request is done; it is null then.
    void wait(void*& request) {
        require_ucx(wait_for_end(std::exchange(request, nullptr)), "a request");
    }
    void wait_for(void* request) { wait(request); }
    // Waits until the request is done, and returns its status.
    ::ucs_status_t wait_for_end(void* request) {
        if (request == nullptr || UCS_PTR_IS_ERR(request)) return UCS_PTR_STATUS(request);
        ::ucs_status_t status = UCS_INPROGRESS;
        while ((status = ::ucp_request_check_status(request)) == UCS_INPROGRESS)
            progress();
        ::ucp_request_free(request);
        return status;
    }
    void cancel(void* request) {
        if (request == nullptr) return;
        ::ucp_request_cancel(worker_, request);
        wait_for_end(request);
    }

    void* receive(std::span<std::byte> out, ::ucp_tag_t tag) {
        ::ucp_request_param_t parameters{};
        return ::ucp_tag_recv_nbx(worker_, out.data(), out.size(), tag, ~::ucp_tag_t{0},
                                  &parameters);
    }

  private:
    bool busy_;
    ::ucp_context_h context_ = nullptr;
    ::ucp_worker_h worker_ = nullptr;
    int descriptor_ = -1;
};

inline sockaddr_in ucx_address(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

// Keeps connection requests until endpoints are made of them.
class UcxListener {
  public:
    UcxListener(UcxWorker& worker, std::uint16_t port) {
        const sockaddr_in address = ucx_address(port);
        ::ucp_listener_params_t parameters{};
        parameters.field_mask =
            UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
        parameters.sockaddr = {reinterpret_cast<const sockaddr*>(&address), sizeof address};
        parameters.conn_handler.cb = [](::ucp_conn_request_h request, void* self) {
            static_cast<UcxListener*>(self)->requests_.push_back(request);
        };
        parameters.conn_handler.arg = this;
        require_ucx(::ucp_listener_create(worker.handle(), &parameters, &listener_),
                    "ucp_listener_create");
    }
    ~UcxListener() { ::ucp_listener_destroy(listener_); }
    UcxListener(const UcxListener&) = delete;
    UcxListener& operator=(const UcxListener&) = delete;

    const std::vector<::ucp_conn_request_h>& requests() const noexcept { return requests_; }

  private:
    ::ucp_listener_h listener_ = nullptr;
    std::vector<::ucp_conn_request_h> requests_;
};

class UcxEndpoint {
  public:
    UcxEndpoint(UcxWorker& worker, std::uint16_t port) : worker_{worker} {
        const sockaddr_in address = ucx_address(port);
        ::ucp_ep_params_t parameters{};
        parameters.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
        parameters.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
        parameters.sockaddr = {reinterpret_cast<const sockaddr*>(&address), sizeof address};
        create(parameters);
    }
    UcxEndpoint(UcxWorker& worker, ::ucp_conn_request_h request) : worker_{worker} {
        ::ucp_ep_params_t parameters{};
        parameters.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        parameters.conn_request = request;
        create(parameters);
    }

    void* send(std::span<const std::byte> bytes, ::ucp_tag_t tag) {
        ::ucp_request_param_t parameters{};
        return ::ucp_tag_send_nbx(endpoint_, bytes.data(), bytes.size(), tag, &parameters);
    }
    // Waits until the peer has received everything, or has disconnected.
    void flush() {
        ::ucp_request_param_t parameters{};
        worker_.wait_for_end(::ucp_ep_flush_nbx(endpoint_, &parameters));
    }

  private:
    void create(const ::ucp_ep_params_t& parameters) {
        require_ucx(::ucp_ep_create(worker_.handle(), &parameters, &endpoint_), "ucp_ep_create");
    }

    UcxWorker& worker_;
    ::ucp_ep_h endpoint_ = nullptr; // closed with its worker
};

// Posted receives, which are filled in the order of posting.
class UcxReceives {
  public:
    UcxReceives(UcxWorker& worker, std::size_t size, std::size_t count, ::ucp_tag_t tag)
        : worker_{worker}, size_{size}, tag_{tag}, memory_(count * size), requests_(count) {
        for (void*& request : requests_) {
            request = worker_.receive(slot(next_), tag_);
            next_ = (next_ + 1) % requests_.size();
        }
    }
    ~UcxReceives() {
        for (void* const request : requests_)
            worker_.cancel(request);
    }
    UcxReceives(const UcxReceives&) = delete;
    UcxReceives& operator=(const UcxReceives&) = delete;

    // Returns the next message; its memory is valid until post().
    std::byte* wait() {
        worker_.wait(requests_[next_]);
        return slot(next_).data();
    }
    void post() {
        requests_[next_] = worker_.receive(slot(next_), tag_);
        next_ = (next_ + 1) % requests_.size();
    }

  private:
    std::span<std::byte> slot(std::size_t at) { return {memory_.data() + at * size_, size_}; }

    UcxWorker& worker_;
    std::size_t size_;
    ::ucp_tag_t tag_;
    std::vector<std::byte> memory_;
    std::vector<void*> requests_;
    std::size_t next_ = 0;
};

} // namespace bench
