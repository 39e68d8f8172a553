// SPDX-License-Identifier: Apache-2.0
#include "pubsub/recording/recording_reader.hpp"

#include "pubsub/discovery/bounded_json.hpp"
#include "pubsub/recording/mcap.hpp"
#include "pubsub/recording/mcap_file.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <utility>

namespace netio::inline v0_3 {
namespace {

namespace fs = std::filesystem;
using mcap::ByteSpan;
using mcap::McapInput;
using mcap::Opcode;

constexpr std::size_t part_digits = 6;
constexpr std::size_t longest_publisher_bytes = 1024; // HOST:PORT
// Messages of a channel with a larger record are foreign. Its texts would take several times its
// size in memory.
constexpr std::size_t largest_channel_bytes = std::size_t{1} << 20;

RecordingTime to_time(std::uint64_t nanoseconds) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return RecordingTime{
        std::chrono::nanoseconds{static_cast<std::int64_t>(std::min(nanoseconds, most))}};
}

std::uint64_t from_time(RecordingTime time) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(time.time_since_epoch().count(), 0));
}

// Neither in the specification nor for the use of other programs: a damaged byte.
bool is_reserved(Opcode opcode) {
    return opcode > Opcode::data_end && opcode < Opcode{0x80};
}

// The number of a part "STEM-000001.mcap"; nullopt for another name.
std::optional<unsigned> part_number(const std::string& name, const std::string& stem) {
    if (name.size() != stem.size() + 1 + part_digits + 5 || !name.starts_with(stem + "-") ||
        !name.ends_with(".mcap"))
        return std::nullopt;
    unsigned number = 0;
    const char* const begin = name.data() + stem.size() + 1;
    const auto result = std::from_chars(begin, begin + part_digits, number);
    if (result.ptr != begin + part_digits) return std::nullopt;
    return number;
}

[[noreturn]] void refuse_unreadable(const fs::path& path, const std::error_code& why) {
    throw RecordingError{path.string() + ": cannot be read: " + why.message()};
}

// The names of the files in a folder, sorted, without the suffix last: "run-2.mcap" is after
// "run.mcap".
std::vector<fs::path> recordings_in(const fs::path& folder, bool may_be_absent) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry{folder, error}; !error && entry != fs::directory_iterator{};
         entry.increment(error))
        if (entry->path().extension() == ".mcap") files.push_back(entry->path().filename());
    const bool is_absent =
        error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
    if (error && !(may_be_absent && is_absent)) refuse_unreadable(folder, error);
    std::ranges::sort(files, {}, [](const fs::path& file) { return file.stem(); });
    return files;
}

std::vector<std::string> files_of_folder(const fs::path& folder) {
    std::vector<std::string> files;
    for (const fs::path& name : recordings_in(folder, false)) {
        std::error_code error; // for instance, a link to a file that is not there
        if (fs::is_regular_file(folder / name, error)) files.push_back((folder / name).string());
    }
    if (files.empty())
        throw RecordingError{folder.string() + ": the folder has no recording (*.mcap)"};
    return files;
}

std::vector<std::string> parts_of(const fs::path& path) {
    const std::string stem =
        path.extension() == ".mcap" ? path.stem().string() : path.filename().string();
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path{"."};
    std::vector<std::pair<unsigned, std::string>> parts;
    for (const fs::path& name : recordings_in(folder, true)) {
        if (const auto number = part_number(name.string(), stem))
            parts.emplace_back(*number, (path.parent_path() / name).string());
    }
    if (parts.empty())
        throw RecordingError{path.string() + ": there is no such file, and no set of parts (" +
                             stem + "-000001.mcap); give the path of a recording"};
    std::ranges::sort(parts);
    std::vector<std::string> files;
    for (const auto& [number, file] : parts) {
        if (number != files.size() + 1)
            throw RecordingError{path.string() + ": part " + std::to_string(files.size() + 1) +
                                 " of the set is absent; name the parts that are there, as " +
                                 file};
        files.push_back(file);
    }
    return files;
}

// What a channel of a file has.
struct Channel {
    enum class Kind : std::uint8_t { unknown, fid, publisher, events, foreign };
    Kind kind = Kind::unknown;
    bool is_selected = true;
    Fid fid{};
    std::string publisher;
};

