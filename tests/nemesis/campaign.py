# SPDX-License-Identifier: Apache-2.0
# Runs the nemesis many times, prints one line per run and the totals: top_builddir=build python3 tests/nemesis/campaign.py DIR.
import argparse
import collections
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
NODE = ("kill-daemon,kill-node,term,pause,pause-node,kill-worker,kill-one,all-down,pause-past,pause-node-past,pause-claim,"
        "kill-daemon-past,kill-host")
STORE = "down,restart,cut,blackhole,slow,cut-off,cut-off-past,flap,cut-commit,cut-claim,down-past,blackhole-past"
# Dense faults: a fault may hit the backlog of an earlier one, so lateness is not judged.
DENSE = ["--every", "2", "--eps", "120", "--grace", "150"]
# name, adapter, nodes, faults, what else
ROWS = [
    ("one-sqlite", "Sqlite", 1, NODE, []),
    ("three-sqlite", "Sqlite", 3, NODE, []),
    ("three-postgres", "Postgres", 3, NODE + "," + STORE, []),
    ("one-sqlite-dense", "Sqlite", 1, NODE, DENSE),
    ("three-sqlite-dense", "Sqlite", 3, NODE, DENSE),
    ("three-postgres-dense", "Postgres", 3, NODE + "," + STORE, DENSE),
]
SUMMED = ("slots", "bodies", "retries", "dups_excused", "dups_unexcused")


def run(a, row, seed):
    """One run in its own process; evidence, output and verdict stay in its directory."""
    name, adapter, nodes, ops, more = row
    where = os.path.join(a.dir, "%s-%03d" % (name, seed))  # no name is a prefix of another, because workers are identified by it
    os.makedirs(where)
    words = [sys.executable, os.path.join(HERE, "run.py"), "run", where, "--adapter", "adapter:" + adapter, "--nodes", str(nodes),
             "--ops", ops, "--seed", str(seed), "--jobs", str(a.jobs), "--seconds", str(a.seconds), *more]
    with open(os.path.join(where, "out"), "wb") as out:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=dict(os.environ, DENSE=str(int(more is DENSE))))
        a.running.append(process)
        code = process.wait()
    try:
        with open(os.path.join(where, "report.json")) as f:
            report = json.load(f)
    except (OSError, ValueError):
        report = dict(verdict="no report, exit %d" % code, rules={}, figures={})
    f = report["figures"]
    late = f.get("lateness_clear", {})
    print("%-24s %-8s %s%5d slots %5d bodies %3d faults %3d excused; late by p50 %s p99 %s s without faults" % (
        os.path.basename(where), report["verdict"], "".join("%s %d " % v for v in report["rules"].items()), f.get("slots", 0),
        f.get("bodies", 0), sum(f.get("faults", {}).values()), f.get("dups_excused", 0), late.get("p50"), late.get("p99")), flush=True)
    return report


def add_up(reports):
    total, rules, faults = (collections.Counter() for _ in range(3))
    for r in reports:
        rules.update(r["rules"])
        faults.update(r["figures"].get("faults", {}))
        total.update({k: r["figures"].get(k, 0) for k in SUMMED})
    valid = sum(r["verdict"] == "valid" for r in reports)
    print("%d of %d runs are valid" % (valid, len(reports)))
    print(", ".join("%d %s" % (total[k], k) for k in SUMMED) + ", %d missed, %d overlaps" % (rules["missed"], rules["overlap"]))
    print("%d faults: %s" % (sum(faults.values()), ", ".join("%s %d" % v for v in sorted(faults.items()))))
    if rules:
        print("broken: " + ", ".join("%s %d" % v for v in sorted(rules.items())))
    return valid == len(reports)


def main():
    p = argparse.ArgumentParser(description="Runs the nemesis in several configurations and seeds, and adds up.")
    p.add_argument("dir", help="where the evidence goes; a new directory with a short path")
    p.add_argument("--only", default="", help="names of configurations, with commas; all: " + ", ".join(r[0] for r in ROWS))
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--first", type=int, default=1, help="the first seed")
    p.add_argument("--jobs", type=int, default=50)
    p.add_argument("--seconds", type=int, default=90, help="of each run")
    p.add_argument("--at-once", type=int, default=2, help="so many runs at a time")
    a = p.parse_args()
    a.dir = os.path.abspath(a.dir)
    os.makedirs(a.dir)
    a.running = []

    def stop(*_):
        for process in a.running:
            if process.poll() is None:
                process.terminate()  # ends its nodes too
        os._exit(143)

    signal.signal(signal.SIGTERM, stop)
    rows = [r for r in ROWS if not a.only or r[0] in a.only.split(",")]
    with ThreadPoolExecutor(a.at_once) as pool:
        each = [pool.submit(run, a, row, seed) for seed in range(a.first, a.first + a.seeds) for row in rows]
        reports = [e.result() for e in each]
    sys.exit(not add_up(reports))


if __name__ == "__main__":
    main()
