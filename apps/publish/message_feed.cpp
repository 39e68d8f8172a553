// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/message_feed.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace apps {
namespace {

std::unique_ptr<Source> make_source(const SourceConfig& config, netio::pubsub::Fid fid,
                                    std::size_t position) {
    if (const auto* file = std::get_if<FileConfig>(&config)) {
        const std::size_t which = file->paths.size() == 1 ? 0 : position;
        return make_file_source(file->paths[which], file->repeat);
    }
    if (std::holds_alternative<PipeConfig>(config)) return make_pipe_source(STDIN_FILENO);
    return make_pattern_source(fid);
}

} // namespace

MessageFeed::MessageFeed(const std::vector<StreamConfig>& configs) {
    for (const StreamConfig& config : configs) {
        Stream stream{.flows = {},
                      .ready = {},
                      .waiting = {},
                      .sizes = SizeSequence{config.sizes, config.seed},
                      .rate = config.rate,
                      .pacer = {},
                      .allowed = 0,
                      .wanted = {},
                      .status = config.status};
        for (const netio::pubsub::FidRange& range : config.fids) {
            for (std::uint64_t i = to_integer(range.first);; ++i) {
                const netio::pubsub::Fid fid{i};
                stream.ready.push_back(static_cast<std::uint32_t>(stream.flows.size()));
                stream.flows.push_back(
                    {.fid = fid,
                     .source = make_source(config.source, fid, stream.flows.size()),
                     .left = config.count.value_or(std::numeric_limits<std::uint64_t>::max())});
                if (fid == range.last) break;
            }
        }
        largest_bytes_ = std::max(largest_bytes_, largest(config.sizes));
        streams_.push_back(std::move(stream));
    }
}

void MessageFeed::begin(netio::TimePoint now) {
    for (Stream& stream : streams_)
        if (stream.rate) stream.pacer.emplace(stream.rate->per_second, stream.rate->burst, now);
}

MessageFeed::Outcome MessageFeed::next(std::span<std::byte> memory, netio::TimePoint now) {
    next_due_ = netio::TimePoint::max();
    wait_fds_.clear();
    bool all_ended = true;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        Stream& stream = streams_[turn_];
        if (++turn_ == streams_.size()) turn_ = 0;
        const Outcome outcome = next_of(stream, memory, now);
        if (outcome == Outcome::message) return outcome;
        if (outcome == Outcome::waiting) all_ended = false;
    }
    return all_ended ? Outcome::ended : Outcome::waiting;
}

MessageFeed::Outcome MessageFeed::next_of(Stream& stream, std::span<std::byte> memory,
                                          netio::TimePoint now) {
    if (stream.ready.empty()) return stream.waiting.empty() ? Outcome::ended : Outcome::waiting;
    if (stream.pacer && stream.allowed == 0) {
        stream.allowed = stream.pacer->due(now);
        if (stream.allowed == 0) {
            next_due_ = std::min(next_due_, stream.pacer->next());
            return Outcome::waiting;
        }
    }
    // Those whose source has nothing now lose their turn.
    for (std::size_t tries = stream.ready.size(); tries > 0; --tries) {
        const std::uint32_t turn = stream.ready.front();
        Flow& flow = stream.flows[turn];
        if (!stream.wanted) stream.wanted = stream.sizes.next();
        const Source::Result result = flow.source->fill(memory.first(*stream.wanted));
        if (result.outcome == Source::Outcome::message) {
            message_ = {.fid = flow.fid, .bytes = result.bytes, .status = stream.status};
            current_ = &stream;
            return Outcome::message;
        }
        stream.ready.pop_front();
        if (result.outcome == Source::Outcome::not_ready) {
            wait_fds_.push_back(flow.source->wait_fd());
            stream.ready.push_back(turn);
        } else {
            flow.source.reset();
        }
    }
    return stream.ready.empty() && stream.waiting.empty() ? Outcome::ended : Outcome::waiting;
}

void MessageFeed::accept() {
    Stream& stream = *std::exchange(current_, nullptr);
    const std::uint32_t turn = stream.ready.front();
    Flow& flow = stream.flows[turn];
    stream.ready.pop_front();
    stream.wanted.reset();
    flow.source->accept();
    ++flow.published;
    if (--flow.left == 0) {
        flow.source.reset();
    } else {
        stream.ready.push_back(turn);
    }
    if (stream.pacer) {
        --stream.allowed;
        stream.pacer->sent(1);
    }
    // There was room, for those too that wait: as nobody was refused, nobody will say so again.
    if (!refused_) retry();
}

std::vector<PublishedFid> MessageFeed::published() const {
    std::vector<PublishedFid> list;
    for (const Stream& stream : streams_)
        for (const Flow& flow : stream.flows)
            list.push_back({.fid = flow.fid, .messages = flow.published});
    std::ranges::sort(list, {}, &PublishedFid::fid);
    return list;
}

void MessageFeed::refuse() {
    refused_ = true;
    Stream& stream = *std::exchange(current_, nullptr);
    stream.waiting.push_back(stream.ready.front());
    stream.ready.pop_front();
}

void MessageFeed::retry() {
    refused_ = false;
    for (Stream& stream : streams_) {
        for (std::size_t i = 0; i < retries_at_once && !stream.waiting.empty(); ++i) {
            stream.ready.push_front(stream.waiting.front());
            stream.waiting.pop_front();
        }
    }
}

} // namespace apps
