# SPDX-License-Identifier: Apache-2.0
# A single daemon on PostgreSQL: normal operation, and a stopped server.
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until
from pg import Server


@case
def jobs_run_and_are_recorded_on_postgresql():
    with Server() as server, Daemon("store = %s\n" % server.url) as d:
        d.start()
        jobs = [d.add(command=["sh", "-c", "echo $JOBSCHED_RUN; exit %d" % (i % 2)])["id"] for i in range(20)]
        for i, job in enumerate(jobs):
            run = d.wait_final(job)
            assert run["state"] == ("failed" if i % 2 else "succeeded"), run
            assert run["exit_code"] == i % 2, run
        tick = d.add(schedule=["every 1s"], command=["true"])["id"]
        wait_until("three slots have run", 30, lambda: len([r for r in d.runs(tick) if r["state"] == "succeeded"]) >= 3)
        d.stop()
        d.start()
        assert d.api().get("/v1/jobs/%d" % tick)["state"] == "active"


@case
def a_run_that_ends_while_the_server_is_down_is_recorded_when_it_is_back():
    with Server() as server, Daemon("store = %s\n" % server.url) as d:
        d.start()
        job = d.add(command=["sh", "-c", "sleep 3; exit 7"])["id"]
        d.wait_running(job)
        server.stop()
        began = time.monotonic()
        status, answer = d.api().call("POST", "/v1/jobs", {"command": ["true"]})
        assert status == 503, (status, answer)
        assert time.monotonic() - began < 20, "the answer took too long"
        wait_until("the end of the run could not be recorded", 60, lambda: "could not record the end" in d.said())
        assert d.process.poll() is None, d.said()
        server.start()
        run = wait_until("the end is recorded", 60, lambda: ended(d, job))
        assert run["state"] == "failed" and run["exit_code"] == 7 and run["attempt"] == 1, run
        assert d.wait_final(d.add(command=["true"])["id"])["state"] == "succeeded"


def ended(d, job):
    status, answer = d.api().call("GET", "/v1/runs?job=%d" % job)
    runs = answer["runs"] if status == 200 else []
    return runs[0] if runs and runs[0]["ended_at"] else None


main()
