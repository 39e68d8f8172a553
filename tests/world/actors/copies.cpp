// SPDX-License-Identifier: Apache-2.0

// Processes that copy files to another process, and the server that stores them.

#include "apps/copy/sender.hpp"
#include "apps/copy/server.hpp"
#include "tests/world/actors/actor.hpp"
#include "tests/world/actors/sim_disk.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace netio::world {
namespace {

// Common part of both: a disk that may be slow, blocked or full.
class DiskActor : public Actor {
  public:
    using Actor::Actor;
    void behave() override {
        Actor::behave();
        *disk_ = {};
        disk_healed_.cancel();
    }

  protected:
    apps::copy::MakeDisk make_disk() const {
        return [state = disk_](EventLoop& loop) { return std::make_unique<SimDisk>(loop, state); };
    }
    void spoil_disk(const Step& step) {
        const std::chrono::microseconds time{step.with.get("us")};
        world_.oracle().lasts(Trouble::broken, number_, time);
        const std::int64_t mode = step.with.get("mode");
        if (mode == 0) disk_->per_task = std::chrono::milliseconds{20};
        if (mode == 1) disk_->full = true;
        if (mode == 2) disk_->stuck_until = world_.oracle().now() + time;
        disk_healed_.start(time);
    }

  private:
    std::shared_ptr<DiskState> disk_ = std::make_shared<DiskState>();
    Timer disk_healed_{process_.loop, [this] { *disk_ = {}; }};
};

class CopyServerActor final : public DiskActor {
  public:
    CopyServerActor(World& world, Process& process) : DiskActor{world, process} {
        apps::copy::Server::Options options{
            .folder = world.files().folder_of(number_).string(),
            .listen = {World::address_of(number_)},
            .allow_remote_anonymous = true,
            .keys = world.keys_of_server(process.loop),
            .session = {.buffer_count = static_cast<std::size_t>(option("buffers", 2)),
                        .idle_limit = std::chrono::milliseconds{option("idle_ms", 60'000)},
                        .rights = {},
                        .remote_writes = option("trusts") != 0 ? stream::RemoteWrites::trusted
                                                               : stream::RemoteWrites::guarded,
                        .disk = make_disk()}};
        server_ = std::make_unique<apps::copy::Server>(process.loop, process.transport, options);
    }
    // Also runs after a kill.
    ~CopyServerActor() override {
        server_.reset();
        world_.files().check_all(number_);
    }
    CopyServerActor(const CopyServerActor&) = delete;
    CopyServerActor& operator=(const CopyServerActor&) = delete;

    void close() override {
        world_.oracle().happens(Trouble::gone, number_);
        destroy();
    }
    bool is_closed() const override { return server_ == nullptr; }
    std::string feature() const override { return "copy-server"; }
    std::string state() const override {
        if (server_ == nullptr) return "ended";
        return server_->sender_count() > 0 ? "receiving" : "alone";
    }

  private:
    void carry_out(const Step& step) override {
        if (step.what == "disk") return spoil_disk(step);
        if (step.what == "busy") return dawdle(std::chrono::microseconds{step.with.get("us")});
        if (step.what == "destroy" || step.what == "abort" || step.what == "close") close();
    }
    void destroy() override {
        note("destroy");
        server_.reset();
    }
    void abort() override { destroy(); }

    std::unique_ptr<apps::copy::Server> server_;
};

class CopyActor final : public DiskActor, public apps::copy::Sender::Handler {
  public:
    CopyActor(World& world, Process& process)
        : DiskActor{world, process}, server_{static_cast<std::uint32_t>(option("of"))} {}

    bool is_idle() const override { return closing_ || wanted_.empty() || !world_.serves(server_); }
    void probe() override {
        if (!closing_) want("probe", 1000);
    }
    void check_served() override;
    void close() override;
    bool is_closed() const override { return closing_ && sender_ == nullptr; }
    bool ends_first() const override { return true; }
    std::string feature() const override { return "copier"; }
    std::string state() const override {
        if (closing_) return "closing";
        return sender_ != nullptr ? "copying" : wanted_.empty() ? "quiet" : "apart";
    }

  private:
    void carry_out(const Step& step) override;
    void destroy() override;
    void abort() override { destroy(); }
    // Uses the name of another process if they replace each other's files.
    std::string name_of(const std::string& name) const {
        return option("overwrite") != 0 ? name : name + '-' + std::to_string(number_);
    }
    bool is_undisturbed() const {
        return !closing_ && world_.serves(server_) && world_.oracle().was_calm(since_);
    }
    // No other process may write to this name, and the file has not changed in this attempt.
    bool is_only_ours(const std::string& name) const {
        return option("overwrite") == 0 ||
               (world_.count_of_copiers() == 1 && !changed_.contains(name));
    }
    void want(const std::string& name, std::uint64_t bytes);
    void attempt();
    void after();

    void on_file(const apps::copy::CopiedFile& file) override;
    void on_finished(const std::string& problem) override;

    std::uint32_t server_;
    std::vector<std::string> wanted_;
    // State of the current attempt:
    TimePoint since_;
    std::size_t files_ = 0;         // files without a result so far
    std::set<std::string> changed_; // since the attempt began
    bool closing_ = false;
    bool finished_ = false;
    Timer next_{process_.loop, [this] { after(); }};
    std::unique_ptr<apps::copy::Sender> sender_;
};

void CopyActor::carry_out(const Step& step) {
    if (step.what == "disk") return spoil_disk(step);
    if (step.what == "copy" && !closing_) {
        return want(std::to_string(step.with.get("file")),
                    static_cast<std::uint64_t>(step.with.get("bytes")));
    }
    if (step.what == "busy") return dawdle(std::chrono::microseconds{step.with.get("us")});
    if (step.what == "close") return close();
    if (step.what == "destroy" || step.what == "abort") {
        world_.oracle().happens(Trouble::gone, number_);
        destroy();
    }
}

// Copies the file again after it has changed.
void CopyActor::want(const std::string& name, std::uint64_t bytes) {
    note("copy", bytes);
    const std::string its = name_of(name);
    world_.files().write(number_, its, bytes);
    changed_.insert(its);
    if (std::ranges::find(wanted_, its) == wanted_.end()) wanted_.push_back(its);
    if (sender_ == nullptr && !next_.armed()) attempt();
}

void CopyActor::attempt() {
    apps::copy::Sender::Options options{
        .server = World::address_of(server_),
        .local_host = {},
        .key = world_.key_of(number_),
        .files = {},
        .overwrite = option("overwrite") != 0,
        .buffer_count = static_cast<std::size_t>(option("buffers", 2)),
        .remote_writes =
            option("trusts") != 0 ? stream::RemoteWrites::trusted : stream::RemoteWrites::guarded,
        .disk = make_disk()};
    for (const std::string& name : wanted_)
        options.files.push_back({.path = (world_.files().folder_of(number_) / name).string(),
                                 .name = name,
                                 .flaw = {}});
    note("attempt", wanted_.size());
    since_ = world_.oracle().now();
    files_ = wanted_.size();
    changed_.clear();
    finished_ = false;
    sender_ = std::make_unique<apps::copy::Sender>(process_.loop, process_.transport,
                                                   std::move(options), *this);
    try {
        sender_->start();
    } catch (const FabricError& refused) {
        note("attempt_refused");
        sender_.reset();
        next_.start(std::chrono::milliseconds{300});
    }
}

void CopyActor::on_file(const apps::copy::CopiedFile& file) {
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    note("file", static_cast<std::uint64_t>(file.outcome), file.size_bytes);
    if (files_ > 0) {
        --files_;
    } else {
        world_.oracle().violate(RuleId::last_word, "more was said of files than there are");
    }
    if (file.outcome != apps::copy::CopiedFile::Outcome::failed) {
        world_.files().said_copied(server_, name);
        std::erase(wanted_, name);
    } else if (is_only_ours(name) && is_undisturbed()) {
        world_.oracle().violate(RuleId::copy_succeeds,
                                "process " + std::to_string(number_) + ": " + file.detail);
    }
}

void CopyActor::on_finished(const std::string& problem) {
    note("finished", problem.empty() ? 0 : 1);
    if (std::exchange(finished_, true)) {
        world_.oracle().violate(RuleId::last_word, "a sender of files has finished twice");
    }
    if (problem.empty() && files_ > 0) {
        world_.oracle().violate(RuleId::last_word,
                                std::to_string(files_) + " files were left out, without a word");
    }
    if (!problem.empty() && is_undisturbed()) {
        world_.oracle().violate(RuleId::copy_succeeds,
                                "process " + std::to_string(number_) + ": " + problem);
    }
    next_.start(wanted_.empty() || closing_ ? Duration{} : std::chrono::milliseconds{300});
}

void CopyActor::after() {
    if (sender_ != nullptr && !finished_) return;
    sender_.reset();
    if (closing_ || react(Event::closed) || closing_) return;
    if (!wanted_.empty()) attempt();
}

void CopyActor::check_served() {
    if (is_idle()) return;
    world_.oracle().violate(RuleId::served_in_the_end, "process " + std::to_string(number_) + ": " +
                                                           wanted_.front() +
                                                           " has not been copied");
}

void CopyActor::close() {
    if (std::exchange(closing_, true)) return;
    note("close");
    if (sender_ != nullptr && !finished_) return sender_->stop();
    next_.start(Duration{});
}

void CopyActor::destroy() {
    note("destroy");
    closing_ = true;
    next_.cancel();
    sender_.reset();
}

} // namespace

std::unique_ptr<Actor> make_copy_server(World& world, Process& process) {
    return std::make_unique<CopyServerActor>(world, process);
}
std::unique_ptr<Actor> make_copier(World& world, Process& process) {
    return std::make_unique<CopyActor>(world, process);
}

} // namespace netio::world
