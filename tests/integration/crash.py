# SPDX-License-Identifier: Apache-2.0
# SIGKILL at random times: no acknowledged job is lost, none runs twice, and no process is left behind.
import os
import random
import signal
import sys
import threading
import time
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import FINAL, Api, Daemon, Unreachable, case, instant, main, wait_until

JOBS = 2000
KILLS = 50


def alive(pid):
    """Whether the process runs. A zombie does not."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Submitter(threading.Thread):
    """Submits its share of jobs one by one, and again with the same key if there was no answer."""

    def __init__(self, d, log, numbers):
        super().__init__()
        self.d, self.log, self.numbers = d, log, numbers
        self.acknowledged, self.error = {}, None

    def run(self):
        api = Api(self.d.socket)
        try:
            for n in self.numbers:
                self.acknowledged[n] = self.submit(api, n)
                time.sleep(random.uniform(0, 0.06))
        except Exception as e:
            self.error = e
        api.close()

    def submit(self, api, n):
        spec = {"key": "job-%d" % n, "tags": {"n": str(n)},
                "command": ["sh", "-c", 'echo "$JOBSCHED_JOB $JOBSCHED_RUN $JOBSCHED_ATTEMPT" >>"$1"', "sh", self.log]}
        end = time.monotonic() + 300
        while True:
            try:
                status, answer = api.call("POST", "/v1/jobs", spec)
                if status in (200, 201):
                    return answer["id"]
                assert status == 503, (status, answer)
            except Unreachable:
                pass
            assert time.monotonic() < end, "job %d was not taken for five minutes" % n
            time.sleep(0.02)


@case
def a_daemon_killed_fifty_times_loses_no_job_and_runs_none_twice():
    with Daemon() as d:
        d.start()
        log = os.path.join(d.dir, "ran")
        submitters = [Submitter(d, log, range(i, JOBS, 4)) for i in range(4)]
        for s in submitters:
            s.start()
        for n in range(KILLS):
            if n % 2:
                d.wait_ready()  # every second daemon works for a while, however slowly it starts
            time.sleep(random.uniform(0, 0.5))
            d.kill()
            d.start(wait=False)
        d.wait_ready()
        for s in submitters:
            s.join()
            assert not s.error, s.error
        acknowledged = {}
        for s in submitters:
            acknowledged.update(s.acknowledged)
        assert len(acknowledged) == JOBS and len(set(acknowledged.values())) == JOBS

        def settled():
            counts = d.api().get("/v1/status")["runs"]
            return sum(counts.get(s, 0) for s in ("queued", "claimed", "running")) == 0
        wait_until("every run has ended", 60, settled, pause=0.2)
        runs = d.runs()
        assert Counter(r["job"] for r in runs) == Counter(acknowledged.values()), "not one run per job"
        states = Counter(r["state"] for r in runs)
        assert states == {"succeeded": JOBS}, states
        with open(log) as f:
            written = [tuple(map(int, line.split())) for line in f]
        ran = Counter(job for job, _, _ in written)
        assert ran == Counter(acknowledged.values()), "twice: %s, never: %s" % (
            [j for j, n in ran.items() if n > 1], set(acknowledged.values()) - set(ran))
        assert {(r["job"], r["id"], r["attempt"]) for r in runs} == set(written), "history and commands disagree"
        assert d.stop() == 0
        d.assert_intact()
        return "%d jobs, %d kills" % (JOBS, KILLS)


@case
def a_job_outlives_the_daemon_and_its_end_is_recorded():
    with Daemon() as d:
        d.start()
        log = os.path.join(d.dir, "ran")
        jobs = [d.add(command=["sh", "-c", 'sleep "$2"; echo $JOBSCHED_JOB >>"$1"; exit 3', "sh", log, str(t)])["id"]
                for t in (1.0, 3.0)]
        wait_until("both run", 20, lambda: all(r["state"] == "running" for r in d.runs()) and len(d.runs()) == 2)
        d.kill()
        time.sleep(2)  # the first ends while no daemon is running, the second after the next daemon has taken over
        d.start()
        for job in jobs:
            run = d.wait_final(job)
            assert (run["state"], run["exit_code"], run["attempt"]) == ("failed", 3, 1), run
        with open(log) as f:
            assert sorted(int(line) for line in f) == sorted(jobs)


@case
def the_workers_of_a_killed_spawner_end_and_their_runs_are_retried():
    with Daemon() as d:
        d.start()
        # the first attempt would not end, the second ends at once
        script = 'echo $$ >>"$1"; [ "$JOBSCHED_ATTEMPT" -gt 1 ] || sleep 1000'
        pids = os.path.join(d.dir, "pids")
        jobs = [d.add(command=["sh", "-c", script, "sh", pids])["id"] for _ in range(8)]
        wait_until("all run", 20, lambda: len([r for r in d.runs() if r["state"] == "running"]) == len(jobs))
        first = d.spawner()
        with open(pids) as f:
            workers = [int(line) for line in f]
        os.kill(first, signal.SIGKILL)
        for job in jobs:
            run = d.wait_final(job, 60)
            attempts = d.api().get("/v1/runs/%d/attempts" % run["id"])["attempts"]
            assert [a["outcome"] for a in attempts] == ["lost", "succeeded"], attempts
            assert run["state"] == "succeeded" and run["lost"] == 1, run
        assert d.spawner() not in (None, first)
        left = [p for p in workers if alive(p)]
        assert not left, "workers of the dead spawner are alive: %s" % left
        assert not [w for w in d.processes().values() if "sleep 1000" in w], d.processes()


@case
def a_spawner_killed_repeatedly_leaves_no_run_open():
    with Daemon() as d:
        d.start()
        jobs = [d.add(command=["sleep", "1000"])["id"] for _ in range(3)]
        kills = 0

        def given_up():
            nonlocal kills
            runs = d.runs()
            # the runs of a killed spawner are still 'running' until the daemon has recorded their loss
            if runs and all(r["state"] == "running" and r["attempt"] == kills + 1 for r in runs):
                os.kill(d.spawner(), signal.SIGKILL)
                kills += 1
            return all(r["state"] in FINAL for r in runs)
        wait_until("all are given up", 60, given_up, pause=0.1)
        for run in d.runs():
            attempts = d.api().get("/v1/runs/%d/attempts" % run["id"])["attempts"]
            assert [a["outcome"] for a in attempts] == ["lost"] * 4, "not started again three times: %s" % attempts
        for job in jobs:
            run = d.wait_final(job, 60)
            assert run["state"] == "lost", run
        assert not [w for w in d.processes().values() if w.startswith("sleep")], d.processes()


@case
def daemon_and_spawner_killed_together_lose_no_job():
    with Daemon() as d:
        d.start()
        log = os.path.join(d.dir, "ran")
        jobs = [d.add(command=["sh", "-c", 'echo $JOBSCHED_JOB >>"$1"; [ "$JOBSCHED_ATTEMPT" -gt 1 ] || sleep 1000',
                               "sh", log])["id"] for _ in range(4)]
        wait_until("all run", 20, lambda: len([r for r in d.runs() if r["state"] == "running"]) == len(jobs))
        spawner = d.spawner()
        d.kill()
        os.kill(spawner, signal.SIGKILL)
        d.start()
        for job in jobs:
            assert d.wait_final(job, 60)["state"] == "succeeded"
        with open(log) as f:
            assert Counter(int(line) for line in f) == Counter(jobs * 2)


class Unacknowledged:
    """A job that has ended while its daemon is stopped, so that the end is not acknowledged."""

    def __init__(self, d):
        self.d, self.log, go = d, os.path.join(d.dir, "ran"), os.path.join(d.dir, "go")
        self.file = os.path.join(d.state, "output", "ends")
        self.job = d.add(command=["sh", "-c", 'while [ ! -e "$2" ]; do sleep 0.05; done; echo ran >>"$1"; exit 3', "sh", self.log,
                                  go])["id"]
        d.wait_running(self.job)
        assert not os.path.exists(self.file)
        d.process.send_signal(signal.SIGSTOP)
        with open(go, "w"):
            pass
        wait_until("the end is on disk", 30, lambda: os.path.exists(self.file))

    def check(self):
        run = self.d.wait_final(self.job)
        assert (run["state"], run["exit_code"], run["attempt"], run["lost"]) == ("failed", 3, 1, 0), run
        attempts = self.d.api().get("/v1/runs/%d/attempts" % run["id"])["attempts"]
        assert [a["outcome"] for a in attempts] == ["failed"], attempts
        with open(self.log) as f:
            assert f.read() == "ran\n"
        wait_until("the file of ends is removed", 30, lambda: not os.path.exists(self.file))


@case
def an_end_that_was_not_acknowledged_survives_a_power_cut():
    with Daemon() as d:
        d.start()
        u = Unacknowledged(d)
        spawner = d.spawner()
        d.kill()
        os.kill(spawner, signal.SIGKILL)
        d.start()
        u.check()


@case
def an_end_on_disk_survives_a_reload_of_the_spawner_and_is_reported_once():
    with Daemon() as d:
        d.start()
        u = Unacknowledged(d)
        with open(u.file, "rb") as f:
            kept = f.read()
        os.unlink(u.file)  # the next spawner program writes it again, because it does not know the content
        spawner = d.spawner()
        os.kill(spawner, signal.SIGHUP)
        wait_until("the next spawner program has written the end", 30, lambda: os.path.exists(u.file))
        assert d.spawner() == spawner
        with open(u.file, "rb") as f:
            assert f.read() == kept
        d.process.send_signal(signal.SIGCONT)
        u.check()
        # the power was cut after the end was recorded and before the file was removed
        d.kill()
        os.kill(spawner, signal.SIGKILL)
        with open(u.file, "wb") as f:
            f.write(kept)
        d.start()
        u.check()


@case
def a_killed_spawner_does_not_delay_due_runs():
    with Daemon() as d:
        d.start()
        job = d.add(schedule=["now + 3 seconds"], command=["true"])["id"]
        wait_until("the run is queued", 20, lambda: d.runs(job))
        os.kill(d.spawner(), signal.SIGKILL)
        run = d.wait_final(job)
        assert run["state"] == "succeeded" and run["lost"] == 0, run
        late = instant(run["started_at"]) - instant(run["slot"])
        assert late < 10, late
        return "%.0f ms late" % (late * 1000)


main()
