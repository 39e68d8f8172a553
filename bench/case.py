# SPDX-License-Identifier: Apache-2.0
"""One measurement of bench/run: programs with their arguments, and the metrics in their reports."""

import dataclasses
import time


@dataclasses.dataclass(eq=False)
class Case:
    workload: str
    subject: str  # as in the results
    program: str
    parameters: dict  # as in the results
    arguments: dict  # arguments of the program
    subscribers: int = 1
    environment: dict = dataclasses.field(default_factory=dict)
    delay_ms: int = 0  # delay between the two programs
    prefix: tuple = ()  # a command to run it under; {role} stands for its role

    def __str__(self):
        words = [self.workload, self.subject, *(f"{k}={v}" for k, v in self.parameters.items())]
        return " ".join(words)

    def metrics(self, reports):
        publisher = next(each for each in reports if each["role"] == "publish")
        subscribers = [each for each in reports if each["role"] == "subscribe"]
        pattern = self.arguments.get("pattern", "stream")
        if pattern == "echo":
            return {name: publisher[name] for name in ("p50_us", "p99_us", "p999_us")}
        if pattern == "idle":
            idle = next(each for each in reports if each["role"] == "idle")
            return {
                "publisher_cpu_percent": 100 * publisher["cpu_s"] / publisher["wall_s"],
                "subscriber_cpu_percent": 100 * idle["cpu_s"] / publisher["wall_s"],
            }
        if pattern == "paced":
            cpu = publisher["cpu_s"] + sum(each["cpu_s"] for each in subscribers)
            per_tick = {"cpu_us_per_tick": cpu / publisher["ticks"] * 1e6} if publisher.get("ticks") else {}
            if not subscribers:
                return per_tick
            return {
                **per_tick,
                **{name: subscribers[0][name] for name in ("p50_us", "p99_us", "p999_us")},
                "messages_per_s": subscribers[0]["messages"] / subscribers[0]["seconds"],
                "publisher_cpu_percent": 100 * publisher["cpu_s"] / publisher["wall_s"],
                "subscriber_cpu_percent": 100 * subscribers[0]["cpu_s"] / subscribers[0]["seconds"],
            }
        rate = sum((each["messages"] - 1) / each["seconds"] for each in subscribers)
        cpu = publisher["cpu_s"] + sum(each["cpu_s"] for each in subscribers)
        return {
            "messages_per_s": rate,
            "gbit_per_s": rate * self.arguments["size"] * 8e-9,
            "cpu_s_per_million": cpu / publisher["messages"] * 1e6,
            "publisher_cpu_s_per_million": publisher["cpu_s"] / publisher["messages"] * 1e6,
        }


class Command(Case):
    """A single program that runs and ends."""

    def command(self, seconds):
        return [self.program, *self.arguments["words"]]

    def measure(self, seconds, run):
        """run(command) returns the printed text."""
        least = float("inf")
        for _ in range(5):  # the first run reads it from disk
            began = time.monotonic()
            run(self.command(seconds))
            least = min(least, time.monotonic() - began)
        return {"wall_ms": least * 1e3}


class SpeedOfAes(Command):
    """The encryption rate of libcrypto on one core."""

    def command(self, seconds):
        return [self.program, "speed", "-mr", "-evp", "aes-256-gcm", "-bytes", "65536",
                "-seconds", str(max(1, round(seconds)))]

    def measure(self, seconds, run):
        line = next(each for each in run(self.command(seconds)).splitlines() if each.startswith("+F:"))
        return {"gbit_per_s": float(line.split(":")[-1]) * 8e-9}
