# SPDX-License-Identifier: Apache-2.0
"""Signals, threads, fork, the log, and the end of the interpreter."""

import logging
import textwrap
import threading

import netio_daq as netio
import pytest
from support import LONG, run

# Each waits for ever.
WAITS = {
    "receive": "netio.Subscriber('127.0.0.1:9').receive()",
    "iteration": "next(iter(netio.Subscriber('127.0.0.1:9')))",
    "batch": "netio.Subscriber('127.0.0.1:9').receive_batch()",
    "subscribed": "s = netio.Subscriber('127.0.0.1:9'); s.subscribe(1); s.wait_until_subscribed()",
    "subscribers": "netio.Publisher('127.0.0.1:0').wait_for_subscribers(1)",
    "accept": "netio.StreamListener('127.0.0.1:0').accept()",
    "read": """
    listener = netio.StreamListener('127.0.0.1:0')
    accepted = []
    threading.Thread(target=lambda: accepted.append(listener.accept()), daemon=True).start()
    netio.Stream.connect(listener.address).read()""",
    "connect": """
    import socket
    plain = socket.create_server(('127.0.0.1', 0))
    netio.Stream.connect('127.0.0.1:%d' % plain.getsockname()[1])""",
    "publish": """
    publisher, subscriber = pair(publisher=netio.Publisher('127.0.0.1:0', queue_limit_bytes=4096,
        socket={'page_size_bytes': 1024, 'page_count': 4}), queue_limit_messages=1,
        socket={'session': {'receive_buffer_bytes': 2048, 'receive_count': 4}})
    while True: publisher.publish(1, bytes(900))""",
    "message": """
    listener = netio.MessageListener('127.0.0.1:0')
    netio.MessageSocket(listener.address).receive()""",
    "message_accept": "next(netio.MessageListener('127.0.0.1:0'))",
    "message_send": "netio.MessageSocket('127.0.0.1:9', reconnect=True).send(b'a')",
    "connected": "netio.MessageSocket('127.0.0.1:9', reconnect=True).wait_until_connected()",
    "request": "netio.Requester('127.0.0.1:9', request_timeout=1e6).request(b'a')",
    "reply": "netio.Requester('127.0.0.1:9', request_timeout=1e6).send(b'a').next()",
    "space": """
    requester = netio.Requester('127.0.0.1:9', request_timeout=1e6, outstanding_limit=1)
    reply = requester.send(b'a')
    requester.send(b'a')""",
    "requests": "list(netio.Responder('127.0.0.1:0'))",
    "reply_space": """
    responder = netio.Responder('127.0.0.1:0', reply_queue_limit_bytes=1000, send_timeout=1e6)
    import atexit, subprocess
    program = "import netio_daq as netio, sys; netio.Requester(sys.argv[1]).request(b'a')"
    requester = subprocess.Popen([sys.executable, '-c', program, responder.address])
    atexit.register(requester.kill)
    request = responder.receive()
    requester.send_signal(signal.SIGSTOP)
    while True: request.reply_part(bytes(30_000))""",
    "close": """
    publisher, subscriber = pair(queue_limit_messages=1)
    for _ in range(1000): publisher.publish(1, bytes(10_000))
    publisher.close()""",
}


@pytest.mark.parametrize("wait", WAITS)
def test_a_signal_ends_every_wait(wait):
    # A wait is made of steps, so the number of times that the main thread slept grows during it.
    # Before it, libfabric is loaded: Debian's takes the handler of SIGINT for that time.
    head = """
        netio.Publisher('127.0.0.1:0').close()
        def end():
            def sleeps():
                with open(f'/proc/self/task/{os.getpid()}/status') as file:
                    return int(next(line for line in file if line.startswith('voluntary')).split()[1])
            begin = sleeps()
            while sleeps() < begin + 40: os.sched_yield()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=end, daemon=True).start()
        try:
        """
    program = textwrap.dedent(head) + textwrap.indent(textwrap.dedent(WAITS[wait]).strip(), "    ")
    result = run(program + "\nexcept KeyboardInterrupt:\n    print('interrupted', flush=True)\n")
    assert result.stdout == "interrupted\n", result.stderr
    assert result.returncode == 0, result.stderr


