# SPDX-License-Identifier: Apache-2.0
"""netio replay and netio file: recordings made by a writer of this test are looked into, checked,
repaired, cut, merged, exported and published again. The page docs/recording.md is run."""

import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import unittest
import zlib

from program_case import CONFIG, DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case
from reports_test import documented, flat, is_known

PAGE = os.path.join(CONFIG, "..", "docs", "recording.md")
MAGIC = b"\x89MCAP0\r\n"
BEGIN = 1_700_000_000_000_000_000


def text(value):
    data = value.encode()
    return struct.pack("<I", len(data)) + data


def texts(values):
    data = b"".join(text(key) + text(value) for key, value in values.items())
    return struct.pack("<I", len(data)) + data


def record(opcode, content):
    return struct.pack("<BQ", opcode, len(content)) + content


class Recording:
    """An MCAP file by its specification, independent of netio's writer."""

    def __init__(self, channels_outside=False, properties=None):
        self.channels_outside = channels_outside  # of the chunks, as netio record writes them
        self.data = MAGIC + record(1, text("netio") + text("recording_files_test"))
        if properties:
            self.data += record(12, text("netio") + texts(properties))
        self.channels, self.indexes, self.counts = {}, b"", {}
        self.chunks, self.times, self.chunk_ends = 0, [], []

    def chunk(self, messages):
        """Messages: (fid, sequence, ns after BEGIN, status, bytes)."""
        records, places = b"", {}
        for fid, sequence, after, status, data in messages:
            if fid not in self.channels:
                self.channels[fid] = record(4, struct.pack("<HH", len(self.channels) + 1, 0)
                                            + text(f"netio/fid/0x{fid:016x}") + text("netio/1")
                                            + texts({"fid": f"0x{fid:x}", "publisher": "10.0.0.1:7"}))
                if self.channels_outside:
                    self.data += self.channels[fid]
                else:
                    records += self.channels[fid]
            channel = list(self.channels).index(fid) + 1
            time = BEGIN + after
            places.setdefault(channel, []).append((time, len(records)))
            self.counts[channel] = self.counts.get(channel, 0) + 1
            self.times.append(time)
            prefix = struct.pack("<BBHIQ", status, 0, 0, 0, sequence)
            records += record(5, struct.pack("<HIQQ", channel, sequence & 0xffffffff, time, time) + prefix + data)
        times = [BEGIN + each[2] for each in messages]
        begin = len(self.data)
        self.data += record(6, struct.pack("<QQQI", min(times), max(times), len(records), zlib.crc32(records))
                            + text("") + struct.pack("<Q", len(records)) + records)
        length = len(self.data) - begin
        offsets = b""
        after = len(self.data)
        for channel, entries in places.items():
            offsets += struct.pack("<HQ", channel, len(self.data))
            pairs = b"".join(struct.pack("<QQ", *entry) for entry in entries)
            self.data += record(7, struct.pack("<HI", channel, len(pairs)) + pairs)
        self.indexes += record(8, struct.pack("<QQQQI", min(times), max(times), begin, length, len(offsets))
                               + offsets + struct.pack("<Q", len(self.data) - after) + text("")
                               + struct.pack("<QQ", len(records), len(records)))
        self.chunks += 1
        self.chunk_ends.append(begin + length)
        return self

    def finished(self):
        data = self.data + record(15, struct.pack("<I", 0))
        begin = len(data)
        summary = b"".join(self.channels.values())
        counts = b"".join(struct.pack("<HQ", *each) for each in self.counts.items())
        summary += record(11, struct.pack("<QHIIIIQQI", len(self.times), 0, len(self.channels), 0, 0, self.chunks,
                                          min(self.times), max(self.times), len(counts)) + counts)
        summary += self.indexes
        footer = struct.pack("<BQQQ", 2, 20, begin, 0)
        return data + summary + footer + struct.pack("<I", zlib.crc32(summary + footer)) + MAGIC


def some_messages(count, fids=4, seed=1, size=None):
    draw = random.Random(seed)
    sequences = dict.fromkeys(range(fids), 0)
    for i in range(count):
        fid = draw.randrange(fids)
        sequences[fid] += 1
        data = draw.randbytes(size or draw.randrange(200))
        yield (fid, sequences[fid], i * 100_000, draw.randrange(256), data)


def recording_of(messages, per_chunk=50, **options):
    made = Recording(**options)
    for at in range(0, len(messages), per_chunk):
        made.chunk(messages[at:at + per_chunk])
    return made


def netio(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=DEADLINE, **options)


