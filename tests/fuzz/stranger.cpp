// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/stranger.hpp"

#include "netio/base/frame.hpp"
#include "netio/base/wire.hpp"
#include "stream/core/wire.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace netio::fuzz {
namespace {

constexpr std::size_t turn_limit = 300;

// Violations that only the hostile peer can cause.
bool may_be_the_strangers(std::string_view violation) {
    constexpr std::array<std::string_view, 4> his{
        "a message without a posted receive", "a message larger than its receive",
        "a write outside what the peer offered", "message too large"};
    return std::ranges::find(his, violation) != his.end();
}

} // namespace

Scene::~Scene() {
    for (const std::string& violation : transport_.violations())
        NETIO_CHECK_MSG(may_be_the_strangers(violation), violation.c_str());
}

void Scene::run(Duration time) {
    const TimePoint end = world_.now() + time;
    for (std::size_t turns = 0; turns < turn_limit && world_.now() < end; ++turns)
        loop_.run_once(end);
}

Stranger::Stranger(Scene& scene, Service service) : scene_{scene}, service_{service} {
    for (std::size_t place = 0; place < count; ++place)
        free_places_.push_back(place);
}
Stranger::~Stranger() = default;

std::vector<std::byte> Stranger::hello(Input& input, bool connects) {
    // A sender of messages receives none.
    const std::uint32_t usual =
        service_ == Service::messages && connects ? 0 : std::uint32_t{1} << 30;
    Hello hello{.service = service_,
                .receive_buffer_bytes = receive_bytes - access::seal_tag_bytes,
                .receive_count = count,
                .heartbeat_ms = 0,
                .instance = 1,
                .service_data = {}};
    hello.service_data.size = 4;
    if (service_ == Service::stream) {
        lends_memory_ = input.flag();
        const auto data = stream::encode_hello({.advert_limit_count = 16,
                                                .advertises = input.below(8) != 0,
                                                .needs_adverts = input.below(8) == 0,
                                                .reports_no_advert = input.flag(),
                                                .ring_may_grow = input.flag(),
                                                .lends_memory = lends_memory_});
        std::ranges::copy(data, hello.service_data.bytes.begin());
    } else {
        wire::store(hello.service_data.bytes.data(), input.below(8) == 0 ? input.wild32() : usual);
    }
    if (input.below(32) == 0) hello.receive_count = static_cast<std::uint16_t>(input.number(2));
    if (input.below(32) == 0) hello.receive_buffer_bytes = input.wild32();
    ConnectionData data;
    const std::size_t size = encode(hello, data);
    if (input.below(32) == 0) data[input.below(size)] = std::byte{input.byte()};
    return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
}

void Stranger::open(std::unique_ptr<Connection> connection, std::span<const std::byte> data) {
    connection_ = std::move(connection);
    for (std::size_t i = 0; i < count; ++i) {
        const Slice slice = receive_memory_.slice(i * receive_bytes, receive_bytes);
        static_cast<void>(connection_->post_receive({&slice, 1}, Cookie{i}));
    }
    connection_->open(data);
}

test::KeyFiles& site() {
    static test::KeyFiles files;
    static const bool made =
        (files.permit(7, "services=all fids=0:drop!,1-2:newest,3,5-9:disconnect"), true);
    static_cast<void>(made);
    return files;
}

access::Protection Stranger::hold_key_of_site(Input& input) {
    using access::Protection;
    constexpr std::array levels{Protection::privacy, Protection::integrity, Protection::peers};
    const std::uint64_t key_bytes = 1 + input.below(300);
    const Protection level = levels[input.below(levels.size())];
    hold(site().key(7), level, key_bytes);
    return level;
}

void Stranger::hold(const access::Key& key, access::Protection level, std::uint64_t key_bytes) {
    held_ = {.key = key, .level = level, .key_bytes = key_bytes};
}

void Stranger::dial(const Address& address, std::span<const std::byte> data) {
    Transport& transport = scene_.transport();
    closed_ = connected_ = false;
    open(transport.make_connection(
             transport.providers_to(address).front(), address, {},
             {.send_count = count, .receive_count = count, .remote_writes = true}, *this),
         data);
    scene_.run(std::chrono::milliseconds{1});
}

