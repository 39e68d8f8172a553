# SPDX-License-Identifier: Apache-2.0
"""Uses of the simple interface that the compiler must refuse or warn about: refused_uses.py COMPILER INCLUDE...

Each line that ends in "// refused" must have an error; no other line may have one.
"""

import re
import subprocess
import sys

PROGRAM = """
#include <netio/pubsub.hpp>
#include <vector>
void uses(netio::Publisher& publisher, netio::Subscriber& subscriber, std::vector<netio::FidRange> ranges,
          std::vector<int> numbers, int* pointer, std::span<int> span, const std::string& text, double real) {
    publisher.publish(1, text);
    publisher.publish(1, numbers); // refused
    publisher.publish(1, 5); // refused
    publisher.publish("1", text); // refused
    publisher.publish(1.5, text); // refused
    publisher.publish(true, text); // refused
    publisher.publish(netio::SlowPolicy::drop, text); // refused
    publisher.publish_value(1, real);
    publisher.publish_value(1, pointer); // refused
    publisher.publish_value(1, "text"); // refused
    publisher.publish_value(1, text); // refused
    publisher.publish_value(1, span); // refused
    publisher.publish_value(1, std::string_view{text}); // refused
    publisher.publish_value(1, numbers); // refused
    int array[2] = {1, 2};
    publisher.publish_value(1, array); // refused
    if (publisher.try_publish(1, text) != netio::Status::ok) return;
    publisher.try_publish(1, text); // refused
    publisher.try_publish_value(1, real); // refused
    subscriber.subscribe(5);
    subscriber.subscribe({0, 63});
    subscriber.subscribe(netio::FidSet{{0, 63}, {100, 163}});
    subscriber.subscribe({1, 2, 3}); // refused
    subscriber.subscribe({{0, 63}, {100, 163}}); // refused
    subscriber.subscribe(ranges); // refused
    subscriber.subscribe(real); // refused
    subscriber.subscribe(pointer); // refused
    std::uint64_t number = netio::Fid{1}; // refused
    for (const netio::Message& message : subscriber) static_cast<void>(message.value<int*>()); // refused
    netio::Publisher copy{publisher}; // refused
    static_cast<void>(number);
}
"""

compiler, *folders = sys.argv[1:]
include = [argument for folder in folders for argument in ("-I", folder)]
ended = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror=unused-result",
                        "-fno-diagnostics-color", *include, "-x", "c++", "-"],
                       input=PROGRAM, capture_output=True, text=True)
wrong = {int(line) for line in re.findall(r"^<stdin>:(\d+):\d+: (?:fatal )?error:", ended.stderr, re.M)}
lines = PROGRAM.split("\n")
expected = {number for number, line in enumerate(lines, 1) if line.endswith("// refused")}
for number in sorted(expected - wrong):
    print("compiles:", lines[number - 1].strip())
for number in sorted(wrong - expected):
    print("does not compile:", lines[number - 1].strip())
if wrong != expected:
    print(ended.stderr)
sys.exit(wrong != expected)
