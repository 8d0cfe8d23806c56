# SPDX-License-Identifier: Apache-2.0
# The decisions about a due run: overlap, limits, deadlines, rates and conditions, with real processes.
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import case, Daemon, FINAL, instant, main, wait_until

# Each command writes its start and end, which are compared with the times in the store.
WORK = ["sh", "-c", 'echo "$JOBSCHED_RUN begin $(date +%s.%N)" >>"$0"; trap "exit 0" TERM; sleep "$1" & wait; '
        'echo "$JOBSCHED_RUN end $(date +%s.%N)" >>"$0"']

JOBS = {
    "skip": {"schedule": ["every 1s"], "seconds": 2.4},
    "queue": {"schedule": ["every 1s"], "overlap": "queue", "seconds": 2.4},
    "queue-two": {"schedule": ["every 1s"], "overlap": "queue:2", "seconds": 60},
    "replace": {"schedule": ["every 2s"], "overlap": "replace", "seconds": 60},
    "two-at-a-time": {"schedule": ["every 1s"], "overlap": "allow", "max_running": 2, "seconds": 2.4},
    "allow": {"schedule": ["every 1s"], "overlap": "allow", "seconds": 60},
    "rate": {"schedule": ["every 1s"], "overlap": "allow", "rate": "1/3s", "seconds": 0},
    "expires": {"command": ["false"], "retries": 1, "backoff": "fixed:3s", "expires": 2},
    "unmet": {"schedule": ["every 3s"], "overlap": "allow", "when": ["load<0.001"], "seconds": 0},
    "late": {"seconds": 0, "when": ["load<0.001"], "deadline": 1},
    "met": {"seconds": 0, "when": ["load<100000"]},
}
seen = {}


def observe():
    """Runs all jobs at the same time for eight seconds, once. Returns the runs of each."""
    if seen:
        return seen
    with Daemon("max-running = 40\n") as d:
        d.start()
        numbers = {}
        for name, job in JOBS.items():
            log = os.path.join(d.dir, name)
            spec = {"command": [*WORK, log, str(job.get("seconds"))], **job}
            spec.pop("seconds", None)
            numbers[name] = d.add(name=name, **spec)["id"]
        time.sleep(8.5)
        for name, number in numbers.items():
            log = os.path.join(d.dir, name)
            lines = open(log).read().splitlines() if os.path.exists(log) else []
            seen[name] = {"runs": sorted(d.runs(number), key=lambda r: instant(r["slot"])),
                          "log": [line.split() for line in lines]}
        for number in numbers.values():
            d.api().post("/v1/jobs/%d/cancel" % number, {"running": True})
        wait_until("all runs have ended", 20, lambda: all(r["state"] in FINAL for r in d.runs()))
        assert d.stop() == 0
    return seen


def most_at_once(name):
    """From what the commands wrote. A command that was killed wrote no end."""
    now = most = 0
    for _, what, _ in observe()[name]["log"]:
        now += 1 if what == "begin" else -1
        most = max(most, now)
    return most


def outcomes(name, since=0):
    return [(r["state"], r["reason"]) for r in observe()[name]["runs"][since:]]


@case
def an_overlapping_slot_is_skipped_with_a_reason():
    got = outcomes("skip")
    assert most_at_once("skip") == 1, observe()["skip"]["log"]
    assert ("skipped", "overlap") in got and got.count(("succeeded", None)) >= 2, got
    assert all(o in (("succeeded", None), ("skipped", "overlap"), ("running", None), ("queued", None), ("claimed", None))
               for o in got), got