def test_a_handler_of_a_signal_runs_during_a_wait():
    result = run(
        """
        publisher, subscriber = pair()
        signal.signal(signal.SIGUSR1, lambda *_: publisher.publish(1, b'from the handler'))
        threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        print(bytes(subscriber.receive(LONG)))
        """
    )
    assert result.stdout == "b'from the handler'\n", result.stderr


@pytest.mark.parametrize(
    "use",
    [
        "publisher.publish(1, b'a')",
        "publisher.close()",
        "subscriber.receive(0)",
        "subscriber.close()",
        "next(iter(subscriber))",
        "sender.send(b'a')",
        "listener.accept(0)",
        "client.write(b'a')",
        "client.close()",
        "peer.send(b'a')",
        "peer.receive(0)",
        "peer.close()",
        "peers.accept(0)",
        "requester.request(b'a')",
        "reply.next()",
        "request.reply(b'a')",
        "responder.receive(0)",
        "responder.close()",
        "socket.publish(1, frames)",
        "socket.close()",
        "netio.Publisher('127.0.0.1:0', context=context)",
        "netio.buffer(4, context=context)",
        "writer.write_bytes(1, b'a')",
        "writer.close()",
    ],
)
def test_a_child_process_gets_a_clear_error(use, tmp_path):
    result = run(
        f"""
        publisher, subscriber = pair()
        sender = netio.Sender(publisher.address, close_timeout=0.1)
        listener = netio.StreamListener('127.0.0.1:0')
        thread = threading.Thread(target=listener.accept)
        thread.start()
        client = netio.Stream.connect(listener.address)
        thread.join()
        peers = netio.MessageListener('127.0.0.1:0')
        peer = netio.MessageSocket(peers.address)
        responder = netio.Responder('127.0.0.1:0')
        requester = netio.Requester(responder.address)
        reply = requester.send(b'a')
        request = responder.receive(LONG)
        context = netio.Context()
        frames = netio.buffer(65536, context=context)
        socket = netio.PublishSocket('127.0.0.1:0', context=context)
        writer = netio.RecordingWriter(sys.argv[1])
        child = os.fork()
        if child == 0:
            try:
                {use}
            except netio.Error as error:
                print(error, flush=True)
            own, own_subscriber = pair()
            own.publish(1, b'of the child')
            print(bytes(own_subscriber.receive(LONG)), flush=True)
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        publisher.publish(1, b'of the parent')
        print(bytes(subscriber.receive(LONG)))
        request.reply(b'of the parent')
        assert reply.next(LONG) == b'of the parent'
        """,
        str(tmp_path / "run.mcap"),
    )
    error, *rest = result.stdout.splitlines()
    assert "is used in a child process that has inherited it by fork(); create" in error, result.stderr
    assert rest == ["b'of the child'", "b'of the parent'"], result.stderr
    assert result.returncode == 0, result.stderr


def test_objects_may_be_alive_at_the_end():
    """The publisher closes in order, also in a cycle, while daemon threads are in calls."""
    result = run(
        """
        netio.set_log(None)
        publisher, subscriber = pair()
        cycle = [publisher]
        cycle.append(cycle)
        received = []
        def read():
            for message in subscriber:
                received.append(bytes(message))
        threading.Thread(target=read, daemon=True).start()
        other = netio.Subscriber('127.0.0.1:9')
        for wait in (other.receive, other.receive_batch, lambda: next(other),
                     lambda: netio.Publisher('127.0.0.1:0').wait_for_subscribers(1)):
            threading.Thread(target=wait, daemon=True).start()
        listener = netio.StreamListener('127.0.0.1:0')
        def accept():
            listener.accept().read()
        threading.Thread(target=accept, daemon=True).start()
        client = netio.Stream.connect(listener.address)
        threading.Thread(target=client.read, daemon=True).start()
        context = netio.Context()
        frames = netio.buffer(65536, context=context)
        socket = netio.PublishSocket('127.0.0.1:0', context=context)
        publication = pair(publisher=socket) and socket.publish(1, frames)
        threading.Thread(target=lambda: socket.wait_for_subscribers(9), daemon=True).start()
        peers = netio.MessageListener('127.0.0.1:0')
        peer = netio.MessageSocket(peers.address)
        responder = netio.Responder('127.0.0.1:0')
        requester = netio.Requester(responder.address)
        reply = requester.send(b'a')
        requests = [responder.receive()]  # one that is dropped would end the other side's wait
        for wait in (peer.receive, lambda: peers.accept().receive(), peers.accept, reply.next,
                     lambda: requests.append(responder.receive()), lambda: requester.request(b'b')):
            threading.Thread(target=wait, daemon=True).start()
        for _ in range(1000):
            publisher.publish(1, b'a')
        view = memoryview(received[0]) if received else None
        """
    )
    assert result.returncode == 0 and result.stderr == "", result.stderr


