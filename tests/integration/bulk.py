# SPDX-License-Identifier: Apache-2.0
# The routes that act on all jobs that match a filter.
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until
from tcp_client import Client, port_of


def states(d):
    return sorted({j["state"] for j in d.api().get("/v1/jobs?limit=1000")["jobs"]})


def all_steps(d, path):
    """Follows the cursors; returns the sums and the number of requests."""
    count = refused = n = 0
    cursor = ""
    while cursor is not None:
        step = d.api().post(path + ("&cursor=" + cursor if cursor else ""))
        count, refused, n, cursor = count + step["count"], refused + step["refused"], n + 1, step["next_cursor"]
    return count, refused, n


@case
def all_matching_jobs_are_paused_resumed_tagged_and_run():
    with Daemon().start() as d:
        d.add(name="other", schedule="@yearly", command=["true"])
        for i in range(120):
            d.add(name="b-%04d" % i, schedule="@yearly", command=["true"], tags={"half": str(i % 2)})
        count = d.api().post("/v1/bulk/pause?name=b-*&dry_run=true")
        assert count == {"count": 120, "refused": 0, "refused_because": None, "next_cursor": None}, count
        assert states(d) == ["active"], "a preview changes nothing"
        assert all_steps(d, "/v1/bulk/pause?name=b-*&limit=50") == (120, 0, 3)
        assert [j["name"] for j in d.api().get("/v1/jobs?state=active")["jobs"]] == ["other"]
        assert d.api().post("/v1/bulk/pause?name=b-*")["count"] == 0, "paused jobs are left out"
        assert all_steps(d, "/v1/bulk/resume?tag=half%3D1") == (60, 0, 1)
        assert all_steps(d, "/v1/bulk/tag?set=batch%3Dx&state=active&name=b-*") == (60, 0, 1)
        assert len(d.api().get("/v1/jobs?tag=batch%3Dx&limit=1000")["jobs"]) == 60
        assert all_steps(d, "/v1/bulk/tag?set=batch%3Dx&state=active&name=b-*") == (0, 0, 1), "the same tag is no change"
        assert all_steps(d, "/v1/bulk/run?tag=batch%3Dx") == (60, 0, 1)
        wait_until("all runs have ended", 60,
                   lambda: len(d.api().get("/v1/runs?state=succeeded&limit=1000")["runs"]) == 60)
        events = d.api().get("/v1/events?what=job.pause&limit=1000")["events"]
        assert len(events) == 120 and all(e["job"] for e in events), "each change is in the audit trail"


@case
def refused_jobs_are_counted_and_the_reason_is_named():
    with Daemon().start() as d:
        for name in ("a", "b"):
            d.add(name=name, schedule="@yearly", command=["true"])
        answer = d.api().post("/v1/bulk/tag?set=" + "k" * 300 + "%3Dv")
        assert answer["count"] == 0 and answer["refused"] == 2 and "KEY=VALUE" in answer["refused_because"], answer
        assert d.api().get("/v1/jobs/a")["revision"] == 1


@case
def bad_filters_change_nothing():
    with Daemon().start() as d:
        d.add(name="a", schedule="@yearly", command=["true"])
        for path in ("/v1/bulk/tag", "/v1/bulk/tag?set=x", "/v1/bulk/pause?state=no", "/v1/bulk/pause?limit=0",
                     "/v1/bulk/pause?cursor=x", "/v1/bulk/pause?set=a%3Db", "/v1/bulk/run?unknown=1"):
            status, _ = d.api().call("POST", path)
            assert status == 400, (path, status)
        assert d.api().call("GET", "/v1/bulk/pause")[0] == 405
        assert states(d) == ["active"]


@case
def a_viewer_may_not_act_on_all():
    with Daemon("listen = 127.0.0.1:0\n").start() as d:
        c = Client(port_of(d))
        d.add(name="a", schedule="@yearly", command=["true"])
        for role, status in (("viewer", 403), ("operator", 200)):
            c.token = d.api().post("/v1/tokens", {"name": role, "role": role})["token"]
            assert c.call("POST", "/v1/bulk/pause?name=a").status == status, role


main()
