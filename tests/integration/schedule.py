# SPDX-License-Identifier: Apache-2.0
# Schedules with a daemon: the planner and 'jobctl next' agree.
import os
import shutil
import signal
import sys
import time
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until

FAR = "0 0 1 1 *"


def instants(d, *words):
    return d.jobctl("next", *words).stdout.split()


def next_at(d, job):
    return d.api().get("/v1/jobs/%d" % job)["next_at"]


def new_year(d, job):
    """Waits until the planner has found the slot of a job on 1 January, and returns it."""
    return wait_until("job %d is due on 1 January" % job, 20, lambda: "-01-01T" in next_at(d, job) and next_at(d, job))


def zone_copy(d, name):
    """A temporary zone directory with one zone."""
    target = os.path.join(d.dir, "zones", name)
    os.makedirs(os.path.dirname(target))
    shutil.copy(os.path.join("/usr/share/zoneinfo", name), target)
    return os.path.join(d.dir, "zones")


@case
def the_next_slot_of_a_job_equals_the_output_of_jobctl_next():
    with Daemon() as d:
        d.start()
        for spec in ({"schedule": ["30 2 * * *"], "tz": "Europe/Berlin"},
                     {"schedule": ["30 2 * * *", "15 4 * * MON"], "tz": "America/New_York"},
                     {"schedule": ["H H * * *"], "name": "spread"},
                     {"schedule": ["P1M"], "tz": "Australia/Lord_Howe"},
                     {"schedule": ["every 90m"], "from": "2150-01-01T00:00:00Z"},
                     {"schedule": ["tomorrow 9am"], "tz": "Asia/Kathmandu"}):
            job = d.add(command=["true"], **spec)
            assert instants(d, str(job["id"]), "-n", "1") == [job["next_at"]], (spec, job)
        daily = d.add(command=["true"], schedule=["0 3 * * *"], tz="Europe/Berlin")
        assert instants(d, "--tz", "Europe/Berlin", "-n", "1", "--", "0 3 * * *") == [daily["next_at"]]


@case
def jobs_without_a_name_are_spread_by_their_number():
    with Daemon() as d:
        d.start()
        jobs = [d.add(command=["true"], schedule=["H H 1 1 *"])["id"] for _ in range(8)]
        slots = [new_year(d, j) for j in jobs]
        assert len(set(slots)) > 4, slots
        for job, slot in zip(jobs, slots):
            assert instants(d, "--tz", "UTC", "--id", str(job), "-n", "1", "--", "H H 1 1 *") == [slot]
        # the slots are the same after a restart
        d.stop()
        d.start()
        assert [next_at(d, j) for j in jobs] == slots


@case
def every_second_is_a_separate_slot():
    with Daemon() as d:
        d.start()
        job = d.add(command=["true"], schedule=["* * * * * *"], tz="Europe/Berlin")["id"]
        wait_until("five runs", 30, lambda: sum(r["state"] == "succeeded" for r in d.runs(job)) >= 5)
        slots = sorted(r["slot"] for r in d.runs(job))
        times = [datetime.fromisoformat(s.replace("Z", "+00:00")) for s in slots]
        assert all(b - a == timedelta(seconds=1) for a, b in zip(times, times[1:])), slots
        assert all(t.microsecond == 0 for t in times)


@case
def invalid_zones_and_schedules_that_never_match_are_refused_with_their_position():
    with Daemon() as d:
        d.start()
        for words, says in ((("--tz", "Nowhere/Land", "--cron", FAR), "Nowhere/Land"),
                            (("--tz", "../etc/passwd", "--cron", FAR), "not a zone name"),
                            (("--cron", "0 0 30 2 *"), "never fires before the end of 2199"),
                            (("--cron", "0 24 * * *"), "hour '24', character 3"),
                            (("--at", "2020-01-01T00:00:00Z"), "past"),
                            (("--every", "0s"), "zero")):
            refused = d.jobctl("add", *words, "--", "true", check=False)
            assert refused.returncode == 2 and says in refused.stderr, (words, refused)
        assert d.api().get("/v1/jobs")["jobs"] == []


@case
def a_removed_zone_suspends_only_the_jobs_that_use_it():
    with Daemon() as d:
        zones = zone_copy(d, "Europe/Berlin")
        d.start(env={"TZDIR": zones})
        soon = (datetime.now(timezone.utc) + timedelta(seconds=8)).strftime("%Y-%m-%dT%H:%M:%SZ")
        job = d.add(command=["true"], schedule=["* * * * * *"], tz="Europe/Berlin", **{"from": soon})["id"]
        other = d.add(command=["true"], schedule=["* * * * * *"], tz="UTC", **{"from": soon})["id"]
        # cached by both threads that parse submissions
        d.api().post("/v1/jobs?dry_run=true", {"command": ["true"], "tz": "Europe/Berlin"})
        d.add(command=["true"], schedule=["0 0 1 1 *"], tz="Europe/Berlin")
        os.remove(os.path.join(zones, "Europe", "Berlin"))
        d.process.send_signal(signal.SIGHUP)
        wait_until("the job is suspended", 30, lambda: d.api().get("/v1/jobs/%d" % job)["state"] == "suspended")
        assert d.api().get("/v1/jobs/%d" % job)["reason"] == "bad_zone"
        wait_until("the other one runs", 30, lambda: d.runs(other))
        assert d.api().get("/v1/jobs/%d" % other)["state"] == "active"
        assert d.runs(job) == []
        # new submissions are refused by both threads
        for body in ({"command": ["true"], "tz": "Europe/Berlin"},
                     {"command": ["true"], "tz": "Europe/Berlin", "stdin": "x" * 100000}):
            status, answer = d.api().call("POST", "/v1/jobs", body)
            assert status == 400 and answer["error"]["field"] == "tz", answer
            status, answer = d.api().call("POST", "/v1/jobs?dry_run=true", body)
            assert status == 400 and answer["error"]["field"] == "tz", answer
        shown = d.jobctl("show", str(job)).stdout
        assert "suspended (bad_zone)" in shown and "Europe/Berlin" in shown, shown
        assert "tz            UTC" in d.jobctl("show", str(other)).stdout


@case
def until_and_count_end_a_schedule():
    with Daemon() as d:
        d.start()
        start = datetime.now(timezone.utc) + timedelta(seconds=2)
        text = start.strftime("%Y-%m-%dT%H:%M:%SZ")
        counted = d.add(command=["true"], schedule=["R3/%s/PT1S" % text])["id"]
        until = (start + timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        bounded = d.add(command=["true"], schedule=["* * * * * *"], **{"from": text, "until": until})["id"]
        for job in (counted, bounded):
            wait_until("job %d is finished" % job, 40, lambda: d.api().get("/v1/jobs/%d" % job)["state"] == "finished")
            assert len(d.runs(job)) == 3, d.runs(job)
        time.sleep(0.1)
        assert instants(d, str(counted)) == []


main()
