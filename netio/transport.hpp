// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface between the library and a network: connections that carry whole messages and remote
// writes. There are two implementations: libfabric (netio/fabric/, opened by open_fabric) and the
// deterministic simulator of the tests.
//
// Rules that every implementation keeps and every user may rely on:
// - A call never calls back. Handlers run from the event loop only.
// - Every operation that was accepted (Status::ok) ends in exactly one Completion, unless the
//   connection is destroyed; close() ends outstanding operations as canceled.
// - on_closed is the last event of a connection. It comes also when the connection could not be
//   established, and after close().
// - Destroying a connection takes effect at once, without further events, and is allowed in its own
//   handler: the memory of its operations is free when the destructor returns.
// - A message arrives whole, in one posted receive; messages arrive in the order of sending.
// - A message that finds no posted receive, or one that is too small, is a bug of the caller of
//   this interface: it may break the connection. Credits prevent it (netio/session/session.hpp).
//
// Everything belongs to the loop's thread.

#include "netio/access/host.hpp"
#include "netio/base/attempt_limit.hpp"
#include "netio/base/byte_budget.hpp"
#include "netio/base/check.hpp"
#include "netio/base/cookie.hpp"
#include "netio/base/export.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/memory/buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::inline v0_3 {

// Connection data: the bytes that are sent with connect, accept and reject. RDMA connection
// managers leave 55 bytes to a user; more is a bug with every provider.
inline constexpr std::size_t connection_data_limit = 55;

// What a connection's provider can do. Code checks these values, never the provider's name.
struct Capabilities {
    std::string provider;            // for display and reports only
    std::size_t segment_limit = 1;   // slices per send and per write; a receive has one
    std::size_t inject_bytes = 0;    // sends up to this size need no registration
    std::size_t immediate_bytes = 0; // immediate data that a write can carry; 0: none
    std::size_t message_bytes = 0;   // largest message or write
    bool write_consumes_receive =
        false; // a write with immediate data uses up a posted receive of the peer
    bool connector_speaks_first =
        false; // iWARP: the accepting side must not send before it received
};

struct Completion {
    enum class Kind : std::uint8_t {
        send,
        receive,
        write,
        remote_write, // the peer wrote into memory here, with immediate data
    };
    enum class Outcome : std::uint8_t {
        done,
        canceled, // by close(), or flushed because the connection broke
        failed,   // the provider reports an error; the connection is about to close
    };
    Kind kind = Kind::send;
    Outcome outcome = Outcome::done;
    Cookie cookie{};               // remote_write: that of the receive it used up, if any
    std::size_t bytes = 0;         // receive: size of the message
    std::uint32_t immediate{};     // remote_write
    bool consumed_receive = false; // remote_write: cookie is valid, and that receive is used up
};

// A range of the peer's memory that the peer has advertised.
struct RemoteSlice {
    std::uint64_t address = 0; // Registration::base() + offset
    std::uint64_t key = 0;
};

// Limits of outstanding operations; exceeding them is a bug of the caller (checked).
struct QueueLimits {
    std::size_t send_count = 64; // sends and writes
    std::size_t receive_count = 64;
    // The peer will write here with immediate data. Some providers do not report over which
    // connection such a write came in, so it must be announced.
    bool remote_writes = false;
    // For a connection that this side opens: Handler::on_answer() checks the peer's answer.
    bool checks_answer = false;
};

