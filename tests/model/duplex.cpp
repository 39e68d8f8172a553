// SPDX-License-Identifier: Apache-2.0
#include "tests/model/duplex.hpp"

#include "tests/model/describe.hpp"

#include <algorithm>

namespace netio::stream {

Direction random_direction(Chance& chance) {
    const std::uint64_t ring_bytes = chance.one_of<std::uint64_t>({1, 2, 7, 64, 200, 1'000, 5'000});
    Direction direction{published_sender(ring_bytes), published_receiver(ring_bytes)};
    if (!chance.one_in(4)) {
        SenderOptions& sender = direction.sender;
        sender.backlog_limit_bytes = chance.one_of({std::uint64_t{0}, ring_bytes, unlimited_bytes});
        sender.direct_threshold_bytes = chance.one_of<std::uint64_t>({0, 10, 100});
        sender.avoid_slivers = chance.one_in(2);
        sender.drain = chance.one_in(2);
        sender.ring_transfer_limit_bytes = chance.one_of<std::uint64_t>({1, 90, unlimited_bytes});
        sender.coalesce_limit_bytes = chance.one_of<std::uint64_t>({0, 50, 500});
        sender.cork = chance.one_in(2);
        sender.longest_transfer_bytes = chance.one_of<std::uint32_t>({3, 77, transfer_limit_bytes});
        ReceiverOptions& receiver = direction.receiver;
        receiver.advert_number = chance.one_of({AdvertNumber::exact, AdvertNumber::estimated});
        receiver.readvertise = chance.one_in(2);
        receiver.adverts_first = chance.one_in(2);
        receiver.batch_limit_count = chance.one_of<std::size_t>({1, 2, 33});
        receiver.ack_threshold_bytes =
            chance.between(0, std::max<std::uint64_t>(1, ring_bytes / 2));
        receiver.advert_threshold_bytes = chance.one_of<std::uint64_t>({0, 10, 100});
        receiver.report_no_advert = chance.one_in(2);
        sender.report_ring_waits = !chance.one_in(4);
        if (!chance.one_in(4)) {
            receiver.ring_limit_bytes = ring_bytes * chance.between(1, 9);
            receiver.ack_threshold_bytes = std::min(receiver.ack_threshold_bytes, ring_bytes / 4);
        }
        sender.patience_threshold_bytes =
            receiver.report_no_advert ? chance.one_of<std::uint64_t>({1, 200}) : unlimited_bytes;
    }
    direction.sender.advert_limit_count = direction.receiver.advert_limit_count =
        chance.one_of<std::size_t>({1, 5, 64});
    if (chance.one_in(8)) {
        direction.sender.mode = direction.receiver.mode = TransferMode::direct_only;
        direction.sender.ring_bytes = direction.receiver.ring_bytes = 0;
        direction.receiver.ack_threshold_bytes = direction.receiver.advert_threshold_bytes = 0;
    } else if (chance.one_in(8)) {
        direction.sender.mode = direction.receiver.mode = TransferMode::indirect_only;
    }
    return direction;
}

Duplex::Side::Side(const Direction& out, const Direction& in,
                   const netio::CreditOptions& credit_options, bool sends_notices)
    : sender{out.sender}, receiver{in.receiver}, credits{credit_options}, notices{sends_notices},
      receive_count{credit_options.receive_count}, content_seed{0},
      rings{std::vector<std::uint8_t>(static_cast<std::size_t>(in.receiver.ring_bytes))} {}

Duplex::Duplex(std::uint64_t seed, Phase first_phase) : chance_{seed} {
    const Direction there = random_direction(chance_);
    const Direction back = random_direction(chance_);
    const auto receives = [this] { return chance_.one_of<std::uint32_t>({3, 4, 9, 64}); };
    const std::uint32_t first = receives();
    const std::uint32_t second = receives();
    const bool notices = chance_.one_in(4);
    sides_.push_back(
        Side{there, back, {.receive_count = first, .peer_receive_count = second}, notices});
    sides_.push_back(
        Side{back, there, {.receive_count = second, .peer_receive_count = first}, notices});
    for (Side& side : sides_) {
        if (chance_.one_in(2)) side.frame_bytes = chance_.one_of<std::uint64_t>({1, 40, 700});
        side.content_seed = chance_.below(1U << 30);
        // With a tiny ring, or in tiny transfers, many bytes would take too long.
        side.bytes_left = chance_.one_of<std::uint64_t>({0, 1, 300, 1'500});
        if (there.sender.ring_bytes >= 64 && back.sender.ring_bytes >= 64) side.bytes_left *= 10;
        side.open_receive_limit = chance_.one_of<std::uint64_t>({1, 2, 8, 40});
        side.longest_send = chance_.one_of<std::uint64_t>({3, 100, 3'000});
        side.longest_receive = chance_.one_of<std::uint64_t>({3, 100, 3'000});
        Describe::begin_at(side.sender, first_phase);
        Describe::begin_at(side.receiver, first_phase);
    }
}

std::string Duplex::run() {
    constexpr auto act_count = static_cast<std::size_t>(Act::count);
    constexpr std::uint64_t swarm_steps = 5'000;
    constexpr std::uint64_t step_limit = 2'000'000;
    std::array<std::uint64_t, 2 * act_count> weights{};
    for (auto& weight : weights)
        weight = chance_.one_of<std::uint64_t>({0, 1, 1, 5, 20});

    const auto is_complete = [](const Side& side) {
        return side.is_complete && side.finished && side.send_begins.empty() && side.inbox.empty();
    };
    for (std::uint64_t step = 0; violation_.empty(); ++step) {
        if (step == swarm_steps) weights.fill(1); // from now on every action is possible
        if (std::all_of(sides_.begin(), sides_.end(), is_complete)) return "";
        if (step == step_limit) return "stuck";
        std::uint64_t total = 0;
        for (const auto weight : weights)
            total += weight;
        if (total == 0) {
            weights.fill(1);
            continue;
        }
        std::uint64_t draw = chance_.below(total);
        std::size_t index = 0;
        while (draw >= weights[index])
            draw -= weights[index++];
        act(index / act_count, static_cast<Act>(index % act_count));
    }
    return violation_;
}

void Duplex::act(std::size_t index, Act act) {
    Side& side = sides_[index];
    switch (act) {
    case Act::submit:
        submit(side);
        break;
    case Act::post:
        post(side);
        break;
    case Act::pump:
        pump(index);
        break;
    case Act::done:
        done(side);
        break;
    case Act::deliver:
        deliver(index);
        break;
    case Act::begin_copy:
        if (!side.copy) side.copy = side.receiver.next_copy(chance_.between(1, 300));
        break;
    case Act::end_copy:
        end_copy(side);
        break;
    case Act::tell:
        tell(index);
        break;
    case Act::count:
        break;
    }
    settle(index);
    side.sender.check_invariants();
    side.receiver.check_invariants();
}

void Duplex::submit(Side& side) {
    if (side.finished) return;
    if (side.bytes_left == 0) {
        side.sender.finish();
        side.finished = true;
        return;
    }
    if (side.send_begins.size() >= 20) return;
    const std::uint64_t bytes =
        chance_.one_in(10) ? 0 : std::min(side.bytes_left, chance_.between(1, side.longest_send));
    const SendId id{side.next_send++};
    side.send_begins[id] = side.submitted;
    side.submitted += bytes;
    side.bytes_left -= bytes;
    side.sender.submit(id, bytes);
}

void Duplex::post(Side& side) {
    if (side.is_complete || side.receives.size() >= side.open_receive_limit) return;
    const std::uint64_t bytes = chance_.one_in(20) ? 0 : chance_.between(1, side.longest_receive);
    const ReceiveId id{side.next_receive++};
    side.receives.push_back({id, std::vector<std::uint8_t>(static_cast<std::size_t>(bytes))});
    side.receiver.post(id, bytes, chance_.one_in(2));
}

void Duplex::pump(std::size_t index) {
    Side& side = sides_[index];
    const bool in_frames = side.notices || side.frame_bytes > 0;
    if (!(in_frames ? side.credits.can_send_frame() : side.credits.can_write())) return; // R13
    if (side.unsent) return send_frame(index);
    std::array<Piece, 6> pieces{};
    const auto transfer = side.sender.next_transfer(
        std::span{pieces}.first(static_cast<std::size_t>(chance_.between(1, pieces.size()))));
    if (!transfer) return;
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i < transfer->piece_count; ++i) {
        const std::uint64_t begin = side.send_begins.at(pieces[i].id) + pieces[i].offset;
        for (std::uint64_t k = 0; k < pieces[i].bytes; ++k) {
            bytes.push_back(content(side.content_seed, begin + k));
        }
    }
    if (side.frame_bytes == 0) return write(index, *transfer, std::move(bytes));
    side.unsent = Unsent{*transfer, std::move(bytes)};
    send_frame(index);
}

// R16: one part of a direct transfer, or a whole indirect transfer.
void Duplex::send_frame(std::size_t index) {
    Side& side = sides_[index];
    Unsent& unsent = *side.unsent;
    const bool is_direct = unsent.transfer.kind == TransferKind::direct;
    const std::size_t left = unsent.bytes.size() - unsent.sent;
    const std::size_t bytes = is_direct ? std::min(left, side.frame_bytes) : left;
    const auto begin = unsent.bytes.begin() + static_cast<std::ptrdiff_t>(unsent.sent);
    Message message;
    message.frame = FrameNotice{
        .kind = unsent.transfer.kind, .ring = unsent.transfer.notice, .more = bytes < left};
    message.content.assign(begin, begin + static_cast<std::ptrdiff_t>(bytes));
    message.credits = side.credits.on_frame_sent();
    unsent.sent += bytes;
    if (bytes == left) {
        side.writes.push_back(unsent.transfer.number);
        side.unsent.reset();
    }
    send(index, std::move(message));
}

void Duplex::write(std::size_t index, const Transfer& transfer, std::vector<std::uint8_t> bytes) {
    Side& side = sides_[index];
    Side& peer = sides_[1 - index];
    side.writes.push_back(transfer.number);
    const bool in_ring = transfer.kind == TransferKind::indirect;
    Landing landing{.in_ring = in_ring,
                    .ring = side.peer_ring,
                    .receive = ReceiveId{transfer.key},
                    .offset = in_ring ? transfer.ring_offset : transfer.address,
                    .bytes = std::move(bytes)};
    Message message{.is_write = true,
                    .immediate = encode_immediate({transfer.kind, transfer.bytes, transfer.notice}),
                    .credits = 0,
                    .bytes = {},
                    .landing = {},
                    .frame = {},
                    .content = {}};
    if (side.notices) {
        message.credits = side.credits.on_frame_sent();
    } else {
        side.credits.on_write_sent();
    }
    if (chance_.one_in(2)) {
        land(peer, landing);
    } else {
        message.landing = std::move(landing);
    }
    send(index, std::move(message));
}

void Duplex::done(Side& side) {
    if (side.writes.empty()) return;
    // Usually in order; nothing may depend on the order.
    const std::size_t which = chance_.one_in(4) ? chance_.below(side.writes.size()) : 0;
    side.sender.on_transfer_done(side.writes[which]);
    side.writes.erase(side.writes.begin() + static_cast<std::ptrdiff_t>(which));
}

void Duplex::send(std::size_t from, Message message) {
    Side& to = sides_[1 - from];
    to.inbox.push_back(std::move(message));
    expect(to.inbox.size() <= to.receive_count, "receive queue overrun"); // R13
}

void Duplex::land(Side& side, const Landing& landing) {
    std::vector<std::uint8_t>* memory = nullptr;
    if (landing.in_ring) {
        memory = &side.rings.at(landing.ring);
    } else {
        const auto receive =
            std::find_if(side.receives.begin(), side.receives.end(),
                         [&](const Receive& open) { return open.id == landing.receive; });
        if (receive == side.receives.end()) return violate("a write into memory that is not lent");
        memory = &receive->memory;
    }
    if (landing.offset + landing.bytes.size() > memory->size()) return violate("a write too far");
    std::copy(landing.bytes.begin(), landing.bytes.end(),
              memory->begin() + static_cast<std::ptrdiff_t>(landing.offset));
}

void Duplex::deliver(std::size_t index) {
    Side& side = sides_[index];
    if (side.inbox.empty()) return;
    const Message message = std::move(side.inbox.front());
    side.inbox.pop_front();
    if (message.landing) land(side, *message.landing);
    expect(side.credits.on_received(message.credits) == netio::CreditError::none,
           "credits do not add up");
    side.credits.on_reposted();
    if (message.is_write) {
        arrive(side, message);
    } else if (message.frame) {
        take_frame(side, message);
    } else if (message.ring_bytes > 0) {
        expect_none(side.sender.on_ring(message.ring_bytes));
        ++side.peer_ring;
    } else {
        take_control(side, message);
    }
}

void Duplex::arrive(Side& side, const Message& message) {
    Immediate immediate;
    expect(decode_immediate(message.immediate, immediate) == DecodeError::none, "immediate");
    expect_none(side.receiver.on_transfer(immediate.kind, immediate.bytes, immediate.notice));
}

void Duplex::take_frame(Side& side, const Message& message) {
    FrameNotice notice;
    expect(decode_frame_flags(encode_frame_flags(*message.frame), notice) == DecodeError::none,
           "flags of a frame");
    Place place;
    expect_none(
        side.receiver.on_frame(notice, static_cast<std::uint32_t>(message.content.size()), place));
    land(side, {.in_ring = notice.kind == TransferKind::indirect,
                .ring = place.ring,
                .receive = place.id,
                .offset = place.offset,
                .bytes = message.content});
}

void Duplex::take_control(Side& side, const Message& message) {
    ControlMessage control;
    const DecodeError error = decode_control(message.bytes, control);
    if (error != DecodeError::none) return violate(std::string{to_string(error)});
    for (std::size_t i = 0; i < control.advert_count; ++i) {
        expect_none(side.sender.on_advert(control.adverts[i]));
    }
    if (control.acknowledged_bytes) expect_none(side.sender.on_ack(*control.acknowledged_bytes));
    if (control.end_bytes) expect_none(side.receiver.on_fin(*control.end_bytes));
}

void Duplex::end_copy(Side& side) {
    if (!side.copy) return;
    const Copy copy = *side.copy;
    Receive& front = side.receives.front();
    expect(front.id == copy.id, "copy to a receive that is not at the head");
    const std::vector<std::uint8_t>& ring = side.rings.at(copy.ring);
    if (copy.ring_offset + copy.bytes > ring.size()) return violate("a copy from no ring");
    const auto from = ring.begin() + static_cast<std::ptrdiff_t>(copy.ring_offset);
    std::copy(from, from + static_cast<std::ptrdiff_t>(copy.bytes),
              front.memory.begin() + static_cast<std::ptrdiff_t>(copy.receive_offset));
    side.copy.reset();
    side.receiver.on_copied();
}

void Duplex::tell(std::size_t index) {
    Side& side = sides_[index];
    ControlMessage control;
    if (side.credits.can_send_frame()) {
        collect_control(
            side.receiver,
            [](const LocalAdvert& advert) {
                return Advert{advert.terms, advert.offset, static_cast<std::uint64_t>(advert.id)};
            },
            control);
        if (!side.unsent) control.end_bytes = side.sender.next_fin();
    }
    if (control.item_count() == 0 && tell_of_ring(index)) return;
    if (control.item_count() == 0 && !side.credits.must_return()) return;
    Message message;
    message.credits = side.credits.on_frame_sent();
    message.bytes.resize(control_limit_bytes);
    message.bytes.resize(encode_control(control, message.bytes));
    send(index, std::move(message));
}

// Sometimes there is no memory for a larger ring, or it is not worth its cost.
bool Duplex::tell_of_ring(std::size_t index) {
    Side& side = sides_[index];
    const auto bytes = side.receiver.wanted_ring();
    if (!bytes || !side.credits.can_send_frame()) return false;
    if (chance_.one_in(20)) {
        side.receiver.refuse_ring();
        return false;
    }
    if (chance_.one_in(4)) {
        side.receiver.postpone_ring();
        return false;
    }
    side.rings.emplace_back(static_cast<std::size_t>(*bytes));
    side.receiver.announce_ring();
    Message message;
    message.credits = side.credits.on_frame_sent();
    message.ring_bytes = *bytes;
    send(index, std::move(message));
    return true;
}

void Duplex::settle(std::size_t index) {
    Side& side = sides_[index];
    if (const auto unused = side.receiver.next_unused_ring()) {
        expect(!side.rings.at(*unused).empty(), "a ring is released twice");
        side.rings[*unused].clear();
    }
    const Side& peer = sides_[1 - index];
    while (const auto id = side.sender.next_completion()) {
        expect(!side.send_begins.empty() && side.send_begins.begin()->first == *id,
               "sends completed out of order");
        side.send_begins.erase(*id);
    }
    while (const auto completion = side.receiver.next_completion()) {
        const Receive front = std::move(side.receives.front());
        side.receives.pop_front();
        expect(front.id == completion->id, "receives completed out of order");
        expect(completion->bytes <= front.memory.size(), "completed with too many bytes");
        for (std::size_t i = 0; i < completion->bytes && violation_.empty(); ++i) {
            expect(front.memory[i] == content(peer.content_seed, side.received + i), "wrong byte");
        }
        side.received += completion->bytes;
    }
    if (side.receiver.is_finished() && !side.is_complete) {
        side.is_complete = true;
        expect(side.received == peer.submitted && peer.finished, "the stream ended too early");
    }
}

std::uint8_t Duplex::content(std::uint64_t seed, std::uint64_t position) {
    const std::uint64_t x = (seed + position) * 0x9E3779B97F4A7C15;
    return static_cast<std::uint8_t>(x >> 56);
}

} // namespace netio::stream
