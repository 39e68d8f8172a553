# SPDX-License-Identifier: Apache-2.0
"""What a start of netio loads, and its message if a library is missing.

start_test.py PROGRAM CONFIG_FOLDER [unittest arguments]
"""

import os
import re
import subprocess
import unittest

from program_case import DEADLINE, PROGRAM, UNITTEST_ARGUMENTS, Case


class Starting(Case):
    def run_with(self, environment, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                              timeout=DEADLINE, check=False, env={**os.environ, **environment})

    def loaded(self, *arguments):
        """The names of the loaded libraries, from the dynamic linker."""
        trace = self.path("trace")
        self.run_with({"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": trace}, *arguments)
        names = set()
        for entry in os.listdir(self.folder.name):
            if entry.startswith("trace."):
                with open(self.path(entry), encoding="utf-8", errors="replace") as file:
                    names |= set(re.findall(r"file=(lib[\w+-]+)\.so", file.read()))
                os.remove(self.path(entry))
        self.assertIn("libstdc++", names, "the dynamic linker tells what it loads")
        return names

    def test_what_uses_no_fabric_does_not_load_it(self):
        keys = self.path("server.keys")
        for arguments in (["--help"], ["--version"], ["publish", "--help"],
                          ["key", "new", keys, "--name", "one", "--rights", "services=all"],
                          ["key", "list", keys], ["publish", self.path("nothing.yaml")]):
            with self.subTest(arguments=arguments):
                names = self.loaded(*arguments)
                self.assertFalse({"libfabric", "libpsm2", "libinfinipath", "libibverbs"} & names)

    def test_what_uses_the_fabric_loads_it(self):
        self.assertIn("libfabric", self.loaded("info"))

    def test_a_library_that_is_missing_is_named_with_the_package(self):
        os.mkdir(self.path("broken"))
        with open(self.path("broken/libfabric.so.1"), "wb"):
            pass
        done = self.run_with({"LD_LIBRARY_PATH": self.path("broken")}, "info")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "cannot load libfabric: .*install libfabric .*libfabric1")

    def test_a_too_old_library_is_reported(self):
        os.mkdir(self.path("other"))
        crypto = re.search(r"libcrypto\.so\.\d+ => (\S+)",
                           subprocess.run(["ldd", PROGRAM], capture_output=True, text=True,
                                          check=True).stdout).group(1)
        os.symlink(crypto, self.path("other/libfabric.so.1"))
        done = self.run_with({"LD_LIBRARY_PATH": self.path("other")}, "info")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "libfabric does not suit: .*fi_dupinfo.* newer libfabric")

    def test_a_foreign_provider_choice_is_named_as_the_cause(self):
        for choice, arguments, status in (("sockets", ["info"], 1), ("sockets", ["info", "--json"], 1),
                                          ("sockets", ["doctor"], 1), ("sockets", ["doctor", "--json"], 1),
                                          ("", ["info"], 1), ("", ["doctor"], 1), ("", ["send", "127.0.0.1:1"], 3)):
            with self.subTest(choice=choice, arguments=arguments):
                done = self.run_with({"FI_PROVIDER": choice}, *arguments)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(f"FI_PROVIDER={choice} in the environment prevents libfabric from offering ",
                              done.stdout + done.stderr)
                self.assertIn("unset", done.stdout + done.stderr)
                self.assertNotIn("install", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=UNITTEST_ARGUMENTS)
