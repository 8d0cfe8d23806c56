# SPDX-License-Identifier: Apache-2.0
# The library of the cluster tests: several nodes on one store, and a ledger file that the jobs write.
import atexit
import contextlib
import os
import shutil
import signal
import tempfile
import time

from harness import FINAL, Daemon, Unreachable, instant, wait_until
from pg import Server

LEASE = 3
# Appends S at the start, E at the end, and O if another run of the same job holds the lock file.
BODY = r"""say() { read -r up _ </proc/uptime; echo "$1 $JOBSCHED_NAME $JOBSCHED_SLOT_MS $JOBSCHED_ATTEMPT $up $JOBSCHED_NODE" >>"$LEDGER"; }
say S; exec 9>>"$LEDGER.$JOBSCHED_NAME"; flock -n 9 || say O; sleep "$SECONDS_LONG"; while [ -e "$HOLD" ]; do sleep 0.1; done; say E"""


SERVERS = []


def server():
    """The PostgreSQL server that all cases share, because initdb takes longer than most cases."""
    if not SERVERS:
        SERVERS.append(Server().start())
        atexit.register(SERVERS[0].__exit__)
    return SERVERS[0]


class Cluster:
    """Several nodes on one store. Each node has its own directories and its own spawner."""

    def __init__(self, n, postgres=False, config="", before=()):
        """'postgres' is a boolean or a Server; 'before' is a list of command prefixes, one per node (nsenter)."""
        self.dir = tempfile.mkdtemp(prefix="jobsched-cl.")
        self.server = (server() if postgres is True else postgres) or None
        self.store = self.server.url if postgres else os.path.join(self.dir, "jobs.db")
        self.before = before
        self.ledger = os.path.join(self.dir, "ledger")
        self.nodes = [Daemon("store = %s\nnode-name = n%d\nlease = %d\nrun-lease = %d\nmax-running = 20\n%s" % (
            self.store, i, LEASE, LEASE, config))
                      for i in range(n)]

    def __enter__(self):
        for i, d in enumerate(self.nodes):
            d.start(before=self.before[i] if self.before else ())
        wait_until("all nodes share the segments", 30, lambda: all(self.segments(d) in range(64 // len(self.nodes), 64 // len(self.nodes) + 2)
                                                         for d in self.nodes))
        return self

    def __exit__(self, kind, *rest):
        for d in self.nodes:
            if d.process and d.process.poll() is None:
                d.process.send_signal(signal.SIGCONT)
        with contextlib.ExitStack() as stack:
            for d in self.nodes:
                stack.callback(d.close, failed=kind is not None)
        if self.server:
            self.server.sql("DROP SCHEMA jobsched CASCADE")
        shutil.rmtree(self.dir, ignore_errors=True)

    def segments(self, d):
        with contextlib.suppress(Unreachable):
            status, answer = d.api().call("GET", "/v1/status")
            return answer["cluster"]["segments"] if status == 200 and answer["cluster"] else None

    def leader(self, asked=None):
        """The leader that the node 'asked' reports, or the first of all nodes; None if there is no leader."""
        for d in [asked] if asked else self.nodes:
            with contextlib.suppress(Unreachable):
                status, answer = d.api().call("GET", "/v1/status")
                if status == 200 and answer["cluster"] and answer["cluster"]["leader"]:
                    return self.nodes[int(answer["cluster"]["leader"][1:])]
        return None

    def others(self, d):
        return [x for x in self.nodes if x is not d]

    def add(self, d, name, seconds, hold="", **more):
        """Adds a job that runs for 'seconds' and then until the file 'hold' is removed."""
        spec = dict(name=name, command=["bash", "-c", BODY], env={"LEDGER": self.ledger, "SECONDS_LONG": "%g" % seconds, "HOLD": hold},
                    retries=0, **more)
        return d.add(**spec)["id"]

    def lines(self):
        if not os.path.exists(self.ledger):
            return []
        with open(self.ledger) as f:
            return [line.split() for line in f]

    def begun_by(self, d):
        """The start times of runs on this node, in seconds since boot."""
        return [float(v[4]) for v in self.lines() if v[0] == "S" and v[5] == "n%d" % self.nodes.index(d)]

    def bodies(self, name, what="S"):
        """(slot, attempt, seconds since boot) of all starts (S), ends (E) or overlaps (O) of a job."""
        return [(int(v[2]), int(v[3]), float(v[4])) for v in self.lines() if v[0] == what and v[1] == name]

    def node_of(self, job, asked):
        """The node on which a job is running, or None."""
        for r in asked.runs(job):
            if r["state"] == "running":
                status, answer = asked.api().call("GET", "/v1/nodes")
                names = {v["id"]: v["name"] for v in answer["nodes"]}
                if status == 200 and r["node"] in names:
                    return self.nodes[int(names[r["node"]][1:])]
        return None


def each_slot_once(c, asked, job, name, seconds):
    """Every slot older than 'seconds' has one run. Only runs of a lost node were started twice, never at the same time."""
    before = time.time() - seconds

    def ended_runs():
        runs = [r for r in asked.runs(job) if instant(r["slot"]) < before]
        return all(r["state"] in FINAL for r in runs) and runs
    runs = wait_until("the runs of '%s' have ended" % name, 60, ended_runs, 0.2)
    assert all(r["state"] == "succeeded" for r in runs), runs
    slots = sorted(int(instant(r["slot"]) * 1000) for r in runs)
    assert slots == list(range(slots[0], slots[-1] + 1, 1000)), slots
    began = [slot for slot, _, _ in c.bodies(name)]
    twice = {slot for slot in began if began.count(slot) > 1}
    for r in runs:
        if int(instant(r["slot"]) * 1000) in twice:
            words = [a["outcome"] for a in asked.api().get("/v1/runs/%d" % r["id"])["attempts"]]
            assert words[-1] == "succeeded" and set(words[:-1]) <= {"lost", "stale"}, words
    assert set(slots) <= set(began), set(slots) - set(began)
    assert not c.bodies(name, "O"), "two runs of the job overlapped"


def run_on(c, holder, **spec):
    """Adds a job that runs on this node, because the others are drained until it has started."""
    others = [c.nodes.index(d) for d in c.others(holder) if d.process.poll() is None]
    for i in others:
        holder.api().post("/v1/nodes/n%d/drain" % i)
    job = holder.add(**spec)
    wait_until("the run has started", 30, lambda: [r for r in holder.runs(job["id"]) if r["started_at"]])
    for i in others:
        holder.api().post("/v1/nodes/n%d/undrain" % i)
    return job["id"], holder.runs(job["id"])[0]["id"]
