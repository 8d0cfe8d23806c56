# SPDX-License-Identifier: Apache-2.0
# Jobs that run after other jobs: conditions, a diamond, retries, a long chain, and kills in the middle.
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until


def ended(d, job, n=1, seconds=60):
    """Waits until the job has n runs and all have ended, and returns them."""
    def there():
        runs = d.runs(job)
        return len(runs) >= n and all(r["ended_at"] for r in runs) and runs
    return wait_until("%d runs of job %s have ended" % (n, job), seconds, there)


def refused(d, status, word, **spec):
    got, answer = d.api().call("POST", "/v1/jobs", dict(command=["true"], **spec))
    assert got == status and word in answer["error"]["message"], (got, answer)


@case
def a_child_runs_once_per_slot_of_its_parent_if_the_condition_holds():
    with Daemon() as d:
        d.start()
        out = os.path.join(d.dir, "out")
        # the first attempt fails, the retry succeeds: one end of the run
        d.add(name="parent", schedule="manual", retries=1, backoff="fixed:50ms", params={"color": "blue"},
              command=["sh", "-c", "[ $JOBSCHED_ATTEMPT = 2 ]"])
        d.add(name="good", after=["parent"], command=[
            "sh", "-c", 'echo $JOBSCHED_PARENT_NAME $JOBSCHED_PARENT_STATE $JOBSCHED_PARENT_EXIT_CODE $JOBSCHED_PARENT_PARAM_COLOR >"$1"', "sh", out])
        d.add(name="bad", after="parent:failure", command=["true"])
        d.add(name="always", after="parent:any", command=["sh", "-c", "exit 3"])
        d.add(name="three", after="always:exit=3", command=["true"])
        run = d.api().post("/v1/jobs/parent/run", {})
        for name in ("good", "always", "three"):
            child = ended(d, name)
            assert [(r["kind"], r["slot"]) for r in child] == [("chain", run["slot"])], (name, child)
        with open(out) as f:
            assert f.read() == "parent succeeded 0 blue\n"
        assert d.runs("bad") == []
        assert len(ended(d, "parent")) == 1


@case
def a_diamond_joins_in_one_run_and_any_does_not_wait():
    with Daemon() as d:
        d.start()
        d.add(name="top", schedule="manual", overlap="allow", command=["true"])
        d.add(name="left", after="top", overlap="allow", command=["sleep", "0.5"])
        d.add(name="right", after="top", overlap="allow", command=["true"])
        d.add(name="bottom", after=["left", "right"], overlap="allow", command=["true"])
        d.add(name="first", after=["left", "right"], after_mode="any", overlap="allow", command=["true"])
        runs = [d.api().post("/v1/jobs/top/run", {}) for _ in range(2)]
        both = ended(d, "bottom", 2)
        assert sorted(r["slot"] for r in both) == sorted(r["slot"] for r in runs), both
        left = {r["slot"]: r["ended_at"] for r in d.runs("left")}
        assert all(r["started_at"] >= left[r["slot"]] for r in both), (both, left)
        assert len(ended(d, "first", 2)) == 2


@case
def the_graph_shows_the_jobs_above_and_below_a_job_each_once():
    with Daemon() as d:
        d.start()
        d.add(name="top", schedule="manual", command=["true"])
        for name, after in (("left", "top"), ("right", "top:any"), ("bottom", ["left", "right:exit=3"]), ("last", "bottom"), ("alone", "right")):
            d.add(name=name, after=after, command=["true"])
        shown = d.jobctl("show", "--graph", "top").stdout
        facts = "  (active, no run yet)"
        assert shown == "".join(line + "\n" for line in (
            "top" + facts + "  <--",
            "├─ left" + facts,
            "│  └─ bottom" + facts,
            "│     └─ last" + facts,
            "└─ [any] right" + facts,
            "   ├─ [exit=3] bottom  (see above)",
            "   └─ alone" + facts)), shown
        shown = d.jobctl("show", "--graph", "left").stdout  # its siblings are neither above nor below
        assert [line.split("  (")[0] for line in shown.splitlines()] == ["top", "└─ left", "   └─ bottom", "      └─ last"], shown
        graph = d.api().get("/v1/jobs/last/graph")
        assert len(graph["jobs"]) == 5 and len(graph["links"]) == 5 and not graph["more"], graph
        d.jobctl("rm", "--yes", "top")
        shown = d.jobctl("show", "--graph", "left").stdout
        assert "after 'top', which does not exist" in shown or shown.startswith("top  (removed"), shown
        assert d.jobctl("show", "--graph", "-o", "csv", "left", check=False).returncode == 2
        # a wide graph is bounded
        d.add(name="wide", schedule="manual", command=["true"])
        status, answer = d.api().call("POST", "/v1/jobs/bulk", {"jobs": [
            {"name": "w%d" % i, "after": ["wide"], "command": ["true"]} for i in range(250)]})
        assert status == 201, answer
        graph = d.api().get("/v1/jobs/wide/graph")
        assert len(graph["jobs"]) == 200 and len(graph["links"]) == 199 and graph["more"], len(graph["jobs"])
        assert "There are more jobs" in d.jobctl("show", "--graph", "wide").stdout


@case
def unknown_parents_cycles_and_schedules_are_refused():
    with Daemon() as d:
        d.start()
        refused(d, 404, "no job 'nobody'", name="x", after="nobody")
        refused(d, 400, "is not one of success", name="x", after="a:soon")
        d.add(name="a", schedule="manual", command=["true"])
        d.add(name="b", after="a", command=["true"])
        d.add(name="c", after="b", command=["true"])
        refused(d, 400, "no schedule of its own", name="x", after="a", schedule="every 1h")
        refused(d, 409, "after itself", name="x", after="x")
        got, answer = d.api().call("PATCH", "/v1/jobs/a", {"after": ["c"]})
        assert got == 409 and "after itself" in answer["error"]["message"], (got, answer)
        got, answer = d.api().call("POST", "/v1/jobs/bulk", {"jobs": [
            {"name": "p", "after": ["q"], "command": ["true"]}, {"name": "q", "after": ["p"], "command": ["true"]}]})
        assert got == 409 and "after itself" in answer["error"]["message"], (got, answer)


@case
def a_chain_of_a_thousand_jobs_passes_kills_and_runs_each_job_once():
    n = 1000
    with Daemon(config="max-running = 16\n") as d:
        d.start()
        d.add(name="c0", schedule="manual", command=["true"])
        status, answer = d.api().call("POST", "/v1/jobs/bulk", {"jobs": [
            {"name": "c%d" % i, "after": ["c%d" % (i - 1)], "command": ["true"]} for i in range(1, n)]})
        assert status == 201, answer
        run = d.api().post("/v1/jobs/c0/run", {})
        end = time.monotonic() + 240
        kills = 0
        while not d.runs("c%d" % (n - 1)):
            assert time.monotonic() < end, len(d.runs())
            time.sleep(0.5 if kills < 4 else 0.1)
            if kills < 4:
                d.kill()
                d.start()
                kills += 1
        ended(d, "c%d" % (n - 1))
        runs = d.runs()
        assert len(runs) == n and {r["slot"] for r in runs} == {run["slot"]}, len(runs)
        assert len({r["job"] for r in runs}) == n
        assert all(r["state"] == "succeeded" for r in runs), [r for r in runs if r["state"] != "succeeded"][:3]


main()