// Whether the encoding is a version of netio's that is newer than this one.
bool is_newer(std::string_view encoding, std::string_view known) {
    const std::string_view name = known.substr(0, known.find('/') + 1);
    if (!encoding.starts_with(name) || encoding == known) return false;
    const std::string_view version = encoding.substr(name.size());
    return !version.empty() && version.find_first_not_of("0123456789") == version.npos;
}

} // namespace

std::vector<std::string> recording_files(const std::string& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) return files_of_folder(path);
    if (fs::exists(status)) return {path};
    if (status.type() == fs::file_type::none) refuse_unreadable(path, error);
    return parts_of(path);
}

class RecordingReader::State {
  public:
    State(const std::vector<std::string>& paths, const Options& options) : options_{options} {
        for (const std::string& path : paths) {
            McapInput opened{path, options_.chunk_memory_limit_bytes};
            files_.push_back(describe(opened));
            total_bytes_ += opened.size();
        }
    }

    bool next();
    void rewind();
    std::optional<RecordingTime> begin_time();
    std::uint64_t passed_bytes() const noexcept {
        return passed_files_bytes_ + (file_ ? std::min(place_, file_->size()) : 0);
    }

    Options options_;
    Selection selection_;
    std::vector<File> files_;
    std::uint64_t total_bytes_ = 0;
    RecordedMessage message_;
    RecordedEvent event_;
    bool is_event_ = false;
    std::vector<Damage> damage_;
    std::vector<Damage> torn_;
    std::uint64_t damage_count_ = 0;
    std::uint64_t foreign_messages_ = 0;
    std::uint64_t backward_steps_ = 0;

  private:
    struct Place {
        std::uint64_t offset = 0;
        std::uint64_t length = 0;
    };

    static File describe(McapInput& file);
    bool open_next();
    bool read_index(const McapInput::End& end);
    bool is_needed(const mcap::ChunkIndex& index) const;
    bool load();
    bool load_indexed();
    bool load_scanned();
    bool load_chunk(const McapInput::Record& record, bool may_be_torn);
    bool find_after_damage();
    void add_channel(ByteSpan content);
    bool take(ByteSpan content);
    bool take_event(const mcap::MessageRecord& record);
    Channel& channel(std::uint16_t id);
    std::uint32_t position_of(std::uint16_t id) const noexcept {
        return id < channel_of_.size() ? channel_of_[id] : 0;
    }
    void damaged(std::uint64_t offset, std::uint64_t bytes, std::string_view problem);
    void end_torn(std::uint64_t offset, std::string_view problem);
    bool is_in_time(std::uint64_t begin, std::uint64_t end) const {
        return (!selection_.from || end >= from_time(*selection_.from)) && is_before_end(begin);
    }
    bool is_before_end(std::uint64_t begin) const {
        return !selection_.until || begin < from_time(*selection_.until);
    }

    std::size_t next_file_ = 0;
    std::uint64_t passed_files_bytes_ = 0;
    std::unique_ptr<McapInput> file_;
    std::vector<std::uint32_t> channel_of_; // position in channels_, by id; 0: none
    std::vector<Channel> channels_;
    std::optional<std::vector<Place>> index_; // nullopt: the file is scanned
    std::size_t next_chunk_ = 0;
    std::uint64_t place_ = 0; // where the scan continues
    // The record before, if its length may be damaged and reach into a whole chunk.
    std::optional<std::uint64_t> unchecked_;
    bool is_complete_ = false;
    ByteSpan records_; // what is left of the current chunk
    std::uint64_t chunk_offset_ = 0;
    std::uint64_t last_time_ = 0;
};

// Reads the first records of a file, which its writer has written at once.
RecordingReader::File RecordingReader::State::describe(McapInput& file) {
    File found{.path = file.path(), .bytes = file.size()};
    const auto read_properties = [&](const McapInput::Record& record) {
        mcap::RecordParser parser{file.content(record)};
        if (parser.text() == mcap::run_metadata) {
            const mcap::Texts texts = parser.texts();
            found.properties.assign(texts.begin(), texts.end());
        }
    };
    std::uint64_t offset = McapInput::first_record;
    for (int i = 0; i < 16; ++i) {
        const auto record = file.record_at(offset);
        if (!record || record->opcode == Opcode::chunk || record->opcode == Opcode::message ||
            record->length > (1U << 20))
            break;
        if (record->opcode == Opcode::header) {
            mcap::RecordParser parser{file.content(*record)};
            found.profile = parser.text();
            found.library = parser.text();
        } else if (record->opcode == Opcode::metadata) {
            read_properties(*record);
        }
        offset = record->end();
    }
    const auto end = file.end();
    found.has_summary = end && end->footer.summary_start != 0;
    return found;
}

