#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rolling upgrade of three nodes on one PostgreSQL while clients work: nothing acknowledged is lost or runs twice. By hand.

  top_builddir=build tests/nemesis/upgrade.py OLD_BUILD [SECONDS]     OLD_BUILD: an earlier version; 20 s between two upgrades

The nodes start with the programs of OLD_BUILD. One after another is stopped and started with those of top_builddir, so for
a while both versions write to the store. Clients of every node submit jobs with idempotency keys, and change, pause and
trigger a few jobs (mixed.py). A queue has a limit, and a job is due each second. Judged: every acknowledged job has
written its line once, every slot has one run, the limit, overlaps, deadlocks and the kept counts.
"""
import os
import random
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "integration"), HERE]
from harness import FINAL, Api, Unreachable, enter_pid_namespace, instant, wait_until
from mixed import FEW, REFUSALS, Mixed
from nodes import Cluster, server

LINE = 'echo "$TOKEN" >>"$LEDGER"'


def patient(node, method, path, body):
    """A request of a client that repeats it until a node has answered. Returns status and answer."""
    end = time.monotonic() + 60
    while True:
        try:
            status, answer = Api(node.socket, contract=None).call(method, path, body)
            if status != 503:
                return status, answer
        except Unreachable:
            pass
        assert time.monotonic() < end, "no answer for 60 s: %s %s" % (method, path)
        time.sleep(0.05)


class Upgrade(Mixed):
    def __init__(self, cluster, seconds):
        self.acknowledged, self.tokens = [], os.path.join(cluster.dir, "tokens")
        super().__init__(cluster, seconds)
        self.each = cluster.add(cluster.nodes[0], "each", 0, schedule=["every 1s"], overlap="skip")
        self.began = time.time()

    def client(self, node, seed):
        dice = random.Random(seed)
        while time.monotonic() < self.until:
            what, method, path, body = self.requests(dice)
            status, answer = patient(node, method, path, body)
            with self.lock:
                self.counts[what] = self.counts.get(what, 0) + 1
                if status >= 300 and status not in REFUSALS:
                    self.bad.append((what, status, answer))
            time.sleep(0.1)

    def submit(self, node, number):
        n = 0
        while time.monotonic() < self.until:
            n += 1
            token = "%d-%d" % (number, n)
            spec = dict(command=["bash", "-c", LINE], env={"TOKEN": token, "LEDGER": self.tokens}, key=token, retries=0, tags={"kind": "token"})
            status, answer = patient(node, "POST", "/v1/jobs", spec)
            with self.lock:
                if status in (200, 201):
                    self.acknowledged.append(token)
                else:
                    self.bad.append(("token", status, answer))
            time.sleep(0.05)

    def run(self, upgrades):
        submitters = [threading.Thread(target=self.submit, args=(d, i)) for i, d in enumerate(self.c.nodes)]
        submitters.append(threading.Thread(target=upgrades))
        for t in submitters:
            t.start()
        super().run()
        for t in submitters:
            t.join()

    def settle(self):
        Api(self.c.nodes[0].socket, contract=None).post("/v1/jobs/%d/cancel" % self.each)
        super().settle()

    def judge(self):
        super().judge()
        with open(self.tokens) as f:
            lines = f.read().split()
        ran, twice = set(lines), len(lines) - len(set(lines))
        lost = [t for t in self.acknowledged if t not in ran]
        runs = [r for r in self.c.nodes[0].runs("each") if instant(r["slot"]) > self.began + 2]
        slots = sorted(int(instant(r["slot"]) * 1000) for r in runs)
        missed = [a for a, b in zip(slots, slots[1:]) if b - a != 1000]
        print("%d acknowledged jobs, %d lost, %d ran twice; %d slots of 'each', %d missed or doubled" % (
            len(self.acknowledged), len(lost), twice, len(slots), len(missed)))
        assert not lost, lost[:5]
        assert not twice, "jobs that ran twice: %d" % twice
        assert not missed, missed[:5]
        assert all(r["state"] in FINAL for r in runs), runs


def config(node, store, i, more):
    node.write_config("store = %s\nnode-name = n%d\nlease = 3\nmax-running = 20\n%s" % (store, i, more))


def main():
    old, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 20
    enter_pid_namespace()
    c = Cluster(3, server())
    for i, d in enumerate(c.nodes):
        d.api_ = Api(d.socket, contract=None)
        config(d, c.store, i, "")  # versions without the key 'run-lease' refuse it
        d.command = lambda d=d: [os.path.join(old, "jobschedd"), *type(d).command(d)[1:]]

    def upgrades():
        for i, d in enumerate(c.nodes):
            time.sleep(seconds)
            d.stop()
            del d.command
            config(d, c.store, i, "run-lease = 3\n")
            d.start(wait=False)
            wait_until("the new daemon answers", 60, lambda: patient(d, "GET", "/v1/status", None)[0] == 200)
            print("n%d runs the new version" % i, flush=True)
        time.sleep(seconds)

    with c:
        u = Upgrade(c, seconds * 4 + 10)
        u.run(upgrades)
        u.settle()
        u.judge()


if __name__ == "__main__":
    main()
