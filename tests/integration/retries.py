# SPDX-License-Identifier: Apache-2.0
# Runs whose attempts fail, hang, are lost or are shut down, with real processes.
import os
import signal
import sys
import time
from collections import Counter

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, instant, main, wait_until


def attempts(d, run):
    return d.api().get("/v1/runs/%d/attempts" % run)["attempts"]


def outcomes(d, run):
    return [a["outcome"] for a in attempts(d, run)]


def only(d, job):
    found = d.runs(job)
    return found[0] if found else None


def in_state(d, job, state, seconds=20, **more):
    """Waits until the run of a job has this state and these members, and returns it."""
    def there():
        run = only(d, job)
        return run and run["state"] == state and all(run[k] == v for k, v in more.items()) and run
    return wait_until("job %s is %s %s" % (job, state, more or ""), seconds, there)


def tried(log):
    """The attempts that the commands recorded, in their order."""
    if not os.path.exists(log):
        return []
    with open(log) as f:
        return [int(line) for line in f]


def noting(log, then):
    return ["sh", "-c", 'echo $JOBSCHED_ATTEMPT >>"$1"; ' + then, "sh", log]


@case
def five_failures_with_four_retries_make_one_dead_letter():
    with Daemon() as d:
        d.start()
        log = os.path.join(d.dir, "tried")
        job = d.add(retries=4, backoff="fixed:50ms", command=noting(log, "exit 7"))["id"]
        plain = d.add(command=["sh", "-c", "exit 7"])["id"]
        run = d.wait_final(job)
        assert (run["state"], run["exit_code"], run["attempt"], run["failures"], run["lost"]) == ("failed", 7, 5, 5, 0), run
        assert run["reason"] == "retries used up" and run["dead_at"], run
        assert outcomes(d, run["id"]) == ["failed"] * 5
        assert tried(log) == [1, 2, 3, 4, 5]
        assert d.wait_final(plain)["dead_at"] is None
        assert [r["id"] for r in d.api().get("/v1/dead")["runs"]] == [run["id"]]


@case
def the_delays_between_attempts_follow_the_backoff():
    with Daemon() as d:
        d.start()
        spread = [d.add(retries=3, backoff="exp:1h..2h", command=["false"])["id"] for _ in range(60)]
        fixed = [d.add(retries=3, backoff="fixed:10m", command=["false"])["id"] for _ in range(5)]

        def wait_of(job):
            run = in_state(d, job, "queued", attempt=1)
            assert run["reason"] == "retry 1 of 3 after exit code 1", run
            return instant(run["due_at"]) - instant(attempts(d, run["id"])[0]["ended_at"])
        waits = sorted(wait_of(j) for j in spread)
        # fails once in 10^10 by chance: none of 60 draws in a third of the range
        assert 0 <= waits[0] < 1200 and 2400 < waits[-1] < 3605, waits
        for job in fixed:
            assert 600 <= wait_of(job) < 605
        return "%.0f to %.0f s, half below %.0f s" % (waits[0], waits[-1], waits[30])


@case
def exit_code_rules_apply():
    rules = "75=retry,78=dead,0|2=ok,100=pause,3=fail"
    with Daemon() as d:
        d.start()

        def run_of(code):
            job = d.add(on_exit=rules, retries=1, backoff="fixed:50ms", command=["sh", "-c", "exit %d" % code])["id"]
            return d.wait_final(job)
        got = {code: run_of(code) for code in (0, 2, 3, 75, 78, 1)}
        said = {c: (r["state"], r["attempt"], r["dead_at"] is not None) for c, r in got.items()}
        assert said == {0: ("succeeded", 1, False), 2: ("succeeded", 1, False), 3: ("failed", 1, False),
                        75: ("failed", 2, True), 78: ("failed", 1, True), 1: ("failed", 2, True)}, said
        assert outcomes(d, got[2]["id"]) == ["succeeded"]
        assert got[2]["exit_code"] == 2


