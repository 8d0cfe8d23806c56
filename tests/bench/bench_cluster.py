# SPDX-License-Identifier: Apache-2.0
# Measures several nodes on one PostgreSQL: takeover, throughput, wake-up, planning, segment moves, restart, idle cost.
#
# usage: tests/bench/bench_cluster.py [PART[=TRIALS]...]      with top_builddir set; without parts, all of them
import contextlib
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
from harness import Skip, instant, wait_until
from nodes import Cluster, server


def line(what, limit, ours, unit, good):
    """Prints a measurement and its requirement 'limit'. A ratio above 1 meets the requirement."""
    ratio = (ours / limit if good == "more" else limit / ours) if limit and ours else float("nan")
    print("%-64s %9.2f %s, %s %9.2f   %5.2f" % (what, ours, unit, "at least" if good == "more" else "at most", limit, ratio))
    sys.stdout.flush()


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, int(len(values) * p / 100))]


def balanced(c):
    n = len(c.nodes)
    wait_until("the segments are balanced", 60, lambda: all(c.segments(d) in range(64 // n, 64 // n + 2) for d in c.nodes), 0.05)


def takeover(lease, trials):
    """The time from SIGKILL of the leader until another node leads."""
    took = []
    with Cluster(3, True, "lease = %d\nrun-lease = %d\n" % (lease, lease)) as c:
        for _ in range(trials):
            balanced(c)
            leader = c.leader()
            asked = c.others(leader)[0]
            time.sleep(lease * len(took) / trials / 3)  # at different times between two renewals
            began = time.monotonic()
            leader.kill()
            wait_until("another node leads", 4 * lease, lambda: c.leader(asked) not in (None, leader), 0.005)
            took.append(time.monotonic() - began)
            leader.start()
    line("another node leads after SIGKILL, lease %d s, longest of %d" % (lease, trials), lease + 1, max(took), "s", "less")
    print("%-64s %9.2f s, least %.2f s" % ("  median", percentile(took, 50), min(took)))


def throughput(nodes, room=10, rounds=8):
    """Runs jobs that sleep one second. Only max-running of the nodes limits the throughput."""
    with Cluster(nodes, True, "max-running = %d\n" % room) as c:
        n = nodes * room * rounds
        jobs = [{"command": ["sleep", "1"]} for _ in range(n)]
        began = time.monotonic()
        c.nodes[0].api().post("/v1/jobs/bulk", {"jobs": jobs})
        wait_until("all jobs have run", 120, lambda: c.nodes[0].api().get("/v1/status")["runs"]["succeeded"] == n, 0.02)
        took = time.monotonic() - began
    line("runs of 'sleep 1' on %d nodes with room for %d each" % (nodes, room), 0.8 * nodes * room, n / took, "/s", "more")
    return n / took


def wakeup(trials):
    """The time from submission on a drained node to the start on another, idle node."""
    late = []
    with Cluster(2, True) as c:
        there = c.nodes[1]
        there.api().post("/v1/nodes/n1/drain")
        for _ in range(trials):
            run = there.wait_final(there.add(command=["true"])["id"])
            late.append((instant(run["started_at"]) - instant(run["created_at"])) * 1000)
            time.sleep(0.05)
    line("submitted on one node, started on another, p50 of %d" % trials, 100, percentile(late, 50), "ms", "less")
    line("the same, p99", 100, percentile(late, 99), "ms", "less")


def planner(jobs=30000, seconds=10):
    """Planned slots per second on three drained nodes, which start no runs."""
    with Cluster(3, True) as c:
        d = c.nodes[0]
        for i in range(3):
            d.api().post("/v1/nodes/n%d/drain" % i)
        time.sleep(3)
        for _ in range(0, jobs, 5000):
            d.api().post("/v1/jobs/bulk", {"jobs": [{"command": ["true"], "schedule": ["every 1s"]} for _ in range(5000)]})
        rows = lambda: int(c.server.sql("SELECT count(*) FROM jobsched.runs")[0][0])
        before, began = rows(), time.monotonic()
        time.sleep(seconds)
        rate = (rows() - before) / (time.monotonic() - began)
    line("slots planned by 3 nodes, %d jobs due each second" % jobs, 10000, rate, "/s", "more")


def moves():
    """Counts the segments that move to another node, by their terms in the store."""
    with Cluster(3, True) as c:
        terms = lambda: int(c.server.sql("SELECT sum(term) FROM jobsched.segments")[0][0])
        asked = c.nodes[0]
        if c.leader() is c.nodes[2]:
            asked.jobctl("node", "resign", "n2")
            wait_until("another node leads", 30, lambda: c.leader(asked) not in (None, c.nodes[2]))
        for what, act in (("leave", c.nodes[2].stop), ("join", c.nodes[2].start), ("death", c.nodes[2].kill)):
            before = terms()
            act()
            want = 3 if what == "join" else 2
            wait_until("the segments are balanced", 60, lambda: c.segments(asked) in range(64 // want, 64 // want + 2), 0.05)
            time.sleep(1)
            line("segments moved at the %s of one of 3 nodes" % what, 1.5 * 64 / 3, terms() - before, "", "less")


def herd(jobs=50, down=10):
    """The API latency after all nodes were down for 500 slots and have restarted at the same time."""
    asked, late = 0, []
    with Cluster(3, True) as c:
        d = c.nodes[0]
        d.api().post("/v1/jobs/bulk", {"jobs": [{"command": ["true"], "schedule": ["every 1s"], "catchup": "all", "overlap": "queue:1000"}
                                              for _ in range(jobs)]})
        time.sleep(3)
        for x in c.nodes:
            x.kill()
        time.sleep(down)
        for x in c.nodes:
            x.start(wait=False)
        for x in c.nodes:
            x.wait_ready()
        began = time.monotonic()
        while time.monotonic() - began < 10:
            for x in c.nodes:
                for method, path, body in (("GET", "/v1/status", None), ("GET", "/v1/runs?limit=20", None), ("POST", "/v1/jobs", {"command": ["true"]})):
                    sent = time.monotonic()
                    status = x.api().call(method, path, body)[0]
                    late.append(time.monotonic() - sent)
                    asked += status in (200, 201)
            time.sleep(0.05)
    line("API while 3 nodes make up for %d slots, p99 of %d" % (jobs * down, len(late)), 1000, percentile(late, 99) * 1000, "ms", "less")
    print("%-64s %9d of %d" % ("  answered with success", asked, len(late)))


def threads(pid):
    """The CPU seconds and context switches of all threads of a process."""
    cpu = switches = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError):
            with open("/proc/%d/task/%s/stat" % (pid, tid)) as f:
                v = f.read().rsplit(")", 1)[1].split()
            cpu += (int(v[11]) + int(v[12])) / os.sysconf("SC_CLK_TCK")
            with open("/proc/%d/task/%s/status" % (pid, tid)) as f:
                switches += sum(int(s.split()[1]) for s in f if "ctxt_switches" in s)
    return cpu, switches


def idle(seconds=30):
    with Cluster(3, True, "lease = 15\nrun-lease = 60\n") as c:
        c.nodes[0].api().post("/v1/jobs/bulk", {"jobs": [{"command": ["true"], "schedule": ["0 3 * * *"]} for _ in range(1000)]})
        time.sleep(12)
        commits = lambda: int(c.server.sql("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = 'postgres'")[0][0])
        before = [threads(d.process.pid) for d in c.nodes]
        sent = commits()
        time.sleep(seconds)
        after = [threads(d.process.pid) for d in c.nodes]
        n = commits() - sent
        cpu = max(a[0] - b[0] for a, b in zip(after, before)) / seconds * 100
        wakes = max(a[1] - b[1] for a, b in zip(after, before)) / seconds
    line("idle: processor of one of 3 nodes", 0.1, max(cpu, 0.001), "%", "less")
    print("%-64s %9.2f /s" % ("  wake-ups of one", wakes))
    print("%-64s %9.2f /s" % ("  transactions of one", n / seconds / 3))


PARTS = {
    "takeover": lambda n: takeover(3, n or 20),
    "takeover15": lambda n: takeover(15, n or 3),
    "throughput": lambda n: [throughput(i) for i in (1, 2, 3)],
    "wakeup": lambda n: wakeup(n or 200),
    "planner": lambda n: planner(),
    "moves": lambda n: moves(),
    "herd": lambda n: herd(),
    "idle": lambda n: idle(n or 30),
}


def main(*parts):
    try:
        server()
    except Skip as reason:
        print("the cluster is not measured: %s" % reason)
        return
    for part in parts or PARTS:
        name, _, n = part.partition("=")
        PARTS[name](int(n or 0))


main(*sys.argv[1:])
