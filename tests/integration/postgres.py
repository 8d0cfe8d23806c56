# SPDX-License-Identifier: Apache-2.0
# The daemon on PostgreSQL: the same life, and what happens when the server goes away.
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, Skip, case, main, wait_until

BIN = "/usr/lib/postgresql"


class Server:
    """A PostgreSQL of our own, on a Unix socket only; it refuses to run as root."""

    def __init__(self):
        versions = sorted(os.listdir(BIN)) if os.path.isdir(BIN) else []
        if not versions:
            raise Skip("needs Debian's postgresql")
        self.bin = os.path.join(BIN, versions[-1], "bin")
        self.dir = tempfile.mkdtemp(prefix="jobsched-pg.")
        self.data = os.path.join(self.dir, "data")
        self.user = []
        if os.geteuid() == 0:
            who = pwd.getpwnam("postgres")
            os.chown(self.dir, who.pw_uid, who.pw_gid)
            self.user = ["setpriv", "--reuid", str(who.pw_uid), "--regid", str(who.pw_gid), "--clear-groups"]
        self.call("initdb", "-D", self.data, "-U", "jobsched", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        self.url = "postgresql://jobsched@/postgres?host=" + self.dir

    def call(self, program, *words):
        done = subprocess.run([*self.user, os.path.join(self.bin, program), *words], cwd="/", text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        assert done.returncode == 0, (program, done.stdout)

    def start(self):
        self.call("pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", os.path.join(self.dir, "log"), "-o",
                  "-c listen_addresses='' -c unix_socket_directories='%s' -c max_connections=20" % self.dir, "start")
        return self

    def stop(self, mode="immediate"):
        self.call("pg_ctl", "-D", self.data, "-w", "-t", "60", "-m", mode, "stop")

    def __enter__(self):
        return self.start()

    def __exit__(self, *what):
        try:
            self.stop()
        except AssertionError:
            pass  # it is down already
        shutil.rmtree(self.dir, ignore_errors=True)


@case
def a_job_goes_in_runs_and_its_history_comes_out():
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
def a_job_outlives_the_server_and_its_end_is_recorded_when_that_is_back():
    with Server() as server, Daemon("store = %s\n" % server.url) as d:
        d.start()
        job = d.add(command=["sh", "-c", "sleep 3; exit 7"])["id"]
        wait_until("it runs", 30, lambda: [r for r in d.runs(job) if r["state"] == "running"])
        server.stop()
        began = time.monotonic()
        status, answer = d.api().call("POST", "/v1/jobs", {"command": ["true"]})
        assert status == 503, (status, answer)
        assert time.monotonic() - began < 20, "the answer took too long"
        wait_until("its end was refused", 60, lambda: "could not record the end" in d.said())
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
