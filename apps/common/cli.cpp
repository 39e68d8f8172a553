// SPDX-License-Identifier: Apache-2.0
#include "apps/common/cli.hpp"

#include "apps/common/fid_text.hpp"
#include "apps/common/io.hpp"
#include "apps/common/parse.hpp"
#include "netio/fabric.hpp"
#include "netio/transport.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace apps {
namespace {

[[noreturn]] void refuse_value(const std::string& name, const std::string& word,
                               std::string_view allowed) {
    throw CLI::ValidationError{name, fmt::format("'{}'; allowed: {}", word, allowed)};
}

std::string allowed(std::string_view what, const Limits& limits, std::string_view also) {
    if (limits.max == std::numeric_limits<std::uint64_t>::max()) {
        return fmt::format("{} from {}, also as {}", what, limits.min, also);
    }
    return fmt::format("{} from {} to {}, also as {}", what, limits.min, limits.max, also);
}

std::uint64_t read_count(const std::string& name, const std::string& word, const Limits& limits) {
    const auto value = parse_count(word);
    if (value && *value >= limits.min && *value <= limits.max) return *value;
    refuse_value(name, word, allowed("a whole number", limits, "10k, 1M"));
}

std::uint64_t read_bytes(const std::string& name, const std::string& word, const Limits& limits) {
    const auto value = parse_bytes(word);
    if (value && *value >= limits.min && *value <= limits.max) return *value;
    refuse_value(name, word, allowed("a number of bytes", limits, "64KiB, 16MiB, 1GiB"));
}

[[noreturn]] void refuse_time(const std::string& name, const std::string& word, Zero zero,
                              std::string_view range) {
    throw CLI::ValidationError{
        name,
        fmt::format("{}; allowed: {}a time with its unit, such as 40us, 500ms, 10s, 2m, 1h; {}",
                    duration_problem(word), zero == Zero::taken ? "0, or " : "", range)};
}

// Zero, if it is accepted, means "none".
netio::Duration read_time(const std::string& name, const std::string& word, Zero zero) {
    constexpr std::chrono::hours longest{24};
    if (zero == Zero::taken && parse_count(word) == 0U) return {};
    const auto duration = parse_duration(word);
    if (duration && *duration >= std::chrono::milliseconds{1} && *duration <= longest)
        return *duration;
    refuse_time(name, word, zero, "from 1ms to 1d");
}

template <class Value, class Read>
CLI::Option* add_number(CLI::App& command, const std::string& name, Value& value,
                        const std::string& help, const Limits& limits, Read read) {
    return command.add_option_function<std::string>(
        name,
        [&value, name, limits, read](const std::string& word) { value = read(name, word, limits); },
        help);
}

} // namespace

CLI::Option* add_count(CLI::App& command, const std::string& name,
                       std::optional<std::uint64_t>& value, const std::string& help,
                       Limits limits) {
    return add_number(command, name, value, help, limits, read_count)->type_name("NUMBER");
}

CLI::Option* add_count(CLI::App& command, const std::string& name, std::size_t& value,
                       const std::string& help, Limits limits) {
    return add_number(command, name, value, help, limits, read_count)
        ->type_name("NUMBER")
        ->default_str(std::to_string(value));
}

CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::size_t& value,
                       const std::string& help, Limits limits) {
    return add_number(command, name, value, help, limits, read_bytes)
        ->type_name("BYTES")
        ->default_str(shown_bytes(value));
}

CLI::Option* add_bytes(CLI::App& command, const std::string& name,
                       std::optional<std::uint64_t>& value, const std::string& help,
                       Limits limits) {
    return add_number(command, name, value, help, limits, read_bytes)->type_name("BYTES");
}

CLI::Option* add_seconds(CLI::App& command, const std::string& name, double& value,
                         const std::string& help, Zero zero) {
    const auto read = [&value, name, zero](const std::string& word) {
        value = std::chrono::duration<double>{read_time(name, word, zero)}.count();
    };
    return command.add_option_function<std::string>(name, read, help)
        ->type_name("TIME")
        ->default_str(shown_time(
            std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>{value})));
}

CLI::Option* add_milliseconds(CLI::App& command, const std::string& name,
                              std::chrono::milliseconds& value, const std::string& help,
                              Zero zero) {
    const auto read = [&value, name, zero](const std::string& word) {
        value = std::chrono::ceil<std::chrono::milliseconds>(read_time(name, word, zero));
    };
    return command.add_option_function<std::string>(name, read, help)
        ->type_name("TIME")
        ->default_str(shown_time(value));
}

