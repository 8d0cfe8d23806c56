# SPDX-License-Identifier: Apache-2.0
# Peers that fail in a loop: the daemon tries again with delays, writes few log lines and uses little CPU time.
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../nemesis")]
from harness import BUILD, Daemon, case, main, wait_until
from nodes import server
from proxy import Proxy

WATCHED = 8  # seconds


class HangingUp(threading.Thread):
    """Listens in place of the spawner. Passes the hello and the first answer through, then closes the connection."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.real, self.times = path, path + ".real", []
        os.rename(path, self.real)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(64)

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            self.times.append(time.monotonic())
            with client, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as spawner:
                spawner.connect(self.real)
                hello = client.recv(65536)
                if hello:
                    spawner.send(hello)
                    client.send(spawner.recv(65536))

    def end(self):
        os.rename(self.real, self.path)
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@case
def a_spawner_that_hangs_up_is_tried_with_growing_delays():
    with Daemon().start() as d:
        d.wait_final(d.add(command=["true"])["id"])
        path, pid = os.path.join(d.runtime, "jobsched", "spawner.sock"), d.spawner()
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            words = f.read().split(b"\0")[:-1]
        d.process.send_signal(signal.SIGSTOP)  # the daemon must not connect before the other listener is in place
        os.kill(pid, signal.SIGKILL)
        wait_until("the spawner has ended", 30, lambda: d.spawner() is None)
        os.unlink(path)
        subprocess.run([os.path.join(BUILD, "jobsched-spawner"), *words[1:]], env=d.env, check=True, timeout=30)
        wait_until("the new spawner listens", 30, lambda: os.path.exists(path))
        fake = HangingUp(path)
        fake.start()
        d.process.send_signal(signal.SIGCONT)
        wait_until("the daemon has tried four times", 60, lambda: len(fake.times) >= 4)
        first = fake.times[0]
        wait_until("six seconds have passed", 60, lambda: time.monotonic() - first > 6)
        times = list(fake.times)
        said = [line for line in d.said().splitlines() if "spawner" in line]
        fake.end()
        within = [t for t in times if t - first <= 6]
        # 0.1, 0.2, 0.4, 0.8, 1.6, 3.2 s: at most eight attempts in six seconds
        assert 3 <= len(within) <= 9, [t - first for t in times]
        assert len(said) <= 3, said
        assert d.wait_final(d.add(command=["true"])["id"], 60)["state"] == "succeeded"


def cpu(d):
    with open("/proc/%d/stat" % d.process.pid) as f:
        v = f.read().rsplit(")", 1)[1].split()
    return (int(v[11]) + int(v[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def calm(d, most):
    """The daemon writes at most so many log lines, and uses a tenth of a processor, for WATCHED seconds from now on."""
    lines, before, began = len(d.said().splitlines()), cpu(d), time.monotonic()
    yield
    wait_until("%d seconds have passed" % WATCHED, 60, lambda: time.monotonic() - began > WATCHED)
    said, spent = d.said().splitlines()[lines:], cpu(d) - before
    assert len(said) <= most, said
    assert spent < (time.monotonic() - began) / 10, spent


@case
def a_sendmail_that_always_fails_is_reported_once_and_tried_with_delays():
    with Daemon() as d:
        calls = os.path.join(d.dir, "calls")
        program = os.path.join(d.dir, "sendmail")
        with open(program, "w") as f:
            f.write("#!/bin/sh\ncat >/dev/null; echo x >>'%s'; exit 75\n" % calls)
        os.chmod(program, 0o755)
        d.write_config("sendmail = %s\nnotice-retry = 2\n" % program)
        d.start()
        jobs = [d.add(command=["false"], notify=["mail:ann@example.com"], retries=0)["id"] for _ in range(10)]
        for job in jobs:
            d.wait_final(job)
        wait_until("each mail was tried", 60, lambda: os.path.exists(calls) and os.path.getsize(calls) >= 2 * len(jobs))
        with calm(d, 3):
            pass
        # each mail after 2, 4, 8 s and so on, with a jitter
        assert os.path.getsize(calls) / 2 <= len(jobs) * 12, os.path.getsize(calls)


class Refusing(threading.Thread):
    """A server that closes each connection at once."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener, self.count = socket.create_server(("127.0.0.1", 0)), 0

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                self.listener.accept()[0].close()
                self.count += 1


@case
def a_collector_of_spans_that_hangs_up_is_reported_once_and_tried_with_delays():
    far = Refusing()
    far.start()
    with Daemon("otlp = http://127.0.0.1:%d\notlp-interval = 1\n" % far.listener.getsockname()[1]).start() as d:
        d.wait_final(d.add(command=["true"])["id"])
        wait_until("the daemon has tried", 60, lambda: far.count)
        with calm(d, 3):
            for _ in range(10):
                d.wait_final(d.add(command=["true"])["id"])
        assert far.count <= 3 * WATCHED, far.count
    far.listener.shutdown(socket.SHUT_RDWR)
    far.listener.close()


class Counting(Proxy):
    """Counts connections."""
    count = 0

    def serve(self, client):
        self.count += 1
        super().serve(client)


@case
def a_database_server_that_refuses_is_reported_once_and_tried_with_delays():
    front = tempfile.mkdtemp(prefix="jobsched-front.")
    os.chmod(front, 0o755)
    proxy = Counting(front, server().dir)
    try:
        with Daemon("store = postgresql://jobsched@/postgres?host=%s\n" % front).start() as d:
            d.wait_final(d.add(command=["true"])["id"])
            with calm(d, 6):
                proxy.down, proxy.count = True, 0
                proxy.cut()
                for _ in range(5):
                    assert d.api().call("POST", "/v1/jobs", {"command": ["true"]})[0] in (503, 504)
            assert proxy.count <= 60 * WATCHED, proxy.count  # each connection is tried ten times a second
            proxy.down = False
            wait_until("the store answers again", 60, lambda: d.api().call("GET", "/v1/jobs")[0] == 200)
            assert d.wait_final(d.add(command=["true"])["id"], 60)["state"] == "succeeded"
    finally:
        proxy.close()
        shutil.rmtree(front, ignore_errors=True)
        server().sql("DROP SCHEMA IF EXISTS jobsched CASCADE")


main()
