# SPDX-License-Identifier: Apache-2.0
# Measures the targets P1 to P12 and prints one table: target, limit or floor, ours, ratio, verdict.
#
# usage: tests/bench/bench.py [PART,PART...]        with top_builddir set; 'make bench BENCH=P1,P8' calls it
#   BENCH_JOBS    the number of stored jobs of P5, P7 and P10 (default 100000)
#   BENCH_RUNS    the number of runs of P1 and P8 (default 3000)
#   BENCH_PLOTS   the directory of the plots (default: the current directory)
#   BENCH_NODES   the numbers of nodes of P12, which share this machine (default 1,3,6)
#   BENCH_CLIENTS the clients of each of these nodes (default 8)
# P1, P2, P4 and P8 compare with a floor that is measured in the same run, so that other load of the machine matters less.
import json
import os
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../integration"), os.path.join(HERE, "../nemesis")]
from figures import Table, cpu, percentile, plot, rss
from harness import BUILD, Connection, Daemon, Skip, wait_until
from nodes import Cluster, server
from proxy import DelayedServer

JOBS = int(os.environ.get("BENCH_JOBS", "100000"))
RUNS = os.environ.get("BENCH_RUNS", "3000")
PLOTS = os.environ.get("BENCH_PLOTS", ".")
CLIENTS = int(os.environ.get("BENCH_CLIENTS", "8"))
NODES = [int(n) for n in os.environ.get("BENCH_NODES", "1,3,6").split(",")]
CONFIG = "max-running = 8\njobs-per-uid = 100000000\nsubmissions-per-second = 1000000\nsubmissions-burst = 1000000\n"
NEVER = "2099-01-01T00:00:00Z"


def program(name):
    return os.path.abspath(os.path.join(BUILD, "tests/bench", name))


def figures(*words):
    """Runs a program that prints NAME VALUE lines. Returns them; the value of 'skip' is a reason."""
    text = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {}
    for name, value in (line.split(" ", 1) for line in text.splitlines() if " " in line):
        found[name] = value if name == "skip" else float(value)
    return found


class Client:
    """Requests without the checks of the test harness."""

    def __init__(self, daemon):
        self.connection = Connection(daemon.socket, 600)

    def call(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body),
                                {"Content-Type": "application/json"} if body is not None else {})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status in (200, 201), text[:300]
        return json.loads(text)


def daemon():
    return Daemon(CONFIG).start()


def load(d, n, schedule):
    return figures(program("bench_product"), "load", d.socket, str(d.process.pid), str(n), schedule)


