# SPDX-License-Identifier: Apache-2.0
"""Machines for the soak test: network namespaces on one bridge, whose links can be slowed down and
cut; or, if that is not permitted, one machine on the loopback interface."""

import os
import shutil
import subprocess


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Loopback:
    """Everything at 127.0.0.1; there is no link to cut."""

    links = ()

    def address(self, _machine):
        return "127.0.0.1"

    def command(self, _machine, words):
        return words

    def close(self):
        pass


class Namespaces:
    """Machine 0 has the servers; the others reach it over their own links."""

    def __init__(self, count):
        self.tag = f"soak{os.getpid()}"
        self.made = []
        try:
            self._namespace("hub")
            self._in("hub", "ip", "link", "add", "bridge", "type", "bridge")
            self._in("hub", "ip", "link", "set", "bridge", "up")
            for machine in range(count):
                self._add(machine)
        except (subprocess.CalledProcessError, OSError):
            self.close()
            raise
        self.links = tuple(range(1, count))

    def _name(self, machine):
        return f"{self.tag}-{machine}"

    def _namespace(self, machine):
        run("ip", "netns", "add", self._name(machine))
        self.made.append(machine)

    def _in(self, machine, *words):
        run("ip", "netns", "exec", self._name(machine), *words)

    def _add(self, machine):
        self._namespace(machine)
        port = f"port{machine}"
        run("ip", "-n", self._name("hub"), "link", "add", port, "type", "veth", "peer", "name", "net0",
            "netns", self._name(machine))  # fmt: skip
        self._in("hub", "ip", "link", "set", port, "master", "bridge", "up")
        self._in(machine, "ip", "address", "add", f"{self.address(machine)}/24", "dev", "net0")
        self._in(machine, "ip", "link", "set", "net0", "up")
        self._in(machine, "ip", "link", "set", "lo", "up")

    def address(self, machine):
        return f"10.77.0.{machine + 1}"

    def command(self, machine, words):
        return ["ip", "netns", "exec", self._name(machine), *words]

    # Applies to traffic from the bridge to the machine, which carries the messages.
    def slow_down(self, machine, mbit):
        self._in("hub", "tc", "qdisc", "replace", "dev", f"port{machine}", "root", "tbf",
                 "rate", f"{mbit}mbit", "burst", "64kb", "latency", "100ms")  # fmt: skip

    def full_speed(self, machine):
        subprocess.run(
            self.command("hub", ["tc", "qdisc", "del", "dev", f"port{machine}", "root"]),
            check=False, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def cut(self, machine):
        self._in("hub", "ip", "link", "set", f"port{machine}", "down")

    def mend(self, machine):
        self._in("hub", "ip", "link", "set", f"port{machine}", "up")

    def close(self):
        for machine in self.made:
            subprocess.run(["ip", "netns", "delete", self._name(machine)], check=False, stderr=subprocess.DEVNULL)
        self.made = []


def make_machines(count):
    if os.geteuid() == 0 and shutil.which("ip") and shutil.which("tc"):
        try:
            return Namespaces(count)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"soak: no network namespaces here ({error}); on the loopback interface")
    else:
        print("soak: network namespaces need root and iproute2; on the loopback interface")
    return Loopback()
