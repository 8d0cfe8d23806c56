#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Nodes on a Patroni cluster whose primary is moved, killed and cut off. Run by hand, as root; needs patroni and etcd-server.

  top_builddir=build tests/nemesis/patroni.py DIR [--ops switchover,kill-primary,partition,etcd-loss] [--hold 30] [--seconds 240]

Three machines, each a network namespace with etcd, Patroni and PostgreSQL in strict synchronous mode, and three nodes of
jobsched. While faults follow each other, one client per node submits jobs all the time. Afterwards every acknowledged job
must be in the store once, and nemesis.py judges the runs. The run lease is longer than a failover, so no duplicate is excused.
"""
import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nemesis
from adapter import Base, Node

NET = "10.79.0"
MACHINES = ["m1", "m2", "m3"]
ADDRESS = {name: "%s.%d" % (NET, 11 + i) for i, name in enumerate(MACHINES)}
OPS = "switchover,kill-primary,partition,etcd-loss"
BOUND = 30.0  # seconds without an acknowledged submission
LEASES = "lease = 15\nrun-lease = 120\nmax-running = 64\n"
PG = "/usr/lib/postgresql/15/bin"

PATRONI = """scope: jobsched
name: {name}
restapi: {{listen: '{ip}:8008', connect_address: '{ip}:8008'}}
etcd3: {{hosts: '{etcd}'}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 4
    primary_start_timeout: 0
    synchronous_mode: true
    synchronous_mode_strict: true
    failsafe_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: {{max_connections: 100, wal_log_hints: 'on', shared_buffers: 32MB}}
  initdb: [{{encoding: UTF8}}, {{locale: C}}]
  pg_hba: ['local all all trust', 'host all all {net}.0/24 trust', 'host replication all {net}.0/24 trust']
postgresql:
  listen: '{ip}:5432'
  connect_address: '{ip}:5432'
  data_dir: '{dir}/data'
  bin_dir: '{bin}'
  authentication:
    superuser: {{username: postgres, password: none}}
    replication: {{username: replicator, password: none}}
    rewind: {{username: postgres, password: none}}
  parameters: {{unix_socket_directories: '{dir}'}}
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True)


