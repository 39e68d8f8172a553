# SPDX-License-Identifier: Apache-2.0
"""Recordings: written, read, selected, damaged."""

import datetime
import threading

import netio_daq as netio
import numpy
import pytest
from support import LONG, pair, run


def write(path, count=1000, **options):
    with netio.RecordingWriter(path, **options) as writer:
        for number in range(count):
            writer.write_bytes(number % 4, number.to_bytes(8, "big"), status=number % 3, time=1_000_000 + number)
    return writer


def numbers(messages):
    return [int.from_bytes(bytes(message), "big") for message in messages]


@pytest.mark.parametrize("compress", ["none", "lz4", "zstd"])
def test_messages_are_read_by_fid_and_time(tmp_path, compress):
    writer = write(tmp_path / "run.mcap", compress=compress, chunk_size_bytes=4096)
    assert writer.stats().written == 1000 and writer.stats().chunks > 3 and writer.closed
    with netio.RecordingReader(tmp_path / "run.mcap") as reader:
        messages = list(reader)
        assert numbers(messages) == list(range(1000))
        first = messages[5]
        assert (first.fid, first.status, first.sequence, first.arrival_time) == (1, 2, 1, 1_000_005)
        assert first.publish_time is None and first.publisher == ""
        reader.select(fids=[1, 3], from_=1_000_100, until=1_000_200)
        assert numbers(reader) == list(range(101, 200, 2))
        begin = datetime.datetime.fromtimestamp(0.001, datetime.timezone.utc)
        reader.select(from_=begin, until=begin + datetime.timedelta(microseconds=1))
        assert numbers(reader) == list(range(1000))
        reader.select(until=begin)
        assert numbers(reader) == []
        reader.select()
        reader.rewind()
        assert numbers([reader.next() for _ in range(3)]) == [0, 1, 2]
        assert reader.begin_time() == 1_000_000
        assert reader.passed_bytes() <= reader.total_bytes() == (tmp_path / "run.mcap").stat().st_size
        (file,) = reader.files()
        assert file.has_summary and file.properties["version"] == netio.__version__
    assert reader.closed
    with pytest.raises(netio.ClosedError, match="closed"):
        next(reader)


def test_what_a_subscriber_receives_is_recorded_with_its_losses(tmp_path):
    publisher, subscriber = pair(when_full="drop", queue_limit_messages=8)
    large = numpy.arange(50_000, dtype="u4")
    published, written, first = 0, 1, None
    with netio.RecordingWriter(tmp_path / "run.mcap") as writer:
        for number in range(200):
            publisher.publish(1, number.to_bytes(8, "big"))
            published += 1
            if number % 20 == 19:
                publisher.publish(2, large)
                published += 1
                while subscriber.stats().messages < published:
                    pass
                if first is None:
                    writer.write(first := subscriber.receive(LONG))
                while (batch := subscriber.receive_batch(max=5, timeout=0)) is not None:
                    written += writer.write_batch(batch)
        publisher.close()
        # What was counted by then may have come into the queue only now.
        while (batch := subscriber.receive_batch(timeout=LONG)) is not None:
            written += writer.write_batch(batch)
    stats = subscriber.stats()
    assert stats.lost > 0 and writer.stats().messages == written == stats.messages - stats.dropped
    messages = list(netio.RecordingReader(str(tmp_path / "run.mcap")))
    assert bytes(messages[0]) == bytes(first) and messages[0].arrival_time == first.time
    for message in messages:
        if message.fid == 1:
            assert message.sequence == int.from_bytes(bytes(message), "big"), "lost ones are counted"
        else:
            assert numpy.array_equal(numpy.frombuffer(message, "u4"), large)
    # A copy has the same messages.
    with netio.RecordingWriter(tmp_path / "copy.mcap") as copy:
        for message in messages:
            copy.write(message)
    again = list(netio.RecordingReader(tmp_path / "copy.mcap"))
    assert [(m.fid, m.sequence, m.arrival_time, bytes(m)) for m in again] == [
        (m.fid, m.sequence, m.arrival_time, bytes(m)) for m in messages
    ]


def test_events_stand_between_messages(tmp_path):
    with netio.RecordingWriter(tmp_path / "run.mcap") as writer:
        writer.write_bytes(1, b"a")
        writer.skip(1, 3)
        writer.write_event("lost", publisher="10.0.0.1:5", fids=[1, (4, 6)], count=3, reason="slow")
        writer.write_bytes(1, b"b")
    reader = netio.RecordingReader(tmp_path / "run.mcap")
    first, event, last = reader.next(), reader.next(), reader.next()
    assert reader.next() is None and (first.sequence, last.sequence) == (0, 4)
    assert (event.event, event.publisher, event.count, event.reason) == ("lost", "10.0.0.1:5", 3, "slow")
    assert event.fids == "1,4-6" and first.arrival_time <= event.time <= last.arrival_time
    assert writer.stats().events == 1


def test_a_rotated_set_is_one_recording(tmp_path):
    writer = write(tmp_path / "run.mcap", rotate_size_bytes=16384, chunk_size_bytes=4096)
    files = writer.stats().files
    assert len(files) > 2
    assert numbers(netio.RecordingReader(tmp_path / "run.mcap")) == list(range(1000))
    reader = netio.RecordingReader([files[1], files[0]])
    assert [file.path for file in reader.files()] == [files[1], files[0]]
    assert numbers(netio.RecordingReader(tmp_path)) == list(range(1000))


