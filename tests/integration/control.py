# SPDX-License-Identifier: Apache-2.0
# Tests pauses, freezes and triggers with real processes, also across restarts and crashes of the daemon.
import os
import sys
import time
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, instant, main, wait_until

SHORT = 2.5


def soon(seconds):
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def tick(d, name, **more):
    return d.add(name=name, command=["true"], schedule=["* * * * * *"], **more)["id"]


def states(d, job):
    return [(r["state"], r["reason"]) for r in reversed(d.runs(job)) if r["state"] != "queued"]


def assert_skipped_then_run(d, job, word, end):
    """Slots decided before the end of the pause are skipped, later ones run; a slow disk may delay the decision."""
    wait_until("a run after the pause", 30,
               lambda: any(r["state"] == "succeeded" and instant(r["slot"]) > end for r in d.runs(job)))
    over = [r for r in reversed(d.runs(job)) if r["state"] != "queued"]
    skipped = [r for r in over if (r["state"], r["reason"]) == ("skipped", word)]
    assert skipped, over
    assert all(instant(r["slot"]) <= end for r in skipped), (end, skipped)
    ran = [r for r in over if r["state"] == "succeeded"]
    assert all(instant(r["slot"]) < instant(skipped[0]["slot"]) or instant(r["claimed_at"]) >= end for r in ran), over


@case
def each_scope_pauses_its_jobs_until_its_end():
    with Daemon() as d:
        d.start()
        uid = str(os.getuid())
        for scope, body in (("all", {"scope": "all"}), ("tag", {"scope": "tag", "key": "env=test"}),
                            ("owner", {"scope": "owner", "owner": uid}), ("queue", {"scope": "queue", "key": "default"})):
            job = tick(d, scope, tags={"env": "test"})
            other = tick(d, "other-" + scope) if scope == "tag" else None
            d.api().post("/v1/pause", dict(body, reason="test"))
            shown = d.api().get("/v1/pauses")["pauses"]
            assert [p["scope"] for p in shown] == [scope] and shown[0]["reason"] == "test", shown
            wait_until("a skipped slot of " + scope, 30, lambda: ("skipped", "paused") in states(d, job))
            until = soon(SHORT)
            d.api().post("/v1/pause", dict(body, until=until, reason="test"))
            wait_until("the pause of %s ends" % scope, 20, lambda: not d.api().get("/v1/pauses")["pauses"])
            late = time.time() - instant(until)
            assert late >= 0, late
            assert_skipped_then_run(d, job, "paused", instant(until))
            assert not other or ("skipped", "paused") not in states(d, other)
            d.jobctl("cancel", scope)


@case
def a_pause_with_an_end_ends_automatically():
    with Daemon() as d:
        d.start()
        job = tick(d, "tick")
        wait_until("a first run", 20, lambda: ("succeeded", None) in states(d, job))
        d.jobctl("pause", "tick", "--reason", "too loud")
        wait_until("a skipped slot", 30, lambda: ("skipped", "paused") in states(d, job))
        until = soon(2)
        d.jobctl("pause", "tick", "--until", until, "--reason", "too loud")
        end = instant(until)
        wait_until("it is active again", 20, lambda: d.api().get("/v1/jobs/tick")["state"] == "active")
        late = time.time() - end
        assert late >= 0, late
        assert_skipped_then_run(d, job, "paused", end)
        return "seen %.0f ms after its end" % (late * 1000)


@case
def a_freeze_stops_all_jobs_except_spared_ones():
    with Daemon() as d:
        d.start()
        cold, warm = tick(d, "cold"), tick(d, "warm", tags={"keep": "yes"})
        d.jobctl("freeze", "--except", "keep=yes", "--reason", "works")
        wait_until("two skipped slots", 20, lambda: states(d, cold).count(("skipped", "frozen")) >= 2)
        assert ("skipped", "frozen") not in states(d, warm)
        once = d.add(command=["true"])["id"]
        refused = d.jobctl("run", "cold", check=False)
        assert refused.returncode == 6 and "frozen by" in refused.stderr and "thaw" in refused.stderr, refused
        wait_until("the one-shot is held", 10, lambda: d.runs(once)[0]["reason"] == "frozen")
        d.jobctl("run", "cold", "--force", "--wait")
        d.jobctl("thaw")
        assert d.wait_final(once)["state"] == "succeeded"
        wait_until("slots run again", 20, lambda: states(d, cold)[-1] == ("succeeded", None))


@case
def a_run_that_cannot_be_skipped_waits_for_resume_across_a_crash():
    with Daemon() as d:
        d.start()
        mark = os.path.join(d.dir, "mark")
        once = d.add(name="once", command=["touch", mark], schedule=["now + 2s"])["id"]
        ticking = tick(d, "tick")
        d.jobctl("pause", "once", "tick", "--reason", "crash")
        wait_until("the one-shot is held", 15, lambda: any(r["reason"] == "paused" for r in d.runs(once)))
        d.kill()
        d.start()
        assert d.api().get("/v1/jobs/once")["state"] == "paused"
        wait_until("slots are skipped after the crash", 20, lambda: states(d, ticking)[-1:] == [("skipped", "paused")])
        assert not os.path.exists(mark)
        assert d.runs(once)[0]["state"] == "queued"
        said = d.jobctl("resume", "once", "tick").stderr
        assert "1 run that was held back" in said, said
        assert d.wait_final(once)["state"] == "succeeded"
        assert os.path.exists(mark)
        assert d.api().get("/v1/jobs/once")["state"] == "finished"


