# SPDX-License-Identifier: Apache-2.0
# The store away, slow or held: those who ask are told at once, jobs go on, and nothing is lost, doubled or wrongly answered.
import contextlib
import os
import signal
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "nemesis")]
from harness import Api, Daemon, Unreachable, case, main, wait_until
from pg import Server
from proxy import Proxy

LEASE = 3
AT_ONCE = 3.0  # seconds that an answer may take on a machine that does many other things; without a stall noticed it is 8


class Behind:
    """A node whose PostgreSQL is behind a proxy."""

    def __init__(self, config=""):
        self.server = Server().start()
        self.front = tempfile.mkdtemp(prefix="jobsched-px.")
        self.proxy = Proxy(self.front, self.server.dir)
        self.d = Daemon("store = postgresql://jobsched@/postgres?host=%s\nlease = %d\n%s" % (self.front, LEASE, config))

    def __enter__(self):
        self.d.start()
        return self

    def __exit__(self, kind, *rest):
        self.proxy.delay = 0
        self.proxy.open.set()
        with contextlib.ExitStack() as stack:
            stack.callback(os.rmdir, self.front)
            stack.callback(os.unlink, os.path.join(self.front, ".s.PGSQL.5432"))
            stack.callback(self.server.__exit__)
            stack.callback(self.proxy.close)
            stack.callback(self.d.close, failed=kind is not None)


def timed(d, method, path, body=None):
    """The status and answer of one request on a connection of its own, and how long it took."""
    api, began = Api(d.socket), time.monotonic()
    status, answer = api.call(method, path, body)
    api.close()
    return status, answer, time.monotonic() - began


def away(d):
    status, answer, _ = timed(d, "GET", "/v1/status")
    return status == 200 and answer["store"]["away_since"] and answer


def back(d):
    status, answer, _ = timed(d, "GET", "/v1/status")
    return status == 200 and not answer["store"]["away_since"]


def refused_at_once(d, words):
    """Reads and writes, once it is known."""
    wait_until("it is known", 20, lambda: away(d))
    for method, path, body in (("GET", "/v1/jobs", None), ("POST", "/v1/jobs", {"command": ["true"]}), ("GET", "/v1/runs", None),
                               ("DELETE", "/v1/jobs/1", None)):
        status, answer, took = timed(d, method, path, body)
        assert status == 503 and answer["error"]["code"] == "busy", (method, path, status, answer)
        assert took < 0.5, (method, path, took)
        assert words in answer["error"]["message"] and "has been away for" in answer["error"]["message"], answer
    shown = d.jobctl("status", check=False)
    assert shown.returncode == 1 and "away    since" in shown.stdout and words in shown.stdout, shown


@case
def a_black_hole_is_answered_with_503_at_once_also_to_those_who_wait():
    with Behind() as b:
        d = b.d
        job = d.add(command=["sh", "-c", "sleep 2; exit 7"])["id"]
        wait_until("it runs", 30, lambda: [r for r in d.runs(job) if r["state"] == "running"])
        b.proxy.open.clear()
        answers = []
        threads = [threading.Thread(target=lambda m=m, p=p, x=x: answers.append((m, timed(d, m, p, x))))
                   for m, p, x in (("GET", "/v1/jobs", None), ("POST", "/v1/jobs", {"command": ["true"], "key": "one"}),
                                   ("GET", "/v1/status", None), ("GET", "/v1/runs", None))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for method, (status, answer, took) in answers:
            # the submission may be in a transaction by now, of which nobody knows what becomes of it
            assert status in ((503, 504) if method == "POST" else (200, 503)), (method, status, answer)
            assert took < AT_ONCE + (3 if method == "POST" else 0), (method, took)
            assert status != 504 or answer["error"]["code"] == "uncertain", answer
        refused_at_once(d, "PostgreSQL")
        time.sleep(9)  # longer than a session lives that hears nothing
        refused_at_once(d, "PostgreSQL")
        b.proxy.open.set()
        wait_until("it is back", 30, lambda: back(d))
        assert d.wait_final(job)["exit_code"] == 7
        first = d.add(command=["true"], key="one")["id"]
        assert d.add(command=["true"], key="one")["id"] == first
        assert d.wait_final(first)["state"] == "succeeded"
        return "slowest answer %.1f s" % max(t for _, (_, _, t) in answers)


@case
def a_server_that_is_down_is_named_and_what_ran_is_recorded_when_it_is_back():
    with Behind() as b:
        d = b.d
        job = d.add(command=["sh", "-c", "sleep 1; exit 7"])["id"]
        wait_until("it runs", 30, lambda: [r for r in d.runs(job) if r["state"] == "running"])
        b.server.stop()
        b.proxy.cut()
        refused_at_once(d, "PostgreSQL")
        time.sleep(2)
        b.server.start()
        wait_until("it is back", 30, lambda: back(d))
        run = d.wait_final(job)
        assert run["exit_code"] == 7 and run["attempt"] == 1, run
        assert "the store answers again" in d.said()


main()
