# SPDX-License-Identifier: Apache-2.0
# Tests each reason of 'jobctl why' with real processes, and the audit trail.
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, Skip, case, main, wait_until

ME = pwd.getpwuid(os.getuid()).pw_name


def stamp(seconds=0):
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def why(d, job, query=""):
    return d.api().get("/v1/jobs/%s/why%s" % (job, query))


def expect(d, job, code, *words, seconds=15):
    """Waits until the job waits for this reason, with these words in the message."""
    def there():
        seen[0] = why(d, job)["now"]
        return seen[0]["code"] == code and all(word in seen[0]["message"] for word in words)
    seen = [None]
    try:
        wait_until("job %s says '%s' with %s" % (job, code, words), seconds, there)
    except AssertionError as e:
        raise AssertionError("%s; it says %s" % (e, seen[0])) from e
    return seen[0]


def expect_listed(d, job, code):
    def rows():
        return [next(j for j in d.api().pages("/v1/jobs?all=true", "jobs") if j["id"] == job),
                d.api().get("/v1/jobs/%d" % job)]
    wait_until("job %d is listed with '%s'" % (job, code), 10,
               lambda: all(r["waiting_for"] and r["waiting_for"]["code"] == code for r in rows()))


def expect_past(d, job, code, *words, seconds=20):
    """Waits until one of the slots ended like this."""
    def there():
        return [r["why"] for r in why(d, job, "?limit=100")["runs"]
                if r["why"]["code"] == code and all(word in r["why"]["message"] for word in words)]
    found = wait_until("a slot of job %s was '%s': %s" % (job, code, words), seconds, there)[0]
    assert found["command"]
    return found


def put(d, path, body):
    status, answer = d.api().call("PUT", path, body)
    assert status in (200, 201), answer


@case
def pauses_and_freezes_are_reported_with_user_reason_and_end():
    with Daemon() as d:
        d.start()
        job = d.add(name="hourly", command=["true"], schedule=["every 1h"], tags={"team": "web"})["id"]
        until = stamp(3600)
        d.api().post("/v1/jobs/%d/pause" % job, {"reason": "tidy up", "until": until})
        said = expect(d, job, "paused", ME, "tidy up", until)
        assert said["command"] == "jobctl resume hourly", said
        expect_listed(d, job, "paused")
        d.api().post("/v1/jobs/%d/resume" % job)
        expect(d, job, "scheduled", "its next slot is")
        d.api().post("/v1/pause", {"scope": "tag", "key": "team=web"})
        said = expect(d, job, "paused", ME)
        assert "--tag team=web" in said["command"], said
        d.api().post("/v1/resume", {"scope": "tag", "key": "team=web"})
        d.api().post("/v1/freeze", {"reason": "release"})
        said = expect(d, job, "frozen", ME, "release")
        assert said["command"] == "jobctl thaw", said
        expect_listed(d, job, "frozen")
        once = d.add(command=["true"])["id"]
        expect(d, once, "frozen", "release")
        d.api().post("/v1/thaw")
        d.wait_final(once)
        expect(d, once, "finished")
        expect(d, job, "scheduled")


@case
def a_planned_run_is_reported_as_paused_or_frozen():
    with Daemon() as d:
        d.start()
        job = d.add(name="soon", command=["true"], schedule=["every 4s"], tags={"team": "web"})["id"]
        wait_until("a run is planned", 20, lambda: d.runs(job))
        for begin, body, end, code in (("/v1/pause", {"scope": "tag", "key": "team=web"}, "/v1/resume", "paused"),
                                       ("/v1/freeze", {}, "/v1/thaw", "frozen")):
            d.api().post(begin, body)
            expect(d, job, code, ME)
            assert why(d, job)["next"] == []
            assert {r["why"]["code"] for r in why(d, job)["runs"] if r["state"] == "queued"} <= {code}
            expect_listed(d, job, code)
            [row] = [line.split() for line in d.jobctl("list", "soon").stdout.splitlines() if "soon" in line]
            assert row[1:5] == ["soon", "active", "-", code], row
            assert "next          none while it is paused or frozen" in d.jobctl("show", "soon").stdout
            assert "next:  none until that ends" in d.jobctl("why", "soon").stdout
            d.api().post(end, body)
        expect(d, job, "not_due")
        end = stamp(3600)
        d.api().post("/v1/jobs/soon/pause", {"until": end})
        assert why(d, job)["next"] and min(why(d, job)["next"]) >= end, why(d, job)


