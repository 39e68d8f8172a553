// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/bus.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/base/never_destroyed.hpp"
#include "netio/base/option_check.hpp"
#include "pubsub/discovery/directory_registry.hpp"
#include "pubsub/discovery/registry_reader.hpp"
#include "pubsub/discovery/registry_writer.hpp"

#include <array>
#include <mutex>
#include <optional>
#include <random>
#include <unistd.h>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

class BusDiscovery final : public Discovery {
  public:
    BusDiscovery(EventLoop& loop, std::unique_ptr<Registry> registry, const BusOptions& options)
        : loop_{loop}, registry_{std::move(registry)}, options_{options} {}
    ~BusDiscovery() override {
        if (destroyed_ != nullptr) *destroyed_ = true;
    }

    void watch(Handler& handler) override {
        if (registry_ == nullptr) throw std::logic_error{"Discovery::watch is called twice"};
        handler_ = &handler;
        thread_.emplace(
            loop_, std::move(registry_),
            [mail = mail_, options = options_](RegistryThread::Shared& shared) {
                read(shared, *mail, options);
            },
            [this] { return take(); });
    }
    void unwatch() noexcept override { handler_ = nullptr; }

  private:
    struct Mail {
        std::mutex mutex;
        RegistryChanges news;
    };

    static void read(RegistryThread::Shared& shared, Mail& mail, const BusOptions& options) {
        RegistryReader reader{options.lease, options.publisher_limit};
        while (!shared.ended()) {
            reader.look(shared.registry(), Clock::now());
            RegistryChanges news = reader.take_news();
            if (!news.empty()) {
                const std::lock_guard lock{mail.mutex};
                mail.news.add(std::move(news));
                shared.notify();
            }
            shared.registry().wait(reader.next_expiry());
        }
    }

    // A handler may destroy this, or call unwatch().
    bool take() {
        {
            const std::lock_guard lock{mail_->mutex};
            news_.add(std::exchange(mail_->news, {}));
        }
        const DestructionWatch watch{destroyed_};
        if (handler_ == nullptr) news_ = {};
        while (!news_.troubles.empty()) {
            const std::string trouble = std::move(news_.troubles.front());
            news_.troubles.erase(news_.troubles.begin());
            handler_->on_warning(trouble);
            if (watch.destroyed() || handler_ == nullptr) return false;
        }
        while (!news_.publishers.empty()) {
            const auto first = news_.publishers.extract(news_.publishers.begin());
            if (first.mapped()) {
                handler_->on_announced(*first.mapped());
            } else {
                handler_->on_gone(first.key());
            }
            if (watch.destroyed() || handler_ == nullptr) return false;
            if (loop_.time_is_up()) break;
        }
        if (!news_.publishers.empty()) return true;
        if (std::exchange(news_.caught_up, false)) handler_->on_caught_up();
        return false;
    }

    EventLoop& loop_;
    std::unique_ptr<Registry> registry_; // until watch()
    BusOptions options_;
    Handler* handler_ = nullptr;
    std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
    RegistryChanges news_; // taken, and not yet reported
    bool* destroyed_ = nullptr;
    std::optional<RegistryThread> thread_;
};

class BusAnnouncer final : public Announcer {
  public:
    BusAnnouncer(EventLoop& loop, std::unique_ptr<Registry> registry,
                 const Announcement& announcement, Handler& handler, const BusOptions& options)
        : handler_{handler}, thread_{loop, std::move(registry),
                                     [mail = mail_, announcement,
                                      options](RegistryThread::Shared& shared) {
                                         keep(shared, mail, announcement, options);
                                     },
                                     [this] { return take(); }} {}
    ~BusAnnouncer() override {
        if (destroyed_ != nullptr) *destroyed_ = true;
    }

    void update(Announcement announcement) override {
        validate(announcement);
        {
            const std::lock_guard lock{mail_->mutex};
            mail_->update = std::move(announcement);
        }
        thread_.interrupt();
    }

  private:
    struct Mail {
        std::mutex mutex;
        std::optional<Announcement> update;
        std::vector<std::string> troubles; // up to RateLimitedWarnings::line_limit
        bool written = false;              // since the last report

        void add_trouble(std::string trouble) {
            const std::lock_guard lock{mutex};
            if (troubles.size() < RateLimitedWarnings::line_limit)
                troubles.push_back(std::move(trouble));
        }
    };