class NETIO_EXPORT Connection {
  public:
    class Handler {
      public:
        // Established, before any message; `data` is the peer's connection data (hello or answer).
        virtual void on_connected(std::span<const std::byte> data) = 0;
        // With QueueLimits::checks_answer: the peer accepts, with this data, and no bytes of the
        // peer were given to a provider that parses them. on_connected() follows with the same
        // data, unless the handler closes the connection. A transport without such a provider calls
        // only on_connected(). May destroy the connection.
        virtual void on_answer(std::span<const std::byte> /*data*/) {}
        // The listener rejected the connection, with this data; on_closed(rejected) follows.
        virtual void on_rejected(std::span<const std::byte> data) = 0;
        virtual void on_completion(const Completion& completion) = 0;
        virtual void on_closed(const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    virtual ~Connection() = default;

    // Starts connecting, or accepts. Called once, after the receives are posted. Does nothing if
    // the connection broke before; on_closed reports that.
    virtual void open(std::span<const std::byte> data) = 0;

    // All slices together are one message; at most capabilities().segment_limit slices. Returns
    // closed before the connection is established (sends, writes) and after it broke, otherwise ok.
    // May throw FabricError when a buffer is used for the first time in this connection's domain
    // and cannot be registered.
    virtual Status post_send(std::span<const Slice> slices, Cookie cookie) = 0;
    virtual Status post_receive(std::span<const Slice> slices, Cookie cookie) = 0;
    // Writes into the peer's memory; with `immediate` the peer gets a remote_write completion
    // (capabilities().immediate_bytes must be at least 4).
    virtual Status post_write(std::span<const Slice> slices, const RemoteSlice& target,
                              std::optional<std::uint32_t> immediate, Cookie cookie) = 0;

    // Allows this many outstanding receives from now on, instead of QueueLimits::receive_count.
    // Returns false, without an effect, if that is not possible: the queues of a device have the
    // length with which they were created.
    virtual bool reserve_receives(std::size_t /*receive_count*/) { return false; }

    // Ends the connection: outstanding operations are reported canceled, then on_closed(local).
    // Messages whose send has completed still reach the peer. Calling it twice is legal.
    virtual void close() = 0;

    virtual const Capabilities& capabilities() const noexcept = 0;
    virtual MemoryDomain& domain() noexcept = 0;
    // When the peer's host last showed that it is alive, as far as the provider can see below our
    // messages: acknowledgements of the kernel count even if the peer's process is stopped. The
    // first call makes an idle peer show such a sign about once per interval (on tcp, not more
    // often than once per second). min(): unknown.
    virtual TimePoint last_sign_of_life(Duration interval) = 0;
    virtual std::string peer_address() const = 0;
};

// A peer that requests a connection. Valid during on_request only; a request that is neither
// accepted nor rejected when the handler returns is rejected without data.
class NETIO_EXPORT ConnectionRequest {
  public:
    virtual std::span<const std::byte> data() const noexcept = 0;
    // Valid until the request is answered.
    virtual std::string peer_address() const = 0;
    // The peer's machine, and the local address that the peer connects to (a listener may be bound
    // to all addresses). All zeros if the provider does not report it, or after the request is
    // answered.
    virtual access::Host source() const = 0;
    virtual access::AuthAddress dialled() const = 0;
    // The domain where the connection's memory will be registered. If memory is registered before
    // the connection is made, the peer can still be notified of the reason of a failure. May throw
    // FabricError.
    virtual MemoryDomain& domain() = 0;
    // Transport::guards_memory of the provider over which the request came in.
    virtual bool guards_memory() const noexcept = 0;
    // Creates the endpoint; post receives and call open(answer) to accept. May throw FabricError:
    // no memory, no descriptors, or the device refuses another endpoint.
    virtual std::unique_ptr<Connection> make_connection(const QueueLimits& limits,
                                                        Connection::Handler& handler) = 0;
    virtual void reject(std::span<const std::byte> data) = 0;
    // Whether the request was rejected, or used to make a connection. If making the connection
    // failed, the peer is rejected without data.
    virtual bool is_answered() const noexcept = 0;

  protected:
    ~ConnectionRequest() = default;
};

class NETIO_EXPORT Listener {
  public:
    class Handler {
      public:
        virtual void on_request(ConnectionRequest& request) = 0;

      protected:
        ~Handler() = default;
    };

    virtual ~Listener() = default;       // stops listening; existing connections remain
    virtual Address address() const = 0; // with the port that was actually bound
    virtual const std::string& provider() const noexcept = 0;
    // Registers the buffer with each device over which connections may come in, as far as this
    // listener knows them, so that the first post costs no registration and cannot fail. Throws
    // FabricError.
    virtual void prepare(RegisteredBuffer& buffer) = 0;
};

// What a transport has found out about a route, so that it need not be looked up again.
class NETIO_EXPORT RouteOffer {
  public:
    virtual ~RouteOffer() = default;
};

// One route to a peer: one of the addresses of its name, over one provider.
struct Route {
    std::string provider;
    Address remote;
    std::string local_host;        // empty: any
    access::AuthAddress dialled{}; // `remote` in numbers; all zeros if the transport cannot know it
    std::shared_ptr<const RouteOffer> offer = nullptr;
};

// The result of a search: the routes, best first, or the reason why there is none.
struct FoundRoutes {
    std::vector<Route> routes;
    std::string problem;
};

// A search in progress. Destroying it ends it; its handler will not be called.
class NETIO_EXPORT RouteSearch {
  public:
    virtual ~RouteSearch() = default;
};

struct ListenOptions {
    bool allow_remote_anonymous = false; // peers of other machines may connect without keys
    bool has_keys = false;               // peers without a key are rejected
};

class NETIO_EXPORT Transport {
  public:
    virtual ~Transport() = default;
    virtual EventLoop& loop() noexcept = 0;