@case
def a_stopped_spawner_is_reported_and_status_fails():
    with Daemon() as d:
        d.start()
        job = d.add(name="hourly", command=["true"], schedule=["every 1h"])["id"]
        assert d.jobctl("status").returncode == 0
        pid = d.spawner()
        os.kill(pid, signal.SIGSTOP)
        try:
            status = d.jobctl("status", check=False)
            assert status.returncode == 1 and "the spawner (pid %d) is stopped" % pid in status.stdout, status
            said = expect(d, job, "no_spawner", "pid %d" % pid)
            assert said["command"] == "kill -CONT %d" % pid, said
            once = d.add(command=["true"])["id"]
            expect(d, once, "no_spawner", "pid %d" % pid)
            expect_listed(d, job, "no_spawner")
        finally:
            os.kill(pid, signal.SIGCONT)
        d.wait_final(once)
        assert d.jobctl("status").returncode == 0
        expect(d, job, "scheduled")


@case
def a_missing_program_is_reported():
    with Daemon() as d:
        d.start()
        once = d.add(name="typo", command=["bakcup", "/home"])["id"]
        expect_past(d, once, "failed", "could not run 'bakcup': No such file or directory")
        again = d.add(command=["/no/such/program"], retries=1, backoff="fixed:1h")["id"]
        expect(d, again, "retry", "could not run '/no/such/program'")
        shell = d.add(script="bakcup /home")["id"]
        expect_past(d, shell, "failed", "exit code 127 (its shell did not find a program")


@case
def a_run_that_waits_for_another_run_of_its_job_is_explained():
    with Daemon() as d:
        d.start()
        held = d.add(name="held", command=["sleep", "60"], schedule=["every 1s"], overlap="queue")["id"]
        said = expect(d, held, "overlap", "it waits for the end of run ", "has been running since")
        assert said["command"].startswith("jobctl cancel held#"), said
        expect_listed(d, held, "overlap")
        expect_past(d, held, "limit", "waiting")
        d.api().post("/v1/jobs/%d/cancel" % held, {"running": True})
        skips = d.add(command=["sleep", "60"], schedule=["every 1s"])["id"]
        expect_past(d, skips, "overlap", "still running")
        d.api().post("/v1/jobs/%d/cancel" % skips, {"running": True})
        many = d.add(command=["sleep", "60"], schedule=["every 1s"], overlap="allow", max_running=2)["id"]
        expect(d, many, "max_running", "2 of 2")
        d.api().post("/v1/jobs/%d/cancel" % many, {"running": True})
        newest = d.add(command=["sleep", "60"], schedule=["every 2s"], overlap="replace")["id"]
        expect_past(d, newest, "replaced", "newer run")