Channel& RecordingReader::State::channel(std::uint16_t id) {
    if (id >= channel_of_.size()) channel_of_.resize(std::size_t{id} + 1);
    std::uint32_t& position = channel_of_[id];
    if (position == 0) {
        channels_.emplace_back();
        position = static_cast<std::uint32_t>(channels_.size() - 1);
    }
    return channels_[position];
}

void RecordingReader::State::rewind() {
    next_file_ = 0;
    passed_files_bytes_ = 0;
    file_.reset();
    records_ = {};
    damage_.clear();
    torn_.clear();
    damage_count_ = foreign_messages_ = backward_steps_ = last_time_ = 0;
}

bool RecordingReader::State::open_next() {
    if (file_) passed_files_bytes_ += file_->size();
    file_.reset();
    if (next_file_ == files_.size()) return false;
    file_ = std::make_unique<McapInput>(files_[next_file_].path, options_.chunk_memory_limit_bytes,
                                        files_[next_file_].bytes);
    ++next_file_;
    channel_of_.clear();
    channels_.assign(1, {}); // position 0 is none
    index_.reset();
    next_chunk_ = 0;
    place_ = McapInput::first_record;
    unchecked_.reset();
    const auto end = file_->end();
    is_complete_ = end.has_value();
    if (!end || end->footer.summary_start == 0) return true;
    if (!read_index(*end)) {
        index_.reset();
        if (options_.on_damage == OnDamage::skip)
            damaged(end->footer.summary_start, end->offset - end->footer.summary_start,
                    "the summary is damaged; the file is scanned");
    }
    return true;
}

// Returns false if the summary is damaged. The index stays empty if it does not list all chunks.
bool RecordingReader::State::read_index(const McapInput::End& end) {
    std::optional<mcap::Statistics> statistics;
    const bool is_whole = file_->visit_summary(end, [&](Opcode opcode, ByteSpan content) {
        if (opcode == Opcode::channel) add_channel(content);
        if (opcode == Opcode::statistics) statistics = mcap::parse_statistics(content);
    });
    if (!is_whole) return false;
    if (statistics) files_[next_file_ - 1].messages = statistics->message_count;
    if (!statistics || statistics->channel_count != channels_.size() - 1 ||
        (statistics->chunk_count == 0 && statistics->message_count > 0))
        return true;
    std::vector<Place> places;
    std::uint64_t passed = McapInput::first_record;
    std::uint64_t chunks = 0;
    bool is_right = true;
    static_cast<void>(file_->visit_summary(end, [&](Opcode opcode, ByteSpan content) {
        if (opcode != Opcode::chunk_index) return;
        const auto chunk = mcap::parse_chunk_index(content);
        is_right = is_right && chunk && chunk->chunk_start_offset >= passed &&
                   chunk->chunk_length >= mcap::record_head_bytes &&
                   chunk->chunk_start_offset < end.footer.summary_start &&
                   chunk->chunk_length <= end.footer.summary_start - chunk->chunk_start_offset;
        if (!is_right) return;
        passed = chunk->chunk_start_offset + chunk->chunk_length;
        ++chunks;
        if (is_needed(*chunk)) places.push_back({chunk->chunk_start_offset, chunk->chunk_length});
    }));
    if (is_right && chunks == statistics->chunk_count) index_ = std::move(places);
    return true; // chunks in another order are valid: the file is scanned
}

bool RecordingReader::State::is_needed(const mcap::ChunkIndex& index) const {
    if (!is_in_time(index.message_start_time, index.message_end_time)) return false;
    if (index.message_index_offsets.empty()) return true;
    return std::ranges::any_of(index.message_index_offsets, [&](const auto& each) {
        const std::uint32_t position = position_of(each.first);
        return position == 0 || channels_[position].is_selected;
    });
}

