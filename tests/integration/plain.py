# SPDX-License-Identifier: Apache-2.0
# Tests for builds without sanitizers: wakeups of an idle daemon, and valgrind.
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, Skip, case, main, need_program, sanitized, wait_until


def switches(pid):
    """The number of voluntary context switches of all threads of a process, which equals the number of wakeups."""
    total = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid)) as f:
            total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", f.read(), re.M).group(1))
    return total


@case
def an_idle_daemon_wakes_at_most_twice_a_minute():
    if sanitized():
        raise Skip("the sanitizers have their own thread, which wakes up regularly")
    with Daemon() as d:
        d.start()
        d.wait_final(d.add(command=["true"])["id"])  # all code paths have been used once
        d.add(command=["true"], schedule=["2099-01-01T00:00:00Z"])
        d.api().close()
        time.sleep(3)
        seconds = 40
        before = switches(d.process.pid), switches(d.spawner())
        time.sleep(seconds)
        engine, spawner = (switches(d.process.pid) - before[0], switches(d.spawner()) - before[1])
        assert engine <= 2 and spawner <= 2, "in %d s the daemon woke up %d times, the spawner %d times" % (
            seconds, engine, spawner)
        return "in %d s: daemon %d, spawner %d" % (seconds, engine, spawner)


@case
def valgrind_reports_no_errors_in_the_daemon_and_its_guard():
    need_program("valgrind")
    if sanitized():
        raise Skip("built with sanitizers")
    with Daemon() as d:
        report = os.path.join(d.dir, "valgrind.%p")
        # The valgrind of Debian 12 does not know pidfd_open(), which the spawner needs; the sanitizers watch the spawner.
        d.start(wait=False, before=["valgrind", "-q", "--trace-children=yes", "--trace-children-skip=*/jobsched-spawner",
                                    "--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite",
                                    "--error-exitcode=99", "--log-file=" + report])
        d.wait_ready()
        job = d.add(command=["sh", "-c", "echo out; echo more >&2; exit 3"], tags={"a": "b"}, env={"X": "1"})["id"]
        run = d.wait_final(job, 60)
        assert run["exit_code"] == 3, run
        d.api().post("/v1/jobs/bulk", {"jobs": [{"command": ["true"]}] * 20})
        d.api().get("/v1/runs/%d" % run["id"])
        d.jobctl("log", str(job))
        d.jobctl("list")
        d.jobctl("rm", "--yes", str(job))
        d.api().call("POST", "/v1/jobs", {"command": 7})
        wait_until("the bulk jobs have run", 60, lambda: d.api().get("/v1/status")["runs"].get("succeeded", 0) == 20)
        assert d.stop() == 0, d.said()
        for name in os.listdir(d.dir):
            if name.startswith("valgrind."):
                with open(os.path.join(d.dir, name)) as f:
                    said = f.read()
                # lines with -- are warnings about system calls that valgrind does not know
                found = [line for line in said.splitlines() if line.startswith("==")]
                assert not found, said


main()
