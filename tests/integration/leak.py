# SPDX-License-Identifier: Apache-2.0
# Many runs leak no process, descriptor, control group, file or memory. RUNS=100000 runs the long version.
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from grouped import Grouped, children
from harness import case, main, sanitized, wait_until

RUNS = int(os.environ.get("RUNS", "2000"))
WARM = max(600, RUNS // 2)  # after these, caches of the store, pools and buffers have their final size
# Allowed increase: the thread for long tasks with its connection to the store, and two launchers with two descriptors
# each, because the spawner keeps up to three launchers and starts with one.
CHORES = dict(threads=1, engine_fds=4, processes=2, spawner_fds=4)
AT_A_TIME = 500      # jobs per submission
MEMORY_KB = 4096     # allowed growth per process after the warm-up


def body(i):
    """Most jobs are silent; some fail, write, leave daemons, are killed or cannot be executed."""
    if i % 100 == 1:
        return dict(script="setsid env -i sh -c 'setsid sleep 300 &' & exit 1", sandbox="compat")
    if i % 50 == 2:
        return dict(command=["echo", "some output"])
    if i % 100 == 3:
        return dict(command=["/nonexistent/command"])
    if i % 100 == 4:
        return dict(script="sleep 300", timeout=0.1, grace=0)
    return dict(command=["/bin/true"])


def figures(s):
    spawner, engine = s.spawner.pid, s.engine.pid
    return dict(processes=len(children(spawner)), spawner_fds=len(os.listdir("/proc/%d/fd" % spawner)),
                engine_fds=len(os.listdir("/proc/%d/fd" % engine)), threads=len(os.listdir("/proc/%d/task" % engine)),
                groups=len(s.control_groups()), files=len(os.listdir(s.spawner_state + "/output")))


def more(s, before):
    """The figures that have grown. Smaller values are allowed: connections of clients may have been closed."""
    return {name: count for name, count in figures(s).items() if count > before[name] + CHORES.get(name, 0)}


def memory(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon:"))


def ended(s):
    counts = s.api("root").get("/v1/status")["runs"]
    return sum(counts[state] for state in ("succeeded", "failed", "timed_out"))


def run_all(s, first, n):
    for at in range(first, first + n, AT_A_TIME):
        jobs = [body(i) for i in range(at, min(at + AT_A_TIME, first + n))]
        code, answer = s.api("alice" if at // AT_A_TIME % 2 else "bob").call("POST", "/v1/jobs/bulk", {"jobs": jobs})
        assert code in (200, 201), (code, answer)
        wait_until("most of them have ended", 600, lambda: ended(s) > at + len(jobs) - AT_A_TIME // 2, pause=0.05)
    wait_until("all have ended", 600, lambda: ended(s) == first + n, pause=0.05)


@case
def many_runs_leak_nothing():
    with Grouped() as s:
        s.start()
        began = time.monotonic()
        before = figures(s)
        run_all(s, 0, WARM)
        warm = memory(s.spawner.pid), memory(s.engine.pid)
        run_all(s, WARM, RUNS - WARM)
        took = time.monotonic() - began
        before["files"] = len([i for i in range(RUNS) if i % 50 == 2])  # only jobs with output have a file
        try:
            wait_until("nothing is more than before", 60, lambda: not more(s, before), pause=1)
        except AssertionError as e:
            raise AssertionError("%s; before: %r, now more: %r" % (e, before, more(s, before))) from None
        after = memory(s.spawner.pid), memory(s.engine.pid)
        if not sanitized():
            assert after[0] - warm[0] < MEMORY_KB and after[1] - warm[1] < MEMORY_KB, (warm, after)
        return "%d runs, %.0f/s; memory of spawner %d to %d kB, of engine %d to %d kB" % (RUNS, RUNS / took, warm[0], after[0],
                                                                                        warm[1], after[1])


main()
