# SPDX-License-Identifier: Apache-2.0
# Adapts jobsched to nemesis.py: starts nodes, submits jobs, and reads results from the store.
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from datetime import datetime, timezone

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import nemesis
from harness import JOBSCHEDD, Api, Unreachable
from pg import Server
from proxy import Proxy

RUNS = """SELECT j.name, r.slot / 1000, r.id, r.state, r.dead_at FROM runs r JOIN jobs j ON j.id = r.job"""
ATTEMPTS = """SELECT j.name, r.slot / 1000, r.id, a.number, a.fence, a.outcome, a.started_at
    FROM attempts a JOIN runs r ON r.id = a.run JOIN jobs j ON j.id = r.job"""
LEASE = 3      # seconds; most faults last longer
RUN_LEASE = 4
# The run lease of each node, and the runs that it holds. A claimed run has no attempt yet. 3 is overlap "allow".
# A node that left keeps the runs that its spawner holds until its run lease ends.
LEASES = """SELECT id, name, runs_until - %s FROM nodes
    WHERE closed_at = 0 OR (lost = 0 AND id IN (SELECT node FROM runs WHERE state IN (1, 2)))"""
HELD = "SELECT node, id, attempt + CASE WHEN state = 1 THEN 1 ELSE 0 END, overlap = 3 FROM runs WHERE state IN (1, 2)"
# enum run_state and enum attempt_outcome, in the terms of the judge
RUN_WORDS = {3: "success", 4: "dead", 5: "dead", 6: "cancelled", 7: "lost", 8: "skipped", 9: "expired"}
OUTCOME_WORDS = {1: "success", 2: "failed", 3: "failed", 4: "cancelled", 5: "lost", 6: "lost", 7: "denied", 8: "stale"}


class Node:
    """The directories and the engine of one node. The spawner outlives the engine."""

    def __init__(self, work, name, config):
        self.name = name
        self.dir = os.path.join(work, name)
        os.makedirs(os.path.join(self.dir, "run"), mode=0o700, exist_ok=True)
        os.makedirs(os.path.join(self.dir, "state"), exist_ok=True)
        self.config = os.path.join(self.dir, "conf")
        with open(self.config, "w") as f:
            f.write(config)
        self.socket = os.path.join(self.dir, "run", "jobsched", "jobsched.sock")
        self.env = dict(os.environ, XDG_STATE_HOME=os.path.join(self.dir, "state"),
                        XDG_RUNTIME_DIR=os.path.join(self.dir, "run"), LC_ALL="C.UTF-8")

    def start(self):
        log = open(os.path.join(self.dir, "log"), "ab")
        with log:
            return subprocess.Popen([JOBSCHEDD, "--user", "--config", self.config], env=self.env,
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)