@case
def at_most_one_run_waits_and_further_runs_are_skipped():
    got = outcomes("queue")
    assert most_at_once("queue") == 1
    assert got.count(("succeeded", None)) >= 2 and ("skipped", "limit") in got, got
    assert sum(1 for state, reason in got if state == "queued" and reason == "overlap") <= 1, got
    times = [float(t) for _, what, t in observe()["queue"]["log"] if what == "begin"]
    ends = [float(t) for _, what, t in observe()["queue"]["log"] if what == "end"]
    gaps = [b - e for b, e in zip(times[1:], ends)]
    assert gaps and sorted(gaps)[len(gaps) // 2] < 1, "the waiting one starts when its place comes free: %s" % gaps


@case
def as_many_runs_wait_as_allowed():
    got = outcomes("queue-two")
    assert got.count(("queued", "overlap")) == 2, got
    assert ("skipped", "limit") in got and most_at_once("queue-two") == 1, got


@case
def a_newer_run_replaces_the_running_one():
    runs, log = observe()["replace"]["runs"], observe()["replace"]["log"]
    replaced = [r for r in runs if r["state"] == "cancelled"]
    assert len(replaced) >= 2 and all(r["reason"] == "replaced" for r in replaced), outcomes("replace")
    begun = {int(run): float(t) for run, what, t in log if what == "begin"}
    for old, new in zip(replaced, replaced[1:]):
        assert begun[new["id"]] >= instant(old["ended_at"]) - 0.2, "it began before the old one had ended"
        assert begun[new["id"]] - instant(new["slot"]) < 1.5, "it waited for more than the end of the old one"


@case
def with_two_runs_at_a_time_the_others_wait():
    got = outcomes("two-at-a-time")
    assert most_at_once("two-at-a-time") == 2
    assert ("queued", "limit") in got and not any(state == "skipped" for state, _ in got), got


@case
def without_a_limit_all_runs_overlap():
    assert most_at_once("allow") >= 6, observe()["allow"]["log"]


@case
def starts_respect_the_rate_of_the_job():
    starts = [float(t) for _, what, t in observe()["rate"]["log"] if what == "begin"]
    gaps = [b - a for a, b in zip(starts, starts[1:])]
    assert len(starts) in (2, 3) and min(gaps) > 2.8, starts
    assert ("queued", "rate") in outcomes("rate"), outcomes("rate")


@case
def a_retry_that_comes_too_late_is_expired():
    run, = observe()["expires"]["runs"]
    assert (run["state"], run["attempt"]) == ("expired", 1) and run["reason"].startswith("expires"), run


@case
def an_unmet_condition_keeps_the_newest_slot_waiting():
    got = [o for o in outcomes("unmet") if o != ("queued", None)]
    assert got[-1] == ("queued", "condition") and len(got) >= 2, got
    assert all(o == ("skipped", "condition") for o in got[:-1]), got
    assert observe()["unmet"]["log"] == []


@case
def a_deadline_missed_because_of_a_condition_names_both():
    assert outcomes("late") == [("expired", "deadline (condition)")], outcomes("late")


@case
def a_condition_that_holds_causes_no_wait():
    run, = observe()["met"]["runs"]
    assert run["state"] == "succeeded" and instant(run["started_at"]) - instant(run["slot"]) < 2, run


@case
def a_deadline_passes_while_the_node_is_full():
    with Daemon("max-running = 1\n") as d:
        d.start()
        d.add(command=["sleep", "2"])
        time.sleep(0.3)
        late = d.add(command=["true"], deadline=1)["id"]
        fresh = d.add(command=["true"], deadline=60)["id"]
        run = d.wait_final(late)
        assert (run["state"], run["reason"]) == ("expired", "deadline"), run
        assert d.wait_final(fresh)["state"] == "succeeded"
        wait = d.jobctl("wait", str(late), check=False)
        assert wait.returncode == 12, (wait.returncode, wait.stderr)


def seconds_used(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@case
def waiting_runs_cost_no_processor_time():
    with Daemon() as d:
        d.start()
        d.jobctl("queue", "set", "default", "--running", "1")
        jobs = d.api().post("/v1/jobs/bulk", {"jobs": [{"command": ["sleep", "3"]}] * 2 + [{"command": ["true"]}] * 50})
        wait_until("one runs", 10, lambda: d.api().get("/v1/status")["runs"].get("running"))
        before = seconds_used(d.process.pid)
        time.sleep(2)
        used = seconds_used(d.process.pid) - before
        assert used < 0.2, "%.2f s of processor time in 2 s of waiting" % used
        states = [r["state"] for r in d.runs()]
        assert sum(s in ("running", "claimed") for s in states) == 1 and states.count("queued") == 51, states
        d.jobctl("queue", "set", "default", "--running", "none")
        wait_until("all runs have succeeded", 20, lambda: d.api().get("/v1/status")["runs"].get("succeeded", 0) == 52)
        return "%.2f s of processor time for %d that waited 2 s" % (used, len(jobs["jobs"]))


main()
