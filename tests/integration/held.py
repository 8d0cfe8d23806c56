# SPDX-License-Identifier: Apache-2.0
# A process that is stopped while it holds the write lock of a shared SQLite store: the other nodes name it, and kill it if
# it is a node.
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Api, Unreachable, case, main, wait_until
from nodes import LEASE, Cluster

WRITES = 120  # the byte of the -shm file that a writer locks
HELD_MAX = 5 * LEASE


def writers(path):
    """The processes that hold the write lock of the store, from /proc/locks."""
    inode = os.stat(path + "-shm").st_ino
    with open("/proc/locks") as f:
        rows = [line.split() for line in f]
    return {int(v[4]) for v in rows if v[1] == "POSIX" and v[3] == "WRITE" and v[5].endswith(":%d" % inode) and
            int(v[6]) <= WRITES and (v[7] == "EOF" or int(v[7]) >= WRITES)}


def keep_busy(d, over):
    """Submits jobs until 'over' is set."""
    api = Api(d.socket, 2)
    while not over.is_set():
        with contextlib.suppress(Unreachable):
            api.call("POST", "/v1/jobs", {"command": ["true"], "schedule": ["2099-01-01"]})
    api.close()


def stop_while_it_writes(c, d):
    """Stops and continues a node until it is stopped while it holds the write lock."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        time.sleep(random.uniform(0, 0.01))
        d.process.send_signal(signal.SIGSTOP)
        wait_until("the node is stopped", 5, lambda: open("/proc/%d/stat" % d.process.pid).read().rsplit(") ", 1)[1][0] == "T", 0)
        if d.process.pid in writers(c.store):
            return
        d.process.send_signal(signal.SIGCONT)
    raise AssertionError("the node never held the lock when it was stopped")


def told(d, pid):
    """Checks that API and jobctl name the holder. Returns how long this took."""
    began = time.monotonic()
    words = "store held by pid %d (state T)" % pid
    wait_until("the holder of the store is named", 20, lambda: words in str(status(d)["store"]), 0.05)
    took = time.monotonic() - began
    api = Api(d.socket)
    code, answer = api.call("GET", "/v1/jobs")
    api.close()
    assert code == 503 and words in answer["error"]["message"], (code, answer)
    shown = d.jobctl("status", check=False)
    assert shown.returncode == 1 and words in shown.stdout, shown
    return took


def status(d):
    api = Api(d.socket)
    code, answer = api.call("GET", "/v1/status")
    api.close()
    assert code == 200, answer
    return answer


@case
def a_node_stopped_with_the_write_lock_is_named_and_killed():
    over = threading.Event()
    with Cluster(2) as c:
        held, other = c.nodes
        load = threading.Thread(target=keep_busy, args=(held, over))
        load.start()
        try:
            stop_while_it_writes(c, held)
            began = time.monotonic()
            over.set()
            took = told(other, held.process.pid)
            assert held.process.poll() is None, "the node was killed before its lease had expired"
            assert held.ended(HELD_MAX + 30) == -signal.SIGKILL
            after = time.monotonic() - began
            assert after > LEASE, "the node was killed before its lease had expired"
        finally:
            over.set()
            load.join()
        assert "killed pid %d" % held.process.pid in other.said()
        wait_until("the store is available again", 30, lambda: not status(other)["store"]["away_since"])
        held.start()
        for d in c.nodes:
            assert d.wait_final(d.add(command=["true"])["id"], 60)["state"] == "succeeded"
        return "named after %.1f s, killed after %.1f s" % (took, after)


@case
def another_process_that_holds_the_store_is_named_and_not_killed():
    hold = "import sqlite3, sys, time; d = sqlite3.connect(sys.argv[1]); d.execute('BEGIN IMMEDIATE'); print('.', flush=True); time.sleep(600)"
    with Cluster(1) as c:
        d = c.nodes[0]
        stranger = subprocess.Popen([sys.executable, "-c", hold, c.store], stdout=subprocess.PIPE)
        try:
            assert stranger.stdout.read(1) == b"."
            stranger.send_signal(signal.SIGSTOP)
            d.api().call("POST", "/v1/jobs", {"command": ["true"]})
            told(d, stranger.pid)
            time.sleep(LEASE + 3)  # a node would have been killed by now
            assert stranger.poll() is None, "a process that is not a node was killed"
            told(d, stranger.pid)
        finally:
            stranger.kill()
            stranger.wait()
        wait_until("the store is available again", 30, lambda: not status(d)["store"]["away_since"])
        assert d.wait_final(d.add(command=["true"])["id"], 60)["state"] == "succeeded"
        assert "killed pid" not in d.said()


main()
