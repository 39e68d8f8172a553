// SPDX-License-Identifier: Apache-2.0
#include "apps/etcd/etcd_registry.hpp"

#include "apps/program/commands.hpp"
#include "pubsub/discovery/announcement.hpp"
#include "pubsub/discovery/bus.hpp"

#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <set>
#include <utility>

namespace apps {
namespace {

using netio::Clock;
using netio::TimePoint;
using netio::pubsub::RegistryError;
using nlohmann::json;

std::string to_base64(const std::string& text) {
    std::string coded(4 * ((text.size() + 2) / 3) + 1, '\0');
    const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(coded.data()),
                                       reinterpret_cast<const unsigned char*>(text.data()),
                                       static_cast<int>(text.size()));
    coded.resize(static_cast<std::size_t>(length));
    return coded;
}

std::string from_base64(const std::string& coded) {
    std::string text(3 * (coded.size() / 4) + 1, '\0');
    const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                       reinterpret_cast<const unsigned char*>(coded.data()),
                                       static_cast<int>(coded.size()));
    if (length < 0) return {};
    const auto padding = coded.ends_with("==") ? 2U : coded.ends_with('=') ? 1U : 0U;
    text.resize(static_cast<std::size_t>(length) - padding);
    return text;
}

// The gateway encodes 64-bit numbers as texts.
std::int64_t number_of(const json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return 0;
    const auto& text = found->get_ref<const std::string&>();
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::string text_member(const json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

const json& member_of(const json& object, const char* key) {
    static const json nothing = json::object();
    const auto found = object.find(key);
    return found != object.end() && found->is_object() ? *found : nothing;
}

// Returns the list of key-value pairs. Entries that are not objects have neither key nor value.
json pairs_of(json answer) {
    const auto found = answer.find("kvs");
    if (found == answer.end() || !found->is_array()) return json::array();
    return std::move(*found);
}

constexpr std::size_t page_limit = 256; // publishers in an answer

// Returns the first key after all keys with this prefix.
std::string behind(std::string prefix) {
    ++prefix.back(); // the prefix ends with a slash
    return prefix;
}

} // namespace

EtcdRegistry::EtcdRegistry(const EtcdPlace& place, std::chrono::milliseconds lease,
                           std::chrono::milliseconds retry)
    : client_{place}, prefix_{"/" + place.prefix + "/"}, lease_{lease}, retry_{retry} {}

// --- publishers -----------------------------------------------------------------------------

void EtcdRegistry::grant() {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(lease_).count();
    const json answer = client_.ask("/v3/lease/grant", {{"TTL", std::to_string(seconds)}});
    lease_id_ = text_member(answer, "ID");
    if (lease_id_.empty()) throw RegistryError{client_.name() + " grants no lease"};
}

// The lease may have ended while this process was stopped, or because etcd lost its data.
void EtcdRegistry::put(const std::string& name, const std::string& text) {
    if (!lease_id_.empty()) {
        try {
            return write(name, text);
        } catch (const RegistryError&) { // if not due to the lease, the next write throws
            lease_id_.clear();
        }
    }
    grant();
    write(name, text);
}

void EtcdRegistry::write(const std::string& name, const std::string& text) {
    client_.ask("/v3/kv/put",
                {{"key", to_base64(key(name))}, {"value", to_base64(text)}, {"lease", lease_id_}});
}

bool EtcdRegistry::keep(const std::string&) {
    if (lease_id_.empty()) return false;
    const json answer = client_.ask("/v3/lease/keepalive", {{"ID", lease_id_}});
    if (number_of(member_of(answer, "result"), "TTL") > 0) return true;
    lease_id_.clear();
    return false;
}

std::optional<std::string> EtcdRegistry::get(const std::string& name) {
    const auto pairs = pairs_of(client_.ask("/v3/kv/range", {{"key", to_base64(key(name))}}));
    if (pairs.empty()) return {};
    return from_base64(text_member(pairs.front(), "value"));
}

void EtcdRegistry::remove(const std::string& name) {
    client_.ask("/v3/kv/deleterange", {{"key", to_base64(key(name))}});
}

// --- readers --------------------------------------------------------------------------------

json EtcdRegistry::all_keys() const {
    return {{"key", to_base64(prefix_)}, {"range_end", to_base64(behind(prefix_))}};
}

// Reads the announcements that have changed since a revision, in pages.
void EtcdRegistry::read(std::set<std::string> names, std::int64_t since, Visitor& visitor) {
    json page = all_keys();
    page["limit"] = std::to_string(page_limit);
    page["min_mod_revision"] = std::to_string(since);
    try {
        std::string next = names.empty() ? std::string{} : key(*names.begin());
        for (bool more = names.size() > 1; more && !names.empty();) {
            page["key"] = to_base64(next);
            const auto pairs = pairs_of(client_.ask("/v3/kv/range", page));
            more = pairs.size() == page_limit;
            for (const json& each : pairs) {
                const std::string whole = from_base64(text_member(each, "key"));
                next = whole + '\0';
                if (!whole.starts_with(prefix_)) continue;
                const std::string name = whole.substr(prefix_.size());
                if (names.erase(name) > 0)
                    visitor.on_text(name, from_base64(text_member(each, "value")));
            }
        }
    } catch (const RegistryError&) { // a page may be too large for one answer; read them one by one
    }
    for (const std::string& name : names) {
        try {
            const auto text = get(name);
            if (text) visitor.on_text(name, *text);
        } catch (const AnswerError& error) { // the others can still be read
            visitor.on_unreadable("the announcement '" + name + "' is ignored: " + error.what());
        }
    }
}

void EtcdRegistry::look(Visitor& visitor) {
    reads_ = true;
    reached_ = false; // until this function succeeds
    json names_only = all_keys();
    names_only["keys_only"] = true;
    const json names = client_.ask("/v3/kv/range", names_only);
    take_revision(names);
    std::int64_t since = revision_;
    std::set<std::string> there;
    std::set<std::string> changed;
    for (const json& each : pairs_of(names)) {
        const std::string whole = from_base64(text_member(each, "key"));
        if (!whole.starts_with(prefix_)) continue;
        const std::string name = whole.substr(prefix_.size());
        if (!netio::pubsub::is_announced_name(name)) continue;
        there.insert(name);
        const std::int64_t revision = number_of(each, "mod_revision");
        const auto known = known_.try_emplace(name, 0).first;
        if (std::exchange(known->second, revision) == revision) continue;
        changed.insert(name);
        since = std::min(since, revision);
    }
    // Removed publishers are reported first, because another publisher may have taken their fids.
    for (auto known = known_.begin(); known != known_.end();) {
        if (there.contains(known->first)) {
            ++known;
            continue;
        }
        visitor.on_removed(known->first);
        known = known_.erase(known);
    }
    try {
        read(changed, since, visitor);
        for (const std::string& name : there)
            if (!changed.contains(name) && !visitor.on_kept(name)) read({name}, since, visitor);
    } catch (const RegistryError&) {
        for (const std::string& name : changed)
            known_.erase(name); // to be read again
        throw;
    }
    reached_ = true;
}

// Another cluster or an earlier revision means that etcd has lost its data. The publishers are then
// not considered removed.
void EtcdRegistry::take_revision(const json& answer) {
    const json& header = member_of(answer, "header");
    const std::string cluster = text_member(header, "cluster_id");
    const std::int64_t revision = number_of(header, "revision");
    if (revision_ != 0 && (cluster != cluster_ || revision < revision_)) known_.clear();
    cluster_ = cluster;
    revision_ = revision;
}

void EtcdRegistry::wait(TimePoint until) {
    if (!reads_) return pause_until(until);
    if (!reached_) return pause_until(std::min(until, Clock::now() + retry_));
    if (interrupted_.exchange(false)) return;
    json create = all_keys();
    create["start_revision"] = std::to_string(revision_ + 1);
    // The first answer confirms the watch. An interrupt() before it is noticed at that point.
    bool has_changed = false;
    const auto goes_on = [&](const json& object) {
        const json& result = member_of(object, "result");
        has_changed = result.contains("events");
        return !interrupted_ && !has_changed && !result.contains("canceled");
    };
    const TimePoint end = std::min(until, Clock::now() + std::chrono::seconds{10});
    client_.listen("/v3/watch", {{"create_request", create}}, end - Clock::now(), goes_on);
    // If the server gave another answer or ended the watch, pause before the next request.
    if (!has_changed && !interrupted_) pause_until(std::min(end, Clock::now() + retry_));
    interrupted_ = false;
}

void EtcdRegistry::pause_until(TimePoint until) {
    const TimePoint end = std::min(until, Clock::now() + std::chrono::minutes{1});
    std::unique_lock lock{mutex_};
    changed_.wait_until(lock, end, [&] { return interrupted_.load(); });
    interrupted_ = false;
}

void EtcdRegistry::interrupt() noexcept {
    {
        const std::lock_guard lock{mutex_};
        interrupted_ = true;
    }
    changed_.notify_all();
    client_.interrupt();
}

namespace {

// Logs a warning once per process, because a process opens a bus for each of its loops.
void warn_once(const std::string& warning) {
    static std::mutex mutex;
    static std::set<std::string> told;
    const std::lock_guard lock{mutex};
    if (!warning.empty() && told.insert(warning).second) spdlog::warn("bus: {}", warning);
}

} // namespace

void add_etcd_bus() {
    netio::pubsub::add_bus_kind(
        {.is_one = is_etcd_place,
         .open = [](std::string_view where, const netio::pubsub::BusOptions& options)
             -> std::unique_ptr<netio::pubsub::Registry> {
             const EtcdPlace place = parse_etcd_place(where);
             warn_once(warning_about(place));
             return std::make_unique<EtcdRegistry>(place, options.lease, options.poll);
         },
         .spelling = "etcd://HOST:PORT[/PREFIX]"});
}

} // namespace apps
