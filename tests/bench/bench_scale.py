#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A store with many recurring jobs: load, size, start-up, memory, lists, and a steady rate of slots. By hand; figures, no test.

  top_builddir=build tests/bench/bench_scale.py [OPTION...] sqlite|postgresql JOBS
    --rate N       so many of the jobs become due in each second. The node is drained, so every run expires at its deadline: the
                   planner writes each run and the outcome is recorded, but no process is started
    --seconds N    how long slots are due with --rate; 600 if not given
    --first TIME   the first slot, in seconds since 1970, if the load takes longer than expected
    --state DIR    keep the SQLite store in DIR; a store that is there is used as it is and nothing is loaded
    --load-only    only load the jobs
    --nodes N      so many nodes for the slots, with PostgreSQL; 1 if not given

Needs tests/integration/fill_store in the build directory ('make tests/integration/fill_store').
"""
import argparse
import contextlib
import os
import resource
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import BUILD, Daemon, enter_pid_namespace
from pg import Server

CHUNK = 10000    # jobs of one transaction of the load, without --rate
PARTS = 10       # of the load; each is reported
IDLE = 30        # seconds of the measurement without work
DEADLINE = 1     # seconds from the slot to the expiry of a run
LOAD = {"sqlite": 40e-6, "postgresql": 150e-6}  # seconds of the load per job, at most
TICKS = os.sysconf("SC_CLK_TCK")


def resident(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) / 1024


def cpu(pid):
    with open("/proc/%d/stat" % pid) as f:
        words = f.read().rsplit(") ", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def fill(where, count, chunk, every, first):
    """Adds 'count' jobs. The jobs of each chunk are due in the same second, one second after those of the chunk before."""
    spec = '{"command":["true"],"schedule":["R/@SLOT@/PT%dS"],"deadline":"%ds"}' % (every, DEADLINE)
    chunks = count // chunk
    for part in range(PARTS):
        at, end = chunks * part // PARTS, chunks * (part + 1) // PARTS
        if at == end:
            continue
        began, used = time.monotonic(), children_cpu()
        subprocess.run([os.path.join(BUILD, "tests/integration/fill_store"), where, str(os.getuid()), "root", str(chunk), "default",
                        "0", "0", "%d" % ((first + at) * 1000000), spec, str(end - at), "1000000"], check=True, stdout=subprocess.DEVNULL)
        print("load: %d jobs, the last %d in %.1f s with %.1f us of CPU per job" % (
            end * chunk, (end - at) * chunk, time.monotonic() - began, (children_cpu() - used) * 1e6 / ((end - at) * chunk)), flush=True)


def timed(d, *words):
    began = time.monotonic()
    d.jobctl(*words, check=False)
    print("jobctl %s: %.3f s" % (" ".join(words), time.monotonic() - began), flush=True)


def load(where, size, jobs, chunk, every, first):
    began = time.monotonic()
    fill(where, jobs, chunk, every, first)
    took = time.monotonic() - began
    print("load: %.1f s, %.0f jobs/s; %.0f bytes per job" % (took, jobs / took, size() / jobs), flush=True)


def measure(d):
    began = time.monotonic()
    d.start(wait=False)
    d.wait_ready(300)
    print("start-up: %.2f s until the first answer, %.1f MiB resident" % (time.monotonic() - began, resident(d.process.pid)), flush=True)
    used = cpu(d.process.pid)
    time.sleep(IDLE)
    print("idle: %.2f %% CPU" % ((cpu(d.process.pid) - used) * 100 / IDLE), flush=True)
    for words in (("list", "--limit", "20"), ("list", "--sort", "next", "--limit", "20"), ("status",)):
        timed(d, *words)


def percentile(values, p):
    return values[min(len(values) - 1, int(len(values) * p / 100))] if values else float("nan")


def steady(nodes, query, rate, seconds, first):
    """Reports the slots of 'seconds' seconds: how many have a recorded outcome, and how late it was recorded."""
    d, pids = nodes[0], [n.process.pid for n in nodes]
    for node in d.api().get("/v1/nodes")["nodes"]:
        d.jobctl("node", "drain", node["name"])
    time.sleep(max(0, first - time.time()))
    used, most = sum(map(cpu, pids)), 0
    while time.time() < first + seconds + DEADLINE + 5:
        time.sleep(5)
        most = max(most, max(map(resident, pids)))
    used = sum(map(cpu, pids)) - used
    window = "slot >= %d AND slot < %d" % (first * 1000000, (first + seconds) * 1000000)
    planned, recorded = query("SELECT count(*), count(CASE WHEN ended_at > 0 THEN 1 END) FROM runs WHERE " + window)[0]
    late = sorted(row[0] for row in query("SELECT ended_at - slot - %d FROM runs WHERE %s AND ended_at > 0 AND id %% 50 = 0" % (
        DEADLINE * 1000000, window)))
    wanted = rate * seconds
    print("steady: %d slots in %d s, %d planned, %d with a recorded outcome; recorded late by p50 %.3f p99 %.3f max %.3f s" % (
        wanted, seconds, planned, recorded, *(percentile(late, p) / 1e6 for p in (50, 99, 100))))
    print("steady: %d nodes, daemons %.1f us of CPU per slot, at most %.1f MiB resident" % (len(nodes), used * 1e6 / wanted, most), flush=True)
    timed(d, "list", "--sort", "next", "--limit", "20")


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kind", choices=("sqlite", "postgresql"))
    p.add_argument("jobs", type=int)
    p.add_argument("--rate", type=int, default=0)
    p.add_argument("--seconds", type=int, default=600)
    p.add_argument("--first", type=int)
    p.add_argument("--state")
    p.add_argument("--load-only", action="store_true")
    p.add_argument("--nodes", type=int, default=1)
    a = p.parse_args()
    if a.first is None:
        a.first = int(time.time() + (a.jobs * LOAD[a.kind] + IDLE + 60 if a.rate else 86400))
    return a


def main():
    enter_pid_namespace()
    a = arguments()
    with contextlib.ExitStack() as stack:
        if a.kind == "postgresql":
            server = stack.enter_context(Server())
            where, size = server.url, lambda: int(server.sql("SELECT pg_database_size('postgres')")[0][0])
            query = lambda text: [[int(v) for v in row] for row in server.sql(text)]
        nodes = [stack.enter_context(Daemon("store = %s\nnode-name = n%d\n" % (where, i) if a.kind == "postgresql" else "", state=a.state))
                 for i in range(a.nodes)]
        d = nodes[0]
        if a.kind == "sqlite":
            os.makedirs(d.state, exist_ok=True)
            where, size = d.db_path, lambda: sum(os.path.getsize(d.db_path + end) for end in ("", "-wal") if os.path.exists(d.db_path + end))
            query = lambda text: sqlite3.connect("file:%s?mode=ro" % d.db_path, uri=True).execute(text).fetchall()
        if not (a.state and os.path.exists(d.db_path)):
            load(where, size, a.jobs, a.rate or CHUNK, a.jobs // a.rate if a.rate else 3600, a.first)
        if not a.load_only:
            measure(d)
            if a.rate:
                for other in nodes[1:]:
                    other.start()
                steady(nodes, query, a.rate, a.seconds, a.first)


if __name__ == "__main__":
    main()
