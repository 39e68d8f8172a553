# SPDX-License-Identifier: Apache-2.0
"""Default addresses of the programs, and whether they use the given ones.

addresses_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import unittest

from program_case import PROVIDER, UNITTEST_ARGUMENTS, Case


@unittest.skipIf(PROVIDER != "tcp", "they are those of the loopback interface")
class Addresses(Case):
    def test_by_default_a_server_is_for_this_machine_only(self):
        os.mkdir(self.path("served"))
        for words in (("pump", "--serve"), ("copy", "--serve", self.path("served"))):
            with self.subTest(words[0]):
                server = self.start(*words)
                # The port is always the same, and another program may use it.
                said = server.wait_for(r"listen(ing)? at (\S+):\d+ \(tcp\)")
                self.assertEqual(said.group(2), "127.0.0.1")

    def test_a_subscriber_comes_from_the_one_it_names(self):
        publisher = self.start("publish", self.config(self.PATTERN))
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--verify",
                                "--messages", 1000, "--local-host", "127.0.0.9")
        publisher.wait_for(r" 127\.0\.0\.9:\d+ subscribes to ")
        status, report, log = subscriber.end()
        self.assertEqual((status, report["messages"]), (0, 1000), log)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