void RecordingReader::State::add_channel(ByteSpan content) {
    if (content.size() > largest_channel_bytes) {
        mcap::RecordParser parser{content};
        Channel& large = channel(parser.u16());
        if (large.kind == Channel::Kind::unknown) large.kind = Channel::Kind::foreign;
        return;
    }
    const auto record = mcap::parse_channel(content);
    if (!record) return;
    const std::optional<Fid> fid = mcap::fid_of(*record);
    const bool is_fid = record->message_encoding == mcap::fid_encoding;
    if (is_fid && !fid) return; // it is damaged, and so are its messages
    Channel& found = channel(record->id);
    if (found.kind != Channel::Kind::unknown) return; // a repetition
    for (const std::string_view known : {mcap::fid_encoding, mcap::publisher_encoding}) {
        if (!is_newer(record->message_encoding, known)) continue;
        throw RecordingError{file_->path() + ": channel " + record->topic +
                             " is in the newer format " + record->message_encoding +
                             "; this version reads " + std::string{known} + ": use a newer netio"};
    }
    for (const auto& [key, value] : record->metadata)
        if (key == "publisher") found.publisher = value.substr(0, longest_publisher_bytes);
    constexpr std::string_view publisher_prefix = "netio/publisher/";
    const std::string_view topic = record->topic;
    if (found.publisher.empty() && topic.starts_with(publisher_prefix))
        found.publisher = topic.substr(publisher_prefix.size(), longest_publisher_bytes);
    found.kind = Channel::Kind::foreign;
    if (is_fid) {
        found.kind = Channel::Kind::fid;
        found.fid = *fid;
        found.is_selected = selection_.fids.empty() || selection_.fids.contains(*fid);
    } else if (record->message_encoding == mcap::publisher_encoding) {
        found.kind = Channel::Kind::publisher;
    } else if (record->topic == mcap::events_topic &&
               record->message_encoding == mcap::events_encoding) {
        found.kind = Channel::Kind::events;
    }
}

void RecordingReader::State::damaged(std::uint64_t offset, std::uint64_t bytes,
                                     std::string_view problem) {
    if (options_.on_damage == OnDamage::refuse)
        file_->fail(offset, problem, "`netio file repair` writes what is whole into another file");
    ++damage_count_;
    if (damage_.size() < damage_limit)
        damage_.push_back({file_->path(), offset, bytes, std::string{problem}});
}

void RecordingReader::State::end_torn(std::uint64_t offset, std::string_view problem) {
    if (options_.refuse_torn)
        file_->fail(offset, problem, "`netio file repair` writes what is whole into another file");
    torn_.push_back({file_->path(), offset, file_->size() - offset, std::string{problem}});
    place_ = file_->size();
}

// Makes the next records available. Returns false at the end of the last file.
bool RecordingReader::State::load() {
    for (;;) {
        records_ = {};
        if (file_ && (index_ ? load_indexed() : load_scanned())) return true;
        if (!open_next()) return false;
    }
}

bool RecordingReader::State::load_indexed() {
    while (next_chunk_ < index_->size()) {
        const Place place = (*index_)[next_chunk_++];
        const auto record = file_->record_at(place.offset);
        place_ = place.offset + place.length;
        if (!record || record->opcode != Opcode::chunk || record->end() != place_) {
            damaged(place.offset, place.length, "the summary names a chunk that is not there");
            continue;
        }
        if (load_chunk(*record, false)) return true;
    }
    return false;
}

bool RecordingReader::State::load_scanned() {
    while (place_ < file_->size()) {
        const auto record = file_->record_at(place_);
        if (!record || is_reserved(record->opcode)) {
            if (!find_after_damage()) return false;
            continue;
        }
        place_ = record->end();
        unchecked_.reset();
        if (mcap::has_unchecked_length(record->opcode)) unchecked_ = record->offset;
        switch (record->opcode) {
        case Opcode::data_end:
        case Opcode::footer:
            place_ = file_->size();
            if (!is_complete_) end_torn(record->offset, "the file ends without a whole summary");
            return false;
        case Opcode::chunk:
            if (load_chunk(*record, !is_complete_)) return true;
            break;
        case Opcode::channel:
        case Opcode::message:
            records_ = file_->whole(*record);
            chunk_offset_ = record->offset;
            return true;
        default: // message indexes, metadata, attachments, and kinds of later versions
            break;
        }
    }
    if (!is_complete_ && (torn_.empty() || torn_.back().path != file_->path()))
        end_torn(file_->size(), "the file ends without a summary");
    return false;
}

