// SPDX-License-Identifier: Apache-2.0
#pragma once

// A hostile peer that completes the handshake with a socket of this library and then sends what the
// input says: in the simulator, in virtual time. Nothing that it does may end the program
// (NETIO_CHECK), access memory that is not its own, or make the socket break the rules of the
// transport interface.
//
//     Scene scene;
//     Stranger stranger{scene, Service::stream};
//     ... a socket that listens; stranger.connect(its address, input)
//     while (!input.empty()) stranger.act(input);

#include "netio/base/frame.hpp"
#include "netio/session/handshake.hpp"
#include "netio/transport.hpp"
#include "tests/fuzz/key_holder.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/support/key_files.hpp"
#include "tests/support/sim_transport.hpp"
#include "tests/support/sim_world.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace netio::fuzz {

// The environment of the socket and the peer. The destructor checks that the socket kept the rules.
class Scene {
  public:
    Scene()
        : loop_{EventLoop::Options{}, world_}, transport_{loop_, world_, test::verbs_profile(), 1} {
    }
    ~Scene();
    Scene(const Scene&) = delete;
    Scene& operator=(const Scene&) = delete;

    EventLoop& loop() noexcept { return loop_; }
    Transport& transport() noexcept { return transport_; }
    static Address address() { return {.host = "127.0.0.1", .port = 0}; }
    // Runs the loop for this virtual time, or for a limited number of turns.
    void run(Duration time);

  private:
    test::SimWorld world_;
    EventLoop loop_;
    test::SimTransport transport_;
};

// A site whose key 7 may be used by the peer. Created once.
test::KeyFiles& site();

class Stranger final : private Connection::Handler, private Listener::Handler {
  public:
    Stranger(Scene& scene, Service service);
    ~Stranger();

    // Before connect() or listen(): the peer has this key and requests this protection.
    void hold(const access::Key& key, access::Protection level, std::uint64_t key_bytes);
    // The key of the site, with a length of keys and a level from the input. Returns the level.
    access::Protection hold_key_of_site(Input& input);
    // Call one of these two. Most inputs get a valid hello.
    void connect(const Address& address, Input& input);
    Address listen(Input& input);

    // Sends one frame or does one other thing. Frames that keep to the rules of a session are more
    // frequent than by chance, because otherwise no input would get past the rules.
    void act(Input& input);

  private:
    static constexpr std::size_t receive_bytes = 2048;
    static constexpr std::size_t count = 16;
    struct Held {
        access::Key key;
        access::Protection level = access::Protection::none;
        std::uint64_t key_bytes = 0;
    };

    std::vector<std::byte> hello(Input& input, bool connects);
    void dial(const Address& address, std::span<const std::byte> data);
    // The answer to a request that proves the key. Empty if the request was rejected.
    std::vector<std::byte> admit(ConnectionRequest& request);
    void prove_key(const Address& address, const std::vector<std::byte>& hello, Input& input);
    void open(std::unique_ptr<Connection> connection, std::span<const std::byte> data);
    bool may_post() const;
    void frame(Input& input);
    void ring();
    void write(Input& input);
    void bytes(Input& input);
    void send(std::span<const std::byte> message);
    void send_frame(FrameKind kind, std::span<const std::byte> body = {});
    void send_frame(const FrameHeader& header, std::span<const std::byte> body);

    void on_connected(std::span<const std::byte> data) override;
    void on_rejected(std::span<const std::byte> data) override;
    void on_completion(const Completion& completion) override;
    void on_closed(const Closed& closed) override;
    void on_request(ConnectionRequest& request) override;

    Scene& scene_;
    Service service_;
    RegisteredBuffer receive_memory_{count * receive_bytes};
    RegisteredBuffer send_memory_{count * receive_bytes};
    RegisteredBuffer lent_memory_{4096, Access::remote_write};
    std::vector<std::byte> hello_;
    std::vector<std::size_t> free_places_; // of send_memory_
    std::uint32_t sequence_ = 0;
    std::uint16_t owed_credits_ = 0;
    bool lends_memory_ = false;
    RemoteSlice target_{}; // the last memory that the socket has offered
    bool connected_ = false;
    bool heard_ = false; // the accepting side does not send first
    bool closed_ = false;
    std::optional<Held> held_;
    std::optional<access::AuthServer> gate_; // when listening
    std::optional<KeyHolder> key_;
    std::unique_ptr<Listener> listener_;
    std::unique_ptr<Connection> connection_; // last member: destroyed first
};

} // namespace netio::fuzz
