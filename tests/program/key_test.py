# SPDX-License-Identifier: Apache-2.0
"""netio key as its users see it.

key_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import json
import os
import re
import stat
import subprocess
import unittest

from program_case import DEADLINE, PROGRAM, UNITTEST_ARGUMENTS, Case


class Keys(Case):
    def key(self, *arguments):
        done = subprocess.run([PROGRAM, "key", *map(str, arguments)], capture_output=True,
                              text=True, timeout=DEADLINE)
        return done.returncode, done.stdout, done.stderr

    def new(self, path, *arguments):
        return self.key("new", path, "--rights", "services=all", *arguments)

    def read(self, path):
        with open(path, encoding="ascii") as file:
            return file.read()

    def test_a_new_key_is_for_its_owner_only_and_its_client_gets_a_copy(self):
        server, client = self.path("server.keys"), self.path("monitor.key")
        for name in ("monitor", "recorder"):
            status, _, log = self.key("new", server, "--name", name, "--client",
                                      client if name == "monitor" else self.path("recorder.key"),
                                      "--rights", "services=pubsub fids=0-63:drop links=4")
            self.assertEqual(status, 0, log)
        for path in (server, client):
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(len(os.listdir(self.folder.name)), 3, "nothing is left over")
        secret = re.search(r"nk1-\w+", self.read(client)).group()
        self.assertEqual(self.read(server).count(secret), 1)
        status, out, log = self.key("list", server, "--json")
        self.assertEqual(status, 0, log)
        keys = json.loads(out)["keys"]
        self.assertEqual([(key["id"], key["name"]) for key in keys],
                         [(1, "monitor"), (2, "recorder")])
        self.assertEqual(keys[0]["rights"], "services=pubsub fids=0-63:drop links=4")
        self.assertEqual(self.key("check", server)[:2], (0, f"{server}: 2 keys\n"))
        copy = json.loads(self.key("list", client, "--json")[1])["keys"]
        self.assertEqual(copy, keys[:1])

    def test_no_secret_is_ever_shown(self):
        server = self.path("server.keys")
        said = [self.new(server, "--name", "monitor")]
        secret = re.search(r"nk1-\w+", self.read(server)).group()
        said += [self.key("list", server), self.key("list", server, "--json"),
                 self.key("check", server)]
        torn = self.path("torn.keys", self.read(server).replace(secret, secret[:-1]))
        os.chmod(torn, 0o600)
        said.append(self.key("check", torn))
        self.assertEqual(said[-1][0], 1)
        for status, out, log in said:
            self.assertNotIn(secret[:20], out + log)

    def test_an_id_is_not_given_twice_and_a_client_file_not_written_over(self):
        server, client = self.path("server.keys"), self.path("client.key", "mine")
        self.assertEqual(self.new(server, "--name", "one", "--id", 7)[0], 0)
        before = self.read(server)
        status, _, log = self.new(server, "--name", "two", "--id", 7)
        self.assertEqual(status, 1)
        self.assertIn("the id 7 belongs to one", log)
        status, _, log = self.new(server, "--name", "two", "--client", client)
        self.assertEqual(status, 1)
        self.assertIn(client, log)
        self.assertEqual((self.read(server), self.read(client)), (before, "mine"))

    def test_many_at_once_lose_no_key(self):
        server = self.path("server.keys")
        running = [subprocess.Popen([PROGRAM, "key", "new", server, "--name", f"client{each}",
                                     "--rights", "services=all"],
                                    stderr=subprocess.DEVNULL) for each in range(12)]
        self.assertEqual([each.wait(timeout=DEADLINE) for each in running], [0] * 12)
        self.assertEqual(self.key("check", server)[1], f"{server}: 12 keys\n")

    def test_what_is_wrong_with_a_file_is_said_with_its_line_and_what_to_do(self):
        good = self.path("good.keys")
        self.new(good, "--name", "monitor")
        text = self.read(good)
        cases = {
            "line": (text.replace("links=64", "links=0"), 0o600, r":3: links= takes a number"),
            "twice": (text.replace("\nend", "\n" + text.split("\n")[2] + "\nend"), 0o600,
                      r":4: the id 1 stands in line 3 already"),
            "torn": (text[:-5], 0o600, r":3: the file ends here"),
            "kind": ("listen: here\n", 0o600, r":1: this is no key file"),
            "open": (text, 0o644, r"others have access to it \(mode 0644\); chmod 600"),
        }
        for name, (content, mode, pattern) in cases.items():
            path = self.path(name, content)
            os.chmod(path, mode)
            status, out, log = self.key("check", path)
            self.assertEqual((status, out), (1, ""), name)
            self.assertRegex(log, re.escape(path) + ".*" + pattern.lstrip(":") if name == "open"
                             else re.escape(path) + pattern)
        status, _, log = self.key("check", self.path("none"))
        self.assertEqual(status, 1)
        self.assertIn("there is no such file", log)
        status, _, log = self.key("check", self.folder.name)
        self.assertEqual(status, 1)
        self.assertIn("not a regular file", log)

    def test_a_wrong_command_line_is_told(self):
        for arguments in (["new", self.path("a")], ["burn", self.path("a")], ["new"],
                          ["new", self.path("a"), "--name", "x"],
                          ["new", self.path("a"), "--rights", "services=all"],
                          ["new", self.path("a"), "--name", "x", "--id", 0],
                          ["new", self.path("a"), "--name", "x", "--idd", 1]):
            self.assertEqual(self.key(*arguments)[0], 2, arguments)
        self.assertEqual(self.new(self.path("a"), "--name", "a b")[0], 2)
        self.assertEqual(self.key("new", self.path("a"), "--name", "a", "--rights", "fids=1")[0], 2)
        self.assertEqual(os.listdir(self.folder.name), [])


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