@case
def an_exit_code_can_pause_the_job():
    with Daemon() as d:
        d.start()
        job = d.add(schedule=["PT1S"], tz="UTC", on_exit="100=pause", retries=5, command=["sh", "-c", "exit 100"])["id"]
        wait_until("it is paused", 20, lambda: d.api().get("/v1/jobs/%d" % job)["state"] == "paused")
        assert d.api().get("/v1/jobs/%d" % job)["reason"] == "exit code 100"
        time.sleep(2.5)
        ran = [r for r in d.runs(job) if r["attempt"] > 0]
        assert [(r["state"], r["exit_code"], r["reason"]) for r in ran] == [("failed", 100, "job paused")], ran
        assert "job.pause" in [e["what"] for e in d.api().get("/v1/events")["events"]]


@case
def a_daemon_killed_between_or_during_attempts_loses_and_repeats_none():
    with Daemon() as d:
        d.start()
        logs = [os.path.join(d.dir, name) for name in ("wait", "attempt")]
        waits = d.add(retries=1, backoff="fixed:2s", command=noting(logs[0], "exit 1"))["id"]
        works = d.add(retries=2, backoff="fixed:100ms", command=noting(logs[1], "sleep 1.5; exit 1"))["id"]
        before = in_state(d, waits, "queued", attempt=1)
        in_state(d, works, "running")
        d.kill()
        d.start()
        after = only(d, waits)
        if after["attempt"] == 1 and after["state"] == "queued":
            assert (after["due_at"], after["reason"]) == (before["due_at"], before["reason"]), after
        in_state(d, works, "running", attempt=2)
        d.kill()
        time.sleep(2)  # the second attempt ends while no daemon is running
        d.start()
        one, other = d.wait_final(waits), d.wait_final(works)
        assert (one["failures"], one["lost"], one["dead_at"] is not None) == (2, 0, True), one
        assert (other["failures"], other["lost"], other["dead_at"] is not None) == (3, 0, True), other
        assert tried(logs[0]) == [1, 2] and tried(logs[1]) == [1, 2, 3]
        assert outcomes(d, one["id"]) == ["failed"] * 2 and outcomes(d, other["id"]) == ["failed"] * 3
        assert instant(attempts(d, one["id"])[1]["started_at"]) >= instant(before["due_at"])


@case
def a_shutdown_of_the_spawner_uses_up_no_retry():
    with Daemon() as d:
        d.start()
        log = os.path.join(d.dir, "tried")
        job = d.add(on_lost="fail", grace=1, command=noting(log, '[ "$JOBSCHED_ATTEMPT" -gt 4 ] || sleep 1000'))["id"]
        for n in range(1, 5):
            in_state(d, job, "running", attempt=n)
            os.kill(d.spawner(), signal.SIGTERM)
        run = d.wait_final(job, 60)
        assert (run["state"], run["attempt"], run["failures"], run["lost"]) == ("succeeded", 5, 0, 0), run
        assert outcomes(d, run["id"]) == ["lost"] * 4 + ["succeeded"]
        assert "stopped" in attempts(d, run["id"])[0]["error"]
        assert tried(log) == [1, 2, 3, 4, 5]


@case
def a_shutdown_of_daemon_and_spawner_uses_up_no_retry():
    with Daemon() as d:
        d.start()
        hangs = d.add(on_lost="fail", grace=1, command=["sh", "-c", '[ "$JOBSCHED_ATTEMPT" -gt 1 ] || sleep 1000'])["id"]
        ends = d.add(on_lost="fail", command=["sh", "-c", "sleep 1; exit 9"])["id"]
        in_state(d, hangs, "running")
        in_state(d, ends, "running")
        spawner = d.spawner()
        assert d.stop() == 0
        time.sleep(1.5)  # one ends while no daemon is running
        os.kill(spawner, signal.SIGTERM)
        wait_until("the spawner has ended", 20, lambda: d.spawner() is None)
        d.start()
        run = d.wait_final(hangs)
        assert (run["state"], run["attempt"], run["lost"]) == ("succeeded", 2, 0), run
        run = d.wait_final(ends)
        assert (run["state"], run["exit_code"], run["attempt"], run["lost"]) == ("failed", 9, 1, 0), run