std::function<std::string(const std::string&)> one_of(std::vector<std::string_view> words) {
    return [words = std::move(words)](const std::string& word) -> std::string {
        if (std::ranges::find(words, word) != words.end()) return {};
        return fmt::format("'{}' is unknown{}; allowed: {}", word, suggestion(word, words),
                           fmt::join(words, ", "));
    };
}

CLI::Option* add_words(CLI::App& command, const std::string& name,
                       std::vector<std::string_view> words, std::function<void(std::size_t)> choose,
                       const std::string& help) {
    const auto read = [words, choose = std::move(choose)](const std::string& word) {
        choose(static_cast<std::size_t>(std::ranges::find(words, word) - words.begin()));
    };
    return command.add_option_function<std::string>(name, read, help)
        ->type_name("WORD")
        ->check(one_of(words));
}

CLI::Option* add_loop(CLI::App& command, netio::LoopMode& value) {
    return add_words(
               command, "--loop", {"blocking", "busy", "adaptive"},
               [&value](std::size_t at) { value = static_cast<netio::LoopMode>(at); },
               "blocking, busy or adaptive")
        ->type_name("TEXT")
        ->default_str("blocking");
}

CLI::Option* add_provider(CLI::App& command, std::string& value) {
    const auto problem = [](const std::string& word) {
        std::string refusal = word == "auto" ? std::string{} : netio::provider_refusal(word);
        if (refusal.empty()) return refusal;
        constexpr std::array<std::string_view, 3> words{"auto", "tcp", "verbs"};
        const std::string meant =
            std::ranges::find(words, word) == words.end() ? suggestion(word, words) : "";
        return fmt::format("'{}'{}: {}", word, meant, refusal);
    };
    return command.add_option("--provider", value, "auto, tcp or verbs")->check(problem);
}

CLI::Option* add_bus(CLI::App& command, std::string& value) {
    return command.add_option(
        "--bus", value,
        "Find publishers on this bus: a directory that all hosts see, or etcd://HOST:PORT");
}

CLI::Option* add_decoding(CLI::App& command, std::string& value) {
    return command.add_option("--decode-fids", value, "Show fids by their fields: felix")
        ->check(one_of({"felix"}));
}

CLI::Option* add_allow_remote_anonymous(CLI::App& command, bool& value) {
    using Options = netio::ListenOptions;
    return command.add_flag(cli_flag<&Options::allow_remote_anonymous>(), value,
                            "Listen also on addresses that other machines can reach; without "
                            "--keys any peer may connect");
}

CLI::Option* add_duration(CLI::App& command, const std::string& name,
                          std::optional<netio::Duration>& value, const std::string& help) {
    return command
        .add_option_function<std::string>(
            name,
            [&value, name](const std::string& word) {
                value = parse_duration(word);
                if (!value) refuse_time(name, word, Zero::refused, "above 0, at most ten years");
            },
            help)
        ->type_name("TIME");
}

void require_order(std::string_view least_option, std::uint64_t least, std::string_view most_option,
                   std::uint64_t most) {
    if (least <= most) return;
    throw std::invalid_argument{fmt::format("{} is {}; it must not exceed {}, which is {}",
                                            least_option, least, most_option, most)};
}

netio::Address peer_address(std::string_view text) {
    netio::Address address = netio::parse_address(text);
    if (address.port == 0) {
        throw std::invalid_argument{fmt::format(
            "'{}' is not an address to connect to: port 0 is not valid; use a port from 1 to 65535",
            text)};
    }
    return address;
}

void add_session_times(CLI::App& command, netio::SessionOptions& session) {
    using Session = netio::SessionOptions;
    add_milliseconds(command, cli_flag<&Session::heartbeat>(), session.heartbeat,
                     "Send a heartbeat at least this often, up to 65535ms; 0: never", Zero::taken);
    add_milliseconds(command, cli_flag<&Session::dead_after>(), session.dead_after,
                     "Close the connection after this long without data from the peer, at least "
                     "twice --heartbeat; 0: never",
                     Zero::taken);
    add_milliseconds(command, cli_flag<&Session::connect_timeout>(), session.connect_timeout,
                     "Limit the time of each attempt to connect", Zero::refused);
    add_milliseconds(command, cli_flag<&Session::handshake_timeout>(), session.handshake_timeout,
                     "Limit the time of a peer's handshake", Zero::refused);
    add_milliseconds(command, cli_flag<&Session::close_timeout>(), session.close_timeout,
                     "Abort a close when the peer makes no progress for this long", Zero::refused);
    add_milliseconds(command, cli_flag<&Session::close_limit>(), session.close_limit,
                     "Abort a close that takes longer than this in total", Zero::refused);
}