// Authenticates as every client does, in two attempts; then sends its part of the key exchange, if
// the level requires one.
void Stranger::prove_key(const Address& address, const std::vector<std::byte>& hello,
                         Input& input) {
    access::AuthAddress dialled;
    const auto search = scene_.transport().find_routes(
        address, {}, [&](const FoundRoutes& found) { dialled = found.routes.front().dialled; });
    scene_.run(std::chrono::milliseconds{1});
    key_.emplace(held_->key, held_->level, dialled, held_->key_bytes);
    if (hello.size() != access::auth_hello_bytes) return;
    dial(address, key_->request(hello));
    dial(address, key_->request(hello));
    if (!connected_ || !key_->awaits_keys()) return;
    if (input.below(16) == 0) key_->spoil(input.byte());
    send_frame(FrameKind::key_exchange, key_->part_of_keys());
    scene_.run(std::chrono::milliseconds{1});
}

void Stranger::connect(const Address& address, Input& input) {
    const std::vector<std::byte> data = hello(input, true);
    if (held_) {
        prove_key(address, data, input);
    } else {
        dial(address, data);
    }
    if (!connected_ || input.below(16) == 0) return;
    send_frame(FrameKind::open);
    scene_.run(std::chrono::milliseconds{1});
    if (service_ == Service::stream && input.below(8) != 0) ring();
}

Address Stranger::listen(Input& input) {
    hello_ = hello(input, false);
    Transport& transport = scene_.transport();
    const Address any = Scene::address();
    listener_ = transport.listen(transport.providers_at(any).front(), any,
                                 {.allow_remote_anonymous = true}, *this);
    return listener_->address();
}

std::vector<std::byte> Stranger::admit(ConnectionRequest& request) {
    if (!gate_) {
        access::KeyRing ring;
        ring.add(held_->key);
        gate_.emplace(access::Secret::random(), access::AuthServer::Options{});
        gate_->use(std::move(ring));
    }
    const access::AuthServer::Verdict verdict = gate_->judge(
        {.data = request.data(), .source = request.source(), .dialled = request.dialled()},
        scene_.loop().now());
    ConnectionData data{};
    if (verdict.outcome == access::AuthServer::Verdict::Outcome::challenged) {
        const std::size_t size = encode(Rejection{.code = RejectCode::prove_key}, data);
        std::ranges::copy(verdict.challenge, data.begin() + static_cast<std::ptrdiff_t>(size));
        request.reject(std::span{data}.first(size + verdict.challenge.size()));
    }
    if (!verdict.admission || hello_.size() != access::auth_hello_bytes) return {};
    std::ranges::copy(hello_, data.begin());
    const auto answer = std::span{data}.first<access::auth_answer_bytes>();
    const std::size_t size = verdict.admission->answer(answer);
    key_.emplace(*verdict.admission, answer, held_->key_bytes);
    return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
}

void Stranger::on_request(ConnectionRequest& request) {
    if (connection_ && !closed_) return; // one at a time; other requests are rejected
    const std::vector<std::byte> answer = held_ ? admit(request) : hello_;
    if (answer.empty()) return;
    closed_ = connected_ = heard_ = false;
    sequence_ = owed_credits_ = 0;
    free_places_.clear();
    for (std::size_t place = 0; place < count; ++place)
        free_places_.push_back(place);
    open(request.make_connection(
             {.send_count = count, .receive_count = count, .remote_writes = true}, *this),
         answer);
}

void Stranger::on_connected(std::span<const std::byte> data) {
    connected_ = true;
    if (key_) key_->take_answer(data);
}
void Stranger::on_rejected(std::span<const std::byte> data) {
    if (key_) key_->take_rejection(data);
}
void Stranger::on_closed(const Closed&) {
    closed_ = true;
    connected_ = false;
}

void Stranger::on_completion(const Completion& completion) {
    const auto place = static_cast<std::size_t>(completion.cookie);
    const bool used_receive =
        completion.kind == Completion::Kind::receive ||
        (completion.kind == Completion::Kind::remote_write && completion.consumed_receive);
    if (!used_receive) {
        if (completion.kind != Completion::Kind::remote_write) free_places_.push_back(place);
        return;
    }
    if (completion.outcome != Completion::Outcome::done) return;
    const Slice slice = receive_memory_.slice(place * receive_bytes, receive_bytes);
    const Bytes message{slice.data, completion.bytes};
    stream::RemoteRing ring;
    if (service_ == Service::stream && message.size() > frame_header_bytes &&
        message[0] == std::byte{stream::ring_kind} &&
        stream::decode_ring(message.subspan(frame_header_bytes), ring) ==
            stream::DecodeError::none) {
        target_ = {.address = ring.address, .key = ring.key};
    }
    heard_ = true;
    if (key_ && key_->awaits_keys() && message.size() > frame_header_bytes) {
        if (const auto part = key_->take_keys(message.subspan(frame_header_bytes)))
            send_frame(FrameKind::key_exchange, *part);
        key_->begin_to_seal();
    }
    ++owed_credits_;
    if (!closed_) static_cast<void>(connection_->post_receive({&slice, 1}, completion.cookie));
}