class RecordingCase(Case):
    def run_json(self, *arguments, status=0):
        ended = netio(*arguments, "--json")
        self.assertEqual(ended.returncode, status, ended.stderr.decode())
        return self.documented(json.loads(ended.stdout.splitlines()[-1]))

    def documented(self, report):
        known = documented()[report["role"]]
        for name in flat(report):
            self.assertTrue(is_known(name, known), f"{report['role']}: {name} is not in docs/reports.md")
        return report

    def lines(self, file, *selection):
        """The messages of a recording as lines of CSV: another path through the reader than the report."""
        ended = netio("file", "export", file, "--as", "csv", "--output", "-", *selection)
        self.assertIn(ended.returncode, (0, 4), ended.stderr.decode())
        return ended.stdout.decode().splitlines()[1:]

    @staticmethod
    def expected_lines(messages):
        return [f"{BEGIN + after},,0x{fid:x},{sequence},{status},{len(data)},{data.hex()}"
                for fid, sequence, after, status, data in messages]


class Looking(RecordingCase):
    MESSAGES = list(some_messages(500))

    def setUp(self):
        super().setUp()
        self.made = recording_of(self.MESSAGES)
        self.file = self.path("run.mcap", self.made.finished())

    def test_info_counts_fids_losses_and_rates(self):
        messages = [each for each in self.MESSAGES if each[:2] != (2, 5)]
        report = self.run_json("file", "info", self.path("lossy.mcap", recording_of(messages).finished()))
        self.assertEqual(report["messages"], 499)
        self.assertEqual(report["bytes"], sum(len(each[4]) for each in messages))
        self.assertEqual(report["lost"], 1)
        self.assertEqual(report["fids"]["0x2"]["lost"], 1)
        self.assertEqual(report["fids"]["0x2"]["publisher"], "10.0.0.1:7")
        self.assertEqual(sum(report["rate"]["messages"]), 499)
        self.assertAlmostEqual(report["seconds"], 0.0499, 3)
        shown = netio("file", "info", self.file).stdout.decode()
        self.assertIn("500 messages", shown)
        self.assertIn("####", shown)
        self.assertIn("2023-11-14T22:13:20.000000000Z", shown)

    def test_verify_finds_what_is_damaged_and_torn(self):
        self.assertEqual(self.run_json("file", "verify", self.file)["damage_count"], 0)
        data = bytearray(self.made.finished())
        data[self.made.chunk_ends[2] - 5] ^= 1
        report = self.run_json("file", "verify", self.path("bad.mcap", bytes(data)), status=6)
        self.assertEqual(report["damage_count"], 1)
        self.assertEqual(report["messages"], 450)
        ended = netio("file", "info", self.path("bad.mcap"))
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr.decode(), r"bad\.mcap: at offset \d+: .*netio file repair")
        torn = self.path("torn.mcap", self.made.data[:-10])
        self.assertEqual(len(self.run_json("file", "verify", torn, status=5)["torn"]), 1)

    def test_repair_keeps_every_whole_chunk_of_a_file_torn_anywhere(self):
        whole = self.made.finished()
        expected = self.expected_lines(self.MESSAGES)
        draw = random.Random(7)
        for number in range(12):
            length = draw.randrange(8, len(whole))
            torn = self.path(f"torn{number}.mcap", whole[:length])
            repaired = self.path(f"repaired{number}.mcap")
            report = self.run_json("file", "repair", torn, "--output", repaired)
            self.assertEqual(report["chunks"], sum(end <= length for end in self.made.chunk_ends), length)
            self.assertEqual(self.lines(repaired), expected[:report["messages"]])
            verified = self.run_json("file", "verify", repaired)
            self.assertEqual(verified["messages"], report["messages"])
            self.assertTrue(verified["files"][0]["complete"])
            with open(torn, "rb") as file:
                self.assertEqual(file.read(), whole[:length])  # not in place

    def test_repair_passes_over_a_damaged_chunk(self):
        data = bytearray(self.made.finished())
        data[self.made.chunk_ends[2] - 5] ^= 1
        report = self.run_json("file", "repair", self.path("bad.mcap", bytes(data)), "--output", self.path("new.mcap"))
        self.assertEqual(report["messages"], 450)
        self.assertEqual(report["skipped_places"], 1)
        expected = self.expected_lines(self.MESSAGES)
        self.assertEqual(self.lines(self.path("new.mcap")), expected[:100] + expected[150:])

    def test_a_damaged_channel_record_moves_no_message_to_another_fid(self):
        # Outside of chunks it has no checksum, but a whole summary has it, too.
        messages = list(some_messages(200, fids=1))
        made = recording_of(messages, channels_outside=True)
        at = made.data.index(b"0x0", made.data.index(b"fid\3"))
        for whole in (True, False):
            with self.subTest(whole=whole):
                data = bytearray(made.finished() if whole else made.data)
                data[at + 2] = ord("9")
                bad = self.path(f"bad{whole}.mcap", bytes(data))
                new = self.path(f"new{whole}.mcap")
                report = self.run_json("file", "repair", bad, "--output", new)
                self.assertEqual(report["messages"], 200)
                if whole:
                    self.assertEqual(self.lines(new), self.expected_lines(messages))
                    continue
                self.assertEqual(self.run_json("file", "verify", bad, status=6)["damage_count"], 200)
                self.assertEqual((report["lost_channels"], report["lost_channel_messages"]), (1, 200))
                self.assertEqual(self.run_json("file", "verify", new)["foreign_messages"], 200)

    def test_verify_checks_what_only_other_programs_read(self):
        made = recording_of(list(some_messages(200, fids=2)), channels_outside=True)
        data = made.finished()
        end = data.index(record(15, struct.pack("<I", 0)))  # of what no checksum of the summary protects
        channel = data.index(record(4, b"")[:1] + struct.pack("<Q", len(made.channels[0]) - 9))
        for at in (channel, channel + 5, channel + 20, made.chunk_ends[0], made.chunk_ends[0] + 3,
                   made.chunk_ends[0] + 10, made.chunk_ends[1] + 30, end - 1, end, end + 8):
            with self.subTest(at=at):
                bad = bytearray(data)
                bad[at] ^= 1
                report = self.run_json("file", "verify", self.path(f"bad{at}.mcap", bytes(bad)), status=6)
                self.assertEqual(report["messages"], 200)
                self.assertIn(report["damage_count"], (1, 2))  # a lost channel is absent, too
        self.assertEqual(self.run_json("file", "verify", self.path("whole.mcap", data))["damage_count"], 0)

    def test_an_absent_part_of_a_set_is_named(self):
        for part in (1, 2, 3, 5):
            messages = [(0, part, part, 0, b"x")]
            made = recording_of(messages, properties={"run": "abc", "part": str(part)})
            self.path(f"{part}.mcap", made.finished())
        folder = os.path.dirname(self.file)
        os.unlink(self.file)
        report = self.run_json("file", "verify", folder, status=5)
        self.assertEqual(report["absent_parts"], ["part 4 of run abc"])
        os.unlink(self.path("2.mcap"))
        report = self.run_json("file", "info", folder)
        self.assertEqual(report["absent_parts"], ["part 2 of run abc", "part 4 of run abc"])
        os.unlink(self.path("3.mcap"))
        self.assertIn("absent: parts 2 to 4 of run abc;", netio("file", "info", folder).stdout.decode())

    def test_texts_of_a_file_forge_no_lines(self):
        data = self.made.data.replace(b"recording_files_test", b"evil\nlost: 9 message")  # as long
        lines = netio("file", "info", self.path("evil.mcap", data)).stdout.decode().splitlines()
        self.assertIn(r"written by evil\nlost: 9 message", lines[0])
        self.assertEqual(sum(line.startswith("lost:") for line in lines), 1)

    def test_a_damaged_length_hides_no_whole_chunk(self):
        data = bytearray(self.made.data)  # torn, so that it is scanned
        index = chunk = self.made.chunk_ends[2]
        while data[chunk] != 6:
            chunk += 9 + struct.unpack_from("<Q", data, chunk + 1)[0]
        struct.pack_into("<Q", data, index + 1, chunk + 40 - index - 9)
        bad = self.path("bad.mcap", bytes(data))
        self.assertEqual(self.run_json("file", "verify", bad, status=6)["messages"], 500)
        report = self.run_json("file", "repair", bad, "--output", self.path("new.mcap"))
        self.assertEqual((report["messages"], report["skipped_places"]), (500, 1))
        self.assertEqual(self.lines(self.path("new.mcap")), self.expected_lines(self.MESSAGES))

    def test_repair_keeps_records_of_other_programs(self):
        private = record(0x90, b"calibration")
        self.run_json("file", "repair", self.path("more.mcap", self.made.data + private), "--output",
                      self.path("new.mcap"))
        with open(self.path("new.mcap"), "rb") as file:
            self.assertIn(private, file.read())
        self.run_json("file", "verify", self.path("new.mcap"))

    def test_a_repaired_file_can_go_to_standard_output(self):
        for extra in ((), ("--json",)):
            ended = netio("file", "repair", self.file, "--output", "-", *extra)
            self.assertEqual((ended.returncode, ended.stdout[:8], ended.stdout[-8:]), (0, MAGIC, MAGIC))
            self.assertEqual(self.lines(self.path("copy.mcap", ended.stdout)), self.expected_lines(self.MESSAGES))

    def test_a_signal_removes_what_is_not_finished(self):
        for arguments in (("cut",), ("export", "--as", "csv")):
            with self.subTest(arguments):
                new = self.path(f"{arguments[0]}.mcap")
                process = subprocess.Popen([PROGRAM, "file", *arguments, *(5000 * [self.file]), "--output", new],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                while not os.path.exists(new):
                    self.assertIsNone(process.poll())
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.wait(DEADLINE), -signal.SIGINT)
                self.assertFalse(os.path.exists(new))

    def test_times_that_select_nothing_are_refused(self):
        for start, end in (("20ms", "10ms"), ("1s", "1s")):
            ended = netio("file", "info", self.file, "--from", start, "--until", end)
            self.assertEqual(ended.returncode, 2)
            self.assertIn(f"--until: '{end}' is not after --from '{start}'", ended.stderr.decode())

    def test_reserved_space_can_be_chosen(self):
        new = self.path("cut.mcap")
        ended = netio("file", "cut", self.file, "--output", new, "--min-free", "100000TiB")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("decrease min_free_bytes", ended.stderr.decode())
        self.assertFalse(os.path.exists(new))
        self.run_json("file", "cut", self.file, "--output", new, "--min-free", "0")

    def test_nothing_is_overwritten(self):
        kept = self.path("kept.mcap", b"precious")
        for arguments in (("repair", self.file), ("cut", self.file), ("merge", self.file, self.file),
                          ("export", self.file, "--as", "csv"), ("export", self.file, "--as", "hdf5")):
            ended = netio("file", *arguments, "--output", kept)
            self.assertEqual(ended.returncode, 1, arguments)
            self.assertRegex(ended.stderr.decode(), "exists|without HDF5")
            with open(kept, "rb") as file:
                self.assertEqual(file.read(), b"precious")

    def test_cut_and_merge_restore_the_recording(self):
        parts = []
        for number, selection in enumerate((("--fid", "0-1", "--until", "20ms"), ("--fid", "0-1", "--from", "20ms"),
                                            ("--fid", "2-3"))):
            parts.append(self.path(f"part{number}.mcap"))
            self.run_json("file", "cut", self.file, *selection, "--output", parts[-1], "--compress",
                          ("none", "lz4", "zstd")[number])
        merged = self.path("merged.mcap")
        self.run_json("file", "merge", *parts, "--output", merged)
        self.assertEqual(self.lines(merged), self.expected_lines(self.MESSAGES))
        self.run_json("file", "verify", merged)

    def test_times_can_be_absolute(self):
        lines = self.lines(self.file, "--from", "2023-11-14T22:13:20.01Z", "--until", "2023-11-14T22:13:20.02Z")
        self.assertEqual(lines, self.expected_lines(self.MESSAGES[100:200]))
        ended = netio("file", "info", self.file, "--from", "noon")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("--from: 'noon'; allowed:", ended.stderr.decode())

    def test_raw_export_is_for_one_fid(self):
        ended = netio("file", "export", self.file, "--as", "raw", "--output", "-", "--fid", "3")
        self.assertEqual(ended.stdout, b"".join(each[4] for each in self.MESSAGES if each[0] == 3))
        ended = netio("file", "export", self.file, "--as", "raw", "--output", self.path("raw"))
        self.assertEqual(ended.returncode, 2)
        self.assertFalse(os.path.exists(self.path("raw")))

    def test_wrong_words_name_the_action(self):
        ended = netio("file", "info", self.file, "--jsn")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("did you mean '--json'", ended.stderr.decode())
        self.assertIn("run netio file info --help", ended.stderr.decode())
        self.assertIn("did you mean 'info'", netio("file", "inf").stderr.decode())