void add_receive_buffers(CLI::App& command, netio::SessionOptions& session) {
    using Session = netio::SessionOptions;
    add_count(command, cli_flag<&Session::receive_count>(), session.receive_count,
              "Number of receive buffers", {.min = 4, .max = 16384});
    add_bytes(command, cli_flag<&Session::receive_buffer_bytes>(), session.receive_buffer_bytes,
              "Size of each receive buffer in bytes", {.min = 256, .max = 1U << 30});
    add_bytes(command, cli_flag<&Session::window_limit>(), session.window_limit,
              "Let all receive buffers together grow up to this many bytes if round trips are "
              "long; 0: do not grow",
              {.min = 0, .max = std::size_t{1} << 40U});
}

void add_largest_message(CLI::App& command, std::size_t& bytes) {
    add_bytes(
        command, cli_flag<&netio::pubsub::SubscribeSocket::Options::largest_message_bytes>(), bytes,
        "Largest message in bytes that is reassembled; a peer with larger messages gets an error",
        {.min = 1, .max = (1U << 30) - 1});
}

void add_receive_buffer_limit(CLI::App& command, std::size_t& bytes) {
    add_bytes(
        command, cli_flag<&netio::pubsub::SubscribeSocket::Options::receive_buffer_limit_bytes>(),
        bytes,
        "Let each receive buffer grow up to this many bytes if a publisher's pages are larger",
        {.min = 256, .max = 1U << 30});
}

void add_retry_times(CLI::App& command, std::chrono::milliseconds& interval,
                     std::chrono::milliseconds& limit) {
    using Options = netio::pubsub::SubscribeSocket::Options;
    add_milliseconds(command, cli_flag<&Options::retry_interval>(), interval,
                     "Wait this long before the second attempt; the wait about doubles each time",
                     Zero::refused);
    add_milliseconds(command, cli_flag<&Options::retry_limit>(), limit,
                     "Limit the wait between two attempts", Zero::refused);
}

void add_subscriber(CLI::App& command, std::string& local_host,
                    netio::pubsub::SubscribeSocket::Options& socket) {
    using Options = netio::pubsub::SubscribeSocket::Options;
    command.add_option(cli_flag<&Options::local_host>(), local_host,
                       "Connect from this local address");
    add_receive_buffers(command, socket.session);
    add_receive_buffer_limit(command, socket.receive_buffer_limit_bytes);
    add_largest_message(command, socket.largest_message_bytes);
    add_session_times(command, socket.session);
    add_retry_times(command, socket.retry_interval, socket.retry_limit);
    add_count(command, cli_flag<&Options::fid_limit>(), socket.fid_limit,
              "Limit of fids with counters; a publisher that sends more fids is disconnected",
              {.min = 1, .max = 1U << 30});
}

void add_progress(CLI::App& command, bool& value) {
    command.add_flag("--progress", value, "Log the progress once a second");
}

void add_json(CLI::App& command, bool& value) {
    command.add_flag("--json", value, "Print the report as one JSON object, as the last line");
}

CLI::Option* add_remote_writes(CLI::App& command, netio::stream::RemoteWrites& value) {
    return add_words(
               command, "--remote-writes", {"guarded", "trusted", "never"},
               [&value](std::size_t at) {
                   using netio::stream::RemoteWrites;
                   value =
                       std::array{RemoteWrites::guarded, RemoteWrites::trusted, RemoteWrites::never}
                           .at(at);
               },
               "Let the peer write into memory of this side: guarded (if a device checks the "
               "writes), never, or trusted (over tcp the peer can then access the whole memory of "
               "this process)")
        ->default_str("guarded");
}

