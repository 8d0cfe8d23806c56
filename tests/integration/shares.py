# SPDX-License-Identifier: Apache-2.0
# Limits that apply to the whole cluster: many short runs on three nodes, counted from the ledger that the runs write.
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import FINAL, case, main, wait_until
from nodes import Cluster

# Each run appends a line when it begins and one before it ends, each in one write, so that the lines are in the order of events.
# A run does not end before the file $GATE exists.
BODY = ('read -r up _ </proc/uptime; echo "S $KIND $up $JOBSCHED_NODE" >>"$LEDGER"; until [ -e "$GATE" ]; do sleep 0.1; done; '
        'sleep "$LONG"; echo "E $KIND" >>"$LEDGER"')
LIMITS = {"queue": 3, "owner": 5, "job": 2, "single": 1}
RATE, BURST, SPACED = 20, 1, 40


def submit(c, n, kind, long=0.05, gate="/", **more):
    env = {"KIND": kind, "LEDGER": c.ledger, "LONG": "%g" % long, "GATE": gate}
    return [c.nodes[i % len(c.nodes)].add(command=["bash", "-c", BODY], env=env, **more)["id"] for i in range(n)]


def fill_limit(c, kind, gate):
    """Waits until as many runs of this kind have begun as the limit allows, then lets them end."""
    wait_until("the limit of '%s' is reached" % kind, 120,
               lambda: sum(v[:2] == ["S", kind] for v in c.lines()) >= LIMITS[kind], 0.1)
    with open(gate, "w"):
        pass


def most_at_once(lines, kinds):
    now = most = 0
    for v in lines:
        if v[1] in kinds:
            now += 1 if v[0] == "S" else -1
            most = max(most, now)
    assert now == 0, "some runs have not ended"
    return most


def put(d, path, body):
    status, answer = d.api().call("PUT", path, body)
    assert status in (200, 201), (path, status, answer)


def trigger(c, job, n):
    for i in range(n):
        c.nodes[i % len(c.nodes)].api().post("/v1/jobs/%d/run" % job)


def all_over(c, seconds):
    def open_runs():
        runs = c.nodes[0].api().get("/v1/status")["runs"]  # None: the store did not answer in time
        return sum(n for state, n in runs.items() if state not in FINAL) if runs else None
    wait_until("all runs have ended", seconds, lambda: open_runs() == 0, 0.1)


def check_limits(postgres):
    with Cluster(3, postgres) as c:
        d = c.nodes[0]
        for name in ("narrow", "slow", "wide"):
            put(d, "/v1/queues/" + name, {})
        put(d, "/v1/queues/narrow", {"max_running": LIMITS["queue"]})
        put(d, "/v1/queues/slow", {"rate": "%d/1s:%d" % (RATE, BURST)})
        jobs = {kind: submit(c, 1, kind, queue="wide", schedule=["manual"], **more)[0]
                for kind, more in (("job", {"overlap": "allow", "max_running": LIMITS["job"]}), ("single", {"overlap": "queue:1000"}))}
        submit(c, SPACED, "spaced", 0, queue="slow")
        gate = c.ledger + ".queue"
        submit(c, 45, "queue", gate=gate, queue="narrow")
        fill_limit(c, "queue", gate)
        for job in jobs.values():
            trigger(c, job, 30)
        all_over(c, 120)
        lines = c.lines()
        most = {kind: most_at_once(lines, {kind}) for kind in ("queue", "job", "single")}
        assert all(most[kind] <= LIMITS[kind] for kind in most), most
        began = sorted(float(v[2]) for v in lines if v[:2] == ["S", "spaced"])
        assert len(began) == SPACED
        took = began[-1] - began[0]
        assert took > 0.7 * (SPACED - BURST) / RATE, "faster than the rate limit: %.2f s" % took
        assert len({v[3] for v in lines if v[0] == "S"}) == 3, "not all nodes started runs"

        put(d, "/v1/owners/%d" % os.geteuid(), {"max_running": LIMITS["owner"]})
        before = len(lines)
        gate = c.ledger + ".owner"
        submit(c, 60, "owner", gate=gate, queue="wide")
        fill_limit(c, "owner", gate)
        all_over(c, 120)
        lines = c.lines()[before:]
        most["owner"] = most_at_once(lines, {"owner"})
        assert most["owner"] <= LIMITS["owner"], most
        if postgres:
            with open(os.path.join(c.server.dir, "log")) as f:
                assert "deadlock detected" not in f.read(), "PostgreSQL reported a deadlock"
        return "largest concurrency: %s; %d starts at %d a second took %.2f s" % (most, SPACED, RATE, took)


@case
def no_limit_is_exceeded_by_three_nodes_sqlite():
    return check_limits(False)


@case
def no_limit_is_exceeded_by_three_nodes_postgresql():
    return check_limits(True)


main()
