# SPDX-License-Identifier: Apache-2.0
"""The workloads, and what each subject does in them."""

import shutil

from case import Case, Command, SpeedOfAes


def forms(subject, size):
    """(subject in the results, program, form) for messages of a size, sent one after another."""
    if subject == "raw":
        return [("raw-coalesced", "raw", "coalesced"), ("raw-unbatched", "raw", "unbatched")]
    if subject == "netio":
        return [("netio", "netio", "buffered"), ("netio", "netio", "unbuffered")]
    return [(subject, subject, "")]


SUBJECTS = ("raw", "plain-libfabric", "netio", "zeromq", "nng", "cyclonedds", "ucx")


def w1():
    for subject in SUBJECTS:
        for name, program, form in forms(subject, 40):
            if form != "unbuffered":
                yield Case("W1", name, program, {"size": 40, "fids": 64}, {"size": 40, "fids": 64, "form": form})


def w2(short):
    sizes = (64, 1024, 65536, 1 << 20) if short else [64 << (2 * n) for n in range(9)]
    for size in sizes:
        for subject in SUBJECTS:
            for name, program, form in forms(subject, size):
                parameters = {"size": size, **({"form": form} if subject == "netio" else {})}
                yield Case("W2", name, program, parameters, {"size": size, "form": form})


MODES = {
    "raw": ("blocking", "busy"),
    "plain-libfabric": ("blocking", "adaptive", "busy"),
    "netio": ("blocking", "adaptive", "busy"),
    "zeromq": ("blocking",),
    "nng": ("blocking",),
    "cyclonedds": ("blocking",),
    "ucx": ("blocking", "busy"),
}


def w3():
    for size in (64, 4096):
        for subject in SUBJECTS:
            for mode in MODES[subject]:
                # netio over one connection, like the others, and with two publishers and subscribers.
                ours = ("session", "message-socket", "request-loop", "request", "unbuffered")
                if mode == "blocking":
                    ours += ("hand-over",)  # between two threads of one program
                for form in ours if subject == "netio" else ("",):
                    name = "raw-unbatched" if subject == "raw" else subject
                    arguments = {"pattern": "echo", "size": size, "mode": mode, "form": form}
                    parameters = {"size": size, "mode": mode, **({"form": form} if form else {})}
                    yield Case("W3", name, subject, parameters, arguments)


def w4():
    for subscribers in (4, 16):
        for size in (1024, 65536):
            for subject in ("raw", "netio", "zeromq", "nng", "cyclonedds", "ucx"):
                for name, program, form in forms(subject, size):
                    if form == "unbatched" and size < 65536:
                        continue  # only the better form counts as the lower limit
                    parameters = {"subscribers": subscribers, "size": size}
                    if subject == "netio":
                        parameters["form"] = form
                    arguments = {"size": size, "form": form, "subscribers": subscribers}
                    yield Case("W4", name, program, parameters, arguments, subscribers)


def w5():
    """Many fids with separate subscriptions, and one fid for comparison."""
    for fids in (1, 1000):
        for subject, program, form in (
            ("raw-coalesced", "raw", "coalesced"),
            ("netio", "netio", "buffered"),
            ("zeromq", "zeromq", ""),
        ):
            arguments = {"size": 40, "fids": fids, "each-fid": 1, "form": form}
            yield Case("W5", subject, program, {"size": 40, "fids": fids}, arguments)


def w6():
    for subject in SUBJECTS:
        for name, program, form in forms(subject, 1024):
            parameters = {"size": 1024, "rate": 100000, **({"form": form} if subject == "netio" else {})}
            arguments = {"pattern": "paced", "size": 1024, "rate": 100000, "form": form}
            yield Case("W6", name, program, parameters, arguments)
    # The cost of waking alone.
    arguments = {"pattern": "paced", "size": 1024, "rate": 100000, "form": "ticks"}
    yield Case("W6", "ticks", "raw", {"size": 1024, "rate": 100000}, arguments, 0)


def w7(short):
    """A byte stream, read in messages; the raw subject sends each with its own call."""
    subjects = (
        ("raw-unbatched", "raw", "unbatched"),
        ("plain-libfabric", "plain-write", ""),
        ("netio", "netio-stream", ""),
        ("netio-writes", "netio-stream", "writes"),
    )
    for size in (65536, 1 << 20) if short else (4096, 16384, 65536, 1 << 18, 1 << 20, 1 << 22):
        for subject, program, form in subjects:
            yield Case("W7", subject, program, {"size": size}, {"size": size, "form": form})