class Machine:
    """A network namespace with etcd and Patroni, on the bridge br0."""

    def __init__(self, work, name):
        self.name, self.address, self.dir = name, ADDRESS[name], os.path.join(work, name)
        os.makedirs(self.dir)
        shutil.chown(self.dir, "postgres", "postgres")
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo && exec sleep 100000"], stdout=subprocess.PIPE)
        self.holder.stdout.readline()
        ip("link", "add", "to-" + name, "type", "veth", "peer", "name", "eth0", "netns", str(self.holder.pid))
        ip("link", "set", "to-" + name, "master", "br0", "up")
        for words in (("address", "add", self.address + "/24", "dev", "eth0"), ("link", "set", "eth0", "up"), ("link", "set", "lo", "up")):
            subprocess.run([*self.inside(), "ip", *words], check=True)
        self.config = os.path.join(self.dir, "patroni.yml")
        with open(self.config, "w") as f:
            f.write(PATRONI.format(name=name, ip=self.address, dir=self.dir, bin=PG, net=NET,
                                   etcd=",".join(a + ":2379" for a in ADDRESS.values())))
        self.etcd = self.patroni = None

    def inside(self):
        return ["nsenter", "--net=/proc/%d/ns/net" % self.holder.pid]

    def spawn(self, log, *words):
        with open(os.path.join(self.dir, log), "ab") as out:
            return subprocess.Popen([*self.inside(), *words], stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/")

    def start_etcd(self):
        peers = ",".join("%s=http://%s:2380" % v for v in ADDRESS.items())
        here = "http://%s:" % self.address
        self.etcd = self.spawn("etcd.log", "etcd", "--name", self.name, "--data-dir", os.path.join(self.dir, "etcd"),
                               "--listen-client-urls", here + "2379", "--advertise-client-urls", here + "2379",
                               "--listen-peer-urls", here + "2380", "--initial-advertise-peer-urls", here + "2380",
                               "--initial-cluster", peers, "--initial-cluster-state", "new",
                               "--heartbeat-interval", "250", "--election-timeout", "2500")

    def start_patroni(self):
        self.patroni = self.spawn("patroni.log", "setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups",
                                  "env", "HOME=" + self.dir, "patroni", self.config)

    def restart_patroni(self):
        """PostgreSQL keeps running."""
        self.patroni.kill()
        self.patroni.wait()
        self.start_patroni()

    def kill_database(self):
        """Ends Patroni and all processes of PostgreSQL at once, like a power failure of their machine."""
        self.patroni.kill()
        mark = self.dir.encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    words = f.read()
                if b"postgres" in words.split(b"\0")[0] and mark in words:
                    os.kill(int(pid), signal.SIGKILL)
        self.patroni.wait()

    def get(self, path, body=None):
        """Status and JSON of a request to Patroni's API; None: no answer."""
        try:
            c = http.client.HTTPConnection(self.address, 8008, timeout=20 if body else 2)
            c.request("POST" if body else "GET", path, body and json.dumps(body))
            answer = c.getresponse()
            text = answer.read().decode(errors="replace")
            return answer.status, json.loads(text) if text.startswith("{") else text
        except (OSError, http.client.HTTPException):
            return None, None


class Patroni(Base):
    def __init__(self, work, nodes):
        super().__init__(work, nodes)
        ip("link", "add", "br0", "type", "bridge")
        ip("address", "add", NET + ".1/24", "dev", "br0")
        ip("link", "set", "br0", "up")
        ip("link", "set", "lo", "up")
        os.chmod(work, 0o755)
        self.machines = {name: Machine(work, name) for name in MACHINES}
        for m in self.machines.values():
            m.start_etcd()
        for m in self.machines.values():
            m.start_patroni()
        self.settle(180)
        self.psql("postgres", "CREATE ROLE jobsched LOGIN")
        self.psql("postgres", "CREATE DATABASE jobsched OWNER jobsched")
        self.acked, self.quit, self.clients = [], threading.Event(), []
        print("Patroni: primary %s, all members stream" % self.primary().name, flush=True)

    # ---- the database ----

    def primary(self):
        return next((m for m in self.machines.values() if m.get("/primary")[0] == 200), None)

    def settled(self):
        p = self.primary()
        members = (p.get("/cluster")[1] or {}).get("members", []) if p else []
        roles = sorted(m["role"] for m in members if m["state"] in ("running", "streaming"))
        return roles == ["leader", "replica", "sync_standby"]

    def settle(self, seconds):
        """Waits until one standby is synchronous and the other streams."""
        began, restarted = time.monotonic(), False
        while not self.settled():
            p, waited = self.primary(), time.monotonic() - began
            if waited > seconds:
                raise RuntimeError("Patroni has no primary with two standbys")
            # Patroni 3.0 can keep a stale copy of the key of the synchronous standby after a watch of etcd has failed. It then
            # reports "key updated by someone else" in each turn, until it is started again.
            if p and waited > seconds / 3 and not restarted:
                print("Patroni of %s is started again" % p.name, flush=True)
                p.restart_patroni()
                restarted = True
            time.sleep(0.5)

    def psql(self, database, text):
        hosts = ",".join(ADDRESS.values())
        done = subprocess.run([PG + "/psql", "-X", "-q", "-A", "-t", "-F", "\t", "-c", text,
                               "host=%s user=postgres dbname=%s target_session_attrs=read-write connect_timeout=3" % (hosts, database)],
                              capture_output=True, text=True, cwd="/", env=dict(os.environ, PGOPTIONS="-c search_path=jobsched"))
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return [[int(v) if v.lstrip("-").isdigit() else v for v in line.split("\t")] for line in done.stdout.splitlines()]

    def query(self, text):
        return self.psql("jobsched", text)

    # ---- nodes ----

    def config(self, node):
        return LEASES + "store = postgresql://jobsched@%s/jobsched\n" % ",".join(ADDRESS.values())

    def start(self, node):
        self.node[node] = Node(self.work, node, "node-name = %s\n%s" % (node, self.config(node)))
        self.procs[node] = self.node[node].start()

    # ---- clients ----

    def submit_all_the_time(self, node):
        n = 0
        while not self.quit.wait(0.1):
            key = "%s-%d" % (node, n)
            n += 1
            with contextlib.suppress(Exception):
                status, _ = self.api(node).call("POST", "/v1/jobs", dict(command=["true"], key=key, schedule=["R1/2099-01-01T00:00:00Z/PT1S"]))
                if status in (200, 201):
                    self.acked.append((time.monotonic(), key))

    def start_clients(self):
        self.clients = [threading.Thread(target=self.submit_all_the_time, args=(n,), daemon=True) for n in self.nodes]
        for c in self.clients:
            c.start()

    def integrity(self):
        """Compares acknowledged submissions with the store."""
        self.quit.set()
        for c in self.clients:
            c.join(30)
        stored = [row[0] for row in self.query("SELECT key FROM jobs WHERE key LIKE 'n%-%'")]
        lost = {key for _, key in self.acked} - set(stored)
        twice = len(stored) - len(set(stored))
        print("%d submissions acknowledged, %d lost, %d twice" % (len(self.acked), len(lost), twice), flush=True)
        return ["acknowledged submission %s is lost" % key for key in sorted(lost)[:10]] + ["a key is stored twice"] * twice

    def gap(self, begin, end):
        """The longest time without an acknowledged submission that overlaps this interval."""
        times = sorted(t for t, _ in self.acked)
        return max((b - a for a, b in zip(times, times[1:]) if b > begin and a < end), default=float("inf"))

    # ---- faults ----

    def store_fault(self, kind):
        p = self.primary()
        if kind == "switchover":
            status, text = p.get("/switchover", {"leader": p.name})
            print("switchover: %s %s" % (status, text), flush=True)
            return lambda: None
        if kind == "kill-primary":
            p.kill_database()
            return p.start_patroni
        if kind == "partition":
            ip("link", "set", "to-" + p.name, "down")
            return lambda: ip("link", "set", "to-" + p.name, "up")
        if kind == "etcd-loss":
            gone = list(self.machines.values())[:2]
            for m in gone:
                m.etcd.kill()
                m.etcd.wait()
            return lambda: [m.start_etcd() for m in gone]
        raise ValueError(kind)


class Driver(nemesis.Nemesis):
    """Each fault once, in order. The next one begins when all members stream again."""

    def run(self):
        self.ad.start_clients()
        time.sleep(5)
        for op in self.ops:
            before, began = self.ad.primary().name, time.monotonic()
            self.once(op, self.ad.nodes[0], self.rng.uniform(*self.hold))
            self.ad.settle(180)
            time.sleep(5)
            gap = self.ad.gap(began, time.monotonic() - 5)
            after = self.ad.primary()
            print("%-14s primary %s -> %s, %5.1f s without submissions" % (op, before, after.name if after else "none", gap), flush=True)
            if gap > BOUND:
                self.ad.slow = True
        self.quit.wait()


def main():
    if os.environ.get("JOBSCHED_PATRONI_ALONE") != "1":
        os.environ["JOBSCHED_PATRONI_ALONE"] = "1"
        # a shell is the first process, because it reaps orphans: Patroni waits for the end of its server
        os.execvp("unshare", ["unshare", "--net", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", '"$@"; exit "$?"', "sh",
                              sys.executable, *sys.argv])
    nemesis.Nemesis = Driver
    work = os.path.abspath(sys.argv[1])
    words = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    hold = words.get("--hold", "30")
    sys.argv = [sys.argv[0], "run", work, "--adapter", "patroni:Patroni", "--ops", words.get("--ops", OPS), "--hold", "%s-%s" % (hold, hold),
                "--nodes", "3", "--jobs", words.get("--jobs", "30"), "--seconds", words.get("--seconds", "240"), "--eps", "180", "--grace", "180",
                "--seed", words.get("--seed", "1")]
    sys.modules["patroni"] = sys.modules["__main__"]
    nemesis.main()


if __name__ == "__main__":
    main()
