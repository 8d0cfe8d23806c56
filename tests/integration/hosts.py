# SPDX-License-Identifier: Apache-2.0
# Hosts as network namespaces with a PostgreSQL server between them: hosts that lose the network, and their runs.
import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Skip, case, instant, main, need_program, wait_until
from nodes import LEASE, Cluster, each_slot_once
from pg import Server

NET = "10.77.%d"  # .1 is the address of the router, .2 that of the host
MARGIN = 1.0      # seconds of tolerance for a slow machine


class Hosts:
    """Network namespaces and a router namespace between them. A process holds each namespace, which ends with it."""

    def __init__(self, *names):
        if os.geteuid() != 0:
            raise Skip("needs root to make network namespaces")
        need_program("ip")
        self.stack = contextlib.ExitStack()
        self.names = names
        self.holders = {}
        try:
            for name in ("net", *names):
                self.hold(name)
            for i, name in enumerate(names):
                self.connect(i, name)
            self.run("net", "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        except BaseException:
            self.stack.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.stack.close()

    def hold(self, name):
        holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo && exec sleep 600"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.stack.callback(lambda: (holder.kill(), holder.wait(), holder.stdout.close(), holder.stderr.close()))
        self.holders[name] = holder.pid
        if not holder.stdout.readline():
            raise Skip("cannot create a network namespace: " + holder.stderr.read().decode().strip())
        self.run(name, "ip", "link", "set", "lo", "up")

    def connect(self, i, name):
        net = NET % i
        try:
            self.run("net", "ip", "link", "add", "to-" + name, "type", "veth", "peer", "name", "eth0", "netns", str(self.holders[name]))
        except AssertionError as e:
            raise Skip("cannot create a veth pair: %s" % e) from e
        self.run("net", "ip", "address", "add", net + ".1/24", "dev", "to-" + name)
        self.run("net", "ip", "link", "set", "to-" + name, "up")
        self.run(name, "ip", "address", "add", net + ".2/24", "dev", "eth0")
        self.run(name, "ip", "link", "set", "eth0", "up")
        self.run(name, "ip", "route", "add", "default", "via", net + ".1")

    def inside(self, name):
        return ["nsenter", "--net=/proc/%d/ns/net" % self.holders[name]]

    def run(self, name, *words):
        done = subprocess.run([*self.inside(name), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, (words, done.stderr)

    def address(self, name):
        return NET % self.names.index(name) + ".2"

    def cut(self, name, how, add=True):
        """down: the link is down. deaf: packets to the host are dropped. mute: packets from the host are dropped."""
        if how == "down":
            self.run("net", "ip", "link", "set", "to-" + name, "down" if add else "up")
        elif how == "deaf":
            self.run("net", "ip", "route", "add" if add else "del", "blackhole", self.address(name) + "/32")
        else:
            self.run("net", "ip", "rule", "add" if add else "del", "from", self.address(name), "blackhole")

    def heal(self, name, how):
        self.cut(name, how, add=False)


class Middle(Server):
    """A PostgreSQL server on its own host. It requires a password from the other hosts."""

    def __init__(self, hosts):
        super().__init__(listen=hosts.address("db"), before=hosts.inside("db"))
        with open(os.path.join(self.data, "pg_hba.conf"), "a") as f:
            f.write("host all all %s scram-sha-256\n" % (NET % 0 + ".0/16"))
        self.url = "postgresql://jobsched:sesame@%s/postgres" % hosts.address("db")

    def start(self):
        super().start()
        self.sql("ALTER ROLE jobsched PASSWORD 'sesame'")
        return self


def uptime():
    with open("/proc/uptime") as f:
        return float(f.read().split()[0])


def run_on(c, d, hold):
    """Adds two jobs that run on node d. All other nodes are drained until the jobs run, so d also leads."""
    asked = c.nodes[-1]
    for other in c.others(d):
        asked.api().post("/v1/nodes/n%d/drain" % c.nodes.index(other))
    wait_until("the node leads", 30, lambda: c.leader(asked) is d)
    jobs = {kind: c.add(asked, "%s%d" % (kind, c.nodes.index(d)), 0, hold, overlap=kind) for kind in ("skip", "allow")}
    wait_until("both jobs run on the node", 30, lambda: all(c.node_of(job, asked) is d for job in jobs.values()))
    for other in c.others(d):
        asked.api().post("/v1/nodes/n%d/undrain" % c.nodes.index(other))
    return jobs


def row_of(server, i):
    """The id of node n<i>, the end of its run lease, and the time at which it was closed, from the store."""
    node, until, closed = server.sql("SELECT id, runs_until, closed_at FROM jobsched.nodes WHERE name = 'n%d' "
                                     "ORDER BY opened_at DESC LIMIT 1" % i)[0]
    return node, int(until), int(closed)


def sessions(server, address):
    return int(server.sql("SELECT count(*) FROM pg_stat_activity WHERE client_addr = '%s'" % address)[0][0])


class Lost:
    """A node whose host loses the network while it runs two jobs, one with overlap=skip and one with overlap=allow."""

    def __init__(self, c, i, host, how, hold):
        self.c, self.i, self.node, self.host, self.how = c, i, c.nodes[i], host, how
        self.jobs = run_on(c, self.node, hold)

    def name(self, kind):
        return "%s%d" % (kind, self.i)

    def rerun(self, asked):
        """Waits until the second attempts have started, and returns the runs."""
        return [wait_until("the second attempt has started", 30, lambda: [r for r in asked.runs(job) if r["attempt"] == 2 and r["started_at"]])[0]
                for job in self.jobs.values()]

    def check_given_up(self, server, asked, row):
        runs = self.rerun(asked)
        node, until, closed = row_of(server, self.i)
        assert node == row[0], "the node has a new row, although it could not reach the store"
        assert closed >= until, "the node was closed before the end of its run lease"
        assert all(instant(r["started_at"]) * 1e6 >= until for r in runs), (runs, until)

    def check_idle(self, cut):
        late = [t for t in self.c.begun_by(self.node) if t > cut + LEASE + MARGIN]
        assert not late, "the node started runs without a lease: %s" % late
        assert "answers again" not in self.node.said(), "a timeout was taken for an answer of the store"

    def check_history(self, asked):
        assert not self.c.bodies(self.name("skip"), "O"), "two attempts overlapped"
        assert len(self.c.bodies(self.name("skip"), "E")) == 1, "the first attempt was not ended"
        assert len(self.c.bodies(self.name("allow"), "E")) == 2, "the first attempt did not continue"
        for job in self.jobs.values():
            run = asked.api().get("/v1/runs/%d" % asked.runs(job)[0]["id"])
            words = [a["outcome"] for a in run["attempts"]]
            assert run["state"] == "succeeded" and words == ["stale", "succeeded"], (run, words)


@case
def isolated_hosts_start_nothing_and_their_runs_restart_elsewhere_after_the_run_lease():
    ways = {"a": "down", "b": "deaf", "c": "mute"}
    with Hosts("db", *ways, "d") as hosts, Middle(hosts) as server, \
            Cluster(5, server, before=[hosts.inside(x) for x in "abcdd"]) as c:
        asked = c.nodes[-1]
        ticks = [(c.add(asked, "tick%d" % i, 0, schedule=["every 1s"], catchup="all", overlap="queue:100"), "tick%d" % i) for i in range(4)]
        hold = os.path.join(c.dir, "hold")
        open(hold, "w").close()
        lost = [Lost(c, i, host, how, hold) for i, (host, how) in enumerate(ways.items())]
        wait_until("all nodes have segments", 30, lambda: all(c.segments(d) in (12, 13) for d in c.nodes))
        time.sleep(LEASE)  # the spawners have received the deadline of the run lease
        rows = [row_of(server, v.i) for v in lost]
        cut = uptime()
        for v in lost:
            hosts.cut(v.host, v.how)
        wait_until("another node leads", 4 * LEASE, lambda: c.leader(asked) in c.nodes[3:], 0.1)
        led = uptime() - cut
        wait_until("the isolated nodes have stopped planning", 15, lambda: all("nothing is planned or started" in v.node.said() for v in lost), 0.1)
        noticed = uptime() - cut
        for v, row in zip(lost, rows):
            v.check_given_up(server, asked, row)
        wait_until("the server has closed the sessions of the isolated hosts", 30,
                   lambda: not any(sessions(server, hosts.address(v.host)) for v in lost), 0.2)
        gone = uptime() - cut
        os.unlink(hold)
        wait_until("both attempts of the 'allow' jobs have ended", 30, lambda: all(len(c.bodies(v.name("allow"), "E")) == 2 for v in lost))
        for v in lost:
            v.check_idle(cut)
            hosts.heal(v.host, v.how)
        healed = uptime()
        wait_until("all nodes have segments again", 60, lambda: all(c.segments(d) in (12, 13) for d in c.nodes), 0.1)
        back = uptime() - healed
        wait_until("all runs have succeeded", 60, lambda: all(r["state"] == "succeeded" for v in lost for job in v.jobs.values() for r in asked.runs(job)), 0.1)
        now = time.time()
        wait_until("all jobs run newer slots", 30, lambda: all(max(s for s, _, _ in c.bodies(n)) / 1000 > now for _, n in ticks))
        for v in lost:
            v.check_history(asked)
            assert "sesame" not in v.node.said() + v.node.jobctl("status", check=False).stdout
        for job, name in ticks:
            each_slot_once(c, asked, job, name, 3)
        return "new leader after %.1f s, isolation detected after %.1f s, by the server after %.1f s; back after %.1f s" % (
            led, noticed, gone, back)


main()