def stamps(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [float(line) for line in f]


def due_together(d, n, lead=3):
    """Submits n jobs that are due at one second. Returns the delay of each start in seconds."""
    c = Client(d)
    path = os.path.join(d.dir, "stamps.%d.%d" % (n, time.monotonic_ns()))
    due = int(time.time()) + lead + n // 3000
    for first in range(0, n, 1000):
        jobs = [{"command": [program("stamp"), path], "schedule": ["@%d" % due]}] * min(1000, n - first)
        c.call("POST", "/v1/jobs/bulk", {"jobs": jobs})
    assert time.time() < due, "the submissions took too long"
    wait_until("%d runs have started" % n, 120, lambda: len(stamps(path)) >= n, 0.1)
    return sorted(t - due for t in stamps(path))


def p1_p8(t, wanted):
    found = figures(sys.executable, os.path.join(HERE, "bench_system.py"), RUNS)
    if "skip" in found:
        t.skipped("P1", "runs of 'true' in system mode", found["skip"])
        return
    for profile, ratio in (("compat", 0.85), ("standard", 0.80), ("strict", 0.6)):
        get = lambda name: found["%s" % name.replace("*", profile)]
        if "P1" in wanted:
            t.cost("P1", "run of 'true', %s, CPU of all processes" % profile, get("bare.*.cpu"), get("runs.*.all"), "us", ratio)
            t.at_least("P1", "durable runs of 'true', %s, 8 in flight" % profile, get("bare.*.rate"), get("runs.*.rate"), "/s", ratio)
        if "P8" in wanted:
            t.at_most("P8", "engine, CPU per run, %s" % profile, 90, get("runs.*.engine"), "us")
            t.at_most("P8", "spawner, CPU per run, %s" % profile, 90, get("runs.*.spawner"), "us")


def p2(t, wanted):
    points = {"first start": [], "median": [], "99 of 100": []}
    with daemon() as d:
        bare = figures(program("bench_floor"), d.dir, "1")["spawn.rate"]
        for n in (10, 100, 1000, 3000):
            late = due_together(d, n)
            for name, value in (("first start", late[0]), ("median", percentile(late, 50)), ("99 of 100", percentile(late, 99))):
                points[name].append((n, max(value, 0.0001) * 1000))
            if n == 1000:
                t.at_most("P2", "1000 due in one second, p99 (half of bcron's)", 550, percentile(late, 99) * 1000, "ms")
        t.at_least("P2", "3000 due in one second, drained", bare, 3000 / (late[-1] - late[0]), "/s", 0.8)
    plot(os.path.join(PLOTS, "lateness.svg"), "Delay of starts, N jobs due at the same second", "N", "ms", list(points.items()))


def one_at_a_time(d, n, busy=None):
    """The delays of n jobs that are due at different seconds, in ms."""
    c = Client(d)
    path = os.path.join(d.dir, "one.%d" % time.monotonic_ns())
    first = int(time.time()) + 2
    for i in range(n):
        c.call("POST", "/v1/jobs", {"command": [program("stamp"), path], "schedule": ["@%d" % (first + i)]})
    while time.time() < first + n:
        if busy:
            busy()
        else:
            time.sleep(0.2)
    wait_until("%d runs have started" % n, 60, lambda: len(stamps(path)) >= n)
    return [(v - first - i) * 1000 for i, v in enumerate(sorted(stamps(path)))]


def p3(t, wanted):
    with daemon() as d:
        idle = one_at_a_time(d, 15)
        c = Client(d)
        body = {"jobs": [{"command": ["true"], "schedule": [NEVER]}] * 10000}
        busy = one_at_a_time(d, 15, lambda: c.call("POST", "/v1/jobs/bulk", body))
    t.at_most("P3", "one job, idle, worst delay of 15", 5, max(idle), "ms")
    t.at_most("P3", "one job during bulks of 10000, worst delay of 15", 5, max(busy), "ms")


def p4(t, wanted):
    with daemon() as d:
        floor = figures(program("bench_floor"), d.dir, "3")
        ours = figures(program("bench_product"), "submit", d.socket, str(d.process.pid), "3")
    t.at_least("P4", "single submissions, one client", floor["floor.single.rate"], ours["submit.single.rate"], "/s", 0.75)
    t.cost("P4", "single submission, CPU of daemon and client", floor["floor.single.cpu"],
           ours["submit.single.engine"] + ours["submit.single.client"], "us", 0.75)
    t.plain("P4", "single submissions, 64 clients", ours["submit.many.rate"], "/s")
    t.at_least("P4", "bulk of 1000, one client", floor["floor.bulk.rate"], ours["submit.bulk.rate"], "/s", 0.6)
    t.cost("P4", "bulk of 1000, CPU of the daemon per job", floor["floor.bulk.cpu"], ours["submit.bulk.engine"], "us", 0.6)


def slot_cost(d, n=2000):
    """CPU of the daemon per run, n runs due together."""
    before = cpu(d.process.pid)
    due_together(d, n)
    time.sleep(0.5)
    return (cpu(d.process.pid) - before) / n * 1e6


def p5_p7(t, wanted):
    costs, sizes, big = [], [], []
    with daemon() as d:
        small = slot_cost(d)
        stored = 2000
        for n in sorted({10000, JOBS // 10, JOBS}):
            rate = load(d, n - stored, "H H * * *")
            stored = n + 2000
            big.append((n, rss(d.process.pid)))
            costs.append((n, slot_cost(d)))
            sizes.append((n, rate["load.engine"]))
        after_load = rss(d.process.pid)
        d.stop()
        began = time.monotonic()
        d.start()
        start = time.monotonic() - began
        fresh = rss(d.process.pid)
        time.sleep(5)
        before = cpu(d.process.pid)
        time.sleep(15)
        idle = (cpu(d.process.pid) - before) / 15 * 100
    name = "%d jobs: " % JOBS
    if "P5" in wanted:
        t.at_most("P5", name + "memory after the load", 64, after_load, "MiB")
        t.at_most("P5", name + "memory after a start", 64, fresh, "MiB")
        t.at_most("P5", name + "start until the first answer", 1, start, "s")
        t.at_most("P5", name + "CPU while idle", 0.1, idle, "%")
        t.at_most("P5", name + "daemon's CPU per run, against 2 x 10000 jobs", 2 * costs[0][1], costs[-1][1], "us")
        t.plain("P5", "2000 jobs: daemon's CPU per run, with submission", small, "us")
        plot(os.path.join(PLOTS, "cost.svg"), "Cost against the number of stored jobs", "stored jobs", "CPU us, or MiB",
             [("CPU us per run", costs), ("CPU us per loaded job", sizes), ("memory, MiB", big)])
    if "P7" in wanted:
        t.at_least("P7", name + "loaded in bulks of 1000", 40000, rate["load.rate"], "/s", 1)


def p6(t, wanted):
    n = 20000
    with Daemon(CONFIG.replace("max-running = 8", "max-running = 1")).start() as d:
        c = Client(d)
        due = int(time.time()) + 12
        load(d, n, "@%d" % due)
        before = cpu(d.process.pid)
        wait_until("the slots are planned", 60, lambda: c.call("GET", "/v1/status")["runs"].get("queued", 0) >= n * 0.99, 0.1)
        spent = cpu(d.process.pid) - before
    t.at_least("P6", "planner, slots per second of CPU", 10000, n / spent, "/s", 1)


CLOCK = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]):\n time.sleep(0.1)\n print(time.time(), flush=True)\n"


def followed(d, n, seconds):
    """Starts a job that prints the time every 0.1 s, and n clients that follow it. Returns the delays of all lines in ms, and the
    daemon's CPU in percent."""
    stop = os.path.join(d.dir, "stop.%d" % n)
    job = d.add(command=["python3", "-c", CLOCK, stop])["id"]
    run = str(d.wait_running(job, 60)["id"])
    lines, late = [], []

    def read(f):
        for line in f.stdout:
            lines.append((float(line), time.time()))

    clients = [subprocess.Popen([os.path.join(BUILD, "jobctl"), "log", "-f", run], env=d.env, stdout=subprocess.PIPE, text=True) for _ in range(n)]
    threads = [threading.Thread(target=read, args=(c,)) for c in clients]
    for each in threads:
        each.start()
    wait_until("every client has the first line", 120, lambda: len(lines) >= n)
    time.sleep(1)
    began, before = time.time(), cpu(d.process.pid)
    time.sleep(seconds)
    spent = (cpu(d.process.pid) - before) / (time.time() - began) * 100
    ended = time.time()
    with open(stop, "w"):
        pass
    for each in threads:
        each.join()
    for c in clients:
        c.wait()
    late = [(got - sent) * 1000 for sent, got in lines if began <= sent <= ended]
    return late, spent


def p9(t, wanted):
    with Daemon(CONFIG.replace("= 8", "= 200", 1)).start() as d:
        late, _ = followed(d, 1, 4)
        t.at_most("P9", "followed output, median of %d lines" % len(late), 10, percentile(late, 50), "ms")
        t.at_most("P9", "followed output, 95 of 100 lines", 10, percentile(late, 95), "ms")
        quiet = one_at_a_time(d, 8)
        d.add(command=["sh", "-c", "exec timeout 12 cat /dev/zero"])
        before, began = cpu(d.process.pid), time.monotonic()
        loud = one_at_a_time(d, 8)
        spent = (cpu(d.process.pid) - before) / (time.monotonic() - began) * 100
        t.at_most("P9", "start beside a job that writes without pause, median of 8", max(10, 2 * percentile(quiet, 50)), percentile(loud, 50), "ms")
        t.plain("P9", "daemon's CPU beside that job", spent, "%")
        late, spent = followed(d, 100, 4)
        t.plain("P9", "100 followers of one run, median delay", percentile(late, 50), "ms")
        t.plain("P9", "100 followers of one run, daemon's CPU", spent, "%")


PAGES = ["/v1/jobs?limit=100" + more for more in (
    "", "&sort=next", "&sort=name", "&sort=last", "&sort=created", "&state=active", "&state=paused,finished", "&queue=default")] + [
    "/v1/runs?limit=100" + more for more in ("", "&state=failed,timed_out", "&queue=default")] + [
    "/v1/events?limit=100" + more for more in ("", "&what=job.pause")]


def p10(t, wanted):
    with daemon() as d:
        load(d, JOBS, "H H * * *")
        c = Client(d)
        for page in PAGES:
            took = []
            for _ in range(20):
                began = time.monotonic()
                try:
                    c.call("GET", page)
                except AssertionError as e:
                    t.skipped("P10", page, str(e)[:80])
                    break
                took.append((time.monotonic() - began) * 1000)
            else:
                t.at_most("P10", page + ", median", 5, percentile(took, 50), "ms")


def p11(t, wanted):
    """A row of bench_schedule has a schedule, a limit, a rate with its ratio for each zone, and the least rate that is wanted."""
    text = subprocess.run([program("bench_schedule")], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in text.splitlines():
        row = re.match(r"(.{16}) +[\d.]+((?: +[\d.]+ \( *[\d.]+\))+) +([\d.]+)(?: missed)?$", line)
        if row:
            rates = [float(r) for r in re.findall(r"([\d.]+) \(", row[2])]
            t.at_least("P11", "next slot of '%s', slowest of %d zones" % (row[1].strip(), len(rates)), float(row[3]), min(rates), "M/s", 1)


def submissions(n, delay, clients, seconds):
    """Submissions per second through n nodes, with 'clients' clients of each, and the median time of one in ms."""
    far = DelayedServer(server(), delay)
    try:
        with Cluster(n, far, CONFIG + "lease = 15\nrun-lease = 15\n") as c:
            sent = [subprocess.Popen([program("bench_product"), "clients", d.socket, str(d.process.pid), str(clients), str(seconds)],
                                     stdout=subprocess.PIPE, text=True) for d in c.nodes]
            texts = [p.communicate()[0] for p in sent]
    finally:
        far.close()
    found = [dict(line.split(" ") for line in text.splitlines()) for text in texts]
    return sum(float(f["clients.rate"]) for f in found), max(float(f["clients.median"]) for f in found)


def p12(t, wanted):
    delay, clients = 0.001, CLIENTS
    try:
        server()
    except Skip as reason:
        t.skipped("P12", "submissions to a cluster", reason)
        return
    alone = None
    for n in NODES:
        rate, median = submissions(n, delay, clients, 6)
        t.at_most("P12", "nodes: %d, PostgreSQL 1 ms away, median submission" % n, 5 * 2000 * delay, median, "ms")
        if n == 1:
            alone = rate
            t.plain("P12", "nodes: 1, %d clients, submissions" % clients, rate, "/s")
        elif alone:
            t.at_least("P12", "nodes: %d, %d clients each, submissions against 1 node" % (n, clients), alone, rate, "/s", 2.4 if n == 3 else 4)


PARTS = {"P1": p1_p8, "P2": p2, "P3": p3, "P4": p4, "P5": p5_p7, "P6": p6, "P7": p5_p7, "P8": p1_p8, "P9": p9, "P10": p10, "P11": p11, "P12": p12}


def main(parts=""):
    wanted = [p for p in re.split(r"[ ,]+", parts) if p] or list(PARTS)
    unknown = [p for p in wanted if p not in PARTS]
    if unknown:
        sys.exit("unknown part '%s'; the parts are %s" % (unknown[0], ", ".join(PARTS)))
    t = Table()
    done = []
    for name in wanted:
        if PARTS[name] not in done:
            done.append(PARTS[name])
            PARTS[name](t, wanted)
    t.end()


main(*sys.argv[1:])
