# SPDX-License-Identifier: Apache-2.0
"""The examples do what their first lines promise, and end in order, with each other and with the
program."""

import os
import re
import subprocess
import unittest

from program_case import DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case

FOLDER = os.path.dirname(PROGRAM)


class Example:
    """A running example."""

    def __init__(self, name, *arguments):
        self.process = subprocess.Popen([os.path.join(FOLDER, "example_" + name), *map(str, arguments)],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def address(self):
        """The address of a listening example, from its first line of output."""
        line = self.process.stdout.readline()
        return re.fullmatch(r"listening at (\S+)\n", line)[1]

    def end(self):
        """(exit status, output)"""
        try:
            said = self.process.communicate(timeout=DEADLINE)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "it did not end", self.process.communicate()[0]
        return self.process.returncode, said


class Examples(Case):
    def run_example(self, name, *arguments):
        example = Example(name, *arguments)
        self.addCleanup(example.process.stdout.close)
        self.addCleanup(example.process.kill)
        return example

    def expect(self, example, words=""):
        """Checks that it ended in order and printed this."""
        status, said = example.end()
        self.assertEqual(status, 0, said)
        self.assertIn(words, said)

    def check_publisher(self, name, count, arrived, *more):
        publisher = self.run_example(name, f"{HOST}:0", count, *more)
        subscriber = self.start("subscribe", publisher.address(), "--fid", "1")
        status, report, log = subscriber.end()
        self.assertEqual(status, 0, log)
        self.assertEqual(report["messages"], arrived, log)
        return publisher

    def test_unbuffered_publishing_delivers_every_block(self):
        self.expect(self.check_publisher("publish_unbuffered", 300, 300), "published 300 blocks")

    def test_explicit_publishing_delivers_every_block(self):
        self.expect(self.check_publisher("publish_unbuffered", 300, 300, "explicit"),
                    "published 300 blocks")

    def test_a_readout_thread_hands_everything_to_the_loop(self):
        self.expect(self.check_publisher("two_threads", 20000, 20000))

    def test_several_loops_publish_their_parts_of_the_fids(self):
        publisher = self.run_example("several_loops", f"{HOST}:0", 2, 3200)
        subscriber = self.start("subscribe", publisher.address(), publisher.address(), "--fid", "0-63")
        status, report, log = subscriber.end()
        self.assertEqual((status, report["messages"]), (0, 6400), log)
        self.assertEqual({row["messages"] for row in report["fids"].values()}, {100})
        self.expect(publisher)

    def test_two_threads_read_what_a_third_asks_for(self):
        publisher = self.start("publish", self.config(
            "streams:\n  - {fids: 0-63, source: pattern, size: 40, rate: 100000}\n"))
        self.expect(self.run_example("any_thread", publisher.address(), 20000), "took enough")

    def test_publishers_and_subscriber_find_each_other_on_a_bus(self):
        self.expect(self.run_example("first_steps", self.path("bus")), "0x7: 9 bytes\n0x64: 8 bytes")

    def test_a_foreign_loop_keeps_its_turn_and_ends_with_netio(self):
        publisher = self.run_example("publish_unbuffered", f"{HOST}:0", 300)
        subscriber = self.run_example("foreign_loop", publisher.address())
        self.expect(subscriber, "300 messages, while the timer fired")
        self.expect(publisher)

    def test_messages_go_from_a_sender_to_a_receiver(self):
        receiver = self.run_example("message_receiver", f"{HOST}:0")
        self.expect(self.run_example("message_sender", receiver.address(), 500), "sent 500 blocks")
        self.expect(receiver, "received 500 messages, 8192000 bytes")

    def test_messages_go_both_ways(self):
        self.expect(self.run_example("message_both_ways", 300), "300 messages came back")

    def test_requests_are_replied_to(self):
        self.expect(self.run_example("request_reply"), "hello world\nhello everybody")

    def test_messages_stay_in_memory_of_the_program(self):
        self.expect(self.run_example("own_receive_memory", 300), "received 300 messages; the last 16 ")

    def test_threads_take_everything_out_of_one_queue(self):
        self.expect(self.run_example("completion_queue", 3000), "received 3000 messages, 3000 sends ")

    def test_a_blocking_stream_answers_each_line(self):
        server = self.run_example("blocking_stream", "--serve", f"{HOST}:0")
        self.expect(self.run_example("blocking_stream", server.address(), "one", "three"),
                    "one: 4 bytes\nthree: 6 bytes")
        self.expect(server)

    def test_a_stream_goes_from_a_sender_to_a_receiver(self):
        receiver = self.run_example("stream_receiver", f"{HOST}:0")
        self.expect(self.run_example("stream_sender", receiver.address(), 20), "sent 20 blocks")
        self.expect(receiver, f"received {20 * 256 * 1024} bytes")

    def test_sockets_of_every_kind_share_a_loop(self):
        self.expect(self.run_example("all_on_one_loop"), "100 numbers went round")

    def test_what_cannot_be_listened_at_is_an_error_and_not_a_crash(self):
        for name in ("publish_unbuffered", "two_threads", "message_receiver",
                     "stream_receiver"):
            status, said = self.run_example(name, "203.0.113.1:1").end()
            self.assertEqual(status, 1, said)
            self.assertIn(name + ": ", said)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