// Continues with the next whole chunk. Returns false if there is none: the file is torn.
bool RecordingReader::State::find_after_damage() {
    const std::uint64_t offset = std::exchange(unchecked_, std::nullopt).value_or(place_);
    const auto chunk = file_->find_chunk(offset + 1);
    if (!chunk) {
        end_torn(place_, "the file ends within a record");
        return false;
    }
    damaged(offset, chunk->offset - offset, "a record's kind or length is damaged");
    place_ = chunk->offset;
    return true;
}

// Returns whether records were loaded.
bool RecordingReader::State::load_chunk(const McapInput::Record& record, bool may_be_torn) {
    const auto head = file_->chunk(record);
    // Channels of chunks before the selected time are used by later ones.
    if (head && (index_ ? !is_in_time(head->message_start_time, head->message_end_time)
                        : !is_before_end(head->message_start_time) && head->message_end_time > 0))
        return false;
    std::string problem;
    const auto records = file_->chunk_records(record, problem);
    if (!records) {
        // The last chunk of a file whose writer was killed may have been written in part.
        if (may_be_torn && !file_->record_at(record.end()) && !file_->find_chunk(record.offset + 1))
            end_torn(record.offset, "the file ends within a chunk");
        else
            damaged(record.offset, record.end() - record.offset, problem);
        return false;
    }
    records_ = *records;
    chunk_offset_ = record.offset;
    return true;
}

bool RecordingReader::State::take_event(const mcap::MessageRecord& record) {
    event_ = {.time = to_time(record.log_time)};
    const std::string_view text{reinterpret_cast<const char*>(record.data.data()),
                                record.data.size()};
    try {
        const auto json = pubsub::parse_bounded(text, {.depth = 4, .values = 64});
        const auto member = [&](const char* name) {
            const auto found = json.find(name);
            return found != json.end() && found->is_string() ? found->template get<std::string>()
                                                             : std::string{};
        };
        if (!json.is_object()) throw pubsub::JsonError{"it is no object"};
        event_.event = member("event");
        event_.publisher = member("publisher");
        event_.fids = member("fids");
        event_.reason = member("reason");
        const auto count = json.find("count");
        if (count != json.end() && count->is_number_unsigned())
            event_.count = count->get<std::uint64_t>();
    } catch (const std::exception&) {
        event_.event = "unknown";
        event_.reason = text.substr(0, 200);
    }
    is_event_ = true;
    return true;
}

// Returns whether the message is one that the user wants.
bool RecordingReader::State::take(ByteSpan content) {
    const auto record = mcap::parse_message(content);
    if (!record) {
        damaged(chunk_offset_, 0, "a message is shorter than its fields");
        return false;
    }
    const Channel& from = channels_[position_of(record->channel_id)];
    if (from.kind == Channel::Kind::foreign) {
        ++foreign_messages_;
        return false;
    }
    if (from.kind == Channel::Kind::unknown) {
        damaged(chunk_offset_, content.size(),
                "a message of channel " + std::to_string(record->channel_id) +
                    ", whose record is damaged or absent");
        return false;
    }
    if (record->log_time < last_time_) ++backward_steps_;
    last_time_ = record->log_time;
    if (!from.is_selected || !is_in_time(record->log_time, record->log_time)) return false;
    if (from.kind == Channel::Kind::events) return take_event(*record);
    const bool has_fid = from.kind == Channel::Kind::publisher;
    const std::size_t prefix_bytes =
        has_fid ? mcap::publisher_prefix_bytes : mcap::fid_prefix_bytes;
    if (record->data.size() < prefix_bytes) {
        damaged(chunk_offset_, 0, "a message is shorter than netio's prefix");
        return false;
    }
    const std::byte* const data = record->data.data();
    const mcap::Prefix prefix =
        has_fid ? mcap::load_publisher_prefix(data) : mcap::load_fid_prefix(data);
    const Fid fid = has_fid ? prefix.fid : from.fid;
    if (has_fid && !selection_.fids.empty() && !selection_.fids.contains(fid)) return false;
    message_ = {.fid = fid,
                .status = prefix.status,
                .sequence = prefix.sequence,
                .arrival_time = to_time(record->log_time),
                .publish_time =
                    to_time(prefix.has_publish_time ? record->publish_time : record->log_time),
                .has_publish_time = prefix.has_publish_time,
                .bytes = record->data.subspan(prefix_bytes),
                .publisher = from.publisher};
    is_event_ = false;
    return true;
}