@case
def a_pause_that_expired_while_the_daemon_was_down_ends_at_its_start():
    with Daemon() as d:
        d.start()
        job = d.add(name="gone", command=["true"], schedule=["every 1h"])["id"]
        d.jobctl("pause", "gone", "--until", "1s")
        d.jobctl("freeze", "--until", "1s")
        d.kill()
        time.sleep(1.2)
        d.start()
        wait_until("both are over", 10, lambda: d.api().get("/v1/jobs/%d" % job)["state"] == "active" and
                   not d.api().get("/v1/pauses")["pauses"])


@case
def a_pause_lists_running_runs_which_continue():
    with Daemon() as d:
        d.start()
        job = d.add(name="busy", command=["sleep", "3"])["id"]
        d.wait_running(job)
        said = d.jobctl("pause", "busy").stderr
        assert "run busy#%d is still running" % d.runs(job)[0]["id"] in said, said
        assert d.wait_final(job)["state"] == "succeeded"
        assert d.api().get("/v1/jobs/busy")["state"] == "paused"
        d.jobctl("resume", "busy")
        assert d.api().get("/v1/jobs/busy")["state"] == "finished"


@case
def after_finish_and_manual_jobs_obey_a_pause():
    with Daemon() as d:
        d.start()
        follows = d.add(name="follows", command=["true"], schedule=["after-finish 1s"])["id"]
        d.add(name="hand", command=["true"], schedule=["manual"])
        wait_until("a first run", 20, lambda: ("succeeded", None) in states(d, follows))
        d.jobctl("pause", "follows", "hand")
        wait_until("two skipped slots", 20, lambda: states(d, follows).count(("skipped", "paused")) >= 2)
        assert d.jobctl("run", "hand", check=False).returncode == 6
        d.jobctl("resume", "follows", "hand")
        wait_until("it runs again", 20, lambda: states(d, follows)[-1] == ("succeeded", None))
        d.jobctl("run", "hand", "--wait")
        assert d.api().get("/v1/jobs/hand")["state"] == "active"


@case
def run_exits_like_wait_and_passes_parameters():
    with Daemon() as d:
        d.start()
        out = os.path.join(d.dir, "out")
        d.add(name="greet", script='printf %%s "$JOBSCHED_PARAM_WHO" >%s' % out, schedule=["manual"], params={"WHO": "you"})
        d.jobctl("run", "greet", "--param", "WHO=me too; true", "--wait")
        with open(out) as f:
            assert f.read() == "me too; true"
        d.jobctl("run", "greet", "--wait")
        with open(out) as f:
            assert f.read() == "you"
        assert d.jobctl("run", "greet", "--param", "WHOM=x", check=False).returncode == 2
        d.add(name="fails", command=["false"], schedule=["manual"])
        assert d.jobctl("run", "fails", "--wait", check=False).returncode == 10
        d.add(name="slow", command=["sleep", "30"], schedule=["manual"], timeout="200ms", grace="1s")
        assert d.jobctl("run", "slow", "--wait", check=False).returncode == 13
        first = d.jobctl("run", "fails").stdout.strip()
        assert d.jobctl("wait", first, check=False).returncode == 10


@case
def a_trigger_obeys_overlap_unless_forced():
    with Daemon() as d:
        d.start()
        d.add(name="one", command=["sleep", "300"], schedule=["manual"])
        d.jobctl("run", "one")
        d.wait_running("one")
        assert d.jobctl("run", "one", "--wait", check=False).returncode == 12
        d.jobctl("run", "one", "--force")
        wait_until("two at a time", 60, lambda: sum(r["state"] == "running" for r in d.runs("one")) == 2)
        d.jobctl("cancel", "one", "--running")


@case
def a_job_added_paused_waits_for_resume():
    with Daemon() as d:
        d.start()
        d.jobctl("add", "-n", "later", "--paused", "--", "true")
        wait_until("its run is held", 10, lambda: d.runs("later") and d.runs("later")[0]["reason"] == "paused")
        d.jobctl("resume", "later")
        assert d.wait_final("later")["state"] == "succeeded"


@case
def a_held_run_expires_at_its_deadline_and_is_reported():
    """A run held by a pause or a full queue is recorded, a waiting client is answered, and the notice is sent."""
    with Daemon() as d:
        d.start()
        d.jobctl("queue", "add", "narrow", "--running", "1")
        d.add(name="busy", command=["sleep", "120"], queue="narrow")
        d.wait_running("busy")
        for name, word, more in (("paused", "paused", ["--paused"]), ("crowded", "limit", ["--queue", "narrow"])):
            told = os.path.join(d.dir, name)
            d.jobctl("add", "-n", name, "--deadline", "1s", "--notify", "exec:echo \"$JOBSCHED_NOTICE_KIND\" >'%s'" % told, *more,
                     "--", "true")
            assert d.jobctl("wait", name, check=False, timeout=60).returncode not in (0, 124)
            run = d.runs(name)[0]
            assert (run["state"], run["reason"]) == ("expired", "deadline (%s)" % word), run
            wait_until("the notice of " + name, 30, lambda: os.path.exists(told) and os.path.getsize(told))
        assert [r["state"] for r in d.runs("busy")] == ["running"]


main()