    // Resolves the name of a host and asks which providers reach its addresses. This may take
    // seconds, during which the loop continues. `found` is called once, from the loop; it may
    // destroy the search. The implementation here returns what providers_to() returns, for
    // transports that know it at once. Throws std::system_error if there is no thread or no
    // descriptor for it.
    virtual std::unique_ptr<RouteSearch> find_routes(const Address& remote,
                                                     const std::string& local_host,
                                                     std::function<void(FoundRoutes)> found);
    // An endpoint that will connect over this route when opened. Throws what make_connection()
    // throws.
    virtual std::unique_ptr<Connection> connect_over(const Route& route, const QueueLimits& limits,
                                                     Connection::Handler& handler);

    // A number that no other call returns, here or on other machines: for identities and seeds.
    virtual std::uint64_t draw_number();

    // The budget for the receive buffers of all sessions, beyond those with which each begins.
    ByteBudget& window_budget() noexcept { return window_budget_; }
    // The budget for frames that are copied for sending: encrypted ones, and those of too many
    // pieces.
    ByteBudget& copy_budget() noexcept { return copy_budget_; }

    // The attempts to connect of all sockets that are unanswered, by address.
    AttemptLimit& attempts() noexcept { return attempts_; }

    // Counts the users of a transport: each part of a socket that uses it has one, which must be
    // destroyed before the transport (checked).
    class Use {
      public:
        explicit Use(Transport& transport) noexcept : transport_{transport} {
            ++transport_.use_count_;
        }
        ~Use() { --transport_.use_count_; }
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;

      private:
        Transport& transport_;
    };

    // Whether a device checks each write of a peer against the registered memory. If the provider
    // does it in software, a peer that knows one key may reach all memory of the process. Unknown:
    // false.
    virtual bool guards_memory(const std::string& provider) const;

    // The next functions resolve names during the call.

    // The providers that can reach (or serve) an address, best first. Throws FabricError with the
    // address and the reason if there is none.
    virtual std::vector<std::string> providers_to(const Address& remote) = 0;
    virtual std::vector<std::string> providers_at(const Address& local) = 0;

    // An endpoint that will connect to `remote` when opened. `local_host` may be empty (any).
    virtual std::unique_ptr<Connection> make_connection(const std::string& provider,
                                                        const Address& remote,
                                                        const std::string& local_host,
                                                        const QueueLimits& limits,
                                                        Connection::Handler& handler) = 0;
    // Throws FabricError if the address is in use or not local. Throws std::invalid_argument if
    // other machines can reach it, there are no keys, and ListenOptions::allow_remote_anonymous is
    // false.
    virtual std::unique_ptr<Listener> listen(const std::string& provider, const Address& local,
                                             const ListenOptions& options,
                                             Listener::Handler& handler) = 0;

  protected:
    static constexpr std::size_t usual_limit = std::size_t{256} * 1024 * 1024;
    static constexpr std::size_t usual_attempts = 64;
    explicit Transport(std::size_t windows_limit = usual_limit,
                       std::size_t copies_limit = usual_limit,
                       std::size_t attempts_per_address_limit = usual_attempts)
        : window_budget_{windows_limit},
          copy_budget_{copies_limit}, attempts_{attempts_per_address_limit} {}

    // Throws what listen() throws for this host.
    static void require_reach(const access::Host& host, const Address& shown,
                              const ListenOptions& options);
    // For the destructors of implementations.
    void require_unused() const noexcept {
        if (use_count_ > 0)
            detail::misused("the transport is destroyed while a socket uses it; destroy its "
                            "sockets first: declare the transport before them");
    }

  private:
    std::size_t use_count_ = 0;
    ByteBudget window_budget_;
    ByteBudget copy_budget_;
    AttemptLimit attempts_;
};

} // namespace netio::inline v0_3