bool Stranger::may_post() const {
    return connected_ && !closed_ && !free_places_.empty() && (!listener_ || heard_);
}

void Stranger::send(std::span<const std::byte> message) {
    if (!may_post()) return;
    const std::size_t place = free_places_.back();
    std::vector<std::byte> said{message.begin(), message.end()};
    if (key_) said = key_->sealed(message);
    said.resize(std::min(said.size(), receive_bytes));
    const Slice slice = send_memory_.slice(place * receive_bytes, said.size());
    std::ranges::copy(said, slice.data);
    if (connection_->post_send({&slice, 1}, Cookie{place}) == Status::ok) free_places_.pop_back();
}

void Stranger::send_frame(FrameKind kind, std::span<const std::byte> body) {
    send_frame({.kind = static_cast<std::uint8_t>(kind),
                .credits = std::exchange(owed_credits_, std::uint16_t{0}),
                .sequence = sequence_++},
               body);
}
void Stranger::send_frame(const FrameHeader& header, std::span<const std::byte> body) {
    std::vector<std::byte> message(frame_header_bytes + body.size());
    encode(header, std::span{message}.first<frame_header_bytes>());
    std::ranges::copy(body, message.begin() + frame_header_bytes);
    send(message);
}

// A ring that really exists, if the socket may know its address.
void Stranger::ring() {
    if (!connected_ || closed_) return;
    stream::RemoteRing ring{.bytes = lent_memory_.size()};
    if (lends_memory_) {
        const Registration& registration = lent_memory_.registration(connection_->domain());
        ring.address = registration.base();
        ring.key = registration.key();
    }
    send_frame(FrameKind{stream::ring_kind}, stream::encode_ring(ring));
}

void Stranger::frame(Input& input) {
    FrameHeader header{.kind = static_cast<std::uint8_t>(
                           input.flag() ? first_service_kind + input.below(10) : input.below(8)),
                       .credits = std::exchange(owed_credits_, std::uint16_t{0}),
                       .sequence = sequence_++};
    const std::uint64_t oddity = input.below(32);
    if (oddity == 0) header.kind = input.byte();
    if (oddity == 1) header.sequence = input.wild32();
    if (oddity == 2) header.credits = static_cast<std::uint16_t>(input.number(2));
    if (input.below(8) == 0) header.flags = input.byte();
    send_frame(header, input.take(input.number(input.flag() ? 1 : 2) % 600));
}

void Stranger::write(Input& input) {
    if (!may_post()) return;
    if (target_.key == 0) return bytes(input);
    const std::size_t place = free_places_.back();
    const Slice slice = send_memory_.slice(place * receive_bytes, 1 + input.below(64));
    RemoteSlice target = target_;
    target.address += input.below(64);
    const std::uint32_t immediate =
        input.below(4) == 0
            ? static_cast<std::uint32_t>(input.number(4))
            : stream::encode_immediate(
                  {input.flag() ? stream::TransferKind::indirect : stream::TransferKind::direct,
                   static_cast<std::uint32_t>(slice.size)});
    if (connection_->post_write({&slice, 1}, target, immediate, Cookie{place}) == Status::ok)
        free_places_.pop_back();
}

// For a socket that does not allow remote writes.
void Stranger::bytes(Input& input) {
    const bool in_ring = input.flag();
    const bool more = !in_ring && input.flag();
    const FrameHeader header{
        .kind = stream::bytes_kind,
        .flags = stream::encode_frame_flags(
            {.kind = in_ring ? stream::TransferKind::indirect : stream::TransferKind::direct,
             .more = more}),
        .credits = std::exchange(owed_credits_, std::uint16_t{0}),
        .sequence = sequence_++};
    send_frame(header, std::vector<std::byte>(1 + input.below(600)));
}

void Stranger::act(Input& input) {
    if (key_ && input.below(32) == 0) key_->spoil(input.byte());
    switch (input.below(8)) {
    case 0:
        return scene_.run(std::chrono::milliseconds{1} * input.below(256));
    case 1:
        return scene_.run(std::chrono::seconds{1} * input.below(40));
    case 2:
        if (service_ == Service::stream) return input.below(4) == 0 ? ring() : write(input);
        return send(input.take(input.byte()));
    case 3:
        if (input.below(16) == 0 && connection_) connection_->close();
        return scene_.run(std::chrono::microseconds{50});
    default:
        frame(input);
        return scene_.run(std::chrono::microseconds{50});
    }
}

} // namespace netio::fuzz
