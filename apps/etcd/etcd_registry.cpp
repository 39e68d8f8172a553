// SPDX-License-Identifier: Apache-2.0
#include "apps/etcd/etcd_registry.hpp"

#include "apps/common/io.hpp"
#include "apps/program/commands.hpp"
#include "netio/access/crypto.hpp"
#include "netio/access/host.hpp"
#include "netio/access/key_source.hpp"
#include "netio/base/signals_blocked.hpp"
#include "pubsub/discovery/announcement.hpp"
#include "pubsub/discovery/bounded_json.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/discovery/registry.hpp"

#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <spdlog/spdlog.h>

#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

namespace apps {
namespace {

constexpr std::string_view plain = "etcd://";
constexpr std::string_view with_tls = "etcds://";

[[noreturn]] void refuse(std::string_view text, const std::string& problem) {
    throw std::invalid_argument{
        "'" + std::string{text} + "' " + problem +
        "; allowed: etcd://HOST:PORT[/PREFIX][?user=FILE&ca=FILE], etcds:// with TLS"};
}

void read_parameters(std::string_view parameters, std::string_view text, EtcdPlace& place) {
    while (!parameters.empty()) {
        const std::size_t end = std::min(parameters.find('&'), parameters.size());
        const std::string_view one = parameters.substr(0, end);
        parameters.remove_prefix(std::min(end + 1, parameters.size()));
        const std::size_t equals = one.find('=');
        const std::string_view key = one.substr(0, equals);
        if (equals == std::string_view::npos || equals + 1 == one.size())
            refuse(text, "has a parameter without a value");
        if (key == "user") {
            place.user_file = one.substr(equals + 1);
        } else if (key == "ca") {
            place.ca_file = one.substr(equals + 1);
        } else {
            refuse(text, "has a parameter '" + std::string{key} + "'");
        }
    }
}

} // namespace

bool is_etcd_place(std::string_view text) noexcept {
    return text.starts_with(plain) || text.starts_with(with_tls);
}

std::string warning_about(const EtcdPlace& place) {
    if (place.user_file.empty() || place.tls || place.address.host == "localhost") return {};
    const auto host = netio::access::parse_host(place.address.host);
    if (host && netio::access::is_loopback(*host)) return {};
    return "the password in '" + place.user_file + "' is sent unencrypted to etcd at " +
           to_string(place.address) + "; use etcds:// (TLS)";
}

EtcdPlace parse_etcd_place(std::string_view text) {
    if (!is_etcd_place(text)) refuse(text, "is not an etcd address");
    EtcdPlace place;
    place.tls = text.starts_with(with_tls);
    std::string_view rest = text.substr(place.tls ? with_tls.size() : plain.size());
    const std::size_t question = rest.find('?');
    if (question != std::string_view::npos) {
        read_parameters(rest.substr(question + 1), text, place);
        rest = rest.substr(0, question);
    }
    const std::size_t slash = rest.find('/');
    if (slash != std::string_view::npos) {
        const std::string_view prefix = rest.substr(slash + 1);
        const auto fits = [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                   std::string_view{"._-/"}.find(c) != std::string_view::npos;
        };
        if (prefix.size() > 128 || !std::ranges::all_of(prefix, fits))
            refuse(text, "has a prefix that is not up to 128 letters, digits and ._-/");
        if (!prefix.empty()) place.prefix = prefix;
        rest = rest.substr(0, slash);
    }
    try {
        place.address = netio::parse_address(rest);
    } catch (const std::invalid_argument&) {
        refuse(text, "has no HOST:PORT");
    }
    if (place.address.port == 0) refuse(text, "has no port");
    return place;
}

namespace {

using netio::pubsub::RegistryError;
using nlohmann::json;

constexpr const char* json_type = "application/json";

void wipe(std::string& text) {
    netio::access::wipe(std::as_writable_bytes(std::span{text}));
}

httplib::Request post(const std::string& path, const std::string& body, const std::string& token) {
    httplib::Request request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    request.set_header("Content-Type", json_type);
    if (!token.empty()) request.set_header("Authorization", token);
    return request;
}

// Reads NAME:PASSWORD from the first line of a file. The file must follow the rules for key files.
std::pair<std::string, std::string> read_user(const std::string& path) {
    netio::access::SystemKeySource source;
    netio::access::KeySource::Content content = source.read(path);
    const std::string problem =
        netio::access::judge_secret_file(content.before, source.user(), path);
    if (!problem.empty()) throw RegistryError{problem};
    if (!content.error.empty()) throw RegistryError{path + ": cannot be read: " + content.error};
    const std::string_view line = std::string_view{content.text}.substr(0, content.text.find('\n'));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0)
        throw RegistryError{"'" + path + "' does not begin with NAME:PASSWORD"};
    std::pair<std::string, std::string> user{line.substr(0, colon), line.substr(colon + 1)};
    wipe(content.text);
    return user;
}

// Ends a request that takes too long. The timeouts of httplib apply to each byte, so a server could
// block a client for an unlimited time. httplib also does not limit the header lines of an answer.
class Deadline {
  public:
    Deadline(httplib::Client& client, netio::Duration time) {
        const netio::AllSignalsBlocked blocked;
        thread_ = std::thread{[this, &client, time] { watch(client, time); }};
    }
    ~Deadline() {
        {
            const std::lock_guard lock{mutex_};
            done_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;
    bool has_passed() const noexcept { return passed_; }

  private:
    void watch(httplib::Client& client, netio::Duration time) {
        std::unique_lock lock{mutex_};
        while (!changed_.wait_for(lock, time, [&] { return done_; })) {
            passed_ = true;
            lock.unlock();
            client.stop();
            lock.lock();
            time = std::chrono::milliseconds{100}; // it may have been connecting
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false;
    std::atomic<bool> passed_{false};
    std::thread thread_; // last: it uses the other members
};

} // namespace

struct EtcdClient::Connections {
    explicit Connections(const std::string& url) : asking{url}, listening{url} {}

    httplib::Client asking;
    httplib::Client listening;
};

EtcdClient::EtcdClient(EtcdPlace place, const Limits& limits)
    : place_{std::move(place)}, limits_{limits}, name_{(place_.tls ? "etcds://" : "etcd://") +
                                                       to_string(place_.address)},
      connections_{std::make_unique<Connections>((place_.tls ? "https://" : "http://") +
                                                 to_string(place_.address))} {
    // The password and the token pass through memory that is not cleared.
    if (!place_.user_file.empty()) forbid_core_dumps();
    for (httplib::Client* const client : {&connections_->asking, &connections_->listening}) {
        client->set_connection_timeout(limits_.silence);
        client->set_read_timeout(limits_.silence);
        client->set_write_timeout(limits_.silence);
        if (!place_.tls) continue;
        client->enable_server_certificate_verification(true);
        if (!place_.ca_file.empty()) client->set_ca_cert_path(place_.ca_file.c_str());
    }
    connections_->asking.set_keep_alive(true);
}

EtcdClient::~EtcdClient() = default;

json EtcdClient::ask(const std::string& path, const json& request) {
    if (token_.empty() && !place_.user_file.empty()) authenticate();
    const std::string body = request.dump();
    int status = 0;
    json answer = ask_once(path, body, status);
    if (status != 200 && !token_.empty()) { // for instance, the token has expired
        authenticate();
        answer = ask_once(path, body, status);
    }
    if (status == 200 && answer.is_object()) return answer;
    const json message = answer.is_object() ? answer.value("message", json{}) : json{};
    throw RegistryError{name_ + " answers " + std::to_string(status) +
                        (message.is_string()
                             ? " (" + message.get<std::string>().substr(0, 256) + ")"
                             : std::string{})};
}

json EtcdClient::ask_once(const std::string& path, const std::string& body, int& status) {
    httplib::Request request = post(path, body, token_);
    std::string answer;
    bool is_too_long = false;
    request.content_receiver = [&](const char* data, std::size_t bytes, std::uint64_t,
                                   std::uint64_t) {
        is_too_long = answer.size() + bytes > limits_.answer_bytes;
        if (is_too_long) return false;
        answer.append(data, bytes);
        return true;
    };
    status = 0;
    request.response_handler = [&](const httplib::Response& response) {
        status = response.status;
        return true;
    };
    const Deadline deadline{connections_->asking, limits_.answer_time};
    const httplib::Result result = connections_->asking.send(request);
    if (is_too_long) {
        throw AnswerError{name_ + " sent an answer of more than " +
                          std::to_string(limits_.answer_bytes) + " bytes"};
    }
    if (deadline.has_passed()) throw RegistryError{name_ + " did not complete its answer in time"};
    // A refusal ends with a trailer, which httplib 0.11 does not support; the answer is complete by
    // then.
    const bool refused = status >= 400 && !answer.empty();
    if (!result && !refused)
        throw RegistryError{"cannot reach " + name_ + ": " + to_string(result.error())};
    if (answer.empty()) return {};
    try {
        return parse(std::string_view{answer}.substr(0, answer.find('\n'))); // the first object
    } catch (const netio::pubsub::JsonError& error) {
        if (status != 200) return {}; // possibly a proxy's page
        throw AnswerError{name_ + " sent an invalid answer: " + error.what()};
    }
}

json EtcdClient::parse(std::string_view text) const {
    return netio::pubsub::parse_bounded(
        text, {.depth = limits_.answer_depth, .values = limits_.answer_values});
}

void EtcdClient::authenticate() {
    token_.clear();
    auto [user, password] = read_user(place_.user_file);
    std::string body = json{{"name", user}, {"password", password}}.dump(
        -1, ' ', false, json::error_handler_t::replace);
    wipe(password);
    int status = 0;
    const json answer = ask_once("/v3/auth/authenticate", body, status);
    wipe(body);
    if (status != 200 || !answer.is_object() || !answer.contains("token") ||
        !answer["token"].is_string())
        throw RegistryError{name_ + " rejects the user of '" + place_.user_file + "'"};
    token_ = answer["token"].get<std::string>();
}

void EtcdClient::listen(const std::string& path, const json& request, netio::Duration time,
                        const std::function<bool(const json&)>& take) {
    httplib::Client& client = connections_->listening;
    client.set_read_timeout(std::max(std::chrono::duration_cast<std::chrono::microseconds>(time),
                                     std::chrono::microseconds{1000}));
    httplib::Request asked = post(path, request.dump(), token_);
    std::string left;
    asked.content_receiver = [&](const char* data, std::size_t bytes, std::uint64_t,
                                 std::uint64_t) {
        if (left.size() + bytes > limits_.answer_bytes) return false;
        left.append(data, bytes);
        for (std::size_t end = left.find('\n'); end != std::string::npos; end = left.find('\n')) {
            json object;
            try {
                object = parse(std::string_view{left}.substr(0, end));
            } catch (const netio::pubsub::JsonError&) { // the rest is unusable, too
                return false;
            }
            left.erase(0, end + 1);
            if (!object.is_object() || !take(object)) return false;
        }
        return true;
    };
    const Deadline deadline{client, time + limits_.answer_time};
    static_cast<void>(client.send(asked));
    client.stop();
}

void EtcdClient::interrupt() noexcept {
    connections_->listening.stop();
}

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
