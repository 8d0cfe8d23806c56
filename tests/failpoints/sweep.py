#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every failpoint x {kill, stop past the lease, error, gone past the lease} x {one node, three on a file, three on PostgreSQL}.

  top_builddir=BUILD tests/failpoints/sweep.py [PATTERN...]     BUILD: configured with --enable-failpoints

A case is a scenario of about ten seconds, NAME:ACTION:STORE; a pattern is found anywhere in that. Each is judged by
tests/nemesis/nemesis.py for identity (missed, duplicate, overlap, ...), not for punctuality, and by the rules of
Case.judge_rest. A point that was not passed is a violation, too.
"""
import argparse
import atexit
import concurrent.futures
import os
import re
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from points import ELSEWHERE, POINTS, all_named
from scenario import Case, Lane, built

ACTIONS = ("kill", "stop", "error", "gone")
STORES = ("one", "sqlite", "postgres")


def cases(patterns):
    found = []
    for store in STORES:
        for name, point in POINTS.items():
            for action in ACTIONS:
                if store not in point.stores or (action == "error" and not point.error):
                    continue
                if action == "gone" and (store == "one" or point.where != "engine"):
                    continue  # a single node has no successor; a lost spawner is no lost engine
                label = "%s:%s:%s" % (name, action, store)
                if not patterns or any(re.search(p, label) for p in patterns):
                    found.append((name, action, store))
    return found


class Sweep:
    def __init__(self, lanes, keep):
        self.lanes = [Lane(i, keep) for i in range(lanes)]
        self.free, self.lock = list(self.lanes), threading.Lock()
        self.done = self.bad = 0

    def one(self, given):
        with self.lock:
            lane = self.free.pop()
        try:
            began = time.monotonic()
            case = Case(lane, *given)
            violations = case.run()
            with self.lock:
                self.done += 1
                self.bad += len(violations) > 0
                print("%-8s %-50s %5.1f s  %s" % ("INVALID" if violations else "valid", case.label, time.monotonic() - began,
                                                  case.note), flush=True)
                for v in violations[:12]:
                    print("         ! %s" % (v,), flush=True)
            return violations
        finally:
            with self.lock:
                self.free.append(lane)

    def close(self):
        for lane in self.lanes:
            lane.close()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("patterns", nargs="*")
    p.add_argument("--lanes", type=int, default=4, help="cases at a time")
    p.add_argument("--keep", help="keep the evidence of cases with violations in this directory")
    p.add_argument("--list", action="store_true", help="only name the cases")
    a = p.parse_args()
    missing = all_named() ^ (set(POINTS) | ELSEWHERE)
    if missing:
        sys.exit("points.py and failpoint.c differ: %s" % ", ".join(sorted(missing)))
    chosen = cases(a.patterns)
    if a.list:
        print("\n".join(":".join(c) for c in chosen))
        return
    if not built():
        sys.exit("the programs were built without --enable-failpoints")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sweep = Sweep(a.lanes, a.keep)
    atexit.register(sweep.close)
    with concurrent.futures.ThreadPoolExecutor(a.lanes) as pool:
        found = list(pool.map(sweep.one, chosen))
    print("%d cases, %d with violations, %d violations" % (sweep.done, sweep.bad, sum(map(len, found))))
    sys.exit(sweep.bad > 0)


if __name__ == "__main__":
    main()
