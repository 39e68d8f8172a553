# SPDX-License-Identifier: Apache-2.0
"""netio key as its users see it.

key_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import contextlib
import json
import os
import re
import socket
import stat
import subprocess
import threading
import unittest

from program_case import DEADLINE, HOST, PROGRAM, UNITTEST_ARGUMENTS, Case


class Translation:
    """A forwarding port for a server at another port: data passes unchanged."""

    def __enter__(self):
        self.leads_to = None
        self.door = socket.create_server((HOST, 0))
        self.address = f"{HOST}:{self.door.getsockname()[1]}"
        threading.Thread(target=self._take, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.door.close()

    def _take(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.door.accept()
                host, port = self.leads_to.rsplit(":", 1)
                server = socket.create_connection((host, int(port)))
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    @staticmethod
    def _carry(one, other):
        with one, contextlib.suppress(OSError):
            while some := one.recv(65536):
                other.sendall(some)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)


class Keys(Case):
    def key(self, *arguments):
        done = subprocess.run([PROGRAM, "key", *map(str, arguments)], capture_output=True,
                              text=True, timeout=DEADLINE)
        return done.returncode, done.stdout, done.stderr

    def new(self, path, *arguments):
        return self.key("new", path, "--rights", "services=all", *arguments)

    def test_a_key_is_added_to_the_file_that_a_link_leads_to(self):
        file, link = self.path("keys"), self.path("link")
        self.assertEqual(self.new(file, "--name", "one")[0], 0)
        os.symlink(file, link)
        self.assertEqual(self.new(link, "--name", "two")[0], 0)
        self.assertTrue(os.path.islink(link))
        self.assertIn("two", self.key("list", file)[1])

    def read(self, path):
        with open(path, encoding="ascii") as file:
            return file.read()

    def test_a_new_key_is_private_and_its_client_gets_a_copy(self):
        server, client = self.path("server.keys"), self.path("monitor.key")
        for name in ("monitor", "recorder"):
            status, _, log = self.key("new", server, "--name", name, "--client",
                                      client if name == "monitor" else self.path("recorder.key"),
                                      "--rights", "services=pubsub fids=0-63:drop connections=4")
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
        self.assertEqual(keys[0]["rights"], "services=pubsub fids=0-63:drop connections=4")
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

    def test_no_id_is_reused_and_no_client_file_overwritten(self):
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

    def test_an_error_in_a_file_is_reported_with_line_and_remedy(self):
        good = self.path("good.keys")
        self.new(good, "--name", "monitor")
        text = self.read(good)
        cases = {
            "line": (text.replace("connections=64", "connections=0"), 0o600, r":3: connections= takes a number"),
            "twice": (text.replace("\nend", "\n" + text.split("\n")[2] + "\nend"), 0o600,
                      r":4: the id 1 is used in line 3 already"),
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

    def test_a_wrong_command_line_is_reported(self):
        for arguments in (["new", self.path("a")], ["burn", self.path("a")], ["new"],
                          ["new", self.path("a"), "--name", "x"],
                          ["new", self.path("a"), "--rights", "services=all"],
                          ["new", self.path("a"), "--name", "x", "--id", 0],
                          ["new", self.path("a"), "--name", "x", "--idd", 1]):
            self.assertEqual(self.key(*arguments)[0], 2, arguments)
        self.assertEqual(self.new(self.path("a"), "--name", "a b")[0], 2)
        self.assertEqual(self.key("new", self.path("a"), "--name", "a", "--rights", "fids=1")[0], 2)
        self.assertEqual(os.listdir(self.folder.name), [])


class KeyedPrograms(Case):
    """Programs that require keys, and clients with the right key, a wrong key, or none."""

    def new(self, rights, name="monitor"):
        path = self.path(f"{name}.key")
        done = subprocess.run([PROGRAM, "key", "new", self.path("site.keys"), "--name", name,
                               "--rights", rights, "--client", path],
                              capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def publisher(self, *arguments):
        return self.start("publish", self.config("keys: site.keys\n" + self.PATTERN), *arguments)

    def subscribe(self, publisher, *arguments, fids="0-63"):
        return self.start("subscribe", publisher.address(), "--fid", fids, "--messages", 1000,
                          "--verify", *arguments).end()

    def test_a_subscriber_with_the_key_is_served_and_others_refused(self):
        key = self.new("services=pubsub fids=0-63:drop connections=4")
        publisher = self.publisher("--min-protection", "peers")
        status, report, log = self.subscribe(publisher, "--key", key, "--protection", "peers")
        self.assertEqual(status, 0, log)
        self.assertGreaterEqual(report["messages"], 1000)
        status, _, log = self.subscribe(publisher)
        self.assertNotEqual(status, 0)
        self.assertIn("it asks for a key; this side was given none", log)
        status, _, log = self.subscribe(publisher, "--key", key)
        self.assertNotEqual(status, 0)
        self.assertIn("it does not admit this side", log)
        publisher.wait_for(r"\(key 1\) is not admitted: it asks for less protection")
        status, _, log = self.subscribe(publisher, "--key", key, "--protection", "peers",
                                        fids="60-70")
        self.assertNotEqual(status, 0)
        self.assertIn("the key does not permit to subscribe to 0x3c-0x46", log)
        status, _, log = self.start("dump", publisher.address(), "--fid", "60-70", "--messages", 2, "--key", key,
                                    "--protection", "peers", json_report=False).end()
        self.assertEqual(status, 1, log)
        self.assertIn("refuses 0x3c-0x46: the key does not permit it", log)
        publisher.process.terminate()
        status, _, log = publisher.end()
        self.assertEqual(status, 0, log)

    def test_in_a_registry_a_publisher_without_the_key_takes_no_fid(self):
        key = self.new("services=pubsub fids=0-63")
        bus = self.path("bus")
        os.mkdir(bus)
        impostor = self.start("publish", self.config(self.PATTERN), "--bus", bus)
        impostor.wait_for("announced as")
        subscriber = self.start("subscribe", "--bus", bus, "--fid", "0-63", "--key", key, "--verify",
                                "--messages", 1000)
        subscriber.wait_for(re.escape(impostor.address()))  # a connection was tried
        publisher = self.publisher("--bus", bus)
        status, report, log = subscriber.end()
        self.assertEqual((status, report["lost"]), (0, 0), log)
        self.assertRegex(log, f"connected to .*-{publisher.process.pid}-")
        self.assertNotRegex(log, f"connected to .*-{impostor.process.pid}-")
        self.assertNotIn("subscribes to", "".join(line for line in impostor.lines if line))

    def test_a_key_that_is_taken_out_of_the_file_ends_its_connection(self):
        key = self.new("services=pubsub fids=0-63")
        publisher = self.publisher()
        subscriber = self.start("subscribe", publisher.address(), "--fid", "0-63", "--key", key)
        subscriber.wait_for("subscribed to")
        with open(self.path("next.keys"), "w", encoding="ascii",
                  opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("netio-keys 1\nend\n")
        os.rename(self.path("next.keys"), self.path("site.keys"))
        publisher.wait_for("key 1 was removed or changed: 1 connections are closed")
        status, _, log = subscriber.end()
        self.assertNotEqual(status, 0)

    def test_a_server_accepts_a_translated_dialled_address(self):
        key = self.new("services=all fids=0-63")
        with Translation() as outside:
            for known in (True, False):
                publisher = self.publisher(*(("--advertised-addresses", outside.address) if known else ()))
                outside.leads_to = publisher.address()
                status, _, log = self.start("subscribe", outside.address, "--fid", "0-63", "--key",
                                            key, "--messages", 1000).end()
                self.assertEqual(status == 0, known, log)
                if not known:
                    self.assertIn("it does not admit this side", log)
                publisher.process.terminate()
                publisher.end()
        status, _, log = self.publisher("--advertised-addresses", "publisher.example:1").end()
        self.assertNotEqual(status, 0)
        self.assertIn("advertised_addresses: publisher.example", log)

    def test_one_host_has_as_many_connections_as_is_said(self):
        key = self.new("services=all fids=0-63")
        site = ("--keys", self.path("site.keys"), "--connections-per-host", 1)
        chat = ("cat", "--key", key)
        for client, *command in ((("subscribe", "--fid", "1", "--key", key), "publish",
                                  self.config(self.PATTERN)),
                                 (chat, "pump", "--serve", "--listen", f"{HOST}:0"),
                                 (chat, "copy", "--serve", self.folder.name, "--listen",
                                  f"{HOST}:0")):
            with self.subTest(command=command[0]):
                server = self.start(*command, *site, json_report=False)
                arguments = client[0], server.address(), *client[1:]
                first = self.start(*arguments, stdin=subprocess.PIPE, json_report=False)
                server.wait_for("|".join(("subscribes to", "is connected")))
                second = self.start(*arguments, stdin=subprocess.PIPE, json_report=False)
                for each in (first, second):
                    self.addCleanup(each.process.stdin.close)
                server.wait_for("its host has the maximum number of connections")
                self.assertIsNone(first.process.poll())
                server.process.terminate()

    def test_what_cannot_be_had_is_refused_before_anything_is_opened(self):
        key = self.new("services=all")
        for arguments, saying in ((("--protection", "peers"), "--protection needs a key; add --key FILE"),
                                  (("--key", self.path("none.key")), "none.key")):
            status, _, log = self.start("subscribe", "127.0.0.1:1", "--fid", "1", *arguments,
                                        json_report=False).end()
            self.assertNotEqual(status, 0)
            self.assertIn(saying, log)
        os.chmod(self.path("site.keys"), 0o644)
        status, _, log = self.publisher().end()
        self.assertNotEqual(status, 0)
        self.assertIn("chmod", log)

    def test_streams_and_probes_ask_for_keys_as_well(self):
        key = self.new("services=stream,probe rma")
        mine = ("--key", key, "--protection", "peers")
        site = ("--keys", self.path("site.keys"), "--min-protection", "peers")
        server = self.start("pump", "--serve", "--listen", f"{HOST}:0", *site)
        load = ("pump", server.address(), "--bytes", "20m", "--verify", "--bidirectional")
        status, _, log = self.start(*load).end()
        self.assertNotEqual(status, 0)
        self.assertIn("it asks for a key", log)
        status, report, log = self.start(*load, *mine).end()
        self.assertEqual(status, 0, log)
        self.assertEqual(report["server"]["bytes"], 20 << 20)
        listening = self.start("cat", "--listen", f"{HOST}:0", *site, stdin=subprocess.DEVNULL,
                               json_report=False)
        chat = self.start("cat", listening.address(), *mine, stdin=subprocess.DEVNULL,
                          json_report=False)
        self.assertEqual(chat.end()[0], 0)
        self.assertEqual(listening.end()[0], 0)
        answering = self.start("doctor", "--serve", f"{HOST}:0", *site, json_report=False)
        _, report, log = self.start("doctor", answering.address(), *mine).end()
        self.assertIn("gbit_per_s", report["path"], log)
        _, report, _ = self.start("doctor", answering.address()).end()
        self.assertIn("it asks for a key", report["path"]["failure"])

    def test_cat_reports_rejected_peers(self):
        key = self.new("services=stream")
        other = self.new("services=probe", "other")
        listening = self.start("cat", "--listen", f"{HOST}:0", "--keys", self.path("site.keys"),
                               stdin=subprocess.DEVNULL, json_report=False)
        stranger, chat = ((self.start("cat", listening.address(), "--key", each,
                                      stdin=subprocess.DEVNULL, json_report=False).end())
                          for each in (other, key))
        self.assertNotEqual(stranger[0], 0)
        self.assertEqual(chat[0], 0)
        status, _, log = listening.end()
        self.assertEqual(status, 0, log)
        self.assertIn("is not admitted", log)

    def test_what_travels_is_sealed_where_both_sides_say_so(self):
        key = self.new("services=all fids=0-63:drop folder=incoming")
        os.mkdir(self.path("served"))
        os.mkdir(self.path("served/incoming"))
        content = os.urandom(3 << 20)
        for level in ("integrity", "privacy"):
            mine = ("--key", key, "--protection", level)
            site = ("--keys", self.path("site.keys"), "--min-protection", level)
            publisher = self.start("publish", self.config(
                f"keys: site.keys\nmin_protection: {level}\n" + self.PATTERN))
            status, report, log = self.subscribe(publisher, *mine)
            self.assertEqual(status, 0, log)
            self.assertGreaterEqual(report["messages"], 1000)
            status, _, log = self.subscribe(publisher, "--key", key, "--protection", "peers")
            self.assertNotEqual(status, 0)
            self.assertIn("it does not admit this side", log)
            pump = self.start("pump", "--serve", "--listen", f"{HOST}:0", *site)
            status, report, log = self.start("pump", pump.address(), "--bytes", "20m", "--verify",
                                             "--bidirectional", *mine).end()
            self.assertEqual(status, 0, log)
            self.assertEqual(report["server"]["bytes"], 20 << 20)
            server = self.start("copy", "--serve", self.path("served"), "--listen", f"{HOST}:0",
                                *site)
            status, _, log = self.start("copy", self.path(level, content),
                                        f"{server.address()}/incoming", *mine).end()
            self.assertEqual(status, 0, log)
            with open(self.path(f"served/incoming/{level}"), "rb") as copied:
                self.assertEqual(copied.read(), content)
            listening = self.start("cat", "--listen", f"{HOST}:0", *site,
                                   stdin=subprocess.DEVNULL, json_report=False)
            chat = self.start("cat", listening.address(), *mine, stdin=subprocess.DEVNULL,
                              json_report=False)
            self.assertEqual(chat.end()[0], 0)
            self.assertEqual(listening.end()[0], 0)
            for each in (publisher, pump, server):
                each.process.terminate()
                each.end()

    def test_a_key_permits_copying_into_its_folder_only(self):
        key = self.new("services=stream folder=incoming")
        os.mkdir(self.path("served"))
        for name in ("incoming", "other"):
            os.mkdir(self.path("served/" + name))
        server = self.start("copy", "--serve", self.path("served"), "--listen", f"{HOST}:0",
                            "--keys", self.path("site.keys"))
        file = self.path("data", b"1234")
        copy = lambda folder, *more: self.start("copy", file, f"{server.address()}/{folder}",
                                                *more).end()
        status, _, log = copy("incoming", "--key", key)
        self.assertEqual(status, 0, log)
        status, _, log = copy("other", "--key", key)
        self.assertNotEqual(status, 0)
        self.assertIn("the key does not permit writing there", log)
        status, _, log = copy("incoming", "--key", key, "--overwrite")
        self.assertNotEqual(status, 0)
        self.assertIn("the key does not permit replacing files there", log)
        status, _, log = copy("incoming")
        self.assertNotEqual(status, 0)
        os.symlink("../other", self.path("served/incoming/link"))
        status, _, log = copy("incoming/link", "--key", key)
        self.assertNotEqual(status, 0)
        self.assertIn("leads out of the folder incoming, which the key permits", log)
        self.assertEqual(os.listdir(self.path("served/other")), [])

    def test_a_write_only_key_replaces_and_reveals_nothing(self):
        key = self.new("services=stream folder=incoming:overwrite")
        os.makedirs(self.path("served/incoming"))
        file = self.path("data", b"1234")
        for text in (b"1234", b"12345"):
            server = self.start("copy", "--serve", self.path("served"), "--listen", f"{HOST}:0",
                                "--keys", self.path("site.keys"), "--write-only")
            with open(self.path("served/incoming/data"), "wb") as there:
                there.write(text)
            with open(self.path("served/incoming/.new.netio-part"), "wb") as part:
                part.write(b"12")
            for more in ((), ("--overwrite",)):
                status, report, log = self.start("copy", file, f"{server.address()}/incoming",
                                                 "--key", key, *more).end()
                self.assertNotEqual(status, 0)
                self.assertIn("already exists there, and this server does not replace files", log)
            new = self.path("new", b"1234")
            status, report, log = self.start("copy", new, f"{server.address()}/incoming",
                                             "--key", key).end()
            self.assertEqual(status, 0, log)
            self.assertEqual(report["files"][0]["resumed_bytes"], 0)
            os.remove(self.path("served/incoming/new"))
            with open(self.path("served/incoming/data"), "rb") as there:
                self.assertEqual(there.read(), text)
            server.process.terminate()
            server.end()


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
