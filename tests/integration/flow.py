# SPDX-License-Identifier: Apache-2.0
# From submission to history: 1000 concurrent clients, 1000 jobs in one request, start delay, environment, keys.
import os
import statistics
import subprocess
import sys
import time
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import case, Daemon, instant, JOBCTL, main, wait_until

N = 1000


def each_ran_once(d, jobs, log):
    """Checks that every job has one succeeded run with one attempt, and that its command ran once."""
    assert len(set(jobs)) == len(jobs), "two submissions got the same job id"
    wait_until("all runs have ended", 120, lambda: d.api().get("/v1/status")["runs"].get("succeeded", 0) >= len(jobs),
               pause=0.2)
    runs = d.runs()
    assert Counter(r["job"] for r in runs) == Counter(jobs), "not one run per job"
    assert all(r["state"] == "succeeded" and r["attempt"] == 1 for r in runs)
    with open(log) as f:
        assert Counter(int(line) for line in f) == Counter(jobs), "the commands did not run once each"


@case
def jobs_of_1000_concurrent_jobctl_add_each_run_once():
    with Daemon() as d:
        d.start()
        log = os.path.join(d.dir, "ran")
        gate, opener = os.pipe()
        os.set_inheritable(gate, True)
        # Each client blocks on the pipe until all clients have been started.
        script = 'read _ <&%d; exec "$0" add -o name -- sh -c \'echo $JOBSCHED_JOB >>"$1"\' sh "$1"' % gate
        clients = [subprocess.Popen(["/bin/sh", "-c", script, JOBCTL, log], env=d.env, pass_fds=[gate], text=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for _ in range(N)]
        os.close(gate)
        began = time.monotonic()
        os.close(opener)
        answers = [c.communicate() for c in clients]
        took = time.monotonic() - began
        refused = [(c.returncode, a) for c, a in zip(clients, answers) if c.returncode]
        assert not refused, "%d refused, the first: %s" % (len(refused), refused[0])
        each_ran_once(d, [int(out) for out, _ in answers], log)
        assert d.stop() == 0
        return "%d clients answered in %.1f s" % (N, took)


@case
def jobs_of_one_request_with_1000_each_run_once():
    with Daemon() as d:
        d.start()
        log = os.path.join(d.dir, "ran")
        job = {"command": ["sh", "-c", 'echo $JOBSCHED_JOB >>"$1"', "sh", log]}
        began = time.monotonic()
        answer = d.api().post("/v1/jobs/bulk", {"jobs": [job] * N})
        took = time.monotonic() - began
        each_ran_once(d, [j["id"] for j in answer["jobs"]], log)
        return "answered in %.2f s" % took


@case
def a_bulk_request_with_one_bad_job_stores_none_of_them():
    with Daemon() as d:
        d.start()
        status, answer = d.api().call("POST", "/v1/jobs/bulk", {
            "jobs": [{"command": ["true"]}] * 17 + [{"command": ["true"], "env": {"1x": "y"}}]})
        assert status == 400 and answer["error"]["field"].startswith("jobs[17]"), (status, answer)
        assert d.api().get("/v1/jobs?all=true")["jobs"] == []


@case
def a_job_without_a_schedule_starts_within_100_ms():
    with Daemon() as d:
        d.start()
        delays = []
        for _ in range(15):
            job = d.add(command=["true"])
            run = d.wait_final(job["id"])
            delays.append((instant(run["started_at"]) - instant(job["created_at"])) * 1000)
        middle = statistics.median(delays)
        assert middle < 100, delays
        return "median %.1f ms, worst %.1f ms" % (middle, max(delays))


@case
def the_environment_of_a_command_names_job_run_and_key():
    with Daemon() as d:
        d.start()
        job = d.add(name="witness", command=["env"], tz="Europe/Paris", env={"MINE": "own value"})
        run = d.wait_final(job["id"])
        with subprocess.Popen(["curl", "-s", "--unix-socket", d.socket,
                               "http://localhost/v1/runs/%d/output" % run["id"]], stdout=subprocess.PIPE, text=True) as p:
            given = dict(line.split("=", 1) for line in p.stdout.read().splitlines())
        assert given["JOBSCHED_JOB"] == str(job["id"])
        assert given["JOBSCHED_NAME"] == "witness"
        assert given["JOBSCHED_RUN"] == str(run["id"])
        assert given["JOBSCHED_ATTEMPT"] == "1"
        assert given["JOBSCHED_FENCE"] == "1"
        assert given["JOBSCHED_NODE"]
        assert instant(given["JOBSCHED_SLOT"]) == instant(run["slot"])
        assert int(given["JOBSCHED_SLOT_MS"]) == int(instant(run["slot"]) * 1000)
        assert given["MINE"] == "own value"
        assert given["TZ"] == "Europe/Paris"
        assert {"HOME", "LOGNAME", "USER", "SHELL", "PATH"} <= set(given)
        strange = {n for n in given if not n.startswith("JOBSCHED_")} - {
            "HOME", "LOGNAME", "USER", "SHELL", "PATH", "LANG", "TZ", "MINE", "PWD", "SHLVL", "_", "TRACEPARENT"}
        assert not strange, "the environment has unexpected variables: %s" % strange
        keys = {given["JOBSCHED_KEY"]}
        for _ in range(2):
            other = d.add(command=["sh", "-c", "echo $JOBSCHED_KEY"])
            out = d.jobctl("log", str(other["id"])) if d.wait_final(other["id"]) else None
            keys.add(out.stdout.strip())
        assert len(keys) == 3, "two slots have the same key: %s" % keys


@case
def a_repeated_key_adds_no_second_job_also_after_a_restart():
    with Daemon() as d:
        d.start()
        spec = {"command": ["true"], "key": "order-17"}
        first = d.api().call("POST", "/v1/jobs", spec)
        again = d.api().call("POST", "/v1/jobs", spec)
        d.kill()
        d.start()
        later = d.api().call("POST", "/v1/jobs", spec)
        other = d.api().call("POST", "/v1/jobs", dict(spec, command=["false"]))
        assert first[0] == 201 and again[0] == 200 and later[0] == 200, (first, again, later)
        assert first[1]["id"] == again[1]["id"] == later[1]["id"]
        assert other[0] == 409
        assert len(d.api().get("/v1/jobs?all=true")["jobs"]) == 1


@case
def an_interval_job_runs_at_its_slots_until_it_is_cancelled():
    with Daemon() as d:
        d.start()
        job = d.add(command=["true"], schedule=["every 1s"])
        wait_until("three runs have succeeded", 20, lambda: len([r for r in d.runs(job["id"]) if r["state"] == "succeeded"]) >= 3)
        d.api().post("/v1/jobs/%d/cancel" % job["id"])
        runs = d.runs(job["id"])
        slots = [instant(r["slot"]) for r in runs]
        assert len(set(slots)) == len(slots), "a slot has two runs"
        gaps = {round(a - b, 3) for a, b in zip(slots, slots[1:])}
        assert gaps == {1.0}, gaps
        late = [instant(r["started_at"]) - instant(r["slot"]) for r in runs if r["started_at"]]
        assert min(late) >= 0, "a run started before its slot"
        time.sleep(2.2)
        assert len([r for r in d.runs(job["id"]) if r["started_at"]]) <= len(runs), "a slot ran after the cancellation"


main()
