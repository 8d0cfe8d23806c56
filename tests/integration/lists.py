# SPDX-License-Identifier: Apache-2.0
# The lists of the API: each documented filter and order, page by page, has the same rows as one large page.
import itertools
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until


def walk(d, what, query, limit):
    """All rows, by pages of this size."""
    rows, cursor = [], None
    while True:
        page = d.api().get("/v1/%s?limit=%d%s%s" % (what, limit, "&" + query if query else "", "&cursor=" + cursor if cursor else ""))
        assert len(page[what]) <= limit, (query, len(page[what]))
        rows += page[what]
        cursor = page["next_cursor"]
        if cursor is None:
            return rows
        cursor = str(cursor)


def compare(d, what, query, expected, ordered=False, limits=(1, 4)):
    """'expected': the numbers that the filter must select, in this order if 'ordered'."""
    whole = [r["id"] for r in walk(d, what, query, 1000)]
    assert sorted(whole) == sorted(expected), (query, whole, expected)
    assert not ordered or whole == expected, (query, whole, expected)
    for limit in limits:
        assert [r["id"] for r in walk(d, what, query, limit)] == whole, (query, limit)


def fill(d):
    d.jobctl("queue", "add", "night", "--running", "2")
    for i in range(24):
        d.add(name="%s-%02d" % ("ab"[i % 2], 23 - i), schedule="@yearly" if i % 3 else "@monthly", command=["true"],
              tags={"half": str(i % 2)}, queue="night" if i % 4 == 0 else "default")
    jobs = walk(d, "jobs", "all=true", 1000)
    for j in jobs[:6]:
        d.api().post("/v1/jobs/%d/pause" % j["id"])
    for j in jobs[6:10]:
        d.api().post("/v1/jobs/%d/cancel" % j["id"])
    for j in jobs[12:20]:
        d.api().post("/v1/jobs/%d/run" % j["id"])
    wait_until("all runs have ended", 60, lambda: len(walk(d, "runs", "state=succeeded", 1000)) == 8)
    return walk(d, "jobs", "all=true", 1000)


FILTERS = {
    "state=paused": lambda j: j["state"] == "paused",
    "state=paused,active": lambda j: j["state"] in ("paused", "active"),
    "state=paused&state=cancelled": lambda j: j["state"] in ("paused", "cancelled"),
    "queue=night": lambda j: j["queue"] == "night",
    "queue=default": lambda j: j["queue"] == "default",
    "tag=half%3D1": lambda j: j["tags"]["half"] == "1",
    "name=a-*": lambda j: j["name"].startswith("a-"),
    "name=*-1?": lambda j: j["name"][2] == "1",
    "since=2001-01-01T00:00:00Z": lambda j: True,
    "until=2001-01-01T00:00:00Z": lambda j: False,
}


@case
def every_filter_and_order_of_jobs_works_with_a_cursor():
    with Daemon().start() as d:
        jobs = fill(d)
        orders = ["order=asc", "order=desc"] + ["sort=%s&order=%s" % (s, o) for s in ("next", "name", "last", "created")
                                               for o in ("asc", "desc")]
        pairs = [(f,) for f in FILTERS] + list(itertools.combinations(FILTERS, 2))
        for n, names in enumerate(pairs):
            if len({f.split("=")[0] for f in names}) < len(names):
                continue
            wanted = [j["id"] for j in jobs if all(FILTERS[f](j) for f in names)]
            for order in orders if len(names) == 1 else [orders[n % len(orders)]]:
                compare(d, "jobs", "&".join(names) + "&" + order, wanted, limits=(1, 4) if len(names) == 1 else (4,))
        by_name = [j["id"] for j in sorted(jobs, key=lambda j: j["name"])]
        compare(d, "jobs", "all=true&sort=name", by_name, ordered=True)
        compare(d, "jobs", "all=true&sort=name&order=desc", by_name[::-1], ordered=True)


@case
def every_filter_of_runs_works_with_a_cursor():
    with Daemon().start() as d:
        jobs = {j["id"]: j for j in fill(d)}
        runs = walk(d, "runs", "", 1000)
        assert len(runs) == 8
        for query, wanted in FILTERS.items():
            if query.split("=")[0] in ("tag", "queue"):
                compare(d, "runs", query, [r["id"] for r in runs if wanted(jobs[r["job"]])])
        some = [r["job"] for r in runs][:3]
        compare(d, "runs", "job=" + ",".join(map(str, some)), [r["id"] for r in runs if r["job"] in some])
        for states in ("succeeded", "failed", "succeeded,failed", "failed,lost"):
            compare(d, "runs", "state=" + states, [r["id"] for r in runs if r["state"] in states.split(",")])


@case
def events_of_one_and_of_several_kinds_work_with_a_cursor():
    with Daemon().start() as d:
        fill(d)
        events = walk(d, "events", "", 1000)
        kinds = sorted({e["what"] for e in events})
        assert {"job.add", "job.pause"} <= set(kinds), kinds
        for n in (1, 2):
            for some in itertools.combinations(kinds, n):
                compare(d, "events", "what=" + ",".join(some), [e["id"] for e in events if e["what"] in some])
        job = events[0]["job"] or events[1]["job"]
        compare(d, "events", "job=%d" % job, [e["id"] for e in events if e["job"] == job])


main()