def test_damage_is_an_error_or_skipped(tmp_path):
    write(tmp_path / "run.mcap", chunk_size_bytes=4096)
    content = bytearray((tmp_path / "run.mcap").read_bytes())
    content[len(content) // 3] ^= 0xFF
    (tmp_path / "run.mcap").write_bytes(content)
    with pytest.raises(netio.RecordingError, match="run.mcap"):
        list(netio.RecordingReader(tmp_path / "run.mcap"))
    reader = netio.RecordingReader(tmp_path / "run.mcap", on_damage="skip")
    assert 0 < len(list(reader)) < 1000
    assert reader.damage_count() == len(reader.damage()) > 0 and reader.damage()[0].offset > 0
    (tmp_path / "run.mcap").write_bytes(content[: len(content) // 4])
    reader = netio.RecordingReader(tmp_path / "run.mcap")
    assert 0 < len(list(reader)) < 1000 and not reader.files()[0].has_summary
    assert reader.torn()[0].path == str(tmp_path / "run.mcap")


def test_errors_of_recordings(tmp_path):
    write(tmp_path / "run.mcap", 1)
    with pytest.raises(netio.RecordingError, match="run.mcap") as info:
        netio.RecordingWriter(tmp_path / "run.mcap")
    assert isinstance(info.value, OSError) and info.value.errno == 17, "EEXIST"
    with pytest.raises(netio.RecordingError, match="none.mcap"):
        netio.RecordingReader(tmp_path / "none.mcap")
    with pytest.raises(ValueError, match="mcap"):
        netio.RecordingWriter(tmp_path / "run.txt")
    (tmp_path / "other.mcap").write_bytes(b"something else")
    with pytest.raises(netio.RecordingError, match="other.mcap"):
        netio.RecordingReader(tmp_path / "other.mcap")
    with pytest.raises(ValueError, match="on_damage must be 'refuse' or 'skip', and not 'ignore'"):
        netio.RecordingReader(tmp_path / "run.mcap", on_damage="ignore")
    with pytest.raises(ValueError, match="compress must be"):
        netio.RecordingWriter(tmp_path / "new.mcap", compress="gzip")
    with pytest.raises(TypeError, match="RecordingWriter has no option 'chunk_size'"):
        netio.RecordingWriter(tmp_path / "new.mcap", chunk_size=4)
    reader = netio.RecordingReader(tmp_path / "run.mcap")
    for wrong in (datetime.datetime(2026, 1, 1), 1.5, "now", True):
        with pytest.raises(TypeError, match="from_ must be nanoseconds since 1970"):
            reader.select(from_=wrong)
    writer = write(tmp_path / "closed.mcap")
    for call in (lambda: writer.write_bytes(1, b""), lambda: writer.write_event("lost")):
        with pytest.raises(netio.ClosedError, match="closed.mcap: the writer is closed"):
            call()
    writer.close()


def test_a_full_file_system_is_an_error_of_close(tmp_path):
    writer = netio.RecordingWriter(tmp_path / "run.mcap", min_free_bytes=1 << 62)
    with pytest.raises(netio.RecordingError, match="the file system of .*run.*mcap has"):
        for _ in range(1_000_000):
            writer.write_bytes(1, bytes(1000), timeout=LONG)
        writer.close()
    with pytest.raises((netio.RecordingError, netio.ClosedError)):
        writer.write_bytes(1, b"")
    assert "has" in writer.stats().failure


def test_several_threads_write_and_read(tmp_path):
    with netio.RecordingWriter(tmp_path / "run.mcap", queue_limit_bytes=65536, chunk_size_bytes=16384) as writer:

        def put(fid):
            for number in range(3000):
                writer.write_bytes(fid, number.to_bytes(8, "big") * 10)

        threads = [threading.Thread(target=put, args=[fid]) for fid in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
    reader = netio.RecordingReader(tmp_path / "run.mcap")
    taken = [[] for _ in range(3)]
    threads = [threading.Thread(target=own.extend, args=[reader]) for own in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    messages = sorted(sum(taken, []), key=lambda message: (message.fid, message.sequence))
    assert [(m.fid, int.from_bytes(bytes(m)[:8], "big")) for m in messages] == [
        (fid, number) for fid in range(4) for number in range(3000)
    ]


def test_a_writer_that_is_alive_at_the_end_is_closed(tmp_path):
    result = run(
        """
        writer = netio.RecordingWriter(sys.argv[1])
        reader = None
        for number in range(100_000):
            writer.write_bytes(1, bytes(10))
        """,
        str(tmp_path / "run.mcap"),
    )
    assert result.returncode == 0, result.stderr
    reader = netio.RecordingReader(tmp_path / "run.mcap")
    assert reader.files()[0].has_summary and sum(1 for _ in reader) == 100_000


def test_a_file_that_is_no_recording_names_the_remedy():
    with pytest.raises(netio.RecordingError, match="test_recording.py: is no MCAP file; give a file .* RecordingWriter"):
        netio.RecordingReader(__file__)
