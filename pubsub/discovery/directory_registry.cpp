// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/directory_registry.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/base/signals_blocked.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <system_error>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

std::thread start_without_signals(std::function<void()> work) {
    const AllSignalsBlocked blocked;
    return std::thread{std::move(work)};
}

bool readable_within(int descriptor, std::chrono::milliseconds time) {
    pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, static_cast<int>(time.count())) > 0;
}

} // namespace

RegistryThread::RegistryThread(EventLoop& loop, std::unique_ptr<Registry> registry, Work work,
                               std::function<bool()> take)
    : loop_{loop}, shared_{std::make_shared<Shared>(std::move(registry))}, take_{std::move(take)},
      thread_{new std::thread{start_without_signals([shared = shared_, run = std::move(work)] {
          run(*shared);
          shared->done_.call();
      })}} {
    loop_.add(*this);
}

RegistryThread::~RegistryThread() {
    if (destroyed_ != nullptr) *destroyed_ = true;
    if (!loop_.may_destroy("Discovery or Announcer"))
        return; // the thread belongs to the parent process
    loop_.remove(*this);
    shared_->ended_ = true;
    shared_->registry().interrupt();
    if (readable_within(shared_->done_.descriptor(), end_wait)) {
        thread_->join();
    } else {
        thread_->detach();
    }
}

std::size_t RegistryThread::drain(std::size_t) {
    shared_->news_->answer();
    const DestructionWatch watch{destroyed_};
    const auto take = take_; // it may destroy this
    const bool more = take();
    if (watch.destroyed()) return 1;
    more_ = more;
    if (more_) loop_.activate(*this);
    return 1;
}

namespace {

constexpr std::string_view suffix = ".netio";
constexpr std::chrono::milliseconds longest_wait{60'000};
constexpr std::string_view temporary_suffix = ".netio-tmp"; // after a dot, a name and a tag

class File {
  public:
    explicit File(int descriptor) noexcept : descriptor_{descriptor} {}
    ~File() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    int get() const noexcept { return descriptor_; }
    // A file server may report a failed write only here.
    bool close() noexcept { return ::close(std::exchange(descriptor_, -1)) == 0; }

  private:
    int descriptor_;
};

std::string random_tag() {
    std::random_device source;
    return std::to_string(source()) + std::to_string(source());
}

// The name of the publisher of a file; empty if it is not an announcement.
std::string_view name_of(std::string_view file) {
    if (!file.ends_with(suffix)) return {};
    const std::string_view name = file.substr(0, file.size() - suffix.size());
    return is_announced_name(name) ? name : std::string_view{};
}

[[noreturn]] void fail(const std::string& what, int error) {
    throw RegistryError{what + ": " + std::generic_category().message(error)};
}

// The folder of the bus cannot be opened.
[[noreturn]] void fail_at_folder(const std::string& what, int error) {
    const std::string text = what + ": " + std::generic_category().message(error);
    if (error == ENOENT || error == ENOTDIR) {
        throw RegistryError{text + "; a bus is a folder that all its hosts share: correct the "
                                   "path, or create the folder (its first publisher does so, too, "
                                   "if the parent folder exists)"};
    }
    throw RegistryError{text};
}

// Reads regular files up to the limit only, so that no pipe, device or endless file blocks the
// reader.
std::string read_whole(int directory, const std::string& file) {
    const File opened{::openat(directory, file.c_str(),
                               O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)};
    struct stat status {};
    if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0)
        fail("'" + file + "' cannot be read", errno);
    if (!S_ISREG(status.st_mode)) throw RegistryError{"'" + file + "' is no file"};
    if (status.st_size > static_cast<off_t>(announcement_bytes_limit))
        throw RegistryError{"'" + file + "' is too large for an announcement"};
    std::string text(announcement_bytes_limit < static_cast<std::size_t>(status.st_size)
                         ? announcement_bytes_limit
                         : static_cast<std::size_t>(status.st_size),
                     '\0');
    std::size_t got = 0;
    while (got < text.size()) {
        const ssize_t some = ::read(opened.get(), text.data() + got, text.size() - got);
        if (some < 0 && errno == EINTR) continue;
        if (some < 0) fail("'" + file + "' cannot be read", errno);
        if (some == 0) break;
        got += static_cast<std::size_t>(some);
    }
    text.resize(got);
    return text;
}

// Calls visit(name of the file) for each file.
template <typename Visit>
void for_each_file(int directory, Visit visit) {
    const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> opened{copy < 0 ? nullptr : ::fdopendir(copy),
                                                     ::closedir};
    if (!opened) {
        const int error = errno;
        if (copy >= 0) ::close(copy);
        fail("it cannot be listed", error);
    }
    for (;;) {
        errno = 0;
        const dirent* const entry = ::readdir(opened.get());
        if (entry == nullptr) {
            if (errno != 0) fail("it cannot be listed", errno);
            return;
        }
        visit(std::string{entry->d_name});
    }
}

} // namespace

