# SPDX-License-Identifier: Apache-2.0
# Limits of queues, owners and the node, with real processes: no limit is exceeded and no run is starved.
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, FINAL, Daemon, Skip, case, instant, main, need_program, need_root, wait_until

FILL = os.path.join(BUILD, "tests", "integration", "fill_store")


def put(d, path, body=None, **query):
    words = "&".join("%s=%s" % pair for pair in query.items())
    status, answer = d.api().call("PUT", path + ("?" + words if words else ""), body or {})
    assert status in (200, 201), (path, status, answer)
    return answer


def add_many(d, n, command, **spec):
    answer = d.api().post("/v1/jobs/bulk", {"jobs": [dict(command=command, **spec) for _ in range(n)]})
    return [j["id"] for j in answer["jobs"]]


def fill(d, uid, count, command, queue="default", priority=0, run_at=0.0, next_slot=0.0, **spec):
    """Adds jobs of another owner while no daemon is running."""
    text = json.dumps(dict(command=command, tz="UTC", **spec), separators=(",", ":"), sort_keys=True)
    words = [FILL, d.db_path, uid, "user%d" % uid, count, queue, priority, int(run_at * 1000000),
             int(next_slot * 1000000), text]
    result = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return [int(line) for line in result.stdout.split()]


def done(d, jobs, seconds=60):
    """The runs of these jobs when all have ended, in the order of their starts."""
    wanted = set(jobs)

    def over():
        mine = [r for r in d.runs() if r["job"] in wanted]
        return len(mine) == len(wanted) and all(r["state"] in FINAL for r in mine) and mine
    runs = wait_until("%d runs have ended" % len(wanted), seconds, over, pause=0.2)
    assert {r["state"] for r in runs} == {"succeeded"}, runs
    return sorted(runs, key=lambda r: r["started_at"])


def most_at_once(runs):
    marks = [(instant(r["started_at"]), 1) for r in runs] + [(instant(r["ended_at"]), -1) for r in runs]
    most = now = 0
    for _, step in sorted(marks):
        now += step
        most = max(most, now)
    return most


@case
def a_queue_runs_as_many_jobs_at_a_time_as_its_limit():
    with Daemon() as d:
        d.start()
        for name, limit in (("one", 1), ("two", 2)):
            put(d, "/v1/queues/" + name, {"max_running": limit})
        jobs = {q: add_many(d, 4, ["sleep", "0.3"], queue=q) for q in ("one", "two")}
        free = add_many(d, 4, ["sleep", "0.3"])
        assert most_at_once(done(d, jobs["one"])) == 1
        assert most_at_once(done(d, jobs["two"])) == 2
        assert most_at_once(done(d, free)) > 2
        holds = {q["name"]: (q["active"], q["queued"], q["jobs"]) for q in d.api().get("/v1/queues")["queues"]}
        assert holds == {"default": (0, 0, 0), "one": (0, 0, 0), "two": (0, 0, 0)}, holds


@case
def waiting_runs_start_at_once_when_a_limit_is_removed():
    with Daemon() as d:
        d.start()
        me = os.geteuid()
        put(d, "/v1/queues/q", {"max_running": 1})
        for path, first, then in (("/v1/queues/q", 1, None), ("/v1/owners/%d" % me, 1, 50)):
            put(d, path, {"max_running": first})
            jobs = add_many(d, 4, ["sleep", "20"], queue="q")

            def running():
                return [r for r in d.runs() if r["job"] in jobs and r["state"] in ("claimed", "running")]
            wait_until("one of them runs", 10, lambda: len(running()) == 1)
            time.sleep(0.3)
            assert len(running()) == 1
            put(d, path, {"max_running": then})
            wait_until("all run", 15, lambda: len(running()) == 4)
            for job in jobs:
                d.api().post("/v1/jobs/%d/cancel" % job, {"running": True})


@case
def a_rate_spaces_the_starts():
    with Daemon() as d:
        d.start()
        put(d, "/v1/queues/slow", {"rate": "4/1s:1"})
        starts = [instant(r["claimed_at"]) for r in done(d, add_many(d, 7, ["true"], queue="slow"))]
        # the rate counts claims; the delay from claim to start varies
        assert starts[-1] - starts[0] > 6 * 0.25 - 0.2, starts
        assert starts[-1] - starts[0] < 20, starts


@case
def runs_above_the_rate_of_queue_owner_or_job_wait():
    with Daemon() as d:
        d.start()
        put(d, "/v1/queues/slow", {"rate": "1/1h:3"})

        def states(jobs):
            return sorted(r["state"] for r in d.runs() if r["job"] in jobs)
        for what in ("queue", "job", "owner"):
            if what == "owner":
                put(d, "/v1/owners/%d" % os.geteuid(), {"rate": "1/1h:3"})
            if what == "job":
                jobs = [d.add(command=["true"], rate="1/1h:3", overlap="queue:9", schedule=["* * * * * *"])["id"]]
            else:
                jobs = add_many(d, 5, ["true"], **({"queue": "slow"} if what == "queue" else {}))
            wait_until("three ran by the rate of the %s" % what, 15, lambda: states(jobs).count("succeeded") == 3)
            time.sleep(1.2)
            assert states(jobs).count("succeeded") == 3 and states(jobs).count("queued") >= 2, (what, states(jobs))
            for job in jobs:
                d.api().post("/v1/jobs/%d/cancel" % job)