@case
def a_limit_is_reported_with_its_queue_or_owner():
    with Daemon("max-running = 2\nowner-max-running = 2\n") as d:
        d.start()
        put(d, "/v1/queues/narrow", {"max_running": 1})
        put(d, "/v1/queues/slow", {"rate": "1/1h"})
        first = d.add(command=["sleep", "60"], queue="narrow")["id"]
        expect(d, first, "running", "run ")
        second = d.add(command=["true"], queue="narrow", deadline=600)["id"]
        said = expect(d, second, "queue_full", "queue 'narrow' is full: 1 of 1", "it will not start after")
        assert said["command"] == "jobctl queue list", said
        expect_listed(d, second, "queue_full")
        d.wait_final(d.add(command=["true"], queue="slow")["id"])
        expect(d, d.add(command=["true"], queue="slow")["id"], "rate", "queue 'slow'", "may start at")
        put(d, "/v1/owners/%s" % ME, {"max_running": 1})
        third = d.add(command=["true"])["id"]
        expect(d, third, "owner_full", "owner '%s' is full: 1 of 1" % ME)
        expect_listed(d, third, "owner_full")
        put(d, "/v1/owners/%s" % ME, {"max_running": 10})
        d.wait_final(third)
        d.add(command=["sleep", "60"])
        expect(d, d.add(command=["true"])["id"], "owner_full", "2 of 2")


@case
def a_full_node_is_reported():
    with Daemon("max-running = 1\nowner-max-running = none\n") as d:
        d.start()
        d.add(command=["sleep", "60"])
        job = d.add(command=["true"])["id"]
        said = expect(d, job, "no_room", "1 run is running")
        assert said["command"] == "jobctl status", said
        expect_listed(d, job, "no_room")


@case
def retries_rates_and_conditions_are_reported_with_a_time():
    with Daemon() as d:
        d.start()
        again = d.add(name="again", command=["false"], retries=3, backoff="fixed:1h")["id"]
        said = expect(d, again, "retry", "1 attempt failed", "due at")
        assert said["command"].startswith("jobctl log again#"), said
        expect_listed(d, again, "retry")
        idle = d.add(command=["true"], when=["load<0.001"])["id"]
        expect(d, idle, "condition", "load ", "must be below 0.001")
        expect_listed(d, idle, "condition")
        slow = d.add(command=["true"], schedule=["every 1s"], rate="1/1h")["id"]
        expect(d, slow, "rate", "the rate of the job", "may start at")
        expect_listed(d, slow, "rate")


@case
def an_ended_job_is_reported_with_the_user_who_ended_it():
    with Daemon() as d:
        zones = os.path.join(d.dir, "zones", "Europe")
        os.makedirs(zones)
        shutil.copy("/usr/share/zoneinfo/Europe/Berlin", zones)
        d.start(env={"TZDIR": os.path.dirname(zones)})
        lost = d.add(command=["true"], schedule=["* * * * * *"], tz="Europe/Berlin", **{"from": stamp(8)})["id"]
        os.remove(os.path.join(zones, "Berlin"))
        d.process.send_signal(signal.SIGHUP)
        gone = d.add(name="gone", command=["true"], schedule=["every 1h"])["id"]
        d.api().post("/v1/jobs/%d/cancel" % gone)
        said = expect(d, gone, "cancelled", "by %s at 20" % ME)
        assert said["command"] == "jobctl resume %d" % gone, said
        status, _ = d.api().call("DELETE", "/v1/jobs/%d" % gone)
        assert status == 200
        expect(d, gone, "removed", "by %s at 20" % ME)
        assert why(d, gone)["next"] == []
        once = d.add(command=["true"])["id"]
        expect(d, once, "finished", "no further slots")
        expect(d, d.add(command=["true"], schedule=["manual"])["id"], "manual", "triggered")
        d.add(name="hand", command=["true"], schedule=["manual"])
        expect(d, d.add(command=["true"], after=["hand:failure"])["id"], "after", "it runs after job 'hand' fails")
        expect(d, d.add(command=["true"], schedule=["@reboot"])["id"], "boot")
        expect(d, d.add(command=["sleep", "60"], schedule=["after-finish 1s"])["id"], "running", seconds=20)
        expect(d, lost, "suspended", "bad_zone", seconds=30)