DirectoryRegistry::DirectoryRegistry(std::string path, std::chrono::milliseconds poll,
                                     Notice notice)
    : path_{std::move(path)}, poll_{poll}, notice_{notice}, temporary_tag_{random_tag()} {}

DirectoryRegistry::~DirectoryRegistry() {
    if (inotify_ >= 0) ::close(inotify_);
}

int DirectoryRegistry::open_directory() const {
    return ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// --- publishers -----------------------------------------------------------------------------

void DirectoryRegistry::put(const std::string& name, const std::string& text) {
    int opened = open_directory();
    if (opened < 0 && errno == ENOENT && ::mkdir(path_.c_str(), 0777) == 0)
        opened = open_directory();
    const File directory{opened};
    if (opened < 0) fail_at_folder("cannot announce in '" + path_ + "'", errno);
    const std::string file = name + std::string{suffix};
    write_whole(directory.get(), file, text);
    if (!std::exchange(swept_, true)) sweep(directory.get(), file);
}

void DirectoryRegistry::write_whole(int directory, const std::string& file,
                                    const std::string& text) const {
    const std::string temporary = "." + file + "." + temporary_tag_ + std::string{temporary_suffix};
    const auto give_up = [&](int error) {
        ::unlinkat(directory, temporary.c_str(), 0);
        fail("cannot announce in '" + path_ + "'", error);
    };
    File out{::openat(directory, temporary.c_str(),
                      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644)};
    if (out.get() < 0) fail("cannot announce in '" + path_ + "'", errno);
    for (std::size_t put = 0; put < text.size();) {
        const ssize_t some = ::write(out.get(), text.data() + put, text.size() - put);
        if (some < 0 && errno == EINTR) continue;
        if (some < 0) give_up(errno);
        put += static_cast<std::size_t>(some);
    }
    if (!out.close()) give_up(errno);
    if (::renameat(directory, temporary.c_str(), directory, file.c_str()) != 0) give_up(errno);
}

// Removes files that a crash left, which every reader would otherwise read forever. Both times are
// of the file server, so the clock of this machine does not matter. Errors are ignored.
void DirectoryRegistry::sweep(int directory, const std::string& own_file) const {
    struct stat own {};
    if (::fstatat(directory, own_file.c_str(), &own, AT_SYMLINK_NOFOLLOW) != 0) return;
    const auto oldest = own.st_mtim.tv_sec - std::chrono::seconds{leftover_age}.count();
    const auto is_left_over = [&](const std::string& file) {
        struct stat status {};
        if (::fstatat(directory, file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode) || status.st_mtim.tv_sec >= oldest)
            return false;
        if (file.starts_with('.')) return file.ends_with(temporary_suffix);
        if (name_of(file).empty()) return false;
        try { // removes only announcements
            return parse_announcement(read_whole(directory, file)).name == name_of(file);
        } catch (const std::runtime_error&) {
            return false;
        }
    };
    try {
        for_each_file(directory, [&](const std::string& file) {
            if (is_left_over(file)) ::unlinkat(directory, file.c_str(), 0);
        });
    } catch (const RegistryError&) { // the next publisher tries again
        return;
    }
}

std::optional<std::string> DirectoryRegistry::get(const std::string& name) {
    const File directory{open_directory()};
    const std::string file = name + std::string{suffix};
    struct stat status {};
    if (directory.get() < 0 ||
        ::fstatat(directory.get(), file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
        return {};
    // Not an announcement; put() replaces it.
    if (!S_ISREG(status.st_mode) || status.st_size > static_cast<off_t>(announcement_bytes_limit))
        return {};
    return read_whole(directory.get(), file);
}

void DirectoryRegistry::remove(const std::string& name) {
    const std::string file = path_ + "/" + name + std::string{suffix};
    if (::unlink(file.c_str()) != 0 && errno != ENOENT)
        fail("cannot withdraw from '" + path_ + "'", errno);
}

// --- readers --------------------------------------------------------------------------------

void DirectoryRegistry::look(Visitor& visitor) {
    take_inotify_events();
    const TimePoint now = Clock::now();
    const File directory{open_directory()};
    if (directory.get() < 0) {
        const int error = errno;
        all_next_ = true;
        next_full_look_ = now + poll_;
        if (watch_ >= 0) ::inotify_rm_watch(inotify_, std::exchange(watch_, -1));
        fail_at_folder("cannot read '" + path_ + "'", error);
    }
    const std::set<std::string> touched = std::exchange(touched_, {});
    if (!all_next_ && now < next_full_look_) {
        for (const std::string& name : touched)
            look_at(directory.get(), name, visitor);
        return;
    }
    watch_directory(); // before reading, so that no change is missed
    next_full_look_ = now + poll_;
    all_next_ = true; // until the reading succeeds
    scan_all(directory.get(), visitor);
    all_next_ = false;
}

void DirectoryRegistry::scan_all(int directory, Visitor& visitor) {
    std::set<std::string> names;
    bool too_many = false;
    try {
        for_each_file(directory, [&](const std::string& file) {
            if (file.starts_with('.')) return;
            const std::string_view name = name_of(file);
            if (name.empty() || names.size() >= file_limit) {
                too_many = too_many || !name.empty();
            } else {
                names.emplace(name);
            }
        });
    } catch (const RegistryError& error) {
        throw RegistryError{"cannot read '" + path_ + "': " + error.what()};
    }
    if (too_many) {
        visitor.on_unreadable("'" + path_ + "' has more than " + std::to_string(file_limit) +
                              " announcements: the others are ignored");
    }
    for (const auto& [name, stamp] : std::map{known_})
        names.insert(name); // its file may be gone
    for (const std::string& name : names)
        look_at(directory, name, visitor);
}

void DirectoryRegistry::look_at(int directory, const std::string& name, Visitor& visitor) {
    const std::string file = name + std::string{suffix};
    struct stat status {};
    if (::fstatat(directory, file.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT && known_.erase(name) > 0) visitor.on_removed(name);
        return; // if another error persists, the next look finds it again
    }
    const Stamp stamp{.inode = status.st_ino,
                      .bytes = status.st_size,
                      .seconds = status.st_mtim.tv_sec,
                      .nanoseconds = status.st_mtim.tv_nsec};
    const auto known = known_.find(name);
    if (known != known_.end() && known->second == stamp) return;
    try {
        const std::string text = read_whole(directory, file);
        known_.insert_or_assign(name, stamp);
        visitor.on_text(name, text);
    } catch (const RegistryError& error) {
        struct stat again {};
        if (::fstatat(directory, file.c_str(), &again, AT_SYMLINK_NOFOLLOW) == 0)
            visitor.on_unreadable("in '" + path_ + "' " + error.what());
    }
}

// Without inotify, the poll finds all changes.
void DirectoryRegistry::watch_directory() {
    if (notice_ == Notice::none) return;
    if (inotify_ < 0) inotify_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (inotify_ < 0) return;
    // Returns the same watch for the same directory; a new one if the path names another directory.
    const int watch = ::inotify_add_watch(inotify_, path_.c_str(),
                                          IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE | IN_ONLYDIR);
    if (watch_ >= 0 && watch >= 0 && watch != watch_) ::inotify_rm_watch(inotify_, watch_);
    watch_ = watch;
}

void DirectoryRegistry::take_inotify_events() {
    if (inotify_ < 0) return;
    alignas(inotify_event) std::array<char, 16384> events;
    for (;;) {
        const ssize_t got = ::read(inotify_, events.data(), events.size());
        if (got <= 0) return;
        for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
            inotify_event event{};
            std::memcpy(&event, events.data() + at, sizeof event);
            if ((event.mask & (IN_Q_OVERFLOW | IN_IGNORED)) != 0) all_next_ = true;
            const char* const name = events.data() + at + sizeof event;
            if (event.len > 0) {
                const std::string_view changed = name_of(name);
                if (!changed.empty() && touched_.size() < file_limit) touched_.emplace(changed);
            }
            at += sizeof event + event.len;
        }
    }
}

void DirectoryRegistry::wait(TimePoint until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::min(until, next_full_look_) - Clock::now());
    const auto time = std::clamp<std::int64_t>(left.count(), 0, longest_wait.count());
    std::array<pollfd, 2> sources{
        pollfd{.fd = wake_up_.descriptor(), .events = POLLIN, .revents = 0},
        pollfd{.fd = inotify_, .events = POLLIN, .revents = 0}};
    ::poll(sources.data(), inotify_ >= 0 ? 2 : 1, static_cast<int>(time));
    wake_up_.answer();
}

} // namespace netio::pubsub::inline v0_3