bool RecordingReader::State::next() {
    for (;;) {
        while (!records_.empty()) {
            mcap::RecordParser parser{records_};
            const Opcode opcode{parser.u8()};
            const ByteSpan content = parser.bytes(parser.u64());
            if (!parser.is_whole()) {
                records_ = {};
                damaged(chunk_offset_, 0, "a record in the chunk does not end within it");
                break;
            }
            records_ = parser.rest();
            if (opcode == Opcode::channel) add_channel(content);
            if (opcode == Opcode::message && take(content)) return true;
        }
        if (!load()) return false;
    }
}

std::optional<RecordingTime> RecordingReader::State::begin_time() {
    for (const File& each : files_) {
        McapInput file{each.path, options_.chunk_memory_limit_bytes, each.bytes};
        std::uint64_t offset = McapInput::first_record;
        while (const auto record = file.record_at(offset)) {
            offset = record->end();
            if (record->opcode == Opcode::data_end || record->opcode == Opcode::footer) break;
            if (record->opcode == Opcode::message) {
                mcap::RecordParser parser{file.content(*record)};
                static_cast<void>(parser.bytes(6)); // channel and sequence
                return to_time(parser.u64());
            }
            if (record->opcode != Opcode::chunk) continue;
            const auto chunk = file.chunk(*record);
            if (chunk && chunk->message_end_time > 0) return to_time(chunk->message_start_time);
        }
    }
    return std::nullopt;
}

// --- the public class ------------------------------------------------------------------------

namespace {

std::vector<std::string> all_files(std::span<const std::string> paths) {
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        for (std::string& file : recording_files(path))
            files.push_back(std::move(file));
    }
    return files;
}

} // namespace

RecordingReader::RecordingReader(const std::string& path, const Options& options)
    : RecordingReader{std::span{&path, 1}, options} {}
RecordingReader::RecordingReader(std::span<const std::string> paths, const Options& options)
    : state_{std::make_unique<State>(all_files(paths), options)} {}
RecordingReader::~RecordingReader() = default;
RecordingReader::RecordingReader(RecordingReader&&) noexcept = default;
RecordingReader& RecordingReader::operator=(RecordingReader&&) noexcept = default;

void RecordingReader::select(Selection selection) {
    state_->selection_ = std::move(selection);
    state_->rewind();
}
void RecordingReader::rewind() {
    state_->rewind();
}
bool RecordingReader::next() {
    return state_->next();
}
const RecordedMessage& RecordingReader::message() const noexcept {
    return state_->message_;
}
const RecordedEvent* RecordingReader::event() const noexcept {
    return state_->is_event_ ? &state_->event_ : nullptr;
}
std::span<const RecordingReader::File> RecordingReader::files() const noexcept {
    return state_->files_;
}
std::optional<RecordingTime> RecordingReader::begin_time() {
    return state_->begin_time();
}
std::span<const RecordingReader::Damage> RecordingReader::damage() const noexcept {
    return state_->damage_;
}
std::span<const RecordingReader::Damage> RecordingReader::torn() const noexcept {
    return state_->torn_;
}
std::uint64_t RecordingReader::damage_count() const noexcept {
    return state_->damage_count_;
}
std::uint64_t RecordingReader::foreign_messages() const noexcept {
    return state_->foreign_messages_;
}
std::uint64_t RecordingReader::backward_steps() const noexcept {
    return state_->backward_steps_;
}
std::uint64_t RecordingReader::total_bytes() const noexcept {
    return state_->total_bytes_;
}
std::uint64_t RecordingReader::passed_bytes() const noexcept {
    return state_->passed_bytes();
}

} // namespace netio::inline v0_3