namespace {

using netio::access::Protection;

CLI::Option* add_level(CLI::App& command, const std::string& name, std::string& level,
                       const std::string& help) {
    return command
        .add_option(name, level,
                    help + ": none, peers (frames that change a connection are authenticated), "
                           "integrity (all frames are authenticated) or privacy (all frames are "
                           "encrypted)")
        ->check(one_of({"none", "peers", "integrity", "privacy"}));
}

void require_a_file(const std::string& level, std::string_view option, const std::string& file,
                    std::string_view file_option) {
    if (level.empty() || !file.empty()) return;
    throw std::invalid_argument{fmt::format("{} needs a key; add {} FILE", option, file_option)};
}

Protection protection_of(const std::string& word) {
    if (word.empty()) return Protection::none;
    for (const Protection level :
         {Protection::none, Protection::peers, Protection::integrity, Protection::privacy}) {
        if (to_string(level) == word) return level;
    }
    throw std::invalid_argument{
        "'" + word + "' is not a protection level; allowed: none, peers, integrity, privacy"};
}

} // namespace

void add_key(CLI::App& command, KeyArguments& arguments) {
    command.add_option("--key", arguments.key,
                       "Authenticate with the key in this file; the server must have the same key");
    add_level(command, cli_flag<&netio::ClientKey::Options::protection>(), arguments.protection,
              "Protection of the connection, with --key");
}

void add_keys(CLI::App& command, KeyArguments& arguments) {
    using Options = netio::ServerKeys::Options;
    command.add_option("--keys", arguments.keys,
                       "Accept only clients whose key is in this file (netio key); the file is "
                       "read again when it changes");
    add_level(command, cli_flag<&Options::min_protection>(), arguments.min_protection,
              "Minimum protection that a client must request, with --keys");
    command.add_option(cli_flag<&Options::advertised_addresses>(), arguments.advertised_addresses,
                       "With --keys: address and port that clients connect to, if the network "
                       "translates them (NAT); repeatable");
    add_count(
        command, cli_flag<&Options::connections_per_host>(), arguments.connections_per_host,
        "Limit the connections per host (IPv6: per /64); 256 with --keys, counted over all keys",
        {.min = 1, .max = UINT32_MAX});
}

KeyArguments permitting(KeyArguments arguments, std::size_t of_one_host) {
    const std::uint64_t usual = netio::ServerKeys::Options{}.connections_per_host;
    if (!arguments.connections_per_host)
        arguments.connections_per_host = std::max<std::uint64_t>(usual, of_one_host);
    return arguments;
}

std::shared_ptr<const netio::ClientKey> client_key(const KeyArguments& arguments) {
    require_a_file(arguments.protection, "--protection", arguments.key, "--key");
    if (arguments.key.empty()) return nullptr;
    forbid_core_dumps();
    return std::make_shared<netio::ClientKey>(netio::ClientKey::Options{
        .file = arguments.key, .protection = protection_of(arguments.protection)});
}

std::shared_ptr<netio::ServerKeys> server_keys(netio::EventLoop& loop,
                                               const KeyArguments& arguments) {
    require_a_file(arguments.min_protection, "--min-protection", arguments.keys, "--keys");
    if (arguments.keys.empty()) return nullptr;
    forbid_core_dumps();
    netio::ServerKeys::Options options{.file = arguments.keys,
                                       .min_protection = protection_of(arguments.min_protection)};
    if (arguments.connections_per_host)
        options.connections_per_host = static_cast<std::uint32_t>(*arguments.connections_per_host);
    options.look_interval = arguments.look_interval;
    for (const std::string& address : arguments.advertised_addresses)
        options.advertised_addresses.push_back(netio::parse_address(address));
    return std::make_shared<netio::ServerKeys>(loop, options);
}

namespace {

// Takes `digits` digits and the separator after them, unless that is zero.
std::optional<int> take_number(std::string_view& text, std::size_t digits, char separator) {
    if (text.size() < digits) return std::nullopt;
    int value = 0;
    const auto result = std::from_chars(text.data(), text.data() + digits, value);
    if (result.ec != std::errc{} || result.ptr != text.data() + digits || value < 0)
        return std::nullopt;
    text.remove_prefix(digits);
    if (separator == 0) return value;
    if (!text.starts_with(separator)) return std::nullopt;
    text.remove_prefix(1);
    return value;
}

std::optional<RecordingTime> parse_absolute(std::string_view text) {
    const auto year = take_number(text, 4, '-');
    const auto month = year ? take_number(text, 2, '-') : std::nullopt;
    const auto day = month ? take_number(text, 2, 'T') : std::nullopt;
    const auto hour = day ? take_number(text, 2, ':') : std::nullopt;
    const auto minute = hour ? take_number(text, 2, ':') : std::nullopt;
    const auto second = minute ? take_number(text, 2, 0) : std::nullopt;
    if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year{*year},
                                           std::chrono::month{static_cast<unsigned>(*month)},
                                           std::chrono::day{static_cast<unsigned>(*day)}};
    if (!date.ok() || *year < 1970 || *year > 2200) return std::nullopt;
    std::int64_t fraction_ns = 0;
    if (text.starts_with('.')) {
        text.remove_prefix(1);
        std::int64_t unit = 100'000'000;
        while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
            fraction_ns += unit * (text.front() - '0');
            unit /= 10;
            text.remove_prefix(1);
        }
    }
    if (!text.empty() && text != "Z") return std::nullopt;
    return RecordingTime{std::chrono::sys_days{date} + std::chrono::hours{*hour} +
                         std::chrono::minutes{*minute} + std::chrono::seconds{*second} +
                         std::chrono::nanoseconds{fraction_ns}};
}

