#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed work of several nodes on one PostgreSQL, without faults: no deadlock, no limit exceeded, no run left open. By hand.

  top_builddir=build tests/nemesis/mixed.py [SECONDS] [NODES] [DELAY_MS]     600 s, 6 nodes, 1 ms each way if not given

Clients of every node add jobs with and without names, change, pause, resume, trigger and cancel the same few jobs, and cancel
runs. A queue has a limit. Judged at the end: the deadlocks that PostgreSQL has counted, the samples of active runs in the
queue, overlaps that the jobs have seen, requests that failed for another reason than a conflict, and the kept counts.
"""
import os
import random
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "integration"), HERE]
from harness import Api, enter_pid_namespace, wait_until
from nodes import Cluster, server
from proxy import DelayedServer

FEW = 3         # active runs that the queue may have
NAMES = 8       # names that all clients use
SHARED = 12     # jobs that all clients change
REFUSALS = {400, 403, 404, 409, 422, 429, 503}
BODY = 'exec 9>>"$LEDGER.$JOBSCHED_JOB"; flock -n 9 || echo "$JOBSCHED_JOB" >>"$LEDGER.overlaps"; sleep 0.0$((RANDOM % 5))'


class Mixed:
    def __init__(self, cluster, seconds):
        self.c, self.until, self.counts, self.bad, self.most = cluster, time.monotonic() + seconds, {}, [], 0
        self.lock = threading.Lock()
        self.env = {"LEDGER": os.path.join(cluster.dir, "mixed")}
        api = cluster.nodes[0].api()
        api.call("PUT", "/v1/queues/few", {"max_running": FEW})
        self.jobs = [self.added(api, "shared-%d" % i, i) for i in range(SHARED)]

    def spec(self, kind):
        more = [{}, {"queue": "few"}, {"overlap": "skip"}, {"overlap": "queue"}][kind % 4]
        return dict(command=["bash", "-c", BODY], env=self.env, retries=1, **more)

    def added(self, api, name, kind):
        status, answer = api.call("POST", "/v1/jobs", dict(self.spec(kind), name=name, schedule=["every 1s"]))
        assert status in (200, 201), (status, answer)
        return answer["id"]

    def requests(self, dice):
        job = dice.choice(self.jobs)
        return dice.choice([
            ("add", "POST", "/v1/jobs", self.spec(dice.randrange(2))),
            ("add", "POST", "/v1/jobs", self.spec(dice.randrange(2))),
            ("named", "POST", "/v1/jobs", dict(self.spec(0), name="name-%d" % dice.randrange(NAMES))),
            ("change", "PATCH", "/v1/jobs/%d" % job, {"priority": dice.randrange(3)}),
            ("change", "PATCH", "/v1/jobs/%d" % job, {"schedule": ["every %ds" % dice.randrange(1, 4)]}),
            ("pause", "POST", "/v1/jobs/%d/pause" % job, {}),
            ("resume", "POST", "/v1/jobs/%d/resume" % job, {}),
            ("resume", "POST", "/v1/jobs/%d/resume" % job, {}),
            ("trigger", "POST", "/v1/jobs/%d/run" % job, {}),
            ("cancel job", "POST", "/v1/jobs/%d/cancel" % job, {}) if dice.random() < 0.2 else
            ("resume", "POST", "/v1/jobs/%d/resume" % job, {}),
            ("cancel run", "POST", "/v1/runs/%d/cancel" % dice.randrange(1, 2000), {}),
        ])

    def client(self, node, seed):
        dice, api = random.Random(seed), Api(node.socket)
        while time.monotonic() < self.until:
            what, method, path, body = self.requests(dice)
            status, answer = api.call(method, path, body)
            with self.lock:
                self.counts[what] = self.counts.get(what, 0) + 1
                if status >= 300 and status not in REFUSALS:
                    self.bad.append((what, status, answer))

    def watch(self):
        while time.monotonic() < self.until:
            n = int(self.c.server.sql("SELECT count(*) FROM jobsched.runs WHERE queue = 'few' AND state IN (1, 2)")[0][0])
            self.most = max(self.most, n)
            time.sleep(0.1)

    def run(self):
        threads = [threading.Thread(target=self.client, args=(self.c.nodes[i % len(self.c.nodes)], i)) for i in range(2 * len(self.c.nodes))]
        threads.append(threading.Thread(target=self.watch))
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def settle(self):
        """Stops all schedules and waits until all runs have ended. The first connection was idle for too long."""
        node = self.c.nodes[0]
        node.api_ = api = Api(node.socket, contract=node.api().contract)
        for job in self.jobs:
            api.call("DELETE", "/v1/jobs/%d" % job)
        wait_until("all runs have ended", 120, lambda: self.c.server.sql("SELECT count(*) FROM jobsched.runs WHERE ended_at = 0")[0][0] == "0", 0.5)

    def judge(self):
        rows = self.c.server.sql
        deadlocks = int(rows("SELECT pg_stat_clear_snapshot() IS NULL, deadlocks FROM pg_stat_database WHERE datname = 'postgres'")[0][1])
        overlaps = self.env["LEDGER"] + ".overlaps"
        wrong = rows("SELECT c.state, c.n, count(r.id) FROM (SELECT state, sum(n) AS n FROM jobsched.counters WHERE what = 1 GROUP BY state) AS c "
                     "LEFT JOIN jobsched.runs AS r ON r.state = c.state GROUP BY c.state, c.n HAVING c.n <> count(r.id)")
        print(", ".join("%s %d" % v for v in sorted(self.counts.items())))
        print("%s runs; deadlocks %d; most active runs in the queue %d of %d; %d other refusals" % (
            rows("SELECT count(*) FROM jobsched.runs")[0][0], deadlocks, self.most, FEW, len(self.bad)))
        assert deadlocks == 0, "PostgreSQL has counted %d deadlocks" % deadlocks
        assert self.most <= FEW, "the queue had %d active runs" % self.most
        assert not self.bad, self.bad[:3]
        assert not os.path.exists(overlaps), "overlaps of jobs " + open(overlaps).read()
        assert not wrong, "kept counts of runs: state, kept, counted: %s" % wrong


def main():
    words = [float(w) for w in sys.argv[1:]] + [600, 6, 1][len(sys.argv) - 1:]
    enter_pid_namespace()
    far = DelayedServer(server(), words[2] / 1000)
    try:
        with Cluster(int(words[1]), far) as c:
            m = Mixed(c, words[0])
            m.run()
            m.settle()
            m.judge()
    finally:
        far.close()


if __name__ == "__main__":
    main()
