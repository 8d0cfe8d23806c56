#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Measures scrapes of a daemon whose store has a million jobs, while it answers other requests. It is run by hand:
#   top_builddir=build tests/observe/scrape_million.py [JOBS [all|tagged]]     needs build/tests/integration/fill_store
import os
import statistics
import subprocess
import sys
import threading
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.abspath(os.environ.get("top_builddir", "build"))
sys.path.insert(0, os.path.join(TOP, "tests", "integration"))
from harness import Connection, Daemon

LATER = 4102444800000000  # 2100
SPEC = '{"command":["true"],"schedule":["0 0 1 1 *"],"tz":"UTC"}'


def get(d, path):
    connection = Connection(d.socket, 60)
    begun = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    size = len(answer.read())
    took = (time.perf_counter() - begun) * 1000
    assert answer.status == 200, answer.status
    connection.close()
    return took, size


def said(name, values):
    values = sorted(values)
    print("%-44s median %6.1f ms, 99 %% %6.1f ms, longest %6.1f ms, %d scrapes" % (
        name, statistics.median(values), values[int(len(values) * 0.99)], values[-1], len(values)))


def main():
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000
    choice = sys.argv[2] if len(sys.argv) > 2 else "all"
    with Daemon("metrics-jobs = %s\nmetrics-jobs-max = 1000\n" % choice) as d:
        d.start()
        d.stop()
        fill = os.path.join(BUILD, "tests", "integration", "fill_store")
        for part in range(0, jobs, 100000):
            subprocess.run([fill, d.db_path, str(os.getuid()), "root", str(min(100000, jobs - part)), "default", "0", "0", str(LATER),
                            SPEC], check=True, stdout=subprocess.DEVNULL)
        d.start()
        took = [get(d, "/metrics") for _ in range(200)]
        print("%d jobs, %d bytes per scrape, metrics-jobs = %s" % (jobs, took[0][1], choice))
        said("scrapes", [t for t, _ in took])
        stop = threading.Event()
        others = []

        def ask():
            while not stop.is_set():
                others.append(get(d, "/v1/status")[0])
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for t in threads:
            t.start()
        took = [get(d, "/metrics")[0] for _ in range(100)]
        stop.set()
        for t in threads:
            t.join()
        said("scrapes beside two clients that ask for status", took)
        said("the answers of these clients", others)


main()
