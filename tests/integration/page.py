# SPDX-License-Identifier: Apache-2.0
# The page and the routes it needs, without a browser: files, headers, forecast, search in output, sorted lists.
import gzip
import os
import re
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, instant, main

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
POLICY = {"default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'", "base-uri 'none'",
          "form-action 'none'", "frame-ancestors 'none'"}


def fetch(d, path, **headers):
    connection = d.api().connection
    connection.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
    r = connection.getresponse()
    return r.status, r, r.read()


@case
def the_page_and_all_its_files_are_served_with_a_strict_policy():
    with Daemon() as d:
        d.start()
        todo, seen, size = ["/"], {}, 0
        while todo:
            path = todo.pop()
            status, r, body = fetch(d, path)
            assert status == 200 and r.getheader("ETag") and r.getheader("Cache-Control") == "no-cache", (path, status)
            assert set(r.getheader("Content-Security-Policy").split("; ")) == POLICY, r.getheader("Content-Security-Policy")
            seen[path] = body
            text = body.decode()
            for name in re.findall(r"(?:from|import\() ?'\./([a-z]+\.js)'", text) + re.findall(r'"/ui/([a-z.]+)"', text):
                if "/ui/" + name not in seen and "/ui/" + name not in todo:
                    todo.append("/ui/" + name)
            status, r, packed = fetch(d, path, Accept_Encoding="br, gzip")
            assert status == 200 and r.getheader("Content-Encoding") == "gzip" and gzip.decompress(packed) == body, path
            size += len(packed)
            status, r, _ = fetch(d, path, Accept_Encoding="gzip;q=0")
            assert r.getheader("Content-Encoding") is None, path
            status, _, again = fetch(d, path, If_None_Match=r.getheader("ETag"))
            assert status == 304 and again == b"", (path, status)
            status, _, _ = fetch(d, path, If_None_Match='"other"')
            assert status == 200, (path, status)
        assert len(seen) == 14 and size <= 40000, (size, sorted(seen))
        for path in ("/ui/", "/ui/none.js", "/ui/..%2fapi.js", "/ui/embed.sh", "/index.html"):
            assert fetch(d, path)[0] == 404, path


@case
def the_page_listens_to_every_kind_of_event():
    with open(os.path.join(TOP, "src", "core", "job", "event.c")) as f:
        kinds = set(re.findall(r'^\t\[EVENT_\w+\] = "([a-z.]+)"', f.read(), re.M))
    with open(os.path.join(TOP, "src", "web", "live.js")) as f:
        text = f.read()
    heard = set(re.findall(r"[a-z.]+", text[text.index("const KINDS"):text.index(".split")]))
    assert len(kinds) > 30 and kinds <= heard | {"none"}, kinds - heard


@case
def runs_are_counted_by_interval():
    with Daemon() as d:
        d.start()
        good = d.add(name="good", command=["true"], schedule=["manual"])["id"]
        bad = d.add(name="bad", command=["false"], schedule=["manual"])["id"]
        for job, n in ((good, 3), (bad, 2)):
            for _ in range(n):
                d.api().post("/v1/jobs/%d/run" % job, {})
                d.wait_final(job, 60)
        slots = {job: [int(instant(r["slot"])) for r in d.runs(job)] for job in (good, bad)}
        since = min(slots[good]) - 10
        answer = d.api().get("/v1/density?since=@%d&until=@%d&intervals=1000" % (since, since + 1000))
        expected = {}
        for job in (good, bad):
            for slot in slots[job]:
                row = expected.setdefault(slot - since, {"interval": slot - since, "runs": 0, "failed": 0})
                row["runs"] += 1
                row["failed"] += job == bad
        assert sorted(answer["intervals"], key=lambda i: i["interval"]) == [expected[k] for k in sorted(expected)], (answer, slots)
        assert sum(i["runs"] for i in d.api().get("/v1/density?until=@%d" % (since + 1000))["intervals"]) == 5
        assert d.api().get("/v1/density?since=@%d&until=@%d" % (since - 500, since))["intervals"] == []
        for query in ("since=@5&until=@5", "since=@9&until=@5", "intervals=0", "intervals=1001", "since=@1"):
            assert d.api().call("GET", "/v1/density?" + query)[0] == 400, query


