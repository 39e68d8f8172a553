// SPDX-License-Identifier: Apache-2.0

// This framework's byte stream, with its public interface and its default options: as many
// outstanding sends and receives as plain-write has buffers, each of one message, without a copy by
// the user. --form writes: uses remote writes also over kernel sockets, instead of frames. --form
// ring: remote writes into the ring only. --offset: of the memory of this side, to see what
// alignment costs; with an odd size the places in the ring are odd, too.

#include "bench/subject.hpp"
#include "netio/fabric.hpp"
#include "stream/socket/stream_listener.hpp"

#include <memory>
#include <optional>

namespace {

using bench::Arguments;
using netio::Cookie;
using netio::Status;
using netio::stream::Received;
using netio::stream::StreamSocket;

StreamSocket::Options options_of(const Arguments& arguments) {
    StreamSocket::Options options;
    if (arguments.form == "writes" || arguments.form == "ring")
        options.remote_writes = netio::stream::RemoteWrites::trusted;
    if (arguments.form == "ring") {
        options.sender.mode = options.receiver.mode = netio::stream::TransferMode::indirect_only;
    }
    return options;
}

// Base of both sides; events of the other side must not happen.
class End : protected StreamSocket::Handler {
  public:
    End(const Arguments& arguments, netio::EventLoop& loop, netio::Access access)
        : loop_{loop}, size_{arguments.size}, count_{bench::window_of(arguments.size)},
          offset_{arguments.offset}, memory_{offset_ + size_ * count_, access} {}

  protected:
    ~End() = default;

    netio::Slice piece(std::size_t index) { return memory_.slice(offset_ + index * size_, size_); }
    std::size_t count() const { return count_; }
    void stop() { loop_.stop(); }

    void on_connected(StreamSocket&) override {}
    void on_send_completed(StreamSocket&, Cookie, netio::Completion::Outcome) override {
        bench::fail("nothing was sent here");
    }
    void on_received(StreamSocket&, const Received&) override {
        bench::fail("nothing was to be received here");
    }
    void on_end_of_stream(StreamSocket&) override {}
    void on_closed(StreamSocket&, const netio::Closed& closed) override {
        if (closed.reason != netio::CloseReason::orderly) bench::fail(explain(closed));
        stop();
    }

  private:
    netio::EventLoop& loop_;
    std::size_t size_;
    std::size_t count_;
    std::size_t offset_;
    netio::RegisteredBuffer memory_;
};

class Publisher final : private End, private netio::stream::StreamListener::Handler {
  public:
    Publisher(const Arguments& arguments, netio::EventLoop& loop, netio::Transport& transport)
        : End{arguments, loop, netio::Access::send}, source_{arguments}, options_{options_of(
                                                                             arguments)},
          listener_{transport, {.listen = {{"127.0.0.1", arguments.port}}}, *this} {
        bench::say("listening");
    }
    void report() const { source_.report(); }

  private:
    void on_incoming(netio::stream::IncomingStream& incoming) override {
        socket_ = incoming.accept(options_, static_cast<StreamSocket::Handler&>(*this));
    }
    void on_connected(StreamSocket&) override {
        source_.start();
        for (std::size_t i = 0; i < count(); ++i)
            send(i);
    }
    void on_send_completed(StreamSocket&, Cookie key, netio::Completion::Outcome) override {
        send(static_cast<std::size_t>(key));
    }
    void send(std::size_t index) {
        if (source_.done()) return;
        const netio::Slice slice = piece(index);
        source_.prepare(slice.data);
        if (socket_->send(slice, Cookie{index}) != Status::ok) bench::fail("a send was refused");
        source_.advance();
        if (source_.done()) socket_->shutdown_send();
    }

    bench::Source source_;
    StreamSocket::Options options_;
    netio::stream::StreamListener listener_;
    std::unique_ptr<StreamSocket> socket_;
};

class Subscriber final : private End {
  public:
    Subscriber(const Arguments& arguments, netio::EventLoop& loop, netio::Transport& transport)
        : End{arguments, loop, netio::Access::remote_write}, sink_{arguments},
          socket_{transport, options_of(arguments), static_cast<StreamSocket::Handler&>(*this)} {
        socket_.connect({"127.0.0.1", arguments.port});
    }
    void report() { sink_.report(); }

  private:
    void on_connected(StreamSocket&) override {
        for (std::size_t i = 0; i < count(); ++i)
            receive(i);
    }
    void on_received(StreamSocket&, const Received& received) override {
        const auto index = static_cast<std::size_t>(received.cookie);
        if (last_) return;
        last_ = sink_.take(piece(index).data, static_cast<std::size_t>(received.bytes));
        if (last_) return socket_.shutdown_send();
        receive(index);
    }
    void receive(std::size_t index) {
        if (socket_.receive(piece(index), Cookie{index}, netio::stream::Fill::all) != Status::ok)
            bench::fail("a receive was refused");
    }

    bench::Sink sink_;
    StreamSocket socket_;
    bool last_ = false;
};

template <class Role>
void run(const Arguments& arguments) {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop, {.provider = "tcp"});
    Role role{arguments, loop, *transport};
    loop.run();
    role.report();
}

} // namespace

int main(int argc, char** argv) {
    const Arguments arguments = bench::parse(argc, argv);
    arguments.publish ? run<Publisher>(arguments) : run<Subscriber>(arguments);
}
