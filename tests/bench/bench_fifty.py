#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many nodes on one PostgreSQL: the cost of being idle, joins, departures, deaths, a herd of runs. By hand; figures, no test.

  top_builddir=build tests/bench/bench_fifty.py [NODES] [RUNS]     50 nodes and 10000 runs if not given
"""
import contextlib
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Api, Daemon, enter_pid_namespace, wait_until
from pg import Server

IDLE = 30   # seconds of each measurement without work
SETTLE = 20 # seconds between a change of the members and the measurement
GROUP = 10  # nodes that join, leave or die at once
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    with contextlib.suppress(OSError):
        with open("/proc/%d/stat" % pid) as f:
            words = f.read().rsplit(") ", 1)[1].split()
        return (int(words[11]) + int(words[12])) / TICKS
    return 0.0


def postgres_cpu():
    total = 0.0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/comm" % pid) as f:
                if f.read().strip() == "postgres":
                    total += cpu_of(int(pid))
    return total


class Many:
    def __init__(self, n, server):
        self.server = server
        self.nodes = [Daemon("store = %s\nnode-name = n%d\nlease = 15\nrun-lease = 30\nmax-running = 64\n" % (server.url, i)) for i in range(n)]
        self.up = []

    def start(self, nodes):
        began = time.monotonic()
        for d in nodes:
            d.start(wait=False)
        self.up += nodes
        for d in nodes:
            d.wait_ready(300)
        self.spread(300)
        return time.monotonic() - began

    def spread(self, seconds=120):
        """Waits until the live nodes share all segments evenly."""
        def even():
            with contextlib.suppress(Exception):
                nodes = [v for v in self.up[0].api().get("/v1/nodes")["nodes"] if v["state"] == "alive"]
                shares = [v["segments"] for v in nodes]
                return len(nodes) == len(self.up) and sum(shares) == 64 and max(shares) - min(shares) <= 1
        wait_until("the nodes share the segments", seconds, even, 0.1)

    def sample(self):
        row = self.server.sql("SELECT xact_commit, xact_rollback, tup_returned + tup_fetched, deadlocks FROM pg_stat_database "
                              "WHERE datname = 'postgres'")[0]
        return [int(v) for v in row] + [sum(cpu_of(d.process.pid) for d in self.up), postgres_cpu(), time.monotonic()]

    def idle(self):
        time.sleep(SETTLE)
        before = self.sample()
        time.sleep(IDLE)
        after = self.sample()
        took = after[6] - before[6]
        diff = [(b - a) / took for a, b in zip(before, after)]
        n = len(self.up)
        print("idle, %2d nodes: %6.1f transactions/s (%5.2f per node), %8.0f rows read/s (%6.1f per node), daemons %5.2f %% of a CPU "
              "(%.3f per node), PostgreSQL %5.2f %%" % (n, diff[0] + diff[1], (diff[0] + diff[1]) / n, diff[2], diff[2] / n, 100 * diff[4],
                                                       100 * diff[4] / n, 100 * diff[5]), flush=True)

    def close(self):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda d: d.close(), self.nodes))


def submit(d, spec, part, runs):
    api = Api(d.socket)
    for i in range(part, runs, 16):
        while api.patiently("POST", "/v1/jobs", dict(spec, key="herd-%d" % i))[0] not in (200, 201):
            time.sleep(0.5)  # the result is unknown, so the request is repeated with its key
    api.close()


def herd(many, runs):
    """Jobs with one slot, all in the same second."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 60 + runs / 100))
    spec = dict(command=["true"], schedule=["R1/%s/PT1S" % at], sandbox="compat")
    began = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda part: submit(many.up[part % len(many.up)], spec, part, runs), range(16)))
    loaded = time.monotonic() - began
    sql = many.server.sql
    before = many.sample()
    done = "SELECT count(*) FROM jobsched.runs WHERE state = 3"
    wait_until("the herd is over", 900, lambda: int(sql(done)[0][0]) >= runs, 1)
    after = many.sample()
    row = sql("""SELECT min(started_at - due_at) / 1000, percentile_disc(0.5) WITHIN GROUP (ORDER BY started_at - due_at) / 1000,
        percentile_disc(0.99) WITHIN GROUP (ORDER BY started_at - due_at) / 1000, max(ended_at - due_at) / 1000, count(DISTINCT node)
        FROM jobsched.runs WHERE state = 3""")[0]
    print("herd of %d runs: loaded in %.1f s; start after the slot p50 %s ms, p99 %s ms; last end after %s ms, on %s nodes; %d transactions, "
          "daemons %.1f s of CPU, PostgreSQL %.1f s" % (runs, loaded, row[1], row[2], row[3], row[4], after[0] - before[0], after[4] - before[4],
                                                       after[5] - before[5]), flush=True)
    twice = sql("SELECT count(*) - count(DISTINCT job) FROM jobsched.runs")[0][0]
    print("herd: %s runs beyond one per job, %d deadlocks" % (twice, after[3]), flush=True)


def follow(many):
    """The output of a run is followed through another node."""
    job = many.up[0].add(command=["sh", "-c", "for i in 1 2 3 4 5; do date +%s.%N; sleep 1; done"])["id"]
    many.up[0].wait_running(job, 60)
    owner = many.up[0].runs(job)[0]["node"]
    asked = next(d for d in many.up if d.api().get("/v1/status")["node"]["id"] != owner)
    began = time.time()
    text = asked.jobctl("log", "-f", str(job)).stdout
    lines = [float(v) for v in text.split()]
    assert len(lines) == 5, text
    print("output followed through another node: %d lines, ended %.1f s after the last line" % (len(lines), time.time() - max(lines[-1], began)), flush=True)


def main():
    enter_pid_namespace()
    n = int(sys.argv[1]) if sys.argv[1:] else 50
    runs = int(sys.argv[2]) if sys.argv[2:] else 10000
    server = Server()
    server.connections = 8 * n + 20
    with server:
        many = Many(n + GROUP, server)
        try:
            print("start of %d nodes at once: %.1f s until all share the segments" % (n // 2, many.start(many.nodes[:n // 2])), flush=True)
            many.idle()
            many.start(many.nodes[n // 2:n])
            many.idle()
            print("join of %d at once: %.1f s" % (GROUP, many.start(many.nodes[n:])), flush=True)
            began, leaving = time.monotonic(), many.up[-GROUP:]
            many.up = many.up[:-GROUP]
            for d in leaving:
                d.process.send_signal(signal.SIGTERM)
            many.spread()
            print("leave of %d at once: %.1f s until the others share the segments" % (GROUP, time.monotonic() - began), flush=True)
            follow(many)
            herd(many, runs)
            began, dying = time.monotonic(), many.up[-GROUP:]
            many.up = many.up[:-GROUP]
            for d in dying:
                pid = d.spawner()
                d.kill()
                if pid:
                    os.kill(pid, signal.SIGKILL)
            many.spread()
            print("death of %d at once: %.1f s until the others share the segments (lease 15 s)" % (GROUP, time.monotonic() - began), flush=True)
        finally:
            many.close()


if __name__ == "__main__":
    main()