def python_with_h5py():
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", "import h5py"], stderr=subprocess.DEVNULL,
                                                     check=False).returncode == 0:
            return python
    return None


class ExportingHdf5(RecordingCase):
    READ = r"""
import h5py, json, sys
out = {}
with h5py.File(sys.argv[1]) as file:
    for name, group in file.items():
        arrival = group["arrival_time"]
        if "data" in group:
            messages = [bytes(row).hex() for row in group["data"][:]]
        else:
            data, ends = bytes(group["bytes"][:]), group["offsets"][:]
            messages = [data[ends[i]:ends[i + 1]].hex() for i in range(len(ends) - 1)]
        out[group.attrs["fid"]] = {"units": arrival.attrs["units"], "arrival": arrival[:].tolist(),
            "sequence": group["sequence"][:].tolist(), "status": group["status"][:].tolist(), "messages": messages}
print(json.dumps(out))
"""

    def test_h5py_reads_every_message(self):
        python = python_with_h5py()
        if python is None:
            self.skipTest("there is no Python with h5py (apt install python3-h5py)")
        messages = list(some_messages(300, fids=2))
        messages += [(fid + 2, sequence, after + 30_000_000, status, data)
                     for fid, sequence, after, status, data in some_messages(60, fids=1, size=20000)]
        messages += [(3, i, 40_000_000 + i, 0, bytes([i] * 12)) for i in range(1, 20)]
        file = self.path("run.mcap", recording_of(messages).finished())
        ended = netio("file", "export", file, "--as", "hdf5", "--output", self.path("run.h5"), "--json")
        if b"without HDF5" in ended.stderr:
            self.skipTest("this build has no HDF5")
        self.assertEqual(ended.returncode, 0, ended.stderr.decode())
        read = subprocess.run([python, "-c", self.READ, self.path("run.h5")], stdout=subprocess.PIPE, check=True)
        found = json.loads(read.stdout)
        self.assertEqual(sorted(found), ["0x0", "0x1", "0x2", "0x3"])
        for name, group in found.items():
            own = [each for each in messages if each[0] == int(name, 16)]
            self.assertEqual(group["units"], "ns since 1970-01-01T00:00:00Z")
            self.assertEqual(group["arrival"], [BEGIN + each[2] for each in own])
            self.assertEqual(group["sequence"], [each[1] for each in own])
            self.assertEqual(group["status"], [each[3] for each in own])
            self.assertEqual(group["messages"], [each[4].hex() for each in own])


    COMPOUND = r"""
import h5py, json, sys
with h5py.File(sys.argv[1]) as file:
    group = file["fid_0x0000000000000000"]
    data = group["data"]
    print(json.dumps({"shape": data.shape, "chunks": data.chunks, "names": data.dtype.names,
        "offsets": [data.dtype.fields[name][1] for name in data.dtype.names],
        "units": {name: value for name, value in data.attrs.items()},
        "arrival_units": group["arrival_time"].attrs["units"],
        "time": data["time"].tolist(), "adc": data["adc"][:, :3].tolist(), "gain": data["gain"].tolist(),
        "flag": data["flag"].tolist()}))
"""

    def test_records_of_a_given_layout_are_a_compound_type(self):
        python = python_with_h5py()
        if python is None:
            self.skipTest("there is no Python with h5py (apt install python3-h5py)")
        for length in (3, 10000):  # in a contiguous dataset, and each record a chunk
            records = [(0, i, i * 1000, 0, struct.pack(f"<Q{length}hfB", 7 * i, *([-i] * length), i / 2, i & 1))
                       for i in range(50)]
            file = self.path(f"run{length}.mcap", recording_of(records).finished())
            ended = netio("file", "export", file, "--as", "hdf5", "--output", self.path(f"{length}.h5"), "--layout",
                          f"time:u64:ns,adc:i16[{length}]:mV,gain:f32,flag:u8")
            if b"without HDF5" in ended.stderr:
                self.skipTest("this build has no HDF5")
            self.assertEqual(ended.returncode, 0, ended.stderr.decode())
            read = subprocess.run([python, "-c", self.COMPOUND, self.path(f"{length}.h5")], stdout=subprocess.PIPE,
                                  check=True)
            self.assertEqual(json.loads(read.stdout), {
                "shape": [50], "chunks": [1] if length > 3 else None, "names": ["time", "adc", "gain", "flag"],
                "offsets": [0, 8, 8 + 2 * length, 12 + 2 * length], "units": {"time.units": "ns", "adc.units": "mV"},
                "arrival_units": "ns since 1970-01-01T00:00:00Z", "time": [7 * i for i in range(50)],
                "adc": [[-i] * 3 for i in range(50)], "gain": [i / 2 for i in range(50)],
                "flag": [i & 1 for i in range(50)]})

    def test_a_wrong_layout_is_refused(self):
        file = self.path("run.mcap", recording_of(list(some_messages(10, fids=1, size=12))).finished())
        output = self.path("run.h5")
        if b"without HDF5" in netio("file", "export", file, "--as", "hdf5", "--output", output, "--layout",
                                    "a:u8").stderr:
            self.skipTest("this build has no HDF5")
        for layout, words in (("a:u64,b:u16", "its fields have 10 bytes, but messages of fid 0x0 have 12 to 12"),
                              ("", "--layout"), ("a", "no name and type"), ("a:u24", "type is unknown"),
                              ("a:f16", "type is unknown"), ("a:u8[0]", "number of elements"),
                              ("a:u64,a:u32", "given twice"), ("a:u8,", "no name and type"),
                              ("a:u64[18446744073709551615]", "number of elements"),
                              ("a:u64[999999999]", "at most 1 GiB")):
            ended = netio("file", "export", file, "--as", "hdf5", "--output", output, "--layout", layout)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(words, ended.stderr.decode())
            self.assertFalse(os.path.exists(output))
        ended = netio("file", "export", file, "--as", "csv", "--output", "-", "--layout", "a:u8")
        self.assertIn("only with --as hdf5", ended.stderr.decode())


    def test_a_file_that_cannot_be_written_is_removed(self):
        file = self.path("run.mcap", recording_of(list(some_messages(2000, fids=1, size=100))).finished())
        output = self.path("run.h5")
        ended = netio("file", "export", file, "--as", "hdf5", "--output", output,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50000, resource.RLIM_INFINITY)))
        if b"without HDF5" in ended.stderr:
            self.skipTest("this build has no HDF5")
        self.assertEqual(ended.returncode, 1, ended.stderr.decode())  # not a crash at exit
        self.assertIn("HDF5 cannot write; check the free space", ended.stderr.decode())
        self.assertFalse(os.path.exists(output))
        ended = netio("file", "export", file, "--as", "hdf5", "--output", self.path("none/there/run.h5"))
        self.assertIn("none/there/run.h5; create its folder first: No such file", ended.stderr.decode())
        with open("/dev/full", "wb") as full:
            ended = subprocess.run([PROGRAM, "file", "export", file, "--as", "csv", "--output", "-"], stdout=full,
                                   stderr=subprocess.PIPE, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("cannot write to standard output; free space there, or write to another file system: No space",
                      ended.stderr.decode())


class Replaying(RecordingCase):
    def replay(self, *arguments):
        return self.start("replay", *arguments, "--listen", f"{HOST}:0", "--allow-remote-anonymous")

    def received(self, replay, fids):
        """What arrives at a recorder, and the bytes of each fid."""
        self.recordings = getattr(self, "recordings", 0) + 1
        file = self.path(f"received{self.recordings}.mcap")
        recorder = self.start("record", replay.address(), "--fid", fids, "--output", file)
        status, report, log = recorder.end()
        self.assertEqual(status, 0, log)
        self.assertEqual(report["lost"], 0, log)
        found = {}
        for line in self.lines(file):
            fid, data = line.split(",")[2], line.split(",")[6]
            found[int(fid, 16)] = found.get(int(fid, 16), b"") + bytes.fromhex(data)
        return report, found

    @staticmethod
    def bytes_of(messages, fid):
        return b"".join(each[4] for each in messages if each[0] == fid)

    def check(self, *arguments, messages, file):
        replay = self.replay(file, *arguments)
        report, found = self.received(replay, "0-3")
        status, sent, log = replay.end()
        self.assertEqual(status, 0, log)
        self.documented(sent)
        self.assertEqual(sent["messages"], len(messages))
        self.assertEqual(report["messages"], len(messages))
        for fid in range(4):
            self.assertEqual(found.get(fid, b""), self.bytes_of(messages, fid))
        return sent

    def test_a_subscriber_receives_what_was_recorded(self):
        messages = list(some_messages(400))
        file = self.path("run.mcap", recording_of(messages).finished())
        for mode in ("buffered", "unbuffered"):
            sent = self.check("--rate", "max", "--mode", mode, messages=messages, file=file)
            self.assertNotIn("deviation", sent)
        self.check("--rate", "max", "--from", "10ms", "--until", "20ms", messages=messages[100:200], file=file)

    def test_a_set_with_a_torn_end_plays_without_a_seam(self):
        messages = list(some_messages(400))
        self.path("run-000001.mcap", recording_of(messages[:200]).finished())
        self.path("run-000002.mcap", recording_of(messages[200:]).data)
        sent = self.check("--rate", "100x", messages=messages, file=self.path("run.mcap"))
        self.assertEqual(sent["torn"], 1)
        self.assertIn("p99_us", sent["deviation"])

    def test_the_pace_is_the_recorded_one_times_the_factor(self):
        messages = [(0, i + 1, i * 100_000_000, 0, b"x") for i in range(11)]  # a second
        file = self.path("run.mcap", recording_of(messages).finished())
        sent = self.check("--rate", "2x", messages=messages, file=file)
        self.assertGreaterEqual(sent["seconds"], 0.5)

    def test_fids_are_replaced_and_the_recording_repeated(self):
        messages = list(some_messages(100))
        file = self.path("run.mcap", recording_of(messages).finished())
        replay = self.replay(file, "--rate", "max", "--fid", "1-2", "--map", "1-2=101-102", "--repeat", "3")
        _, found = self.received(replay, "101-102")
        self.assertEqual(replay.end()[0], 0)
        self.assertEqual(found, {fid + 100: 3 * self.bytes_of(messages, fid) for fid in (1, 2)})

    def test_a_bus_leads_to_the_replaced_fids(self):
        messages = list(some_messages(200))
        wanted = sum(each[0] in (1, 2) for each in messages)
        file = self.path("run.mcap", recording_of(messages).finished())
        for number, selection in enumerate(((), ("--fid", "0-0x10000000"))):
            bus = self.path(f"bus{number}")
            os.mkdir(bus)
            replay = self.start("replay", file, *selection, "--map", "1-2=0x20000001-0x20000002", "--rate", "max",
                                "--bus", bus, "--listen", "0.0.0.0:0", "--allow-remote-anonymous")
            replay.wait_for("announced on the bus")
            self.assertNotIn(b"0.0.0.0", netio("list", "--bus", bus, "--json").stdout)
            subscriber = self.start("subscribe", "--bus", bus, "--fid", "0x20000001-0x20000002",
                                    "--messages", str(wanted))
            status, report, log = subscriber.end()
            self.assertEqual((status, report["messages"]), (0, wanted), log)
            replay.process.send_signal(signal.SIGINT)
            replay.end()

    def test_messages_larger_than_a_block_are_replayed(self):
        large = [(0, i + 1, i, 0, bytes([i]) * (5 << 20)) for i in range(3)]
        file = self.path("run.mcap", recording_of(large, 1).finished())
        for mode in ("buffered", "unbuffered"):
            self.check("--rate", "max", "--mode", mode, messages=large, file=file)

    def test_a_damaged_file_ends_with_what_was_whole(self):
        messages = list(some_messages(200))
        made = recording_of(messages)
        data = bytearray(made.finished())
        data[made.chunk_ends[2] - 5] ^= 1
        replay = self.replay(self.path("bad.mcap", bytes(data)), "--rate", "max")
        report, _ = self.received(replay, "0-3")
        status, sent, log = replay.end()
        self.assertEqual(status, 1)
        self.assertEqual(sent["messages"], 100)
        self.assertEqual(report["messages"], 100)
        self.assertIn("netio file repair", log)

    def publish(self, streams, options="", mode="buffered"):
        return self.start("publish", self.path("publisher.yaml", f"listen: {HOST}:0\nallow_remote_anonymous: true\n"
                                               f"mode: {mode}\n{options}streams:\n{streams}"))

    def test_a_configured_publisher_replays_beside_a_pattern(self):
        messages = list(some_messages(400))
        self.path("run-000001.mcap", recording_of(messages[:200]).finished())
        self.path("run-000002.mcap", recording_of(messages[200:]).finished())
        for mode in ("buffered", "unbuffered"):
            publisher = self.publish(
                "  - {fids: 1-2, source: {recording: {file: run.mcap, rate: max, repeat: 2, until: 20ms}}}\n"
                "  - {fids: 103, source: {recording: {file: run.mcap, rate: 100x, map: 3=103}}}\n"
                "  - {fids: 7, source: pattern, size: 16, count: 100}\n", mode=mode)
            report, found = self.received(publisher, "0-200")
            status, sent, log = publisher.end()
            self.assertEqual((status, sent["messages"]), (0, report["messages"]), log)
            expected = {fid: 2 * self.bytes_of(messages[:200], fid) for fid in (1, 2)}
            expected[103] = self.bytes_of(messages, 3)
            self.assertEqual(len(found.pop(7)), 1600)
            self.assertEqual(found, expected)
            self.assertEqual({fid: row["messages"] for fid, row in sent["fids"].items()},
                             {"0x1": 2 * sum(each[0] == 1 for each in messages[:200]),
                              "0x2": 2 * sum(each[0] == 2 for each in messages[:200]), "0x7": 100,
                              "0x67": sum(each[0] == 3 for each in messages)})

    def test_a_damaged_recording_ends_a_configured_publisher(self):
        made = recording_of(list(some_messages(200)))
        data = bytearray(made.finished())
        data[made.chunk_ends[2] - 5] ^= 1
        self.path("bad.mcap", bytes(data))
        publisher = self.publish("  - {fids: 0-3, source: {recording: {file: bad.mcap, rate: max}}}\n")
        report, _ = self.received(publisher, "0-3")
        status, sent, log = publisher.end()
        self.assertEqual((status, sent["end"], sent["messages"], report["messages"]), (1, "failed", 100, 100), log)
        self.assertIn("netio file repair", log)

    def test_a_limit_of_messages_holds_for_recordings(self):
        self.path("run.mcap", recording_of(list(some_messages(200))).finished())
        publisher = self.start("publish", self.path(
            "publisher.yaml", f"listen: {HOST}:0\nallow_remote_anonymous: true\nmode: buffered\nstreams:\n"
            "  - {fids: 0-3, source: {recording: {file: run.mcap, rate: max}}}\n"), "--messages", "77")
        report, _ = self.received(publisher, "0-3")
        status, sent, log = publisher.end()
        self.assertEqual((status, sent["end"], sent["messages"], report["messages"]), (0, "finished", 77, 77), log)

    def test_a_wrong_recording_of_a_configuration_is_named(self):
        self.path("run.mcap", recording_of(list(some_messages(10))).finished())
        self.path("other.mcap", b"precious")
        for source, more, words in (
                ("recording: none.mcap", "", "source.recording: .*none.mcap: there is no such file"),
                ("recording: {file: run.mcap, rate: fast}", "", "rate: 'fast' is not a rate; allowed: recorded, max"),
                ("recording: {file: run.mcap, map: 1-2=3}", "", "map: '1-2=3': the ranges have different lengths"),
                ("recording: {file: run.mcap, from: noon}", "", "from: 'noon' is not a time"),
                ("recording: {file: run.mcap, time_stamps: recorded}", "", "together with time_stamps: tai"),
                ("recording: run.mcap, repeat: true", "", "not allowed with a recording"),
                ("recording: run.mcap", ", size: 7", "size: not allowed with this source"),
                ("recording: run.mcap, file: run.mcap", "", "needs one of file, files and recording"),
                ("recording: other.mcap", "", "other.mcap: .*MCAP")):
            publisher = self.publish(f"  - {{fids: 0-3, source: {{{source}}}{more}}}\n")
            status, _, log = publisher.end()
            self.assertIn(status, (1, 2), source)
            self.assertRegex(log, words)

    def test_wrong_values_are_refused(self):
        file = self.path("run.mcap", recording_of(list(some_messages(10))).finished())
        for arguments, words in ((("--rate", "fast"), "--rate: 'fast'; allowed:"),
                                 (("--map", "1"), "--map: '1'"),
                                 (("--map", "0-3=5"), "different lengths"),
                                 (("--time-stamps", "own"), "--time-stamps"),
                                 (("--until", "x"), "--until: 'x'")):
            ended = netio("replay", file, *arguments)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(words, ended.stderr.decode())
        ended = netio("replay", self.path("absent.mcap"))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("there is no such file", ended.stderr.decode())


class RecordingAgain(RecordingCase):
    def record(self, file, name, *arguments):
        replay = self.start("replay", file, "--rate", "max", "--listen", f"{HOST}:0", "--allow-remote-anonymous",
                            *arguments)
        recorder = self.start("record", replay.address(), "--fid", "0-3", "--output", self.path(name))
        status, _, log = recorder.end()
        self.assertEqual(status, 0, log)
        self.assertEqual(replay.end()[0], 0)
        return self.path(name)

    def test_a_recording_of_a_replay_has_the_same_messages(self):
        messages = list(some_messages(1000))
        first = self.record(self.path("run.mcap", recording_of(messages).finished()), "first.mcap")
        second = self.record(first, "second.mcap")
        columns = [line.split(",")[2:] for line in self.lines(first)]
        self.assertEqual([line.split(",")[2:] for line in self.lines(second)], columns)
        self.assertEqual([(each[0], *each[2:]) for each in columns],
                         [(line.split(",")[2], *line.split(",")[4:]) for line in self.expected_lines(messages)])
        self.assertEqual(self.run_json("file", "verify", second)["lost"], 0)

    def test_recorded_time_stamps_are_sent_again(self):
        publisher = self.start("publish", self.config(
            "time_stamps: tai\nstreams:\n  - {fids: 0-3, source: pattern, size: 40, count: 200}\n"))
        first = self.path("first.mcap")
        recorder = self.start("record", publisher.address(), "--fid", "0-3", "--output", first)
        self.assertEqual((recorder.end()[0], publisher.end()[0]), (0, 0))
        stamped = [line.split(",")[1:] for line in self.lines(first)]
        self.assertTrue(all(each[0] for each in stamped))
        for mode in ("buffered", "unbuffered"):
            again = self.record(first, f"{mode}.mcap", "--time-stamps", "recorded", "--mode", mode)
            self.assertEqual([line.split(",")[1:] for line in self.lines(again)], stamped)
        configured = self.start("publish", self.path(
            "again.yaml", f"listen: {HOST}:0\nallow_remote_anonymous: true\nmode: buffered\ntime_stamps: tai\nstreams:\n"
            "  - fids: 0-3\n"
            "    source: {recording: {file: first.mcap, rate: max, time_stamps: recorded}}\n"))
        recorder = self.start("record", configured.address(), "--fid", "0-3", "--output", self.path("yaml.mcap"))
        self.assertEqual((recorder.end()[0], configured.end()[0]), (0, 0))
        self.assertEqual([line.split(",")[1:] for line in self.lines(self.path("yaml.mcap"))], stamped)
        new = [line.split(",")[1] for line in self.lines(self.record(first, "tai.mcap", "--time-stamps", "tai"))]
        self.assertGreater(int(new[0]), int(stamped[-1][0]))
        without = self.record(first, "none.mcap")
        self.assertEqual({line.split(",")[1] for line in self.lines(without)}, {""})
        half = self.record(without, "half.mcap", "--time-stamps", "recorded")  # nothing to send
        self.assertEqual({line.split(",")[1] for line in self.lines(half)}, {""})


class WalkThrough(RecordingCase):
    """The section of that name of docs/recording.md."""

    def test_every_command_of_the_page_works(self):
        with open(PAGE, encoding="utf-8") as page:
            section = page.read().split("## Walk-through")[1].split("\n## ")[0]
        script = "set -e\n" + "\n".join(re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S))
        python = python_with_h5py()
        has_hdf5 = b"without HDF5" not in netio("file", "export", "/absent", "--as", "hdf5", "--output",
                                                self.path("x")).stderr
        if python is None or not has_hdf5:
            script = script.split("netio file export")[0]
        else:
            os.symlink(python, self.path("python3"))
        os.symlink(PROGRAM, self.path("netio"))
        for port in ("12345", "12346"):  # free ones
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                script = script.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free.getsockname()[1]}")
        ended = subprocess.run(["bash", "-c", script], cwd=self.folder.name, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, timeout=3 * DEADLINE, check=False,
                               env={**os.environ, "PATH": self.folder.name + ":" + os.environ["PATH"]})
        self.assertEqual(ended.returncode, 0, ended.stdout)
        if "read.py" in script:
            self.assertRegex(ended.stdout, r"fid_0x0000000000000003 \(\d+, 40\)")


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
