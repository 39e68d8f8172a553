// SPDX-License-Identifier: Apache-2.0
#include "apps/top/look.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/process.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/base/time.hpp"
#include "pubsub/discovery/bus.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace apps::top {
namespace {

struct Search {
    std::vector<SocketAddress> found;
    std::string error;
    bool is_done = false;
};

} // namespace

struct NameSearch::Searches {
    Searches(Resolve by, std::size_t limit_count) : resolve{std::move(by)}, limit{limit_count} {}

    void run(const std::string& host, const std::shared_ptr<Search>& search) {
        std::vector<SocketAddress> found;
        std::string error;
        try {
            found = resolve(host);
        } catch (const std::exception& problem) {
            error = problem.what();
        }
        const std::lock_guard lock{mutex};
        search->found = std::move(found);
        search->error = std::move(error);
        search->is_done = true;
        changed.notify_all();
    }
    // If the limit is reached, removes finished lookups that no caller has fetched.
    bool has_room() {
        if (all.size() >= limit)
            std::erase_if(all, [](const auto& each) { return each.second->is_done; });
        return all.size() < limit;
    }

    std::mutex mutex;
    std::condition_variable changed;
    Resolve resolve;
    std::size_t limit;
    std::map<std::string, std::shared_ptr<Search>> all; // running, or not fetched yet
};

NameSearch::NameSearch()
    : NameSearch{[](const std::string& host) { return addresses_of({.host = host, .port = 0}); }} {}

NameSearch::NameSearch(Resolve resolve, std::size_t limit)
    : searches_{std::make_shared<Searches>(std::move(resolve), limit)} {}

std::vector<SocketAddress> NameSearch::find(const netio::Address& address, netio::TimePoint until) {
    try {
        return addresses_of(address, Lookup::numeric);
    } catch (const std::runtime_error&) { // not a numeric address
    }
    Searches& searches = *searches_;
    std::unique_lock lock{searches.mutex};
    std::shared_ptr<Search> search;
    const auto began = [&] {
        if (const auto known = searches.all.find(address.host); known != searches.all.end()) {
            search = known->second;
        } else if (searches.has_room()) {
            search = std::make_shared<Search>();
            const netio::AllSignalsBlocked blocked;
            std::thread{[all = searches_, host = address.host, search] {
                all->run(host, search);
            }}.detach();
            searches.all.emplace(address.host, search);
        }
        return search != nullptr;
    };
    const auto is_done = [&] { return search->is_done; };
    if (!searches.changed.wait_until(lock, until, began))
        throw std::runtime_error{"no answer: too many names are looked up"};
    if (!searches.changed.wait_until(lock, until, is_done))
        throw std::runtime_error{"no answer: its name was not resolved in time"};
    if (const auto known = searches.all.find(address.host);
        known != searches.all.end() && known->second == search)
        searches.all.erase(known);
    if (!search->error.empty()) throw std::runtime_error{"no answer: " + search->error};
    std::vector<SocketAddress> found = search->found;
    for (SocketAddress& each : found)
        each.set_port(address.port);
    return found;
}

namespace {

constexpr std::size_t address_limit = 8; // addresses tried per name

[[noreturn]] void fail(const std::string& why) {
    throw std::runtime_error{"no answer: " + why};
}

[[noreturn]] void fail_with_errno() {
    fail(std::generic_category().message(errno));
}

void wait_for(std::span<pollfd> any, netio::TimePoint until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - netio::Clock::now());
    const auto time = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    if (time == 0 || ::poll(any.data(), any.size(), time) == 0)
        fail("not in time; is it the address of --metrics?");
}

// Returns 0, or the errno that prevents the connection.
int error_of(const Descriptor& socket) {
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// Connects to all addresses at the same time, so that an unreachable one does not delay the others.
// If none can be reached, throws the error of the best address.
Descriptor connected_to(std::span<const SocketAddress> addresses, netio::TimePoint until) {
    // One per address, in the same order.
    std::vector<Descriptor> sockets;
    std::vector<pollfd> trying; // failed ones have no descriptor; poll() skips them
    std::vector<int> errors;
    for (const SocketAddress& address :
         addresses.first(std::min(addresses.size(), address_limit))) {
        Descriptor socket{
            ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
        const bool connected =
            socket.is_open() && ::connect(socket.get(), address.get(), address.size()) == 0;
        if (connected) return socket;
        const bool is_tried = socket.is_open() && errno == EINPROGRESS;
        errors.push_back(is_tried ? 0 : errno);
        trying.push_back({.fd = is_tried ? socket.get() : -1, .events = POLLOUT, .revents = 0});
        sockets.push_back(std::move(socket));
    }
    for (auto left = std::ranges::count(errors, 0); left > 0;) {
        wait_for(trying, until);
        for (std::size_t at = 0; at < sockets.size(); ++at) {
            if (trying[at].revents == 0) continue;
            errors[at] = error_of(sockets[at]);
            if (errors[at] == 0) return std::move(sockets[at]);
            trying[at] = {.fd = -1, .events = 0, .revents = 0};
            --left;
        }
    }
    const std::string why = std::generic_category().message(errors.front());
    fail(errors.front() == ECONNREFUSED ? why + "; start the program with --metrics" : why);
}

// Reads until the peer ends the connection.
void read_all(const Descriptor& socket, const FetchLimits& limits, Answer& answer) {
    std::vector<char> piece(65536);
    for (;;) {
        pollfd readable{.fd = socket.get(), .events = POLLIN, .revents = 0};
        wait_for({&readable, 1}, limits.until);
        const ssize_t got = ::recv(socket.get(), piece.data(), piece.size(), 0);
        if (got == 0) return;
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got < 0) fail_with_errno();
        const std::string_view news{piece.data(), static_cast<std::size_t>(got)};
        if (answer.text().size() + news.size() > limits.answer_bytes || !answer.append(news))
            fail("it is too long");
    }
}

} // namespace