@case
def past_slots_are_explained_one_by_one():
    with Daemon("max-running = 4\n") as d:
        d.start()
        good = d.add(command=["true"])["id"]
        bad = d.add(name="bad", command=["sh", "-c", "exit 3"])["id"]
        dead = d.add(command=["false"], retries=1, backoff="fixed:1s")["id"]
        long = d.add(command=["sleep", "60"], timeout=1, grace=1)["id"]
        put(d, "/v1/queues/shut", {"max_running": 1})
        d.add(command=["sleep", "4"], queue="shut")
        late = d.add(command=["true"], queue="shut", deadline=1)["id"]
        expect_past(d, good, "succeeded", "ended at")
        assert expect_past(d, bad, "failed", "exit code 3")["command"].startswith("jobctl log bad#")
        expect_past(d, dead, "dead", "after 2 attempts", "dead letter")
        expect_past(d, long, "timed_out", "exceeded its time limit")
        expect_past(d, late, "deadline", "too late")
        often = d.add(name="often", command=["true"], schedule=["every 1s"], catchup="none")["id"]
        wait_until("it has run", 15, lambda: [r for r in d.runs(often) if r["state"] == "succeeded"])
        ran = [r for r in d.runs(often) if r["state"] == "succeeded"][0]
        d.stop()
        time.sleep(10)
        d.start()
        missed = expect_past(d, often, "missed", "slots from", "the scheduler was down")
        assert missed["command"] == "jobctl show often", missed
        # single times: a run, a missed slot, no slot, before the job, and in the future
        at = why(d, often, "?at=" + ran["slot"])["at"]
        assert at["run"]["id"] == ran["id"] and at["why"]["code"] == "succeeded", at
        stretch = [r for r in d.runs(often) if r["slot_count"] > 1][0]
        assert why(d, often, "?at=" + stretch["slot_last"])["at"]["why"]["code"] == "missed"
        assert why(d, often, "?at=2020-01-01T00:00:00Z")["at"]["why"]["code"] == "before"
        assert why(d, often, "?at=" + stamp(3600))["at"]["why"]["code"] == "to_come"
        hourly = d.add(command=["true"], schedule=["0 0 1 1 *"])["id"]
        at = why(d, hourly, "?at=" + stamp(60))["at"]
        assert at["why"]["code"] == "no_slot" and "-01-01T00:00:00Z" in at["next"], at


@case
def a_time_within_a_pause_is_explained_with_its_user():
    with Daemon() as d:
        d.start()
        job = d.add(command=["true"], schedule=["every 1s"])["id"]
        wait_until("it has run", 15, lambda: d.runs(job))
        d.api().post("/v1/jobs/%d/pause" % job)
        time.sleep(1.2)
        asked = stamp()
        said = wait_until("the slot is explained", 10, lambda: [
            a for a in [why(d, job, "?at=" + asked)["at"]] if a["why"]["code"] == "paused"])[0]
        assert "paused" in said["why"]["message"], said


@case
def many_refusals_share_one_row():
    with Daemon() as d:
        d.start()
        for i in range(60):
            status, _ = d.api().call("POST", "/v1/jobs/%d/cancel" % (1000 + i))
            assert status == 404
        d.stop()
        d.start()
        events = d.api().pages("/v1/events", "events")
        refused = [e for e in events if e["result"] == "not_found"]
        more = [e for e in refused if e["what"] == "refused.more"]
        assert 20 <= len(refused) - len(more) <= 30, len(refused)
        assert len(more) == 1 and " more; the last was job.cancel '1059'" in more[0]["detail"], more
        told = len(refused) - 1 + int(more[0]["detail"].split()[0])
        assert told == 60, told


