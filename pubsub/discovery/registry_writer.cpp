// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/registry_writer.hpp"

#include <utility>

namespace netio::pubsub::inline v0_3 {

void RegistryWriter::update(Announcement announcement) {
    announcement.name = announcement_.name;
    announcement.instance = announcement_.instance;
    announcement.counter = announcement_.counter;
    announcement.lease = announcement_.lease;
    announcement_ = std::move(announcement);
    written_ = false;
}

void RegistryWriter::refresh(Registry& registry, TimePoint now) {
    try {
        const std::optional<Announcement> there = stored(registry);
        if (!lease_.may_write(there, registry.has_leases(), now)) {
            written_ = false;
            return warn("another publisher announces itself as '" + announcement_.name +
                            "' (host '" + there->host + "', process " + std::to_string(there->pid) +
                            "), so this one is not found; give each a different name",
                        now);
        }
        if (written_ && there && registry.keep(announcement_.name)) return;
        ++announcement_.counter;
        written_ = false;
        registry.put(announcement_.name, to_text(announcement_));
        written_ = true;
    } catch (const RegistryError& error) {
        warn(std::string{error.what()} + "; new subscribers may not find this publisher", now);
    }
}

void RegistryWriter::withdraw(Registry& registry) {
    try {
        const std::optional<Announcement> there = stored(registry);
        if (there && there->instance == announcement_.instance) registry.remove(announcement_.name);
    } catch (const RegistryError& error) { // the lease ends by itself
        return;
    }
}

std::vector<std::string> RegistryWriter::take_troubles() {
    return std::exchange(troubles_, {});
}

// A malformed announcement counts as none.
std::optional<Announcement> RegistryWriter::stored(Registry& registry) const {
    const std::optional<std::string> text = registry.get(announcement_.name);
    if (!text) return {};
    try {
        return parse_announcement(*text);
    } catch (const AnnouncementError&) {
        return {};
    }
}

void RegistryWriter::warn(const std::string& trouble, TimePoint now) {
    if (auto line = warnings_.line_for(trouble, now);
        line && troubles_.size() < RateLimitedWarnings::limit)
        troubles_.push_back(std::move(*line));
}

} // namespace netio::pubsub::inline v0_3