void fetch_figures(std::span<const SocketAddress> addresses, const FetchLimits& limits,
                   const std::function<void(std::string_view text)>& show) {
    const Descriptor socket = connected_to(addresses, limits.until);
    // With HTTP 1.0 the server answers in one piece, and then closes the connection.
    constexpr std::string_view request = "GET /metrics HTTP/1.0\r\n\r\n";
    if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
        fail_with_errno();
    Answer answer{limits.room};
    read_all(socket, limits, answer);
    const std::string_view text = answer.text();
    const std::size_t head = text.find("\r\n\r\n");
    if (!text.starts_with("HTTP/1.") || head == std::string::npos) fail("not an HTTP answer");
    const std::string status{text.substr(std::min<std::size_t>(head, 9), 3)};
    if (status != "200") {
        const bool is_number =
            std::ranges::all_of(status, [](char c) { return c >= '0' && c <= '9'; });
        throw std::runtime_error{"answers " + (is_number ? status : "nonsense")};
    }
    show(text.substr(head + 4));
}

namespace {

// The address may come from an announcement, so it is not trusted.
Look look_at(const std::string& source, NameSearch& names, const FetchLimits& limits) {
    Look look{.source = source, .error = {}, .rows = {}};
    try {
        fetch_figures(names.find(peer_address(source), limits.until), limits,
                      [&](std::string_view text) { look.rows = rows_of(text); });
    } catch (const std::exception& error) {
        look.error = error.what();
    }
    look.seconds = std::chrono::duration<double>(netio::Clock::now().time_since_epoch()).count();
    return look;
}

} // namespace

std::vector<Look> look_at(const std::vector<std::string>& sources, NameSearch& names,
                          const AskLimits& limits) {
    std::vector<Look> looks(sources.size());
    AnswerRoom room{limits.bytes_together};
    FetchLimits each = limits.each;
    each.room = &room;
    std::atomic<std::size_t> next = 0;
    const auto ask = [&] {
        for (std::size_t at = next++; at < sources.size(); at = next++)
            looks[at] = look_at(sources[at], names, each);
    };
    {
        std::vector<std::jthread> others; // further threads
        try {
            const netio::AllSignalsBlocked blocked;
            for (std::size_t i = 1; i < std::min(limits.at_once, sources.size()); ++i)
                others.emplace_back(ask);
        } catch (const std::system_error&) { // no more threads: use the existing ones
        }
        ask();
    }
    return looks;
}

struct BackgroundLook::Shared {
    Shared() : event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (!event.is_open())
            throw std::system_error{errno, std::generic_category(),
                                    "cannot start to fetch metrics"};
    }
    std::vector<Look> take() {
        eventfd_t count = 0;
        ::eventfd_read(event.get(), &count);
        const std::lock_guard lock{mutex};
        return std::move(looks);
    }

    const Descriptor event;
    std::mutex mutex;
    std::vector<Look> looks;
};

BackgroundLook::BackgroundLook(netio::EventLoop& loop,
                               std::function<void(std::vector<Look>)> on_seen)
    : shared_{std::make_shared<Shared>()}, watch_{loop, shared_->event.get(),
                                                  netio::DescriptorWatch::Interest::readable,
                                                  [this, on_seen = std::move(on_seen)] {
                                                      on_seen(shared_->take());
                                                  }} {}

void BackgroundLook::start(std::vector<std::string> sources) {
    start_thread_without_signals(
        [shared = shared_, sources = std::move(sources), names = names_]() mutable {
            std::vector<Look> looks = look_at(sources, names);
            const std::lock_guard lock{shared->mutex};
            shared->looks = std::move(looks);
            ::eventfd_write(shared->event.get(), 1);
        });
}

namespace {

// Returns false only for a loopback address of another host. An unreadable address is kept:
// fetching from it shows the error.
bool leads_there(const netio::pubsub::Announcement& announcement) {
    try {
        return netio::pubsub::leads_there_from(netio::pubsub::this_host(), announcement,
                                               peer_address(announcement.metrics));
    } catch (const std::invalid_argument&) {
        return true;
    }
}

} // namespace

BusSources::BusSources(netio::EventLoop& loop, const std::string& where)
    : loop_{loop}, bus_{netio::pubsub::open_bus(loop, where)} {
    bus_->watch(*this);
}

bool BusSources::read() {
    reading_ = true;
    end_timer_.start(patience);
    loop_.run();
    end_timer_.cancel();
    reading_ = false;
    return caught_up_;
}

std::vector<Source> BusSources::sources() const {
    std::vector<Source> sources;
    for (const auto& [name, address] : addresses_)
        sources.push_back({.address = address, .name = name});
    return sources;
}

void BusSources::on_announced(const netio::pubsub::Announcement& announcement) {
    addresses_.erase(announcement.name);
    if (announcement.metrics.empty()) return;
    if (leads_there(announcement)) {
        addresses_[announcement.name] = announcement.metrics;
    } else {
        log_.info(fmt::format("{} shows its metrics at {} on {} only", announcement.name,
                              announcement.metrics, announcement.host));
    }
}

void BusSources::on_trouble(const std::string& what) {
    log_.warn("bus: " + what);
}

void BusSources::on_caught_up() {
    caught_up_ = true;
    if (reading_) loop_.stop();
}

} // namespace apps::top
