// SPDX-License-Identifier: Apache-2.0
#include "tests/model/world.hpp"

#include <algorithm>

namespace netio::stream {
std::vector<Action> World::enabled() const {
    using Kind = Action::Kind;
    std::vector<Action> actions;
    const auto add = [&](Kind kind, std::uint64_t bytes = 0, bool wait_all = false) {
        actions.push_back(Action{kind, static_cast<std::uint8_t>(bytes), wait_all});
    };
    const std::uint64_t least = options_->empty_operations ? 0 : 1;
    const std::uint64_t left = options_->stream_bytes - submitted_;
    if (!finished_ && submitted_count_ - completed_sends_ < options_->queued_send_limit) {
        // Sends of 0 bytes complete at once; one between two others is enough.
        const bool after_empty = submitted_count_ > submitted_ + 1;
        for (std::uint64_t n = after_empty ? 1 : least;
             n <= std::min(left, options_->longest_send_bytes); ++n) {
            add(Kind::submit, n);
        }
    }
    if (!finished_ && left == 0) add(Kind::finish);
    if (!options_->eager) {
        add(Kind::pump);
        add(Kind::tell);
    }
    if (done_number_ < posted_number_) add(Kind::done);
    if (!control_.empty()) add(Kind::deliver_control);
    if (!data_.empty()) add(Kind::deliver_data);
    if (!receiver_.is_finished() && receives_.size() < options_->open_receive_limit) {
        // An empty receive at the front would complete at once, and an execution could post them
        // without end.
        for (std::uint64_t n = receives_.empty() ? 1 : least; n <= options_->longest_receive_bytes;
             ++n) {
            if (options_->wait_all != WaitAll::always) add(Kind::post, n, false);
            if (options_->wait_all != WaitAll::never && n > 0) add(Kind::post, n, true);
        }
    }
    if (receiver_.ring_used_bytes() > 0 && !receives_.empty() && !options_->prompt_copies) {
        const std::uint64_t most = options_->partial_copies ? receiver_.ring_used_bytes() : 1;
        for (std::uint64_t n = 1; n <= most; ++n) {
            add(Kind::copy, options_->partial_copies ? n : 255);
        }
    }
    return actions;
}

void World::apply(const Action& action) {
    switch (action.kind) {
    case Action::Kind::submit:
        submit(action.bytes);
        break;
    case Action::Kind::finish:
        finish();
        break;
    case Action::Kind::pump:
        pump();
        break;
    case Action::Kind::done:
        transfer_done();
        break;
    case Action::Kind::deliver_control:
        deliver_control();
        break;
    case Action::Kind::post:
        post(action.bytes, action.wait_all);
        break;
    case Action::Kind::deliver_data:
        deliver_data();
        break;
    case Action::Kind::copy:
        copy(action.bytes);
        break;
    case Action::Kind::tell:
        tell();
        break;
    }
    if (!options_->look_from_outside) {
        sender_.check_invariants();
        receiver_.check_invariants();
    }
}

bool World::pump() {
    std::array<Piece, 8> pieces{};
    const auto transfer = sender_.next_transfer(
        std::span{pieces}.first(std::min(options_->piece_limit, pieces.size())));
    expect_none(sender_.error());
    if (!transfer) {
        const auto end = sender_.next_fin();
        if (end) {
            data_.push_back(Arrival{.phase = sender_.phase(), .is_end = true, .end_bytes = *end});
        }
        while (sender_.next_completion())
            ++completed_sends_;
        return end.has_value();
    }
    std::uint64_t piece_bytes = 0;
    for (std::size_t i = 0; i < transfer->piece_count; ++i)
        piece_bytes += pieces[i].bytes;
    expect(piece_bytes == transfer->bytes && transfer->bytes > 0, "pieces do not add up"); // R11
    expect(transfer->number == posted_number_, "transfers are not numbered in order");
    ++posted_number_;
    land(*transfer);
    data_.push_back(Arrival{.transfer = *transfer, .phase = sender_.phase()});
    if (!options_->separate_done) finish_write(done_number_++);
    return true;
}

void World::land(const Transfer& transfer) {
    if (transfer.kind == TransferKind::direct) {
        const std::uint64_t receive = transfer.address >> offset_bits;
        log("D;A" + std::to_string(transfer.key), transfer.sequence, transfer.bytes,
            sender_.phase());
        // R8: no write into memory that the user has got back.
        expect(receive >= first_receive_, "direct transfer into a completed receive");
        return;
    }
    log("I" + std::to_string(++indirect_count_), transfer.sequence, transfer.bytes, sender_.phase(),
        "@" + std::to_string(transfer.ring_offset));
    if (options_->check_efficiency) check_efficiency();
    expect_good(rings_.write(transfer.ring_offset, transfer.bytes, transfer.sequence.value()));
}

void World::check_efficiency() {
    if (!data_.empty() || !control_.empty() || receiver_.ring_used_bytes() > 0) return;
    expect(!receiver_.phase().is_direct() || receiver_.open_advert_count() == 0,
           "quiet, a valid advert, and yet indirect");
    // R7: no rule delays an advert in this state.
    expect(!options_->receiver.readvertise || receives_.empty(),
           "quiet, an open receive, and yet indirect");
}

void World::finish_write(std::uint64_t number) {
    sender_.on_transfer_done(number);
    if (options_->separate_done && options_->eager) pump_all();
    while (sender_.next_completion())
        ++completed_sends_;
}

void World::deliver_control() {
    const Control control = control_.pop_front();
    for (const Advert& advert : control.adverts)
        expect_none(sender_.on_advert(advert));
    if (control.acknowledged_bytes) expect_none(sender_.on_ack(*control.acknowledged_bytes));
    if (control.ring_bytes > 0) {
        expect_none(sender_.on_ring(control.ring_bytes));
        rings_.on_sender_notified();
    }
    if (options_->eager) pump_all();
}

void World::deliver_data() {
    if (data_.front().is_end) {
        const Arrival end = data_.pop_front();
        expect(end.end_bytes == submitted_, "the end announces a wrong total"); // R12
        expect_none(receiver_.on_fin(end.end_bytes));
        return settle_receiver();
    }
    Arrival& front = data_.front();
    Transfer transfer = front.transfer;
    const bool is_direct = transfer.kind == TransferKind::direct;
    const bool more =
        is_direct && options_->frame_bytes > 0 && transfer.bytes > options_->frame_bytes;
    const Phase phase = front.phase;
    if (more) { // R16: the rest of it is still to come
        transfer.bytes = static_cast<std::uint32_t>(options_->frame_bytes);
        front.transfer.bytes -= transfer.bytes;
        front.transfer.sequence += transfer.bytes;
        front.transfer.address += transfer.bytes;
    } else {
        data_.pop_front();
    }
    is_direct ? arrive_direct(transfer, phase, more) : arrive_indirect(transfer);
    settle_receiver();
}

void World::arrive_indirect(const Transfer& transfer) {
    expect(transfer.sequence.value() == delivered_ + receiver_.ring_used_bytes(),
           "indirect transfer out of order");
    if (transfer.notice.first) rings_.on_receiver_notified();
    take(transfer, false, transfer.ring_offset);
}

// Delivered by remote write, or in a frame: then the receiver must know the place.
void World::take(const Transfer& transfer, bool more, std::uint64_t offset) {
    if (options_->frame_bytes == 0) {
        return expect_none(receiver_.on_transfer(transfer.kind, transfer.bytes, transfer.notice));
    }
    Place place;
    expect_none(receiver_.on_frame({.kind = transfer.kind, .ring = transfer.notice, .more = more},
                                   transfer.bytes, place));
    expect(place.offset == offset, "a frame's bytes are put elsewhere");
    expect(transfer.kind == TransferKind::indirect || place.id == ReceiveId{first_receive_},
           "a frame's bytes are put into another receive");
}

void World::arrive_direct(const Transfer& transfer, Phase phase, bool more) {
    expect(receiver_.ring_used_bytes() == 0, "direct transfer while the ring holds bytes");
    expect(options_->data_checks_only || phase == receiver_.phase(),
           "phases differ on a direct transfer");
    expect(transfer.sequence.value() == delivered_, "direct transfer out of order");
    if (receives_.empty() || transfer.address >> offset_bits != first_receive_) {
        return violate("direct transfer to a receive that is not at the head");
    }
    OpenReceive& front = receives_.front();
    const std::uint64_t offset = transfer.address & ((1U << offset_bits) - 1);
    expect(offset == front.filled, "direct transfer not at the fill level");
    expect(transfer.bytes <= front.bytes - front.filled, "direct transfer beyond its receive");
    if (!violation_.empty()) return;
    front.filled += transfer.bytes;
    delivered_ += transfer.bytes;
    take(transfer, more, offset);
}

void World::copy(std::uint64_t limit_bytes) {
    const auto run = receiver_.next_copy(limit_bytes);
    if (!run) return;
    OpenReceive& front = receives_.front();
    expect(run->id == ReceiveId{first_receive_} && run->receive_offset == front.filled,
           "copy not to the fill level of the head receive");
    expect(run->bytes <= front.bytes - front.filled, "copy beyond its receive");
    expect_good(rings_.copy(run->ring, run->ring_offset, run->bytes, delivered_));
    front.filled += run->bytes;
    delivered_ += run->bytes;
    receiver_.on_copied();
    settle_receiver();
}

void World::settle_receiver() {
    while (const auto completion = receiver_.next_completion()) {
        if (receives_.empty()) return violate("a completion without a receive");
        const OpenReceive front = receives_.pop_front();
        expect(completion->id == ReceiveId{first_receive_++}, "completions out of order");
        expect(completion->bytes == front.filled, "completion with a wrong length");
        log("R" + std::to_string(first_receive_) + "=", completion->bytes);
        // R9, R12
        if (!completion->end_of_stream && front.bytes > 0) {
            expect(front.wait_all ? front.filled == front.bytes : front.filled > 0,
                   "a receive completed too early");
        }
    }
    if (const auto unused = receiver_.next_unused_ring()) expect_good(rings_.release(*unused));
    expect(options_->forbidden_ring_bytes == 0 ||
               receiver_.counters().ring_bytes != options_->forbidden_ring_bytes,
           "the ring has grown");
    if (!violation_.empty()) return;
    if (options_->prompt_copies && receiver_.ring_used_bytes() > 0 && !receives_.empty()) {
        return copy();
    }
    if (options_->eager) tell_all();
}

// P11
bool World::tell_of_ring() {
    const auto bytes = receiver_.wanted_ring();
    if (!bytes) return false;
    if (options_->refuses_rings) {
        receiver_.refuse_ring();
        return true;
    }
    rings_.add(*bytes);
    receiver_.announce_ring();
    control_.push_back(Control{.adverts = {}, .acknowledged_bytes = {}, .ring_bytes = *bytes});
    return true;
}

bool World::tell() {
    const bool was_indirect = !receiver_.phase().is_direct();
    ControlMessage message;
    collect_control(
        receiver_,
        [this](const LocalAdvert& advert) {
            const auto receive = static_cast<std::uint64_t>(advert.id);
            return Advert{advert.terms, receive << offset_bits | advert.offset, ++advert_count_};
        },
        message);
    if (message.item_count() == 0) return tell_of_ring();
    Control control{{message.adverts.begin(),
                     message.adverts.begin() + static_cast<std::ptrdiff_t>(message.advert_count)},
                    message.acknowledged_bytes,
                    0};
    for (const Advert& advert : control.adverts) {
        log("A" + std::to_string(advert.key), advert.terms.sequence, advert.terms.bytes,
            advert.terms.phase);
    }
    if (control.acknowledged_bytes) log("ACK=", *control.acknowledged_bytes);
    if (was_indirect && !control.adverts.empty() && !options_->data_checks_only) {
        expect(control.adverts[0].terms.sequence.value() == delivered_,
               "the first advert of a phase is not exact"); // R5
    }
    control_.push_back(std::move(control));
    return true;
}

} // namespace netio::stream
