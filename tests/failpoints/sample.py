# SPDX-License-Identifier: Apache-2.0
# The most dangerous failpoints with three nodes, and every migration. sweep.py has all failpoints.
import concurrent.futures
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "nemesis"), os.path.join(HERE, "..", "integration")]
from adapter import Sqlite
from harness import Skip, case, main
from pg import BIN
from points import ELSEWHERE, POINTS, all_named
from scenario import Case, Lane, built

CASES = (("grant.post_commit_pre_spawn", "stop", "sqlite"), ("result.pre_commit", "error", "sqlite"), ("reap.post_commit", "kill", "sqlite"),
         ("grant.pre_commit", "stop", "postgres"), ("cancel.pre_commit", "stop", "postgres"), ("result.post_commit", "gone", "postgres"))
LANES = [Lane(i) for i in range(len(CASES))]


def needs_failpoints():
    if not built():
        raise Skip("built without --enable-failpoints")


def struck(lane, given):
    found = Case(lane, *given).run()
    return ["%s:%s:%s: %s" % (*given, v) for v in found]


def sample(store):
    needs_failpoints()
    chosen = [c for c in CASES if c[2] == store]
    with concurrent.futures.ThreadPoolExecutor(len(chosen)) as pool:
        found = sum(pool.map(struck, LANES, chosen), [])
    for lane in LANES:
        lane.close()
    assert not found, "\n".join(found)


@case
def the_sweep_knows_every_point():
    assert all_named() == set(POINTS) | ELSEWHERE, all_named() ^ (set(POINTS) | ELSEWHERE)


@case
def nodes_that_share_a_file_are_struck_at_durable_steps():
    sample("sqlite")


@case
def nodes_on_postgresql_are_struck_at_durable_steps():
    if not os.path.isdir(BIN):
        raise Skip("needs Debian's postgresql")
    sample("postgres")


@case
def a_migration_that_is_killed_is_applied_completely_or_not_at_all():
    needs_failpoints()
    work = tempfile.mkdtemp(prefix="jobsched-fp.")
    versions, step = set(), 0
    try:
        while True:
            step += 1
            where = os.path.join(work, str(step))
            os.mkdir(where)
            ad = Sqlite(where, ["n0"])
            try:
                ad.start("n0")  # creates the directories of the node
                ad.procs["n0"].kill()
                ad.procs["n0"].wait()
                for name in os.listdir(where):
                    if name.startswith("jobs.db"):
                        os.unlink(os.path.join(where, name))
                ad.node["n0"].env.update(JOBSCHED_FAILPOINTS="migrate.step=kill@%d" % step)
                ad.start("n0")
                end = time.time() + 30
                while ad.procs["n0"].poll() is None and not ad.ready("n0") and time.time() < end:
                    time.sleep(0.05)
                if ad.procs["n0"].poll() is None:
                    assert ad.ready("n0") and step > 3, "migration %d was not reached" % step
                    break
                assert ad.procs["n0"].returncode == -signal.SIGKILL, ad.procs["n0"].returncode
                del ad.node["n0"].env["JOBSCHED_FAILPOINTS"]
                ad.start("n0")
                while not ad.ready("n0"):
                    assert time.time() < end, "no start after migration %d was interrupted" % step
                    time.sleep(0.05)
                status, answer = ad.api("n0").call("GET", "/v1/db/check")
                assert status == 200 and not answer.get("problems"), answer
                with sqlite3.connect("file:%s/jobs.db?mode=ro" % where, uri=True) as db:
                    versions.add(tuple(sorted(row[0] for row in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"))))
            finally:
                ad.stop()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    assert len(versions) == 1, "the schemas differ"
    return "%d migrations" % (step - 1)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main()
