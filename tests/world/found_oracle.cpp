// SPDX-License-Identifier: Apache-2.0
#include "tests/world/found_oracle.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace netio::world {
namespace {

constexpr std::size_t name_bytes = 24; // fid, life, number

std::string text_of(std::uint64_t life, std::uint64_t number) {
    return "message " + std::to_string(number) + " of life " + std::to_string(life);
}

} // namespace

void FoundOracle::violate(std::uint32_t finder, std::uint64_t fid, const std::string& what) {
    oracle_.violate(RuleId::accounted_for, "process " + std::to_string(finder) + ", fid " +
                                               std::to_string(fid) + ": " + what);
}

void FoundOracle::opens(std::uint32_t publisher, std::uint64_t life,
                        std::span<const std::uint64_t> fids) {
    for (const std::uint64_t fid : fids) {
        Source& source = fids_[fid];
        source.publisher = publisher;
        source.life = life;
        source.numbers[life] = 0;
    }
}

std::vector<std::byte> FoundOracle::next(std::uint64_t fid, std::size_t size) const {
    const Source& source = fids_.at(fid);
    const std::uint64_t name[3] = {fid, source.life, source.numbers.at(source.life)};
    std::vector<std::byte> bytes(std::max(size, name_bytes));
    std::memcpy(bytes.data(), name, name_bytes);
    return bytes;
}

void FoundOracle::grants(std::uint64_t connection, std::uint64_t first, std::uint64_t last) {
    Grant& grant = granted_[connection].emplace_back();
    for (const auto& [fid, source] : fids_) {
        if (fid < first || fid > last) continue;
        grant[fid] = {.life = source.life, .next = source.numbers.at(source.life)};
    }
}

void FoundOracle::begins(std::uint32_t finder) {
    finders_[finder] = {};
}

void FoundOracle::subscribed(std::uint32_t finder, std::uint64_t connection, std::uint64_t first,
                             std::uint64_t last) {
    std::deque<Grant>& waiting = granted_[connection];
    if (waiting.empty()) return violate(finder, first, "got a grant that no publisher gave");
    const Grant grant = std::move(waiting.front());
    waiting.pop_front();
    Finder& it = finders_[finder];
    for (const auto& [fid, granted] : grant) {
        if (fid < first || fid > last) {
            violate(finder, fid, "was granted, but other fids were reported to the finder");
            continue;
        }
        const auto known = it.known.find(fid);
        if (known != it.known.end()) {
            if (known->second.life != granted.life) {
                violate(finder, fid, "another publisher than before, and this is not reported");
            } else if (known->second.next != granted.next) {
                violate(finder, fid,
                        "goes on with " + text_of(granted.life, granted.next) + " in place of " +
                            std::to_string(known->second.next));
            }
        }
        it.known[fid] = granted;
    }
}

void FoundOracle::unsubscribes(std::uint32_t finder, std::uint64_t first, std::uint64_t last) {
    forget(finder, first, last);
    for (const auto& [fid, source] : fids_)
        if (fid >= first && fid <= last) ++finders_[finder].leaving[fid];
}

void FoundOracle::unsubscribed(std::uint32_t finder, std::uint64_t first, std::uint64_t last) {
    forget(finder, first, last);
    for (auto& [fid, count] : finders_[finder].leaving)
        if (fid >= first && fid <= last && count > 0) --count;
}

void FoundOracle::closed(std::uint32_t finder, std::uint32_t publisher) {
    for (auto& [fid, count] : finders_[finder].leaving) {
        if (fids_.at(fid).publisher != publisher || std::exchange(count, 0) == 0) continue;
        forget(finder, fid, fid);
    }
}

void FoundOracle::forget(std::uint32_t finder, std::uint64_t first, std::uint64_t last) {
    std::erase_if(finders_[finder].known,
                  [&](const auto& entry) { return entry.first >= first && entry.first <= last; });
}

void FoundOracle::message(std::uint32_t finder, std::uint64_t fid,
                          std::span<const std::byte> bytes) {
    ++delivered_;
    std::uint64_t name[3] = {};
    if (bytes.size() < name_bytes) return violate(finder, fid, "a message that nobody published");
    std::memcpy(name, bytes.data(), name_bytes);
    if (name[0] != fid) return violate(finder, fid, "a message of another fid");
    const auto known = finders_[finder].known.find(fid);
    if (known == finders_[finder].known.end()) return; // it is not subscribed any more
    if (name[1] != known->second.life || name[2] != known->second.next) {
        violate(finder, fid,
                text_of(name[1], name[2]) + " in place of " +
                    text_of(known->second.life, known->second.next));
    }
    known->second = {.life = name[1], .next = name[2] + 1};
}

void FoundOracle::missing(std::uint32_t finder, std::uint64_t fid, std::uint64_t count) {
    lost_ += count;
    const auto known = finders_[finder].known.find(fid);
    if (known != finders_[finder].known.end()) known->second.next += count;
}

void FoundOracle::changed(std::uint32_t finder, std::uint32_t publisher, bool tail_known) {
    Finder& it = finders_[finder];
    if (!tail_known) ++it.unknown_tails;
    for (const auto& [fid, source] : fids_) {
        const auto known = it.known.find(fid);
        if (source.publisher != publisher || known == it.known.end()) continue;
        if (tail_known && known->second.next != source.numbers.at(known->second.life)) {
            violate(finder, fid, "the former tail is said to be known, and is not all there");
        }
        it.known.erase(known);
    }
}

void FoundOracle::served(std::uint32_t finder, std::uint64_t fid) {
    const Source& source = fids_.at(fid);
    const auto known = finders_[finder].known.find(fid);
    const bool all = known != finders_[finder].known.end() && known->second.life == source.life &&
                     known->second.next == source.numbers.at(source.life);
    if (!all) {
        oracle_.violate(RuleId::served_in_the_end, "process " + std::to_string(finder) +
                                                       " has not found all of fid " +
                                                       std::to_string(fid));
    }
}

void FoundOracle::unknown_tails(std::uint32_t finder, std::uint64_t said, std::uint64_t gone) {
    const std::uint64_t known = finders_[finder].unknown_tails;
    if (said >= known && said <= known + gone) return;
    oracle_.violate(
        RuleId::accounted_for,
        "process " + std::to_string(finder) + " says that " + std::to_string(said) +
            " tails are unknown, but this number was reported: " + std::to_string(known));
}

} // namespace netio::world