@case
def a_damaged_file_of_ends_is_ignored():
    with Daemon() as d:
        place = os.path.join(d.state, "output")
        os.makedirs(place)
        with open(os.path.join(place, "ends"), "wb") as f:
            f.write(os.urandom(1000))
        d.start()
        assert d.wait_final(d.add(command=["true"])["id"])["state"] == "succeeded"
        wait_until("the file is removed", 20, lambda: not os.path.exists(os.path.join(place, "ends")))


@case
def a_killed_spawner_counts_as_a_loss_and_on_lost_fail_makes_the_run_final():
    with Daemon() as d:
        d.start()
        again = d.add(retries=1, command=["sh", "-c", '[ "$JOBSCHED_ATTEMPT" -gt 1 ] || sleep 1000'])["id"]
        never = d.add(retries=1, on_lost="fail", command=["sleep", "1000"])["id"]
        in_state(d, again, "running")
        in_state(d, never, "running")
        os.kill(d.spawner(), signal.SIGKILL)
        run = d.wait_final(again, 60)
        assert (run["state"], run["attempt"], run["failures"], run["lost"]) == ("succeeded", 2, 0, 1), run
        run = d.wait_final(never, 60)
        assert (run["state"], run["attempt"], run["failures"], run["lost"]) == ("lost", 1, 0, 1), run
        assert run["dead_at"]
        shown = d.jobctl("wait", "#%d" % run["id"], check=False)
        assert shown.returncode == 10 and " lost" in shown.stderr, shown


@case
def the_time_limit_of_a_run_covers_all_attempts():
    with Daemon() as d:
        d.start()
        many = d.add(retries=100, backoff="fixed:300ms", run_timeout=2, command=["sh", "-c", "sleep 0.2; exit 1"])["id"]
        hangs = d.add(retries=3, backoff="fixed:300ms", timeout=30, run_timeout=1.5, grace=0.2,
                      command=["sh", "-c", 'trap "" TERM; [ "$JOBSCHED_ATTEMPT" -gt 1 ] || exit 1; sleep 1000'])["id"]
        run = d.wait_final(many)
        assert (run["state"], run["reason"], bool(run["dead_at"])) == ("timed_out", "run timeout", True), run
        assert 3 <= run["attempt"] <= 5, run
        assert instant(run["ended_at"]) < instant(run["first_start"]) + 2.2, run
        run = d.wait_final(hangs)
        assert (run["state"], run["reason"], run["attempt"], bool(run["dead_at"])) == ("timed_out", "run timeout", 2, True), run
        assert 1.5 <= instant(run["ended_at"]) - instant(run["first_start"]) < 3, run
        assert outcomes(d, run["id"]) == ["failed", "timed_out"]


@case
def a_run_that_ignores_sigterm_is_killed_with_all_its_processes():
    with Daemon() as d:
        d.start()
        script = 'trap "" TERM; sleep 1001 & setsid sleep 1001 & (setsid sh -c "sleep 1001 & sleep 1001" &); sleep 1001'
        job = d.add(timeout=0.5, grace=0.5, retries=1, backoff="fixed:50ms", command=["sh", "-c", script])["id"]
        run = d.wait_final(job, 60)
        assert (run["state"], run["signal"], run["attempt"], run["failures"]) == ("timed_out", 9, 2, 2), run
        assert run["dead_at"] and run["reason"] == "retries used up", run
        for a in attempts(d, run["id"]):
            took = instant(a["ended_at"]) - instant(a["started_at"])
            assert a["outcome"] == "timed_out" and 1.0 <= took < 20, a
        wait_until("all processes have ended", 10, lambda: not [w for w in d.processes().values() if "sleep 1001" in w])
        # a signal that the spawner did not send is a failure
        run = d.wait_final(d.add(command=["sh", "-c", "kill -9 $$"])["id"])
        assert (run["state"], run["signal"], run["reason"]) == ("failed", 9, None), run


