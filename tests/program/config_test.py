# SPDX-License-Identifier: Apache-2.0
"""The configurations of `netio publish`: the examples, the JSON schema, and errors.

config_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import functools
import glob
import json
import os
import re
import subprocess
import sys
import unittest

import jsonschema
import yaml

from program_case import DEADLINE, HOST, PROGRAM, PROVIDER, UNITTEST_ARGUMENTS, Case

EXAMPLES = sorted(glob.glob(os.path.join(sys.argv[2], "*.yaml")))
MINIMAL = {"listen": "127.0.0.1:0", "mode": "buffered",
           "streams": [{"fids": 1, "source": "pattern", "size": 64}]}
UNBUFFERED = {**MINIMAL, "mode": "unbuffered"}


def in_stream(**more):
    return {**MINIMAL, "streams": [{**MINIMAL["streams"][0], **more}]}


# A configuration that is valid except for the given map in that section.
AROUND = {
    "loop": lambda map: {**MINIMAL, "loop": {"mode": "busy", **map}},
    "fabric": lambda map: {**MINIMAL, "fabric": map},
    "publisher": lambda map: {"publishers": [{**MINIMAL, **map}]},
    "metrics": lambda map: {**MINIMAL, "metrics": {"listen": "127.0.0.1:0", **map}},
    "bus": lambda map: {**MINIMAL, "bus": {"at": "bus", **map}},
    "keys": lambda map: {**MINIMAL, "keys": {"file": "x", **map}},
    "buffered": lambda map: {**MINIMAL, "buffered": map},
    "unbuffered": lambda map: {**UNBUFFERED, "unbuffered": map},
    "session": lambda map: {**MINIMAL, "session": map},
    "stream": lambda map: in_stream(**map),
    "source": lambda map: in_stream(
        source={**({} if {"file", "files", "recording"} & set(map) else {"file": __file__}), **map}),
    "recording": lambda map: in_stream(source={"recording": {"file": __file__, **map}}),
    "rate": lambda map: in_stream(
        rate={**({} if "per_fid" in map else {"per_second": 1}), **map}),
    "trigger": lambda map: {**in_stream(trigger="l1"), "triggers": {"l1": {"per_second": 1, **map}}},
    "faults": lambda map: in_stream(faults=map),
    "size": lambda map: in_stream(size=map),
    "uniform": lambda map: in_stream(size={"uniform": {"max": 99, **map}}),
    "normal": lambda map: in_stream(size={"normal": {"mean": 9, "stddev": 9, "max": 99, **map}}),
    "exponential": lambda map: in_stream(size={"exponential": {"mean": 9, "max": 99, **map}}),
}


@functools.cache
def schema():
    printed = subprocess.run([PROGRAM, "publish", "--schema"], capture_output=True, text=True,
                             timeout=DEADLINE, check=True)
    return json.loads(printed.stdout)


def check(path):
    return subprocess.run([PROGRAM, "publish", path, "--check", "--provider", PROVIDER],
                          capture_output=True, text=True, timeout=DEADLINE, check=False)


class Schema(Case):
    def is_valid(self, document):
        return jsonschema.Draft7Validator(schema()).is_valid(document)

    def written(self, document):
        return self.path("written.yaml", yaml.safe_dump(document).encode())

    def test_it_is_a_schema_and_every_example_is_valid(self):
        jsonschema.Draft7Validator.check_schema(schema())
        self.assertGreaterEqual(len(EXAMPLES), 12)
        for path in EXAMPLES:
            with open(path) as file:
                jsonschema.validate(yaml.safe_load(file), schema())

    def test_what_it_says_of_a_key_the_reader_says_too(self):
        """A map where a value is expected: both reject it and name the place and the key."""
        definitions = {**schema()["definitions"], None: schema()["else"]}
        self.assertEqual(set(schema()["then"]["properties"]) - set(schema()["else"]["properties"]),
                         {"publishers"})
        self.assertEqual(set(definitions) - {None, "fids"}, set(AROUND))
        for section, definition in definitions.items():
            for key in definition.get("properties", {}):
                around = AROUND.get(section, lambda map: {**MINIMAL, **map})
                wrong = around({key: {"no": ["such"]}})
                with self.subTest(f"{section}.{key}"):
                    self.assertFalse(self.is_valid(wrong))
                    refused = check(self.written(wrong))
                    self.assertNotEqual(refused.returncode, 0)
                    self.assertRegex(refused.stderr, rf"written\.yaml:\d+:\d+: [^ ]*{key}[^ ]*: .*; allowed: ")

    def test_what_is_wrong_is_wrong_for_both(self):
        for wrong in (
                {}, [], {**MINIMAL, "mdoe": 1}, {**MINIMAL, "mode": "bufferd"},
                {**MINIMAL, "heartbeat": 5000}, {**MINIMAL, "heartbeat": "1x"}, {**MINIMAL, "close_limit": 0},
                {**MINIMAL, "largest_message": "1q"}, {**MINIMAL, "largest_message": 1 << 30},
                {**MINIMAL, "streams": []}, {**MINIMAL, "streams": {"fids": 1}},
                {"mode": "buffered"}, {**MINIMAL, "listen": []}, {**MINIMAL, "allow_remote_anonymous": "maybe"},
                {**MINIMAL, "metrics": {}}, {**MINIMAL, "session": {"receive_count": 3}},
                {"publishers": []}, {"publishers": [{}]}, {**MINIMAL, "publishers": [MINIMAL]},
                {"publishers": [{**MINIMAL, "provider": "tcp"}]},
                in_stream(fids=[]), in_stream(fids={}), in_stream(size={}), in_stream(size=0),
                in_stream(size={"fixed": 40, "list": [50]}), in_stream(rate=0), in_stream(rate="fast"),
                in_stream(faults={"missing": 2}), in_stream(faults={"mising": 0.1}), in_stream(slices=0),
                {**MINIMAL, "triggers": {"l1": {"per_second": 1, "timing": "possion"}}},
                in_stream(source="patern"), in_stream(source={}), in_stream(status=256)):
            with self.subTest(wrong):
                self.assertFalse(self.is_valid(wrong))
                refused = check(self.written(wrong))
                self.assertNotEqual(refused.returncode, 0)
                self.assertRegex(refused.stderr, r"written\.yaml:\d+:\d+: .*; allowed: ")
                self.assertEqual(refused.stderr.count("\n"), 1)

    def test_what_a_start_would_refuse_of_its_places_is_refused(self):
        twice = {**MINIMAL, "metrics": "127.0.0.1:40001"}
        for wrong, saying in (
                ({**MINIMAL, "metrics": "0.0.0.0:0"}, "allow_remote_anonymous"),
                ({**MINIMAL, "metrics": "192.0.2.1:0"}, r"192\.0\.2\.1"),
                ({"publishers": [twice, twice]}, r"127\.0\.0\.1:40001 is used twice"),
                ({**twice, "listen": "127.0.0.1:40001"}, r"127\.0\.0\.1:40001 is used twice")):
            with self.subTest(wrong):
                refused = check(self.written(wrong))
                self.assertEqual(refused.returncode, 1, refused.stderr)
                self.assertRegex(refused.stderr, saying)
                self.assertEqual(refused.stderr.count("\n"), 1)
        self.assertEqual(check(self.written(twice)).returncode, 0)

    def test_what_only_a_start_can_judge_names_its_place_too(self):
        os.mkdir(self.path("bus"))
        here = {**MINIMAL, "bus": self.path("bus")}
        for wrong, place, saying in (
                ({**MINIMAL, "listen": "0.0.0.0:1234"}, "listen: 0\\.0\\.0\\.0:1234 can be reached",
                 "allow_remote_anonymous"),
                ({**MINIMAL, "listen": ["127.0.0.1:1", "192.0.2.1:5"]}, "listen\\[1\\]: .*192\\.0\\.2\\.1:5", ""),
                ({**MINIMAL, "listen": ["[::]:16002", "0.0.0.0:16002"], "allow_remote_anonymous": True},
                 r"listen\[1\]: 0\.0\.0\.0:16002 is taken by \[::\]:16002", "allowed: a separate port"),
                ({**MINIMAL, "listen": "127.0.0.1:16002", "metrics": "0.0.0.0:16002"},
                 r"metrics: 0\.0\.0\.0:16002 is taken by 127\.0\.0\.1:16002", ""),
                ({**MINIMAL, "keys": "nothere"}, "keys: .*nothere: there is no such file", "netio key new"),
                ({**MINIMAL, "metrics": "0.0.0.0:9"}, "metrics: .*0\\.0\\.0\\.0:9 can be read", "allow_remote_anonymous"),
                ({**MINIMAL, "bus": "zookeeper://h"}, "bus: 'zookeeper://h' is no bus", "allowed: a directory"),
                ({**here, "listen": [f"127.0.0.{i}:0" for i in range(1, 35)]}, "bus: addresses: more than 32", ""),
                ({**MINIMAL, "buffered": {"page_count": 2, "page_size": 256},
                  "streams": [{"fids": 1, "source": "pattern", "size": 4000}]}, "streams: messages of up to 4000", "")):
            with self.subTest(wrong):
                path = self.written(wrong)
                for refused in (check(path), subprocess.run(
                        [PROGRAM, "publish", path, "--duration", "1ms", "--provider", PROVIDER],
                        capture_output=True, text=True, timeout=DEADLINE, check=False)):
                    self.assertEqual(refused.returncode, 1, refused.stderr)
                    last = refused.stderr.splitlines()[-1]
                    self.assertRegex(last, r"written\.yaml:\d+:\d+: " + place)
                    self.assertIn(saying, last)

    def test_what_is_right_is_right_for_both(self):
        for right in (
                {**MINIMAL, "x-anything": {"a": [1]}}, {**MINIMAL, "buffered": {"page_size": "64 KiB"}},
                {**MINIMAL, "loop": "busy"}, {**MINIMAL, "subscriber_limit": "10k", "time_stamps": "tai"},
                {**UNBUFFERED, "unbuffered": {"memory": "1M"}, "close_timeout": "99s", "heartbeat": 0},
                {**MINIMAL, "session": {"send_count": 2, "rekey_after": "1GiB"}},
                {**MINIMAL, "fabric": {"queue_entry_limit": 1000}},
                {"publishers": [MINIMAL, UNBUFFERED], "loop": "busy"},
                in_stream(fids={"detector": 3, "link": "0-23"}), in_stream(fids=[1, "2-3"]),
                {**in_stream(trigger="l1"), "triggers": {"l1": {"per_second": "40M", "train": "9ns", "gap": "1 ns"}}},
                in_stream(faults={"missing": 0.1, "late": 1e-3}, header="event", slices=2),
                in_stream(size={"list": [24, "1k"]}), in_stream(rate="1.5k"), in_stream(rate=0.5)):
            with self.subTest(right):
                self.assertTrue(self.is_valid(right))
                checked = check(self.written(right))
                self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_maps_take_over_what_others_have(self):
        text = ("x-common: &common {source: pattern, size: 64}\n"
                f"listen: {HOST}:0\nmode: buffered\nstreams:\n"
                "  - {<<: *common, fids: 1}\n  - {fids: 2, size: 99, <<: [*common]}\n")
        path = self.path("merged.yaml", text.encode())
        self.assertTrue(self.is_valid(yaml.safe_load(text)))
        checked = check(path)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn("2 fid(s)", checked.stdout)
        self.assertIn("messages of 99 bytes at most", checked.stdout)


class RunningExamples(Case):
    def test_each_is_run(self):
        for path in EXAMPLES:
            with open(path) as file:
                text = file.read()
            with self.subTest(os.path.basename(path)):
                if "publishers:" in text:  # each has its own address
                    path = self.path(os.path.basename(path), re.sub(r"listen: \S+\d", f"listen: {HOST}:0", text))
                    where = []
                else:
                    where = ["--listen", f"{HOST}:0"]
                ended = subprocess.run(
                    [PROGRAM, "publish", path, *where, "--provider", PROVIDER,
                     "--wait-subscribers", "0", "--duration", "100ms", "--json"],
                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE,
                    check=False)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                report = json.loads(ended.stdout)
                for each in report.get("publishers", [report]):
                    self.assertIn(each["end"], ("duration", "finished"))
                    self.assertGreater(each["without_subscribers"] + each["messages"]
                                       + (os.path.basename(path) == "pipe.yaml"), 0)

    def test_each_says_what_its_keys_mean(self):
        for path in EXAMPLES:
            with open(path) as file:
                self.assertTrue(file.readline().startswith("# "), path)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
