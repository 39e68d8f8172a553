// SPDX-License-Identifier: Apache-2.0
#pragma once

// The seam: what the rest of the library needs of a network, in terms of connections that carry
// whole messages and remote writes. Two implementations: libfabric (netio/fabric/, opened by
// open_fabric) and the deterministic simulator of the tests.
//
// Rules that every implementation keeps and every user may rely on:
//   - A call never calls back. Handlers run from the event loop only.
//   - Every operation that was accepted (Status::ok) ends in exactly one Completion, unless the
//     connection is destroyed; close() ends those still outstanding as canceled.
//   - on_closed is the last event of a connection. It comes also when the
//     connection could not be established, and after close().
//   - Destroying a connection is immediate and silent, and legal in its own handler: lent memory is
//     free when the destructor returns.
//   - A message arrives whole, in one posted receive; messages arrive in the order of sending.
//   - A message that finds no posted receive, or one that is too small, is a bug of the user of
//     this seam: it may break the connection. Credits prevent it (netio/session/session.hpp).
// All of it belongs to the loop's thread.

#include "netio/access/host.hpp"
#include "netio/base/attempt_limit.hpp"
#include "netio/base/byte_budget.hpp"
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

// Connection data: the bytes that travel with connect, accept and reject. 55 is what RDMA
// connection managers leave to a user; a longer datum is a bug on every provider.
inline constexpr std::size_t connection_data_limit = 55;

// What a connection's provider can do. Code asks these, never the provider's name.
struct Capabilities {
    std::string provider;            // for people and reports only
    std::size_t segment_limit = 1;   // slices per send and per write; a receive is one
    std::size_t inject_bytes = 0;    // sends up to this size need no registration
    std::size_t immediate_bytes = 0; // immediate data a write can carry; 0: none
    std::size_t message_bytes = 0;   // largest message or write
    bool write_consumes_receive =
        false; // a write with immediate takes a posted receive at the peer
    bool connector_speaks_first =
        false; // iWARP: the accepting side must not send before it received
};

struct Completion {
    enum class Kind : std::uint8_t {
        send,
        receive,
        write,
        remote_write, // the peer wrote here, with immediate data
    };
    enum class Outcome : std::uint8_t {
        done,
        canceled, // by close(), or flushed because the connection broke
        failed,   // the provider reports an error; the connection is about to close
    };
    Kind kind = Kind::send;
    Outcome outcome = Outcome::done;
    Cookie cookie{};           // remote_write: that of the receive it consumed, if it consumed one
    std::size_t bytes = 0;     // receive: size of the message
    std::uint32_t immediate{}; // remote_write
    bool consumed_receive = false; // remote_write: cookie is valid and that receive is used up
};

// A place in the peer's memory that the peer advertised.
struct RemoteSlice {
    std::uint64_t address = 0; // Registration::base() + offset
    std::uint64_t key = 0;
};

// How many operations may be outstanding at once; more is a bug of the caller (checked).
struct QueueLimits {
    std::size_t send_count = 64; // sends and writes
    std::size_t receive_count = 64;
    // The peer will write here with immediate data. Some providers do not say which connection
    // such a write came in on, so it must be announced.
    bool remote_writes = false;
    // Of a connection that this side opens: Handler::on_answer() judges the peer's answer.
    bool checks_answer = false;
};

class NETIO_EXPORT Connection {
  public:
    class Handler {
      public:
        // Established, before any message; the peer's connection data (hello or answer).
        virtual void on_connected(std::span<const std::byte> data) = 0;
        // With QueueLimits::checks_answer: the peer accepts, with this data, and nothing of it was
        // given to a provider that parses what peers send. on_connected() follows with the same
        // data, unless the handler closes the connection. A transport without such a provider does
        // not ask: on_connected() alone comes then. May destroy the connection.
        virtual void on_answer(std::span<const std::byte> /*data*/) {}
        // The listener is there and does not want us; on_closed(rejected) follows.
        virtual void on_rejected(std::span<const std::byte> data) = 0;
        virtual void on_completion(const Completion& completion) = 0;
        virtual void on_closed(const Closed& closed) = 0;

      protected:
        ~Handler() = default;
    };

    virtual ~Connection() = default;

    // Starts connecting, or accepts. Receives are posted before it. Once. Nothing happens if the
    // connection broke before; on_closed tells.
    virtual void open(std::span<const std::byte> data) = 0;

    // All slices together are one message; at most capabilities().segment_limit of them. closed
    // before the connection is established (sends, writes) and after it broke; ok otherwise. May
    // throw FabricError when a buffer is used for the first time in this connection's domain and
    // cannot be registered.
    virtual Status post_send(std::span<const Slice> slices, Cookie cookie) = 0;
    virtual Status post_receive(std::span<const Slice> slices, Cookie cookie) = 0;
    // Writes into the peer's memory; with `immediate` the peer gets a remote_write completion
    // (capabilities().immediate_bytes must be at least 4).
    virtual Status post_write(std::span<const Slice> slices, const RemoteSlice& target,
                              std::optional<std::uint32_t> immediate, Cookie cookie) = 0;

    // So many receives may be outstanding from now on, in place of QueueLimits::receive_count.
    // False: it stays as it is; a device's queues are as long as they were made.
    virtual bool reserve_receives(std::size_t /*receive_count*/) { return false; }

