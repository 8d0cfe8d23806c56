# SPDX-License-Identifier: Apache-2.0
# Tests changes of due and running jobs, their history, and templates with hostile values.
import os
import random
import sys
import time
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import case, Daemon, instant, main, wait_until


def patch(d, job, **members):
    for _ in range(40):
        status, answer = d.api().call("PATCH", "/v1/jobs/%s" % job, members)
        if status != 503:
            break
        time.sleep(0.05)
    assert status == 200, (status, answer)
    return answer


def slots(d, job):
    return sorted(instant(r["slot"]) for r in d.runs(job) if r["kind"] == "schedule")


@case
def a_running_attempt_continues_and_the_next_uses_the_new_definition():
    with Daemon() as d:
        d.start()
        job = d.add(name="long", command=["sh", "-c", "sleep 1; echo old"])
        wait_until("it runs", 10, lambda: any(r["state"] in ("claimed", "running") for r in d.runs(job["id"])))
        after = patch(d, "long", command=["echo", "new"])
        assert after["revision"] == 2 and after["changed"] is True
        run = d.wait_final(job["id"])
        run = run[0] if isinstance(run, list) else run
        assert run["state"] == "succeeded" and run["revision"] == 1, run
        assert d.jobctl("log", "#%d" % run["id"]).stdout == "old\n"
        text = d.jobctl("show", "#%d" % run["id"]).stdout
        assert "revision      1" in text and "sleep 1" in text, text


@case
def changes_within_the_planning_horizon_neither_lose_nor_duplicate_a_slot():
    """A job that runs every second is changed repeatedly; each second has exactly one run."""
    with Daemon() as d:
        d.start()
        job = d.add(name="tick", schedule=["* * * * * *"], command=["true"], overlap="allow")["id"]
        began = time.time()
        wait_until("it ticks", 15, lambda: len(slots(d, job)) > 6)
        n = 0
        while time.time() < began + 14:
            patch(d, job, schedule=["*/1 * * * * *"] if n % 2 else ["* * * * * *"], priority=n % 7)
            n += 1
            time.sleep(random.random() * 0.3)
        patch(d, job, schedule=["0 0 1 1 *"])
        time.sleep(1.5)
        seen = slots(d, job)
        assert len(seen) == len(set(seen)), "a slot has two runs"
        gaps = [b - a for a, b in zip(seen, seen[1:]) if b - a > 1]
        assert not gaps, "slots are missing: %s" % gaps
        states = Counter(r["state"] for r in d.runs(job))
        assert set(states) <= {"succeeded"}, states
        return "%d changes, %d slots" % (n, len(seen))


@case
def a_new_schedule_does_not_start_a_run():
    with Daemon() as d:
        d.start()
        job = d.add(name="later", schedule=["0 0 1 1 *"], command=["true"])["id"]
        patch(d, job, schedule=["every 1h"])
        patch(d, job, schedule=["0 0 * * *"], tz="Asia/Tokyo")
        time.sleep(1)
        assert d.runs(job) == []
        status, answer = d.api().call("PATCH", "/v1/jobs/later", {"schedule": ["now"]})
        assert status == 400 and answer["error"]["field"] == "schedule", answer


@case
def a_name_does_not_move_the_slots_of_h():
    with Daemon() as d:
        d.start()
        job = d.add(schedule=["H H * * *"], tz="UTC", command=["true"])["id"]
        wait_until("its slot is known", 10, lambda: d.api().get("/v1/jobs/%d" % job)["next_at"])
        before = d.api().get("/v1/jobs/%d" % job)["next_at"]
        for name in ("first", "second", None, "third"):
            assert patch(d, job, name=name)["next_at"] == before, name


@case
def a_killed_daemon_leaves_a_change_complete_or_undone():
    with Daemon() as d:
        d.start()
        job = d.add(name="k", schedule=["0 0 1 1 *"], command=["echo", "0"])["id"]
        done = 0
        for round in range(3):
            api = d.api()
            end = time.monotonic() + 0.4 + random.random() * 0.3
            while time.monotonic() < end:
                try:
                    status, answer = api.call("PATCH", "/v1/jobs/%d" % job, {"command": ["echo", str(done + 1)]})
                except OSError:
                    break
                assert status == 200, answer
                done += 1
            d.kill()
            d.start()
            now = d.api().get("/v1/jobs/%d" % job)
            history = d.api().get("/v1/jobs/%d/revisions" % job)["revisions"]
            assert now["command"] in (["echo", str(done)], ["echo", str(done + 1)]), (now["command"], done)
            assert history[0]["revision"] == now["revision"] and history[0]["definition"]["command"] == now["command"]
            done = int(now["command"][1])
            assert now["revision"] == done + 1
        return "%d changes" % done


@case
def a_conflict_reports_the_revision_and_a_change_without_one_is_retried():
    with Daemon() as d:
        d.start()
        d.add(name="c", schedule=["0 0 1 1 *"], command=["true"])
        patch(d, "c", priority=1)
        status, answer = d.api().call("PATCH", "/v1/jobs/c", {"priority": 2, "revision": 1})
        assert status == 409 and "revision 2" in answer["error"]["message"], answer
        assert patch(d, "c", tags={"a": "b"})["priority"] == 1
        assert patch(d, "c", tags={"a": None, "x": "y"})["tags"] == {"x": "y"}
        assert patch(d, "c", priority=None)["priority"] == 0
        assert patch(d, "c", priority=0)["changed"] is False