@case
def every_change_is_in_the_audit_trail():
    with Daemon() as d:
        d.start()
        job = d.add(name="audited", command=["sleep", "60"], schedule=["every 1h"])["id"]
        bulk = d.api().post("/v1/jobs/bulk", {"jobs": [{"command": ["true"], "schedule": ["every 1h"]} for _ in range(20)]})
        d.api().post("/v1/jobs/%d/pause" % job, {"reason": "x"})
        d.api().post("/v1/jobs/%d/resume" % job)
        run = d.api().post("/v1/jobs/%d/run" % job)
        d.api().post("/v1/runs/%d/cancel" % run["id"])
        d.api().post("/v1/freeze")
        d.api().post("/v1/thaw")
        put(d, "/v1/queues/q", {"max_running": 3})
        d.api().post("/v1/jobs/%d/cancel" % job)
        d.api().call("DELETE", "/v1/jobs/%d" % job)
        d.kill()
        d.start()
        events = d.api().pages("/v1/events", "events")
        mine = [e["what"] for e in reversed(events) if e["job"] == job and e["uid"] == os.getuid()]
        assert mine == ["job.add", "job.pause", "job.resume", "run.trigger", "run.cancel", "job.cancel", "job.remove"], mine
        assert {e["job"] for e in events if e["what"] == "job.add"} >= {j["id"] for j in bulk["jobs"]}
        for what in ("freeze", "thaw", "queue.set"):
            found = [e for e in events if e["what"] == what]
            assert len(found) == 1 and found[0]["who"] == ME and found[0]["origin"].startswith("unix pid "), (what, found)

@case
def refusals_and_obstacles_show_times_in_the_zone_of_the_user():
    with Daemon() as d:
        d.start()
        d.env["TZ"] = "Asia/Tokyo"
        d.jobctl("add", "--name", "tick", "--every", "1h", "true")
        d.jobctl("pause", "tick", "--until", "2199-01-01T00:00:00Z")
        refused = d.jobctl("run", "tick", check=False).stderr
        assert "until 2199-01-01T09:00:00+09:00" in refused and "Z" not in refused, refused
        d.jobctl("freeze")
        told = d.jobctl("add", "true").stderr
        assert "frozen by" in told and "+09:00" in told and "00Z" not in told, told


@case
def runs_that_a_user_asks_for_do_not_wait_for_an_unsynchronised_clock():
    with open("/proc/uptime") as f:
        up = float(f.read().split()[0])
    before = ["unshare", "--time", "--boottime", "%d" % (20 - up)]  # booted 20 s ago
    if subprocess.run([*before, "true"], capture_output=True).returncode != 0:
        raise Skip("no time namespace")
    with Daemon("time-sync-wait = 3600\n") as d:
        d.start()
        old = d.api().post("/v1/jobs", {"command": ["true"], "schedule": [stamp(3)], "name": "old"})["id"]
        d.stop()
        time.sleep(3)
        d.start(before=before)
        if d.api().get("/v1/status")["clock"] != "unset":
            raise Skip("the kernel reports a synchronised clock")
        slots = d.api().post("/v1/jobs", {"command": ["true"], "schedule": ["every 1s"]})["id"]
        told = d.jobctl("add", "true").stderr
        assert "it runs now" in told, told
        for _ in range(3):
            ran = d.jobctl("add", "--wait", "true", check=False, timeout=60)
            assert ran.returncode == 0 and "succeeded" in ran.stderr, ran
        assert d.jobctl("run", "--wait", str(slots), check=False, timeout=60).returncode == 0
        rated = d.api().post("/v1/jobs", {"command": ["true"], "rate": "5/1s"})["id"]
        for job in (old, slots, rated):
            expect(d, job, "clock", "the clock was not synchronised since the boot", "at most 3")
        expect_listed(d, rated, "clock")
        assert [r["kind"] for r in d.api().pages("/v1/runs?job=%d" % slots, "runs")] == ["manual"]
        assert d.api().pages("/v1/runs?job=%d&state=succeeded" % old, "runs") == []
        d.write_config("time-sync-wait = 0\n")
        d.process.send_signal(signal.SIGHUP)
        for job in (old, slots, rated):
            wait_until("job %d runs after the wait" % job, 30, lambda: [
                r for r in d.api().pages("/v1/runs?job=%d&state=succeeded" % job, "runs") if r["kind"] == "schedule"])


main()