std::optional<RecordingTime> bound(const std::string& option, const std::string& text,
                                   RecordingTime begin) {
    if (text.empty()) return std::nullopt;
    const auto time = parse_recording_time(text, begin);
    if (time) return time;
    throw std::invalid_argument{
        fmt::format("{}: '{}'; allowed: a time after the begin of the recording, as 500ms, 10s, "
                    "2m, or a time in UTC, as 2026-11-27T17:46:09.5Z",
                    option, text)};
}

} // namespace

void add_recordings(CLI::App& command, RecordingArguments& arguments) {
    command
        .add_option("files", arguments.files,
                    "Recordings, read one after the other: files, folders, or the name of a "
                    "rotated set without its numbers")
        ->required();
    using Options = netio::RecordingReader::Options;
    add_bytes(command, cli_flag<&Options::chunk_memory_limit_bytes>(),
              arguments.chunk_memory_limit_bytes, "Limit of a chunk of a recording in memory",
              {.min = 1 << 16, .max = std::uint64_t{1} << 40});
}

void add_recording_selection(CLI::App& command, RecordingArguments& arguments) {
    command
        .add_option("--fid", arguments.fids,
                    "Only these fids, as 5, 0-63, or by fields; may be repeated")
        ->allow_extra_args(false); // files may follow
    command.add_option("--from", arguments.from,
                       "Begin at this time: after the begin of the recording, as 10s, or in UTC, "
                       "as 2026-11-27T17:46:09.5Z");
    command.add_option("--until", arguments.until, "End before this time, written as for --from");
}

void add_compression(CLI::App& command, netio::RecordingWriter::Compression& compression) {
    using Writer = netio::RecordingWriter;
    add_words(
        command, cli_flag<&Writer::Options::compress>(), {"none", "lz4", "zstd"}, // as in the enum
        [&compression](std::size_t word) { compression = static_cast<Writer::Compression>(word); },
        "Compress chunks: none, lz4 or zstd")
        ->default_str("none");
}

void add_min_free(CLI::App& command, std::uint64_t& bytes) {
    using Options = netio::RecordingWriter::Options;
    add_bytes(command, cli_flag<&Options::min_free_bytes>(), bytes,
              "End before fewer bytes of the file system are available",
              {.min = 0, .max = std::uint64_t{1} << 60});
}

std::optional<RecordingTime> parse_recording_time(std::string_view text, RecordingTime begin) {
    if (text == "0") return begin;
    if (const auto after = parse_duration(text)) return begin + *after;
    return parse_absolute(text);
}

std::string shown(RecordingTime time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{time - day};
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                       clock.subseconds().count());
}

netio::RecordingReader open_recording(const RecordingArguments& arguments,
                                      netio::RecordingReader::OnDamage on_damage) {
    netio::RecordingReader reader{
        arguments.files,
        {.chunk_memory_limit_bytes = arguments.chunk_memory_limit_bytes, .on_damage = on_damage}};
    const std::vector<netio::pubsub::FidRange> fids = parse_fids(arguments.fids);
    if (fids.empty() && arguments.from.empty() && arguments.until.empty()) return reader;
    const RecordingTime begin = reader.begin_time().value_or(RecordingTime{});
    const auto from = bound("--from", arguments.from, begin);
    const auto until = bound("--until", arguments.until, begin);
    if (from && until && *from >= *until)
        throw std::invalid_argument{
            fmt::format("--until: '{}' is not after --from '{}': no message can be selected; give "
                        "a later time",
                        arguments.until, arguments.from)};
    reader.select({.fids = netio::FidSet{fids}, .from = from, .until = until});
    return reader;
}

} // namespace apps