def w8(short):
    netio = {"form": "buffered", "size": 40}
    for connections in (1, 1000) if short else (1, 10, 100, 1000):
        # Always one second: the disconnects of the idle connections at the end count, too.
        arguments = {**netio, "idle": connections - 1, "heartbeat": 0, "seconds": 1}
        yield Case("W8", "netio", "netio", {"connections": connections, "fids": 1}, arguments)
    for fids in (1, 10000) if short else (1, 10, 100, 1000, 10000):
        arguments = {**netio, "fids": fids, "each-fid": 1, "heartbeat": 0}
        yield Case("W8", "netio", "netio", {"connections": 1, "fids": fids, "each_fid": True}, arguments)
    parameters = {"idle_connections": 1000, "heartbeat": "default"}
    idle = {**netio, "pattern": "idle", "idle": 1000, "seconds": 6 if short else 20}
    yield Case("W8", "netio", "netio", parameters, idle, 0)


def w9():
    """The cost of protection, and the cost of encryption alone."""
    yield SpeedOfAes("W9", "openssl", shutil.which("openssl") or "openssl", {"size": 65536}, {})
    for size in (40, 65536):
        for level in ("", "peers", "integrity", "privacy"):
            parameters = {"size": size, "protection": level or "no keys"}
            yield Case("W9", "netio", "netio", parameters,
                       {"size": size, "form": "buffered", "protection": level})


def w10():
    """Scatter-gather elements: a number that every provider supports, and the allowed maximum."""
    for pieces in (3, 28):
        for subject, program, form in (("raw-unbatched", "raw", "unbatched"), ("netio", "netio", "unbuffered")):
            parameters = {"size": 28672, "pieces": pieces}
            yield Case("W10", subject, program, parameters, {**parameters, "form": form})


def w11():
    """Fewer groups of subscribers than pages, and more."""
    for groups in (64, 1280):
        arguments = {"pattern": "groups", "size": 40, "form": "buffered", "groups": groups,
                     "fids": groups, "heartbeat": 0}
        yield Case("W11", "netio", "netio", {"size": 40, "groups": groups}, arguments)


def w12():
    """Run times of commands that do not use the fabric."""
    for words in (["--version"], ["--help"], ["publish", "--help"]):
        yield Command("W12", "netio", "../bin/netio", {"command": " ".join(words)}, {"words": words})


def w13():
    """Over long round trips, with default options: publish/subscribe at 1 KiB, the byte stream at 64 KiB."""
    subjects = (
        ("raw-coalesced", "raw", "coalesced", 1024),
        ("netio", "netio", "buffered", 1024),
        ("raw-unbatched", "raw", "unbatched", 65536),
        ("netio-stream", "netio-stream", "", 65536),
    )
    for subject, program, form, size in subjects:
        # Long enough for the windows to grow.
        arguments = {"size": size, "form": form, "seconds": 4}
        yield Case("W13", subject, program, {"size": size, "delay_ms": 10}, arguments, delay_ms=10)


def w14():
    """Two halves of the fids on one loop, and on two."""
    for size in (40, 1024):
        for loops in (1, 2):
            arguments = {"pattern": "loops", "size": size, "fids": 32, "form": "buffered", "loops": loops}
            yield Case("W14", "netio", "netio", {"size": size, "loops": loops}, arguments)


def w15():
    """A client for all threads with its ways to deliver messages, compared with the socket of one thread."""
    for size in (40, 1024, 65536, 1 << 18):
        for form in ("buffered", "callback", "batches", "messages"):
            yield Case("W15", "netio", "netio", {"size": size, "form": form}, {"size": size, "form": form})


def w16(short):
    """Buffered messages compared with coalescing raw TCP, with one fid and with many."""
    sizes = (40, 1024, 65536) if short else (40, 128, 256, 1024, 4096, 16384, 65536, 1 << 18, 1 << 20)
    for size in sizes:
        for fids in (1, 1000):
            for subject, program, form in (("raw-coalesced", "raw", "coalesced"), ("netio", "netio", "buffered")):
                arguments = {"size": size, "fids": fids, "form": form}
                yield Case("W16", subject, program, {"size": size, "fids": fids}, arguments)


def all_cases(short):
    yield from w1()
    yield from w2(short)
    yield from w3()
    yield from w4()
    yield from w5()
    yield from w6()
    yield from w7(short)
    yield from w8(short)
    yield from w9()
    yield from w10()
    yield from w11()
    yield from w12()
    yield from w13()
    yield from w14()
    yield from w15()
    yield from w16(short)


def not_measured():
    """Rows for the cases that are not measured."""
    row = {"metric": "skipped", "median": None, "min": None, "max": None, "runs": 0}
    left_out = (
        ("W5", "nng", "push/pull has no subscriptions, and pub/sub loses what does not fit"),
        ("W5", "ucx", "it has no subscriptions"),
        ("W5", "cyclonedds", "one reader cannot take a thousand topics one by one at this rate"),
    )
    return [
        {"workload": workload, "subject": subject, "parameters": {"reason": reason}, **row}
        for workload, subject, reason in left_out
    ]