@case
def a_forecast_lists_future_slots_within_its_limits():
    with Daemon() as d:
        d.start()
        job = d.add(name="minutely", command=["true"], schedule=["* * * * *"])["id"]
        other = d.add(name="yearly", command=["true"], schedule=["0 0 1 1 *"])["id"]
        d.add(name="hand", command=["true"], schedule=["manual"])
        now = int(time.time())
        one = d.api().get("/v1/forecast?job=minutely&slots=10")
        slots = one["jobs"][0]["slots"]
        assert one["complete"] is False and len(slots) == 10 and now <= slots[0] <= now + 60, one
        assert [b - a for a, b in zip(slots, slots[1:])] == [60] * 9, slots
        hour = d.api().get("/v1/forecast?until=@%d" % (now + 3600))
        assert [j["id"] for j in hour["jobs"]] == [job] and hour["complete"] and 59 <= len(hour["jobs"][0]["slots"]) <= 61, hour
        year = d.api().get("/v1/forecast?until=@%d&slots=1" % (now + 399 * 86400))
        assert [j["id"] for j in year["jobs"]] == [job, other], year
        assert not d.api().get("/v1/forecast?until=@%d&limit=1" % (now + 399 * 86400))["complete"]
        for query in ("until=@1", "until=@%d" % (now + 500 * 86400), "limit=0", "job=nobody"):
            status, _ = d.api().call("GET", "/v1/forecast?" + query)
            assert status in (400, 404), (query, status)


@case
def output_is_read_by_range_and_searched_in_steps():
    with Daemon() as d:
        d.start()
        job = d.add(command=["sh", "-c", "seq 1 3000000; echo needle; printf aaaa"], output_limit=100 << 20)["id"]
        run = d.wait_final(job, 120)["id"]
        text = fetch(d, "/v1/runs/%d/output" % run)[2]
        assert fetch(d, "/v1/runs/%d/output?from=100&length=50" % run)[2] == text[100:150]
        assert fetch(d, "/v1/runs/%d/output?from=%d&length=50" % (run, len(text) - 10))[2] == text[-10:]

        def search(what, **more):
            found, at, steps = [], more.get("start", 0), 0
            while at is not None:
                r = d.api().get("/v1/runs/%d/output/search?text=%s&from=%d&limit=%d" % (run, urllib.parse.quote(what), at, more.get("limit", 1000)))
                found += r["matches"]
                at = r["next_from"]
                steps += 1
                assert steps < 100
            return found, steps
        found, steps = search("needle")
        assert found == [text.index(b"needle")] and steps >= 2, (found, steps)
        assert search("\n299999")[0] == [m.start() for m in re.finditer(rb"\n299999", text)]
        assert search("aa", limit=1)[0] == [m.start() for m in re.finditer(rb"aa", text)]
        assert search("nothing")[0] == []
        for query in ("text=", "text=" + "x" * 257, "from=1"):
            status, _ = d.api().call("GET", "/v1/runs/%d/output/search?%s" % (run, query))
            assert status == 400, (query, status)

        # The middle of a limited output is not kept; a range does not cross it.
        job = d.add(command=["sh", "-c", "seq 1 100000"], output_limit=10000)["id"]
        run = d.wait_final(job)["id"]
        _, r, kept = fetch(d, "/v1/runs/%d/output" % run)
        gap, dropped = int(r.getheader("X-Jobsched-Output-Gap")), int(r.getheader("X-Jobsched-Output-Dropped"))
        assert len(kept) == 10000 and gap == 1000, (len(kept), gap)
        assert fetch(d, "/v1/runs/%d/output?from=900&length=500" % run)[2] == kept[900:1000]
        assert fetch(d, "/v1/runs/%d/output?from=1500&length=500" % run)[2] == kept[1000:1500]
        assert search("100000")[0] == [kept.index(b"100000") + dropped]


@case
def lists_of_jobs_are_sorted_and_brief_on_request():
    with Daemon() as d:
        d.start()
        d.add(name="b", command=["true"], schedule=["0 0 1 1 *"], tags={"t": "1"})
        d.add(name="a", command=["true"], schedule=["0 0 * * *"])
        d.add(name="c", command=["true"], schedule=["manual"])

        def names(query):
            found, cursor = [], ""
            while cursor is not None:
                page = d.api().get("/v1/jobs?" + query + cursor)
                found += [j["name"] for j in page["jobs"]]
                cursor = page["next_cursor"] and "&cursor=" + page["next_cursor"]
            return found
        assert names("sort=name") == ["a", "b", "c"] and names("sort=name&order=desc&limit=1") == ["c", "b", "a"]
        assert names("sort=next&limit=1") == ["a", "b", "c"] and names("sort=next&order=desc") == ["b", "a", "c"]
        assert names("order=desc") == ["c", "a", "b"] and names("sort=created&limit=2") == ["b", "a", "c"]
        brief = d.api().get("/v1/jobs?brief=true&tag=t%3D1")["jobs"]
        assert [sorted(j) for j in brief] == [["id", "name", "owner", "state", "uid"]], brief
        for query in ("sort=size", "order=up", "sort=name&cursor=5", "sort=name&cursor=x9.0.0.0.", "sort=next&cursor=n1.0.0.0.a", "sort=name&cursor=n1.0.0.0.%3C"):
            status, _ = d.api().call("GET", "/v1/jobs?" + query)
            assert status == 400, (query, status)


main()