    // Ends the connection: outstanding operations are reported canceled, then on_closed(local).
    // Messages whose send has completed still reach the peer. Calling it twice is legal.
    virtual void close() = 0;

    virtual const Capabilities& capabilities() const noexcept = 0;
    virtual MemoryDomain& domain() noexcept = 0;
    // When the peer's host last showed that it lives, as far as the provider knows below our
    // messages: the acknowledgements of a stopped process's kernel count. The first call sees to
    // it that an idle peer shows such a sign about once an interval (on tcp not below a second).
    // min(): unknown.
    virtual TimePoint last_sign_of_life(Duration interval) = 0;
    virtual std::string peer_address() const = 0;
};

// A peer that asks to be connected. Lives during on_request only; one that is neither accepted nor
// rejected when the handler returns is rejected without data.
class NETIO_EXPORT ConnectionRequest {
  public:
    virtual std::span<const std::byte> data() const noexcept = 0;
    // Of one that is not answered yet.
    virtual std::string peer_address() const = 0;
    // The peer's machine, and the address of ours that it connects to, which the listener may not
    // know: it may be bound to any. All zeros: the provider does not say, or it is answered.
    virtual access::Host source() const = 0;
    virtual access::AuthAddress dialled() const = 0;
    // Where the connection's memory will be registered. What is registered before the connection is
    // made can fail while the peer can still be told why. May throw FabricError.
    virtual MemoryDomain& domain() = 0;
    // Of the provider it came in over: Transport::guards_memory.
    virtual bool guards_memory() const noexcept = 0;
    // Makes the endpoint; post receives and call open(answer) to accept. May throw FabricError: no
    // memory, no descriptors, a device that refuses another endpoint.
    virtual std::unique_ptr<Connection> make_connection(const QueueLimits& limits,
                                                        Connection::Handler& handler) = 0;
    virtual void reject(std::span<const std::byte> data) = 0;
    // Rejected, or used up by a connection, also by one that failed in the making: then the peer is
    // rejected without data.
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

    virtual ~Listener() = default;       // stops listening; connections made stay
    virtual Address address() const = 0; // with the port that was really bound
    virtual const std::string& provider() const noexcept = 0;
    // Registers the buffer with each device that connections come in over, as far as this listener
    // can know them, so that posting it for the first time costs nothing and cannot fail. Throws
    // FabricError.
    virtual void prepare(RegisteredBuffer& buffer) = 0;
};

// What a transport has found out about a route, so that it need not ask again.
class NETIO_EXPORT RouteOffer {
  public:
    virtual ~RouteOffer() = default;
};

// One way to a peer: one of the addresses that its name stands for, over one provider.
struct Route {
    std::string provider;
    Address remote;
    std::string local_host;        // empty: any
    access::AuthAddress dialled{}; // `remote` in numbers; all zeros where the transport cannot say
    std::shared_ptr<const RouteOffer> offer = nullptr;
};

// The outcome of a search: what can be tried, best first, and if there is nothing, why.
struct FoundRoutes {
    std::vector<Route> routes;
    std::string problem;
};

// A search that goes on; destroying it ends it, and its handler will not be called.
class NETIO_EXPORT RouteSearch {
  public:
    virtual ~RouteSearch() = default;
};

struct ListenOptions {
    bool open = false;     // other machines may reach the address, and whoever does may connect
    bool has_keys = false; // who has none is kept out
};

class NETIO_EXPORT Transport {
  public:
    virtual ~Transport() = default;
    virtual EventLoop& loop() noexcept = 0;

    // Resolves the name of a host and asks which providers reach its addresses, which may take
    // seconds; the loop goes on meanwhile. `found` is called from the loop, once; it may destroy
    // the search. Here: what providers_to() says, for transports that know it at once. Throws
    // std::system_error: there is no thread or no descriptor for it.
    virtual std::unique_ptr<RouteSearch> find_routes(const Address& remote,
                                                     const std::string& local_host,
                                                     std::function<void(FoundRoutes)> found);
    // An endpoint that will connect over this route when opened. Throws as make_connection().
    virtual std::unique_ptr<Connection> connect_over(const Route& route, const QueueLimits& limits,
                                                     Connection::Handler& handler);

    // A number that no other call has given, here or elsewhere: identities, seeds.
    virtual std::uint64_t draw_number();

    // For the receive buffers of all sessions, beyond what each begins with.
    ByteBudget& window_budget() noexcept { return window_budget_; }
    // For what all sessions copy to send it: what is encrypted, and what is in too many pieces.
    ByteBudget& copy_budget() noexcept { return copy_budget_; }

    // Of the attempts of all sockets to connect, those to one address that have no answer yet.
    AttemptLimit& attempts() noexcept { return attempts_; }

    // A device checks each write of a peer against what was registered. Where the provider does it
    // in software, who knows one key may reach all of the process. Unknown: no.
    virtual bool guards_memory(const std::string& provider) const;

    // The next ones resolve names on the spot.

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
    // Throws FabricError: in use, not a local address; std::invalid_argument: other machines reach
    // it, there are no keys, and nobody has said that it is open.
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

    // What listen() throws for where it would listen.
    static void require_reach(const access::Host& host, const Address& shown,
                              const ListenOptions& options);

  private:
    ByteBudget window_budget_;
    ByteBudget copy_budget_;
    AttemptLimit attempts_;
};

} // namespace netio::inline v0_3