    static void keep(RegistryThread::Shared& shared, const std::shared_ptr<Mail>& shared_mail,
                     const Announcement& announcement, const BusOptions& options) {
        Mail& mail = *shared_mail;
        RegistryWriter writer{announcement, options.lease};
        // Resolving a name may take longer than the lease, so it may outlast this.
        HostCheck hosts{[shared_mail, news = shared.news()](const std::string& warning) {
            shared_mail->add_trouble(warning);
            news->call();
        }};
        hosts.look(announcement);
        bool was_written = false;
        while (!shared.ended()) {
            const TimePoint now = Clock::now();
            std::optional<Announcement> update;
            {
                const std::lock_guard lock{mail.mutex};
                update = std::exchange(mail.update, {});
            }
            if (update) {
                hosts.look(*update);
                writer.update(*std::move(update));
            }
            writer.refresh(shared.registry(), now);
            report(shared, mail, writer.take_troubles());
            if (writer.is_written() && !std::exchange(was_written, true)) {
                const std::lock_guard lock{mail.mutex};
                mail.written = true;
                shared.notify();
            }
            shared.registry().wait(now + options.lease / 3);
        }
        writer.withdraw(shared.registry());
    }
    static void report(RegistryThread::Shared& shared, Mail& mail,
                       std::vector<std::string> troubles) {
        if (troubles.empty()) return;
        for (std::string& trouble : troubles)
            mail.add_trouble(std::move(trouble));
        shared.notify();
    }

    bool take() {
        std::vector<std::string> troubles;
        bool written = false;
        {
            const std::lock_guard lock{mail_->mutex};
            troubles = std::exchange(mail_->troubles, {});
            written = std::exchange(mail_->written, false);
        }
        const DestructionWatch watch{destroyed_};
        if (written) handler_.on_written();
        if (watch.destroyed()) return false;
        for (const std::string& trouble : troubles) {
            handler_.on_warning(trouble);
            if (watch.destroyed()) return false;
        }
        return false;
    }

    Handler& handler_;
    std::shared_ptr<Mail> mail_ = std::make_shared<Mail>();
    bool* destroyed_ = nullptr;
    RegistryThread thread_;
};

void check(const BusOptions& options) {
    constexpr std::uint64_t hour_ms = 3'600'000;
    const auto ms = [](std::chrono::milliseconds time) {
        return static_cast<std::uint64_t>(time.count());
    };
    require_between("lease", ms(options.lease), 100, hour_ms);
    require_between("poll", ms(options.poll), 10, hour_ms);
    require_between("publisher_limit", options.publisher_limit, 1, 1'000'000);
}

// The kinds of add_bus_kind().
struct BusKinds {
    static BusKinds& of_the_process() {
        static NeverDestroyed<BusKinds> kinds;
        return *kinds;
    }
    std::mutex mutex;
    std::vector<BusKind> list;
};

std::unique_ptr<Registry> open_registry(std::string_view where, const BusOptions& options) {
    check(options);
    BusKinds& kinds = BusKinds::of_the_process();
    const std::lock_guard lock{kinds.mutex};
    std::string allowed = "a directory";
    for (const BusKind& kind : kinds.list) {
        if (kind.is_one(where)) return kind.open(where, options);
        allowed += ", " + kind.spelling;
    }
    if (where.empty() || where.find('\0') != std::string_view::npos ||
        where.find("://") != std::string_view::npos) {
        const bool etcd = where.starts_with("etcd");
        throw std::invalid_argument{
            "'" + std::string{where} + "' is no bus; allowed: " + allowed +
            (etcd ? "; etcd is not part of the library: add_bus_kind() adds it, as apps/etcd does"
                  : "")};
    }
    return std::make_unique<DirectoryRegistry>(std::string{where}, options.poll);
}

} // namespace

Discovery::~Discovery() = default;
Announcer::~Announcer() = default;

std::unique_ptr<Discovery> open_bus(EventLoop& loop, std::string_view where, BusOptions options) {
    return std::make_unique<BusDiscovery>(loop, open_registry(where, options), options);
}

std::unique_ptr<Announcer> announce(EventLoop& loop, std::string_view where,
                                    const Announcement& announcement, Announcer::Handler& handler,
                                    BusOptions options) {
    static_cast<void>(to_text(announcement)); // checks all limits
    return std::make_unique<BusAnnouncer>(loop, open_registry(where, options), announcement,
                                          handler, options);
}

void add_bus_kind(const BusKind& kind) {
    BusKinds& kinds = BusKinds::of_the_process();
    const std::lock_guard lock{kinds.mutex};
    kinds.list.push_back(kind);
}

std::string this_host() {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
    return host.data();
}

std::uint64_t draw_instance() {
    std::random_device source;
    return std::uint64_t{source()} << 32 | source();
}

} // namespace netio::pubsub::inline v0_3
