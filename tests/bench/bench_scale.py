#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A store with many recurring jobs: load, size, start-up, memory, lists. By hand; figures, no test.

  top_builddir=build tests/bench/bench_scale.py sqlite|postgresql JOBS

Needs tests/integration/fill_store in the build directory ('make tests/integration/fill_store').
"""
import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import BUILD, Daemon, enter_pid_namespace
from pg import Server

CHUNK = 100000
SPEC = '{"command":["true"],"schedule":["every 1h"]}'


def resident(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) / 1024


def fill(where, count, first):
    for at in range(0, count, CHUNK):
        subprocess.run([os.path.join(BUILD, "tests/integration/fill_store"), where, str(os.getuid()), "root", str(min(CHUNK, count - at)), "default",
                        "0", "0", "%d" % ((first + at / CHUNK) * 1e6), SPEC], check=True, stdout=subprocess.DEVNULL)


def measure(d, where, size, jobs):
    began = time.monotonic()
    fill(where, jobs, time.time() + 86400)
    took = time.monotonic() - began
    print("load: %.1f s, %.0f jobs/s; %.0f bytes per job" % (took, jobs / took, size() / jobs), flush=True)
    began = time.monotonic()
    d.start(wait=False)
    d.wait_ready(300)
    print("start-up: %.2f s until the first answer, %.1f MiB resident" % (time.monotonic() - began, resident(d.process.pid)), flush=True)
    for words in (("list", "--limit", "20"), ("list", "--sort", "next", "--limit", "20"), ("status",)):
        began = time.monotonic()
        d.jobctl(*words, check=False)
        print("jobctl %s: %.3f s" % (" ".join(words), time.monotonic() - began), flush=True)


def main():
    enter_pid_namespace()
    kind, jobs = sys.argv[1], int(sys.argv[2])
    with contextlib.ExitStack() as stack:
        if kind == "postgresql":
            server = stack.enter_context(Server())
            where, size = server.url, lambda: int(server.sql("SELECT pg_database_size('postgres')")[0][0])
        d = stack.enter_context(Daemon("store = %s\n" % where if kind == "postgresql" else ""))
        if kind == "sqlite":
            os.makedirs(d.state, exist_ok=True)
            where, size = d.db_path, lambda: sum(os.path.getsize(d.db_path + end) for end in ("", "-wal") if os.path.exists(d.db_path + end))
        measure(d, where, size, jobs)


if __name__ == "__main__":
    main()
