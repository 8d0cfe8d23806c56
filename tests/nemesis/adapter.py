# SPDX-License-Identifier: Apache-2.0
# What nemesis.py needs to know of us: how nodes start, how jobs are submitted, and what the store says became of them.
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from datetime import datetime, timezone

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import nemesis
from harness import JOBSCHEDD, Api, Unreachable
from pg import Server
from proxy import Proxy

RUNS = """SELECT j.name, r.slot / 1000, r.id, r.state, r.dead_at FROM runs r JOIN jobs j ON j.id = r.job"""
ATTEMPTS = """SELECT j.name, r.slot / 1000, r.id, a.number, a.fence, a.outcome
    FROM attempts a JOIN runs r ON r.id = a.run JOIN jobs j ON j.id = r.job"""
# enum run_state and enum attempt_outcome, in the judge's words
RUN_WORDS = {3: "success", 4: "dead", 5: "dead", 6: "cancelled", 7: "lost", 8: "skipped", 9: "expired"}
OUTCOME_WORDS = {1: "success", 2: "failed", 3: "failed", 4: "cancelled", 5: "lost", 6: "lost", 7: "denied", 8: "stale"}


class Node:
    """The places and the engine of one node; its spawner outlives the engine, as in real life."""

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
            self.node[node] = Node(self.work, node, "node-name = %s\nmax-running = 64\n%s" % (node, self.config(node)))
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
        for job, slot, run, attempt, fence, outcome in self.query(ATTEMPTS):
            rows.append(dict(job=job, slot=slot, run=str(run), attempt=attempt, fence=fence,
                             state=OUTCOME_WORDS.get(outcome, "running")))
        for job, slot, run, state, _ in self.query(RUNS):
            rows.append(dict(job=job, slot=slot, run=str(run), attempt=0, fence=0, state=RUN_WORDS.get(state, "open")))
        return rows

    def stop(self):
        for p in self.procs.values():
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
                p.wait()
        mark = os.path.abspath(self.work).encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    words = f.read()
                if b"jobsched-spawner" in words and mark in words:
                    os.kill(int(pid), signal.SIGKILL)


class Sqlite(Base):
    """One node, or several instances of one host, on one SQLite file."""

    def path(self):
        return os.path.join(self.work, "jobs.db")

    def config(self, node):
        return "store = %s\n" % self.path()

    def query(self, text):
        with contextlib.closing(sqlite3.connect("file:%s?mode=ro" % self.path(), uri=True, timeout=20)) as db:
            return db.execute(text).fetchall()

    def integrity(self):
        word = self.query("PRAGMA integrity_check")[0][0]
        return [] if word == "ok" else [word]


class Postgres(Base):
    """Nodes on one PostgreSQL, each with directories of its own, through one proxy."""

    def __init__(self, work, nodes):
        super().__init__(work, nodes)
        self.server = Server().start()
        self.front = os.path.join(work, "pg")
        os.makedirs(self.front, exist_ok=True)
        self.proxy = Proxy(self.front, self.server.dir)

    def config(self, node):
        return "store = postgresql://jobsched@/postgres?host=%s\n" % self.front

    def query(self, text):
        out = subprocess.run([os.path.join(self.server.bin, "psql"), "-X", "-A", "-t", "-F", "\t", "-h", self.server.dir,
                              "-U", "jobsched", "-c", text, "postgres"], check=True, capture_output=True, text=True).stdout
        return [[int(v) if v.lstrip("-").isdigit() else v for v in line.split("\t")] for line in out.splitlines()]

    def store_fault(self, kind):
        if kind == "down":
            self.server.stop()
            return self.server.start
        if kind == "restart":
            self.server.stop("fast")
            self.server.start()
            return lambda: None
        if kind == "cut":
            self.proxy.cut()
            return lambda: None
        if kind == "blackhole":
            self.proxy.open.clear()
            return self.proxy.open.set
        if kind == "slow":
            self.proxy.delay = 0.2
            return lambda: setattr(self.proxy, "delay", 0.0)
        raise ValueError(kind)

    def stop(self):
        super().stop()
        self.proxy.close()
        with contextlib.suppress(AssertionError):
            self.server.stop()
        shutil.rmtree(self.server.dir, ignore_errors=True)
