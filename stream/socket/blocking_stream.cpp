// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/blocking_stream.hpp"

#include "netio/base/option_check.hpp"
#include "stream/socket/blocking_connection.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

namespace netio::stream::inline v0_3 {
namespace {

std::chrono::milliseconds checked(const char* name, std::chrono::milliseconds time) {
    require_option(time.count() >= 0, std::string{name} + " is " + std::to_string(time.count()) +
                                          " ms; it must be 0 (no limit) or more");
    return time;
}

} // namespace

void validate(const BlockingStream::Options& options) {
    validate(options.stream);
    checked("call_timeout", options.call_timeout);
    checked("progress_timeout", options.progress_timeout);
    checked("farewell_timeout", options.farewell_timeout);
}

BlockingStream::BlockingStream(std::unique_ptr<BlockingConnection> connection)
    : connection_{std::move(connection)} {}
BlockingStream::~BlockingStream() = default;
BlockingStream::BlockingStream(BlockingStream&&) noexcept = default;
BlockingStream& BlockingStream::operator=(BlockingStream&&) noexcept = default;

BlockingConnection& BlockingStream::connection() const {
    if (!connection_) throw std::logic_error{"this BlockingStream was moved from"};
    return *connection_;
}

BlockingStream BlockingStream::connect(std::string_view address, const Options& options) {
    validate(options);
    return BlockingStream{std::make_unique<BlockingConnection>(
        std::make_shared<BlockingEngine>(options.provider), address, options)};
}

BlockingStream BlockingStream::connect(std::string_view address) {
    const Options options; // not a temporary, of which GCC 12 warns that it may be uninitialized
    return connect(address, options);
}

std::size_t BlockingStream::read(std::span<std::byte> memory) {
    return connection().read(memory);
}

void BlockingStream::read_exactly(std::span<std::byte> memory) {
    connection().read_exactly(memory);
}

void BlockingStream::write(std::span<const std::byte> memory) {
    connection().write(memory);
}

bool BlockingStream::has_capacity() const noexcept {
    return connection_ && connection_->has_capacity();
}

BlockingStream::Ready BlockingStream::wait_for(int descriptor) {
    return connection().wait_for(descriptor);
}

void BlockingStream::shutdown_send() {
    connection().shutdown_send();
}

void BlockingStream::close() {
    connection().close();
}

void BlockingStream::set_call_timeout(std::chrono::milliseconds timeout) {
    connection().limits.call = checked("call_timeout", timeout);
}

void BlockingStream::set_progress_timeout(std::chrono::milliseconds timeout) {
    connection().limits.progress = checked("progress_timeout", timeout);
}

std::string BlockingStream::peer_address() const {
    return connection().peer_address();
}

StreamSocket::Counters BlockingStream::counters() const {
    return connection().counters();
}

// --- the listener ---------------------------------------------------------------------------

class BlockingListener::Acceptor final : private StreamListener::Handler {
  public:
    Acceptor(std::string_view address, const BlockingStream::Options& options)
        : options_{(validate(options), options)}, engine_{std::make_shared<BlockingEngine>(
                                                      options.provider)} {
        loop().observer = options.observer;
        std::shared_ptr<ServerKeys> keys;
        if (options.keys) keys = std::make_shared<ServerKeys>(loop(), *options.keys);
        listener_ = std::make_unique<StreamListener>(
            engine_->transport(),
            StreamListener::Options{.listen = {parse_address(address)},
                                    .allow_remote_anonymous = options.allow_remote_anonymous,
                                    .keys = std::move(keys)},
            static_cast<StreamListener::Handler&>(*this));
        endpoints_ = listener_->endpoints();
    }

    std::unique_ptr<BlockingConnection> accept() {
        BlockingCall call{*engine_,
                          {.call = options_.call_timeout, .progress = options_.progress_timeout},
                          [] { return std::uint64_t{0}; }};
        const bool in_time = call.run_until([this] {
            std::erase_if(waiting_, [](const auto& peer) { return peer->has_failed(); });
            return !listener_ || first_connected() != waiting_.end() || accept_failed_;
        });
        if (!in_time) {
            throw StreamError{StreamError::Kind::timed_out,
                              call.verdict() +
                                  "; no peer has connected, and accept() can be called again"};
        }
        if (!listener_) {
            throw StreamError{StreamError::Kind::closed, "accept(): the listener was stopped"};
        }
        const auto found = first_connected();
        if (found == waiting_.end()) throw *std::exchange(accept_failed_, std::nullopt);
        auto connection = std::move(*found);
        waiting_.erase(found);
        return connection;
    }
    void stop() {
        engine_->interrupt([this] {
            listener_.reset();
            waiting_.clear();
        });
    }
    const std::vector<Endpoint>& endpoints() const noexcept { return endpoints_; }
    EventLoop& loop() noexcept { return engine_->loop(); }

  private:
    static constexpr std::size_t waiting_limit = 64; // connected, but not accepted yet

    std::deque<std::unique_ptr<BlockingConnection>>::iterator first_connected() {
        return std::ranges::find_if(waiting_,
                                    [](const auto& peer) { return peer->is_connected(); });
    }
    void on_incoming(IncomingStream& incoming) override {
        if (waiting_.size() >= waiting_limit) return; // rejected
        waiting_.push_back(std::make_unique<BlockingConnection>(engine_, incoming, options_));
    }
    void on_accept_failed(const std::string& peer_address, const FabricError& why) override {
        accept_failed_.emplace(why.code(), "cannot accept " + peer_address + ": " + why.what());
    }

    BlockingStream::Options options_;
    std::shared_ptr<BlockingEngine> engine_;
    std::deque<std::unique_ptr<BlockingConnection>> waiting_;
    std::optional<FabricError> accept_failed_; // the last failure, until a call has reported it
    std::unique_ptr<StreamListener> listener_; // null: stopped
    std::vector<Endpoint> endpoints_;
};

BlockingListener::BlockingListener(std::string_view address, const BlockingStream::Options& options)
    : acceptor_{std::make_unique<Acceptor>(address, options)} {}
BlockingListener::~BlockingListener() = default;

BlockingStream BlockingListener::accept() {
    return BlockingStream{acceptor_->accept()};
}

void BlockingListener::stop() {
    acceptor_->stop();
}

Address BlockingListener::address() const {
    return acceptor_->endpoints().front().address;
}

std::vector<Endpoint> BlockingListener::endpoints() const {
    return acceptor_->endpoints();
}

EventLoop& BlockingListener::loop() noexcept {
    return acceptor_->loop();
}

} // namespace netio::stream::inline v0_3
