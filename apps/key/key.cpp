// SPDX-License-Identifier: Apache-2.0

// netio key: creates, lists and checks the keys that decide which clients may connect.

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "netio/access/key_file.hpp"
#include "netio/access/key_source.hpp"
#include "netio/access/rights.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace apps {
namespace {

using netio::access::Key;
using netio::access::KeyFile;
using netio::access::KeyId;
using netio::access::KeyRing;
using netio::access::SystemKeySource;
using netio::access::write_key_file;

struct KeyCommand {
    std::string action;
    std::string file;
    unsigned id = 0; // 0: the lowest free one
    std::string name;
    std::string rights;
    std::string client;
    bool json = false;
};

// Locks the folder of a file, so that two commands that add keys to the file run one after the
// other. Warns on a file system without locks.
class FolderLock {
  public:
    explicit FolderLock(const std::filesystem::path& file) {
        const auto folder = file.has_parent_path() ? file.parent_path() : ".";
        folder_ = Descriptor{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        if (!folder_.is_open()) throw std::system_error{errno, std::system_category(), folder};
        if (lock_file(folder_.get(), LockWait::yes) == LockOutcome::taken) return;
        spdlog::warn(no_locks_text(
            folder, errno, "run only one 'netio key new' there at a time, or a key may be lost"));
    }

  private:
    Descriptor folder_;
};

KeyRing read_ring(const std::string& path) {
    SystemKeySource source;
    KeyFile file{path, source};
    file.load();
    return file.ring();
}

KeyId free_id(const KeyRing& ring) {
    for (unsigned id = 1; id < 256; ++id) {
        if (ring.find(static_cast<KeyId>(id)) == nullptr) return static_cast<KeyId>(id);
    }
    throw std::runtime_error{"all 255 ids are in use; remove unused keys from the file"};
}

// The file that a link leads to, because servers that read it by its own name need the new key,
// too.
std::string target_of(const std::string& path) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::canonical(path, error);
    return error ? path : target.string();
}

// Writes the client's copy first: a key without it would be of no use, because the secret is not
// shown again.
void write_both(const KeyCommand& arguments, const std::string& file, const Key& key,
                const std::string& text, bool replace) {
    if (!arguments.client.empty())
        write_key_file(arguments.client, netio::access::text_of_one(key), false);
    try {
        write_key_file(file, text, replace);
    } catch (...) {
        if (!arguments.client.empty()) ::unlink(arguments.client.c_str());
        throw;
    }
}

void make(const KeyCommand& arguments) {
    netio::access::check_name(arguments.name);
    Key key{.name = arguments.name,
            .secret = netio::access::Secret::random(),
            .rights = netio::access::parse_rights(arguments.rights)};
    const std::string file = target_of(arguments.file);
    const FolderLock lock{file};
    SystemKeySource source;
    const bool exists = source.look(file).exists;
    const KeyRing ring = exists ? read_ring(file) : KeyRing{};
    key.id = arguments.id == 0 ? free_id(ring) : static_cast<KeyId>(arguments.id);
    const std::string text =
        exists ? netio::access::with_key(source.read(file).text, key, arguments.file)
               : netio::access::text_of_one(key);
    write_both(arguments, file, key, text, exists);
    spdlog::info("{}: key {} of {} ({})", arguments.file, key.id, key.name,
                 key.secret.fingerprint());
}

void list_keys(const KeyCommand& arguments) {
    const KeyRing ring = read_ring(arguments.file);
    nlohmann::ordered_json report{
        {"role", "key"}, {"report_version", report_version}, {"file", arguments.file}};
    report["keys"] = nlohmann::ordered_json::array();
    std::string table;
    for (const auto& [id, key] : ring.keys()) {
        const std::string print = id == netio::access::anyone ? "-" : key.secret.fingerprint();
        const std::string rights = to_string(key.rights);
        report["keys"].push_back(
            {{"id", id}, {"name", key.name}, {"fingerprint", print}, {"rights", rights}});
        table += fmt::format("{:>3} {:20} {:8} {}\n", id, key.name, print, rights);
    }
    print_report(arguments.json ? json_line(report) + "\n" : table);
}

int make_key(const KeyCommand& arguments) {
    forbid_core_dumps();
    if (arguments.action == "list") {
        list_keys(arguments);
    } else if (arguments.action == "check") {
        const std::size_t count = read_ring(arguments.file).keys().size();
        print_report(
            fmt::format("{}: {} {}\n", arguments.file, count, count == 1 ? "key" : "keys"));
    } else if (arguments.name.empty() || arguments.rights.empty()) {
        spdlog::error("add --name (the owner of the key) and --rights (what the owner may do)");
        return to_integer(ExitStatus::wrong_usage);
    } else {
        make(arguments);
    }
    return to_integer(ExitStatus::done);
}

} // namespace

Command add_key(CLI::App& program) {
    auto* command = program.add_subcommand(
        "key", "Create, list and check the keys that decide which clients may connect");
    const auto arguments = std::make_shared<KeyCommand>();
    command
        ->add_option("action", arguments->action,
                     "new: add a key; list: show the keys without their secrets; check: report "
                     "mistakes in the file")
        ->required()
        ->check(one_of({"new", "list", "check"}));
    command->add_option("file", arguments->file, "The key file")->required();
    command->add_option("--id", arguments->id, "new: id of the key; default: the lowest free id")
        ->check(CLI::Range(1, 255));
    command->add_option("--name", arguments->name, "new: owner of the key");
    command->add_option(
        "--rights", arguments->rights,
        "new: rights as in the file, such as 'services=pubsub fids=0-63:drop connections=4'");
    command->add_option("--client", arguments->client,
                        "new: also write a file for the client, with this key only");
    command->add_flag("--json", arguments->json, "list: print one JSON object");
    return [arguments] { return make_key(*arguments); };
}

} // namespace apps