class Base(nemesis.Adapter):
    def config(self, node):
        raise NotImplementedError

    def query(self, text):
        raise NotImplementedError

    def __init__(self, work, nodes):
        super().__init__(work, nodes)
        self.node = {}

    def start(self, node):
        if node not in self.node:
            self.node[node] = Node(self.work, node, "node-name = %s\nmax-running = 64\nlease = %d\nrun-lease = %d\n%s" % (node, LEASE, RUN_LEASE, self.config(node)))
        self.procs[node] = self.node[node].start()

    def api(self, node):
        return Api(self.node[node].socket, 10)

    def ready(self, node):
        with contextlib.suppress(Unreachable):
            return self.api(node).call("GET", "/v1/status")[0] == 200
        return False

    def submit(self, job, command):
        job["start_ms"] = -(-job["start_ms"] // 1000) * 1000  # slots are whole seconds
        start = datetime.fromtimestamp(job["start_ms"] // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        spec = dict(name=job["name"], key=job["key"], command=command, tz="UTC", catchup="all:1000", retries=job["max_attempts"] - 1,
                    schedule=["R%d/%s/PT%dS" % (job["count"], start, job["period_ms"] // 1000)], backoff="fixed:100ms",
                    overlap="queue:1000" if job["overlap"] == "forbid" else "allow")
        for node in self.nodes:
            with contextlib.suppress(Unreachable):
                status, answer = self.api(node).call("POST", "/v1/jobs", spec)
                if status in (200, 201):
                    return "ok"
                if status not in (429, 503, 507):
                    raise RuntimeError("%d %s" % (status, answer))
        return "info"

    def list_jobs(self):
        return [row[0] for row in self.query("SELECT name FROM jobs WHERE removed_at = 0")]

    def list_runs(self):
        rows = []
        for job, slot, run, attempt, fence, outcome, started in self.query(ATTEMPTS):
            rows.append(dict(job=job, slot=slot, run=str(run), attempt=attempt, fence=fence,
                             state=OUTCOME_WORDS.get(outcome, "running"), started=started / 1e6))
        for job, slot, run, state, _ in self.query(RUNS):
            rows.append(dict(job=job, slot=slot, run=str(run), attempt=0, fence=0, state=RUN_WORDS.get(state, "open")))
        return rows

    def leases(self):
        """[(id, name, seconds that remain)] of the nodes that have not left."""
        raise NotImplementedError

    def held(self):
        """{node id: [(run/attempt, whether its job may overlap)]}"""
        out = {}
        for node, run, attempt, keeps in self.query(HELD):
            out.setdefault(node, []).append(("%d/%d" % (run, attempt), keeps in (1, "t")))
        return out

    def backlog(self):
        """Whether a due run has waited for a quarter of a second."""
        late = (time.time_ns() - 25 * 10**7) // 1000
        return any(self.query(text % late) for text in ("SELECT 1 FROM runs WHERE state = 0 AND due_at < %d LIMIT 1",
                                                        "SELECT 1 FROM due WHERE slot < %d LIMIT 1"))

    def tired(self):
        """Whether a run was lost so often that it would not start again (RUN_LOST_MAX in judge.h)."""
        return bool(self.query("SELECT 1 FROM runs WHERE lost >= 3 AND state < 3 LIMIT 1"))

    def holds_store(self, pid):
        """Whether a stopped process holds the write lock."""
        return False

    def spawner(self, node):
        """The process id of a node's spawner, which outlives its engines."""
        mark = os.path.join(self.node[node].dir, "run").encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    words = f.read()
                if b"jobsched-spawner" in words and mark in words:
                    return int(pid)
        return None

    def children(self, pid):
        """The children that lead a process group: the workers."""
        with contextlib.suppress(OSError):
            with open("/proc/%s/task/%s/children" % (pid, pid)) as f:
                return [int(word) for word in f.read().split()]
        return []

    def stop(self):
        for p in self.procs.values():
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
                p.wait()
        for node in self.node:
            pid = self.spawner(node)
            if pid:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


class Sqlite(Base):
    """One node, or several instances of one host, on one SQLite file."""

    def path(self):
        return os.path.join(self.work, "jobs.db")

    def config(self, node):
        return "store = %s\n" % self.path()

    def query(self, text):
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % self.path(), uri=True, timeout=20)) as db:
            return db.execute(text).fetchall()

    def leases(self):
        return [(i, name, (left - time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000) / 1e6)
                for i, name, left in self.query(LEASES % 0)]

    def holds_store(self, pid):
        """Reads /proc/locks: byte 120 of the shared memory file is SQLite's write lock."""
        with contextlib.suppress(OSError):
            with open("/proc/%d/stat" % pid) as f:
                if f.read().rsplit(") ", 1)[1][0] != "T":
                    return False
            inode = os.stat(self.path() + "-shm").st_ino
            with open("/proc/locks") as f:
                locks = [line.split() for line in f]
            return any(v[3] == "WRITE" and int(v[4]) == pid and v[5].endswith(":%d" % inode) and int(v[6]) <= 120 <= int(v[7])
                       for v in locks if v[1] == "POSIX" and v[7].isdigit())
        return False

    def integrity(self):
        word = self.query("PRAGMA integrity_check")[0][0]
        return [] if word == "ok" else [word]


class Postgres(Base):
    """Nodes on one PostgreSQL; each has its own directories and its own proxy."""

    CLOCK = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    def __init__(self, work, nodes):
        super().__init__(work, nodes)
        self.server = Server().start()
        self.asking, self.psql = threading.Lock(), None
        self.proxies = {}
        for node in nodes:
            os.makedirs(self.front(node), exist_ok=True)
            self.proxies[node] = Proxy(self.front(node), self.server.dir)

    def front(self, node):
        return os.path.join(self.work, "pg-" + node)

    def config(self, node):
        return "store = postgresql://jobsched@/postgres?host=%s\n" % self.front(node)

    def query(self, text):
        """Queries the server directly. One psql process answers all queries, because there are many."""
        with self.asking:
            if not self.psql or self.psql.poll() is not None:
                self.psql = subprocess.Popen([os.path.join(self.server.bin, "psql"), "-X", "-q", "-A", "-t", "-F", "\t", "-h", self.server.dir,
                                              "-U", "jobsched", "postgres"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             stderr=subprocess.DEVNULL, text=True)
            with contextlib.suppress(BrokenPipeError):
                self.psql.stdin.write("%s;\n\\echo :ERROR the end\n" % text)
                self.psql.stdin.flush()
            lines = []
            for line in self.psql.stdout:
                if line.endswith(" the end\n"):
                    if line.startswith("true"):
                        raise RuntimeError("the store does not answer")
                    return [[int(v) if v.lstrip("-").isdigit() else v for v in row.split("\t")] for row in lines]
                lines.append(line.rstrip("\n"))
            self.psql.wait()
            raise RuntimeError("the store does not answer")

    def leases(self):
        return [(i, name, left / 1e6) for i, name, left in self.query(LEASES % self.CLOCK)]

    def store_fault(self, kind):
        """For all nodes."""
        each = self.proxies.values()
        if kind in ("down", "restart"):
            self.server.stop("fast" if kind == "restart" else "immediate")
            return self.come_back() if kind == "restart" else self.come_back
        if kind == "cut":
            for p in each:
                p.cut()
            return lambda: None
        if kind == "blackhole":
            for p in each:
                p.open.clear()
            return self.let_in
        if kind == "slow":
            for p in each:
                p.delay = 0.05
            return lambda: [setattr(p, "delay", 0.0) for p in each]
        raise ValueError(kind)

    def come_back(self):
        for p in self.proxies.values():
            p.open.clear()  # until the holders of runs are known
        self.server.start()
        return self.let_in()

    def let_in(self):
        self.before_return()
        for p in self.proxies.values():
            p.open.set()
        return lambda: None

    def before_return(self):
        """Holds all traffic, so that the caller can query before the nodes act."""

    def stop(self):
        super().stop()
        for p in self.proxies.values():
            p.close()
        if self.psql:
            self.psql.kill()
            self.psql.wait()
        with contextlib.suppress(AssertionError):
            self.server.stop()
        shutil.rmtree(self.server.dir, ignore_errors=True)
