# SPDX-License-Identifier: Apache-2.0
# What can only be seen in a build without sanitizers: how idle it is, and what valgrind says.
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, Skip, case, main, need_program, sanitized, wait_until


def switches(pid):
    """How often the threads of a process went to sleep of their own accord, which is how often they were woken."""
    total = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid)) as f:
            total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", f.read(), re.M).group(1))
    return total


@case
def an_idle_daemon_wakes_at_most_twice_a_minute():
    if sanitized():
        raise Skip("the sanitizers have a thread of their own that sleeps and wakes")
    with Daemon() as d:
        d.start()
        d.wait_final(d.add(command=["true"])["id"])  # so that everything has been used once
        d.add(command=["true"], schedule=["2099-01-01T00:00:00Z"])
        d.api().close()
        time.sleep(3)
        seconds = 40
        before = switches(d.process.pid), switches(d.spawner())
        time.sleep(seconds)
        engine, spawner = (switches(d.process.pid) - before[0], switches(d.spawner()) - before[1])
        assert engine <= 2 and spawner <= 2, "in %d s the engine woke %d times, the spawner %d" % (
            seconds, engine, spawner)
        return "in %d s: engine %d, spawner %d" % (seconds, engine, spawner)


@case
def valgrind_finds_nothing_in_the_daemon_and_its_guard():
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
        wait_until("the rest ran", 60, lambda: d.api().get("/v1/status")["runs"].get("succeeded", 0) == 20)
        assert d.stop() == 0, d.said()
        for name in os.listdir(d.dir):
            if name.startswith("valgrind."):
                with open(os.path.join(d.dir, name)) as f:
                    said = f.read()
                # lines with -- are about valgrind itself: calls of the sandbox that it does not know
                found = [line for line in said.splitlines() if line.startswith("==")]
                assert not found, said


main()