@case
def the_limit_of_an_owner_applies_to_all_queues():
    with Daemon() as d:
        d.start()
        put(d, "/v1/queues/other")
        put(d, "/v1/owners/%d" % os.geteuid(), {"max_running": 2})
        jobs = add_many(d, 3, ["sleep", "0.3"]) + add_many(d, 3, ["sleep", "0.3"], queue="other")
        assert most_at_once(done(d, jobs)) == 2


@case
def queues_share_the_node_by_their_weights():
    with Daemon("max-running = 8\n") as d:
        d.start()
        put(d, "/v1/queues/heavy", {"weight": 300})
        put(d, "/v1/queues/light", {"weight": 100})
        jobs = {q: set(add_many(d, 40, ["sleep", "0.1"], queue=q)) for q in ("light", "heavy")}
        runs = done(d, jobs["heavy"] | jobs["light"])
        heavy_end = max(instant(r["started_at"]) for r in runs if r["job"] in jobs["heavy"])
        together = [r for r in runs if instant(r["started_at"]) <= heavy_end]
        ratio = 40 / sum(r["job"] in jobs["light"] for r in together[8:])  # the first eight started before the other queue had runs
        assert 2 <= ratio <= 4.5, ratio
        return "%.1f runs of weight 300 for one of weight 100" % ratio


@case
def a_run_that_waits_long_enough_overtakes_a_higher_priority():
    with Daemon("max-running = 1\n") as d:
        d.start()
        assert d.stop() == 0
        now = time.time()
        many = fill(d, 0, 20, ["true"], run_at=now)
        young = fill(d, 0, 1, ["true"], priority=-5, run_at=now)
        old = fill(d, 0, 1, ["true"], priority=-5, run_at=now - 600)
        d.start()
        order = [r["job"] for r in done(d, many + young + old)]
        assert order[0] == old[0], order
        assert order[-1] == young[0], order


@case
def the_limit_of_the_node_is_fixed_or_automatic():
    with Daemon("max-running = 3\n") as d:
        d.start()
        assert most_at_once(done(d, add_many(d, 9, ["sleep", "0.2"]))) == 3
        status = d.api().get("/v1/status")
        assert (status["max_running"], status["max_running_auto"], status["owner_max_running"]) == (3, False, None), status
        assert "limit   3 at a time, pinned by the configuration" in d.jobctl("status").stdout
        assert d.stop() == 0
        d.write_config("max-running = auto\nowner-max-running = 50%\n")
        d.start()
        status = d.api().get("/v1/status")
        assert status["max_running"] >= 64 and status["max_running_auto"], status
        assert status["owner_max_running"] == status["max_running"] // 2, status
        assert status["machine"]["load"] is not None, status
        assert "by the number of cores" in d.jobctl("status").stdout


@case
def a_run_waits_for_an_idle_machine_with_a_reason():
    with Daemon() as d:
        d.start()
        waits = d.add(command=["true"], when=["load<0.001"])["id"]
        runs = d.add(command=["true"], when=["load<100000"])["id"]
        assert d.wait_final(runs)["state"] == "succeeded"
        found = wait_until("it waits", 10, lambda: [r for r in d.runs(waits) if r["reason"] == "condition"])
        assert found[0]["state"] == "queued"
        again = instant(found[0]["due_at"])  # all runs with conditions are checked at the same time
        assert again % 15 == 0 and 0 < again - instant(found[0]["slot"]) <= 15.5, found


@case
def a_condition_without_a_figure_is_reported_when_adding_and_while_waiting():
    need_root()
    need_program("unshare")
    hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc/pressure && exec "$@"', "sh"]
    if subprocess.run([*hide, "true"], capture_output=True).returncode != 0:
        raise Skip("nothing can be mounted here")
    with Daemon() as d:
        d.start(before=hide)
        assert d.api().get("/v1/status")["machine"]["memory"] is None
        answer = d.add(command=["true"], when=["memory<50"])
        assert [f["code"] for f in answer["findings"]] == ["when-unknown"], answer
        found = wait_until("it waits", 10, lambda: [r for r in d.runs(answer["id"]) if r["reason"] == "condition unknown"])
        assert found[0]["state"] == "queued"
        said = d.jobctl("add", "--when", "memory<50", "--dry-run", "--", "true").stdout
        assert "this machine does not report 'memory'" in said, said


main()
