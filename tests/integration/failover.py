# SPDX-License-Identifier: Apache-2.0
# A primary with a standby: failover, commits that wait for a standby, and settings that would lose acknowledged work.
import os
import shutil
import sys
import tempfile
import threading
import time
from urllib.parse import quote

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from behind import timed
from harness import Daemon, Unreachable, case, main, wait_until
from pg import Server

RISK = "asynchronous"


def standby_of(primary):
    """A standby of a running server, with its own directory and socket."""
    s = Server.__new__(Server)
    s.__dict__.update(primary.__dict__)
    s.dir = tempfile.mkdtemp(prefix="jobsched-pg.")
    s.data = os.path.join(s.dir, "data")
    if os.geteuid() == 0:
        shutil.chown(s.dir, "postgres", "postgres")
    s.url = primary.url.replace(primary.dir, s.dir)
    s.call("pg_basebackup", "-h", primary.dir, "-U", "jobsched", "-D", s.data, "-R", "-c", "fast", "--no-sync")
    return s


def synchronous(server, names):
    server.sql("ALTER SYSTEM SET synchronous_standby_names = '%s'" % names)
    server.sql("SELECT pg_reload_conf()")


def pair_url(first, second):
    """Both servers without port numbers, in the form that has one empty port for each host."""
    return "postgresql://jobsched@%s,%s/postgres" % (quote(first.dir, ""), quote(second.dir, ""))


def config(url):
    return "store = %s\nlease = 3\nrun-lease = 60\n" % url


def submit(d, key):
    """Returns whether the job with this key was acknowledged."""
    try:
        return d.api().call("POST", "/v1/jobs", {"command": ["true"], "key": key, "schedule": ["every 1h"]})[0] in (200, 201)
    except (Unreachable, OSError):
        return False


@case
def a_commit_that_no_standby_has_is_not_acknowledged():
    with Server() as s, Daemon(config(s.url)) as d:
        d.start()
        assert submit(d, "before")
        synchronous(s, "absent")
        answers = []
        client = threading.Thread(target=lambda: answers.append(timed(d, "POST", "/v1/jobs", {
            "command": ["true"], "key": "during", "schedule": ["every 1h"]})))
        client.start()
        while client.is_alive():
            # An administrator ends the wait: the commit is only on the primary, and the server answers with a warning.
            s.sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            client.join(0.1)
        status, answer, _ = answers[0]
        assert status == 504 and answer["error"]["code"] == "uncertain", (status, answer)
        with open(os.path.join(s.dir, "log")) as f:
            assert "canceling wait for synchronous replication" in f.read()
        synchronous(s, "")
        wait_until("the submission is acknowledged", 60, lambda: submit(d, "during"))
        assert s.sql("SELECT count(*) FROM jobsched.jobs WHERE removed_at = 0") == [["2"]]


@case
def nodes_follow_the_primary_and_lose_nothing():
    with Server() as first:
        second = standby_of(first)
        with second, Daemon(config(pair_url(first, second))) as d:
            wait_until("the standby streams", 60, lambda: first.sql("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"))
            d.start()
            risk = wait_until("the daemon has read the settings", 30, lambda: d.api().get("/v1/status")["store"]["risk"])
            assert RISK in risk and "synchronous_standby_names" in risk, risk
            assert RISK in d.said() and RISK in d.jobctl("status", check=False).stdout, d.said()
            synchronous(first, "*")
            acked, quit = [], threading.Event()

            def submit_many():
                n = 0
                while not quit.is_set():
                    n += 1
                    if submit(d, "k%d" % n):
                        acked.append(("k%d" % n, time.monotonic()))
                    else:
                        time.sleep(0.05)
            writer = threading.Thread(target=submit_many)
            writer.start()
            wait_until("jobs are acknowledged", 30, lambda: len(acked) > 20)
            first.stop("immediate")
            died = time.monotonic()
            second.call("pg_ctl", "-D", second.data, "-w", "promote")
            synchronous(second, "")
            wait_until("jobs are acknowledged by the new primary", 60, lambda: acked[-1][1] > died + 1)
            quit.set()
            writer.join()
            stored = {key for key, in second.sql("SELECT key FROM jobsched.jobs WHERE key IS NOT NULL")}
            lost = [key for key, _ in acked if key not in stored]
            assert not lost, lost
            gap = max(b[1] - a[1] for a, b in zip(acked, acked[1:]))
            assert d.stop() == 0
            return "%d acknowledged, none lost, %.1f s without submissions" % (len(acked), gap)


if __name__ == "__main__":
    main()