def test_what_was_published_is_sent_before_the_end():
    publisher = netio.Publisher("127.0.0.1:0")  # only to have a free port
    address = publisher.address
    publisher.close()
    del publisher
    subscriber = netio.Subscriber(address, socket={"retry_interval": 0.01, "retry_limit": 0.01})
    subscriber.subscribe(1)
    result = run(
        """
        publisher = netio.Publisher(sys.argv[1])
        assert publisher.wait_for_subscribers(1, LONG)
        for number in range(50_000):
            publisher.publish(1, b'a')
        """,
        address,
    )
    assert result.returncode == 0, result.stderr
    assert sum(len(batch) for batch in subscriber.batches()) == 50_000


def test_an_exception_closes_in_order():
    result = run(
        """
        _, subscriber = pair(publisher=(publisher := netio.Publisher('127.0.0.1:0')))
        try:
            with publisher:
                publisher.publish(1, b'a')
                raise KeyError('of the program')
        except KeyError:
            pass
        print([bytes(message) for message in subscriber], publisher.closed)
        """
    )
    assert result.stdout == "[b'a'] True\n", result.stderr


def test_ctrl_c_leaves_a_with_without_the_close_limit():
    """A blocked publisher, whose close() would wait for ever."""
    result = run(
        """
        publisher, subscriber = pair(publisher=netio.Publisher('127.0.0.1:0', close_timeout=1e6, close_limit=1e6),
            queue_limit_messages=1)
        try:
            with publisher:
                for _ in range(1000): publisher.publish(1, bytes(10_000))
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            print(publisher.closed, flush=True)
        """
    )
    assert result.stdout == "False\n" and result.returncode == 0, result.stderr


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.threads = set()
        self.lines = []

    def emit(self, record):
        self.threads.add(threading.current_thread().name)
        self.lines.append(record.getMessage())


def test_a_logger_gets_the_lines_in_a_thread_of_python():
    logger, handler = logging.getLogger("of this test"), Lines()
    logger.addHandler(handler)
    logger.propagate = False
    netio.set_log(logger)
    for number in range(500):
        netio._core._write_log(f"line {number}")
    netio.set_log(None)
    assert handler.lines == [f"line {number}" for number in range(500)]
    assert handler.threads <= {"netio log", "MainThread"}
    netio._core._write_log("discarded")
    lines = []
    netio.set_log(lines.append)
    netio.set_log(None)
    assert lines == []


def test_a_flood_of_lines_is_bounded():
    gate, lines = threading.Event(), []

    def write(line):
        lines.append(line)
        gate.wait(LONG)

    netio.set_log(write)
    netio._core._write_log("the first line")
    while not lines:
        pass
    for number in range(3000):
        netio._core._write_log(str(number))
    gate.set()
    netio.set_log(None)
    assert len(lines) == 1002 and lines[-1].startswith("2000 log lines were dropped")


def test_lines_at_the_end_reach_the_log():
    result = run(
        """
        netio.set_log(lambda line: print('log:', line, flush=True))
        publisher = netio.Publisher('127.0.0.1:0')
        publisher.publish(1, b'a')
        """
    )
    assert result.stdout.startswith("log: publisher 127.0.0.1:") and "had no subscriber" in result.stdout
    assert result.returncode == 0, result.stderr