@case
def dead_letters_are_retried_and_purged_by_filter():
    with Daemon() as d:
        d.start()
        mended = os.path.join(d.dir, "mended")
        jobs = [d.add(name="j%d" % i, on_exit="1=dead", command=["test", "-e", mended])["id"] for i in range(7)]
        runs = [d.wait_final(j)["id"] for j in jobs]
        dead = lambda query="": {r["id"] for r in d.api().pages("/v1/dead" + query, "runs")}
        assert dead() == set(runs) and dead("?job=j3") == {runs[3]}
        answer = d.api().post("/v1/dead/purge?job=j0")
        assert (answer["count"], answer["refused"], answer["next_cursor"]) == (1, 0, None), answer
        assert d.api().get("/v1/runs/%d" % runs[0])["state"] == "failed"
        died = sorted(r["dead_at"] for r in d.api().pages("/v1/dead", "runs"))
        assert d.api().post("/v1/dead/purge?until=" + died[1])["count"] == 1
        assert len(dead()) == 5
        assert d.api().call("DELETE", "/v1/jobs/j6")[0] == 200
        open(mended, "w").close()
        count, refused, steps, cursor = 0, 0, 0, ""
        while cursor is not None:
            answer = d.api().post("/v1/dead/retry?limit=2" + (cursor and "&cursor=" + cursor))
            count, refused, steps = count + answer["count"], refused + answer["refused"], steps + 1
            cursor = answer["next_cursor"]
            if answer["refused"]:
                assert "was removed" in answer["refused_because"], answer
        assert (count, refused) == (4, 1) and steps >= 3, (count, refused, steps)
        assert len(dead()) == 1

        def states():
            return Counter(d.api().get("/v1/runs/%d" % r)["state"] for r in runs)
        wait_until("all retried runs have ended", 20, lambda: states() == {"succeeded": 4, "failed": 3})
        assert all(d.api().get("/v1/jobs/%d" % j)["state"] == "finished" for j in jobs[:6])


@case
def a_dead_letter_survives_a_killed_daemon_and_keeps_its_attempts():
    with Daemon() as d:
        d.start()
        mended = os.path.join(d.dir, "mended")
        job = d.add(retries=1, backoff="fixed:50ms", command=["test", "-e", mended])["id"]
        run = d.wait_final(job)
        d.kill()
        d.start()
        assert [r["dead_at"] for r in d.api().get("/v1/dead")["runs"]] == [run["dead_at"]]
        open(mended, "w").close()
        d.api().post("/v1/runs/%d/retry" % run["id"])
        again = d.wait_final(job)
        assert (again["id"], again["state"], again["attempt"], again["failures"]) == (run["id"], "succeeded", 3, 0), again
        assert outcomes(d, run["id"]) == ["failed", "failed", "succeeded"]
        assert d.api().get("/v1/dead")["runs"] == []


@case
def a_run_keeps_its_permit_while_it_waits_for_a_retry():
    with Daemon() as d:
        d.start()
        job = d.add(schedule=["PT1S"], tz="UTC", retries=1, backoff="fixed:2500ms",
                    command=["sh", "-c", '[ "$JOBSCHED_ATTEMPT" -gt 1 ]'])["id"]

        def done():
            return [r for r in d.runs(job) if r["attempt"] == 2 and r["state"] == "succeeded"]
        first = wait_until("one run has been retried", 20, done)[-1]
        for r in d.runs(job):
            if first["slot"] < r["slot"] < first["ended_at"] and r["state"] != "queued":
                assert (r["state"], r["reason"]) == ("skipped", "overlap"), r


main()
