# SPDX-License-Identifier: Apache-2.0
# A spawner that answers the hello and then hangs up: the daemon reconnects with growing delays and few log lines.
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, Daemon, case, main, wait_until


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


main()