@case
def undo_goes_back_step_by_step_and_history_shows_it():
    with Daemon() as d:
        d.start()
        d.add(name="u", schedule=["0 0 1 1 *"], command=["true"], priority=1)
        for p in (2, 3):
            patch(d, "u", priority=p)
        seen = [d.api().post("/v1/jobs/u/undo")["priority"] for _ in range(2)]
        assert seen == [2, 1], seen
        status, answer = d.api().call("POST", "/v1/jobs/u/undo", {})
        assert status == 409 and "nothing to undo" in answer["error"]["message"], answer
        assert d.api().post("/v1/jobs/u/undo", {"to": 3})["priority"] == 3
        history = d.api().get("/v1/jobs/u/revisions")["revisions"]
        assert [r["undo_to"] for r in history] == [3, 1, 2, None, None, None], history
        assert history[-1]["what"] == "added" and history[-2]["what"] == "priority 1 → 2", history


@case
def a_new_schedule_reactivates_a_finished_job_but_not_a_cancelled_one():
    with Daemon() as d:
        d.start()
        job = d.add(name="once", command=["true"])["id"]
        d.wait_final(job)
        wait_until("it is finished", 10, lambda: d.api().get("/v1/jobs/%d" % job)["state"] == "finished")
        assert patch(d, job, priority=3)["state"] == "finished"
        assert patch(d, job, schedule=["in 1 second"] if False else ["now + 1 second"])["state"] == "active"
        wait_until("it ran again", 10, lambda: len(d.runs(job)) == 2)
        wait_until("it is finished", 10, lambda: d.api().get("/v1/jobs/%d" % job)["state"] == "finished")
        other = d.add(name="gone", schedule=["0 0 1 1 *"], command=["true"])["id"]
        d.api().post("/v1/jobs/%d/cancel" % other)
        status, answer = d.api().call("PATCH", "/v1/jobs/%d" % other, {"priority": 1})
        assert status == 409 and "jobctl resume" in answer["error"]["message"], answer


HOSTILE = ["; rm -rf /", "'\"`$(touch owned)`\"'", "a\nb\n\nc", "--help", "-", "", " ", "{x}", "%s%n", "ünï", "\t\\", "$HOME"]


@case
def hostile_parameters_are_passed_unchanged_as_one_argument():
    with Daemon() as d:
        d.start()
        show = "import os,sys,json; json.dump([sys.argv[1:], os.environ['JOBSCHED_PARAM_x']], open(sys.argv[2], 'w'))"
        status, answer = d.api().call("PUT", "/v1/templates/t", {
            "params": {"x": None, "out": None}, "command": [sys.executable, "-c", show, "{x}", "{out}", "a{x}b", "{{x}"]})
        assert status == 201, answer
        import json
        for i, value in enumerate(HOSTILE):
            out = os.path.join(d.dir, "out%d" % i)
            job = d.add(template="t", params={"x": value, "out": out})["id"]
            d.wait_final(job)
            with open(out) as f:
                argv, environ = json.load(f)
            assert argv == [value, out, "a%sb" % value, "{x}"], (value, argv)
            assert environ == value
        assert not os.path.exists(os.path.join(d.dir, "owned"))


@case
def missing_unknown_and_shell_parameters_are_refused():
    with Daemon() as d:
        d.start()
        call = d.api().call
        assert call("PUT", "/v1/templates/t", {"params": {"host": None, "days": "7"}, "command": ["b", "{host}", "{days}"]})[0] == 201
        for params in ({}, {"host": "a", "hots": "b"}):
            status, answer = call("POST", "/v1/jobs", {"template": "t", "params": params})
            assert status == 400 and answer["error"]["field"] == "params" and "days, host" in answer["error"]["message"], answer
        for bad in ({"command": ["b", "{nope}"]}, {"script": "echo {host}"}, {"command": ["sh", "-c", "echo {host}"]}):
            status, answer = call("PUT", "/v1/templates/u", dict(bad, params={"host": None}))
            assert status == 400, (bad, answer)
        status, answer = call("POST", "/v1/jobs", {"template": "none"})
        assert status == 404 and "template list" in answer["error"]["message"], answer
        job = d.add(template="t", params={"host": "a"}, schedule=["manual"], name="j")["id"]
        assert call("DELETE", "/v1/templates/t")[0] == 200
        assert d.api().get("/v1/jobs/%d" % job)["params"] == {"days": "7", "host": "a"}


@case
def an_existing_name_is_kept_or_replaced_on_request():
    with Daemon() as d:
        d.start()
        job = {"name": "n", "schedule": ["every 1h"], "command": ["true"]}
        first = d.add(**job)
        assert d.api().call("POST", "/v1/jobs", dict(job, command=["false"]))[0] == 409
        kept = d.api().post("/v1/jobs", dict(job, command=["false"], if_exists="keep"))
        assert kept["existed"] and not kept["replaced"] and kept["command"] == ["true"] and kept["id"] == first["id"]
        same = d.api().post("/v1/jobs", dict(job, if_exists="replace"))
        assert same["existed"] and not same["replaced"] and same["revision"] == 1 and same["next_at"] == first["next_at"]
        new = d.api().post("/v1/jobs", dict(job, command=["false"], if_exists="replace"))
        assert new["replaced"] and new["revision"] == 2 and new["command"] == ["false"] and new["id"] == first["id"]
        bulk = d.api().post("/v1/jobs/bulk", {"jobs": [dict(job, command=["a"], if_exists="replace"), {"command": ["true"]}]})
        assert [j["replaced"] for j in bulk["jobs"]] == [True, False], bulk


if __name__ == "__main__":
    main()
