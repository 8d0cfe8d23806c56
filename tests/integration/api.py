# SPDX-License-Identifier: Apache-2.0
# Tests the API: submissions, lists, keys, waiting, output.
import base64
import json
import os
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from contract import CONTRACT
from harness import Api, Connection, Daemon, Unreachable, case, main, need_program, wait_until

TRUE = ["true"]
LATER = "2199-01-01T00:00:00Z"


def refused(d, status, method, path, body=None, field=None, says=""):
    got, answer = d.api().call(method, path, body)
    assert got == status, (method, path, body, got, answer)
    error = answer["error"]
    assert error["field"] == field and says in error["message"], (method, path, body, error)
    return error


def stream(d, path):
    """A response whose body is read piece by piece, with its connection."""
    connection = Connection(d.socket, 30)
    connection.request("GET", path)
    answer = connection.getresponse()
    assert answer.status == 200, (path, answer.status, answer.read())
    return answer


@case
def a_submitted_job_is_found_by_number_and_name():
    with Daemon() as d:
        d.start()
        spec = {"name": "backup", "command": ["tar", "c", "/höme"], "schedule": [LATER], "env": {"A": "1"},
                "tags": {"team": "db"}, "cwd": "/tmp", "umask": "022", "priority": 7, "timeout": "1h30m", "grace": 0.5}
        status, job = d.api().call("POST", "/v1/jobs", spec)
        assert status == 201 and job["existed"] is False and job["state"] == "active", job
        assert job["command"] == spec["command"] and job["timeout"] == 5400 and job["grace"] == 0.5, job
        assert job["next_at"] == LATER and job["last_run"] is None and job["run"] is None, job
        del job["existed"], job["replaced"], job["run"], job["findings"]
        shown = dict(job, durations={"count": 0, "p50": None, "p95": None, "last": None, "unusual": None})
        assert d.api().get("/v1/jobs/%d" % job["id"]) == shown
        assert d.api().get("/v1/jobs/backup") == shown
        assert d.api().get("/v1/jobs")["jobs"] == [job]
        assert d.api().get("/v1/jobs?durations=true")["jobs"] == [shown]


@case
def the_response_to_a_submission_equals_the_stored_job():
    with Daemon("max-running = 1\n") as d:
        d.start()
        d.add(command=["sleep", "30"])
        status, job = d.api().call("POST", "/v1/jobs", {"command": TRUE})
        assert status == 201 and d.api().get("/v1/runs/%d" % job["run"])["state"] == "queued", job
        del job["existed"], job["replaced"], job["run"], job["findings"]
        shown = d.api().get("/v1/jobs/%d" % job["id"])
        assert shown.pop("waiting_for")["code"] == "no_room" and job.pop("waiting_for") is None, (shown, job)
        assert shown.pop("durations")["count"] == 0, shown
        assert shown == job, {k: (job[k], shown[k]) for k in job if job[k] != shown[k]}


@case
def a_dry_run_shows_the_effect_and_stores_nothing():
    with Daemon() as d:
        d.start()
        dry = lambda **spec: d.api().call("POST", "/v1/jobs?dry_run=true", dict(spec, command=TRUE))
        status, job = dry(name="odd", schedule=["*/35 * * * *"], tz="Europe/Berlin", jitter=7200)
        assert status == 200 and job["id"] is None and job["name"] == "odd" and not job["existed"], job
        assert job["explain"] == "at minutes 0 and 35 of every hour, Europe/Berlin", job
        assert len(job["next"]) == 5 and job["next"] == sorted(job["next"]) and job["next"][0] == job["next_at"], job
        assert [f["code"] for f in job["findings"]] == ["uneven-step", "wide-jitter"], job
        assert all(f["message"] for f in job["findings"]), job
        assert d.api().get("/v1/jobs")["jobs"] == [] and d.runs() == []
        # a dry run refuses what a submission refuses
        for field, spec in (("schedule", {"schedule": ["0 0 30 2 *"]}), ("tz", {"tz": "No/Where"}), ("umask", {"umask": "9"})):
            status, answer = dry(**spec)
            assert status == 400 and answer["error"]["field"] == field, (field, answer)
        kept = d.api().call("POST", "/v1/jobs", {"command": TRUE, "schedule": [LATER], "name": "odd", "key": "k"})[1]
        status, answer = dry(name="odd")
        assert status == 409 and answer["error"]["field"] == "name", answer
        status, answer = dry(name="other", key="k")
        assert status == 409 and answer["error"]["field"] == "key", answer
        status, answer = dry(name="odd", key="k", schedule=[LATER])
        assert status == 200 and answer["existed"] and answer["id"] == kept["id"], answer
        assert d.api().call("POST", "/v1/jobs?dry_run=perhaps", {"command": TRUE})[0] == 400
        # a job that is due at once
        status, answer = dry()
        assert status == 200 and answer["explain"] == "once, now" and len(answer["next"]) == 1, answer
        assert len(d.api().get("/v1/jobs")["jobs"]) == 1 and d.runs() == []


@case
def warnings_are_returned_once_and_do_not_refuse_a_job():
    with Daemon() as d:
        d.start()
        spec = {"command": TRUE, "schedule": ["*/35 * * * *"], "key": "k"}
        status, job = d.api().call("POST", "/v1/jobs", spec)
        assert status == 201 and [f["code"] for f in job["findings"]] == ["uneven-step"], job
        status, again = d.api().call("POST", "/v1/jobs", spec)
        assert status == 200 and again["id"] == job["id"] and again["findings"] == [], again
        assert "findings" not in d.api().get("/v1/jobs/%d" % job["id"])
        assert d.add(command=TRUE, schedule=["0 3 * * *"])["findings"] == []


@case
def a_submission_into_a_crowded_second_gets_a_warning():
    with Daemon() as d:
        d.start()
        codes = lambda job: [f["code"] for f in job["findings"]]
        crowd = [{"command": TRUE, "schedule": ["0 3 1 1 *"]} for _ in range(1000)]
        d.api().post("/v1/jobs/bulk", {"jobs": crowd[1:]})
        assert codes(d.add(**crowd[0])) == [], "999 others"
        assert codes(d.add(**crowd[0])) == ["crowded-second"]
        assert codes(d.api().post("/v1/jobs?dry_run=true", crowd[0])) == ["crowded-second"]
        assert codes(d.add(command=TRUE, schedule=["1 3 1 1 *"])) == []


@case
def bytes_that_are_not_utf8_reach_the_command_unchanged():
    with Daemon() as d:
        d.start()
        b64 = lambda data: base64.b64encode(data).decode()
        script = b'printf %s "$1" "$X"; cat'
        job = d.add(command_b64=[b64(w) for w in (b"sh", b"-c", script, b"sh", b"\xff\xfe")],
                    env_b64={"X": b64(b"\x80!")}, stdin_b64=b64(b"\x00\x01\xff"))
        run = d.wait_final(job["id"])
        assert stream(d, "/v1/runs/%d/output" % run["id"]).read() == b"\xff\xfe\x80!\x00\x01\xff"
        shown = d.api().get("/v1/jobs/%d" % job["id"])
        assert base64.b64decode(shown["command_b64"][4]) == b"\xff\xfe" and "command" not in shown, shown


@case
def an_invalid_member_is_named_and_nothing_is_stored():
    with Daemon() as d:
        d.start()
        for body, field in (({}, "command"), ({"command": []}, "command"), ({"command": TRUE, "colour": 1}, "colour"),
                            ({"command": TRUE, "env": 7}, "env"), ({"command": TRUE, "priority": 101}, "priority"),
                            ({"command": TRUE, "name": "12"}, "name"), ({"command": TRUE, "schedule": "@1"}, "schedule"),
                            ({"command": TRUE, "schedule": "whenever"}, "schedule"),
                            ({"command": TRUE, "tz": "Mars/Base"}, "tz"),
                            ({"command": TRUE, "script": "x"}, "script"), ([], None), ("x", None)):
            refused(d, 400, "POST", "/v1/jobs", body, field)
        refused(d, 404, "GET", "/v1/jobs/1", says="no job '1'")
        refused(d, 404, "GET", "/v1/runs/1")
        refused(d, 404, "GET", "/v1/runs/x")
        refused(d, 404, "GET", "/v2/jobs", says="/v2/jobs")
        refused(d, 400, "GET", "/v1/jobs?limit=1001", field="limit")
        refused(d, 400, "GET", "/v1/jobs?colour=red", field="colour")
        refused(d, 400, "GET", "/v1/jobs?cursor=x", field="cursor")
        refused(d, 400, "POST", "/v1/jobs/1/cancel", {"now": True}, field="running")
        assert d.api().get("/v1/jobs?all=true")["jobs"] == []


@case
def a_wrong_method_gets_the_allowed_ones_and_head_is_get_without_a_body():
    with Daemon() as d:
        d.start()
        connection = Connection(d.socket, 10)
        connection.request("PUT", "/v1/jobs/1")
        answer = connection.getresponse()
        assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD, DELETE, PATCH", answer.headers
        answer.read()
        connection.request("HEAD", "/v1/status")
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read() == b"" and int(answer.headers["Content-Length"]) > 100
        connection.close()


@case
def an_unknown_name_gets_a_suggestion():
    with Daemon() as d:
        d.start()
        d.add(name="backup", command=TRUE, schedule=LATER)
        refused(d, 404, "GET", "/v1/jobs/bakcup", says="no job 'bakcup'; did you mean 'backup'?")
        refused(d, 404, "DELETE", "/v1/jobs/bakup", says="did you mean 'backup'?")


@case
def a_repeated_key_returns_the_job_also_after_its_time():
    with Daemon() as d:
        d.start()
        soon = (datetime.now(timezone.utc) + timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {"key": "k", "command": TRUE, "schedule": [soon], "tz": "UTC"}
        number = d.add(**body)["id"]
        d.wait_final(number)
        status, job = d.api().call("POST", "/v1/jobs", body)
        assert (status, job["id"], job["existed"]) == (200, number, True), job
        refused(d, 409, "POST", "/v1/jobs", dict(body, command=["false"]), field="key")
        refused(d, 400, "POST", "/v1/jobs", dict(body, key="other"), field="schedule")
        refused(d, 400, "POST", "/v1/jobs", {k: v for k, v in body.items() if k != "key"}, field="schedule")


@case
def concurrent_submissions_with_one_key_add_one_job():
    with Daemon() as d:
        d.start()
        body = {"key": "k", "command": TRUE, "schedule": "now + 1 hour"}
        answers, gate = [], threading.Barrier(20)

        def submit():
            api = Api(d.socket)
            gate.wait()
            answers.append(api.call("POST", "/v1/jobs", body))
            api.close()
        threads = [threading.Thread(target=submit) for _ in range(20)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(status for status, _ in answers) == [200] * 19 + [201], [a[0] for a in answers]
        assert len({job["id"] for _, job in answers}) == 1
        assert all(job["existed"] == (status == 200) for status, job in answers)
        refused(d, 409, "POST", "/v1/jobs", dict(body, command=["false"]), field="key")
        number = answers[0][1]["id"]
        d.kill()
        d.start()
        assert d.api().call("POST", "/v1/jobs", body)[0] == 200, "the key was lost in a crash"
        d.api().call("DELETE", "/v1/jobs/%d" % number)
        status, job = d.api().call("POST", "/v1/jobs", body)
        assert status == 200 and job["id"] == number and job["state"] == "removed", job


@case
def an_existing_name_is_a_conflict():
    with Daemon() as d:
        d.start()
        d.add(name="a", command=TRUE, schedule=LATER)
        refused(d, 409, "POST", "/v1/jobs", {"name": "a", "command": TRUE}, field="name", says="taken")


@case
def a_bulk_is_all_or_none():
    with Daemon() as d:
        d.start()
        good = [{"name": "n%d" % i, "command": TRUE, "schedule": LATER} for i in range(1000)]
        refused(d, 400, "POST", "/v1/jobs/bulk", {"jobs": good[:17] + [{"command": TRUE, "env": 1}]}, "jobs[17].env")
        refused(d, 409, "POST", "/v1/jobs/bulk", {"jobs": good[:3] + good[:1]}, "jobs[3].name")
        refused(d, 400, "POST", "/v1/jobs/bulk", {"jobs": []}, "jobs")
        assert d.api().get("/v1/jobs")["jobs"] == []
        status, answer = d.api().call("POST", "/v1/jobs/bulk", {"jobs": good})
        assert status == 201 and [j["name"] for j in answer["jobs"]] == [j["name"] for j in good]
        assert [j["id"] for j in d.api().pages("/v1/jobs", "jobs")] == [j["id"] for j in answer["jobs"]]


@case
def lists_are_filtered_and_paged():
    with Daemon() as d:
        d.start()
        d.api().post("/v1/jobs/bulk", {"jobs": [
            {"name": "job-%d" % i, "command": TRUE, "schedule": LATER, "tags": {"parity": "odd" if i % 2 else "even"}}
            for i in range(150)]})
        names = lambda query: [j["name"] for j in d.api().get("/v1/jobs?" + query)["jobs"]]
        assert len(names("")) == 100 and len(names("limit=150")) == 150
        assert names("name=job-1?&limit=1000") == ["job-1%d" % i for i in range(10)]
        assert len(names("tag=parity%3Dodd&limit=1000")) == 75
        assert names("owner=nobody-at-all") == [] and names("state=paused,cancelled") == []
        assert len(names("since=2020-01-01T00:00:00Z&until=@4000000000&limit=1000")) == 150
        assert names("until=@1000000000") == []
        page = d.api().get("/v1/jobs?limit=60")
        rest = d.api().get("/v1/jobs?limit=1000&cursor=" + page["next_cursor"])
        assert len(page["jobs"]) == 60 and len(rest["jobs"]) == 90 and rest["next_cursor"] is None
        d.api().call("DELETE", "/v1/jobs/job-0")
        assert len(names("limit=1000")) == 149 and len(names("limit=1000&all=true")) == 150
        assert names("state=removed") == ["job-0"]


@case
def runs_are_listed_newest_first_and_filtered_by_job_and_state():
    with Daemon() as d:
        d.start()
        good, bad = d.add(name="good", command=TRUE), d.add(name="bad", command=["false"])
        d.wait_final(good["id"])
        d.wait_final(bad["id"])
        runs = d.api().get("/v1/runs")["runs"]
        assert [r["job_name"] for r in runs] == ["bad", "good"], runs
        assert [r["id"] for r in d.api().get("/v1/runs?job=good")["runs"]] == [good["run"]]
        assert [r["job_name"] for r in d.api().get("/v1/runs?state=failed,lost")["runs"]] == ["bad"]
        assert d.api().get("/v1/runs?since=2199-01-01T00:00:00Z")["runs"] == []
        refused(d, 404, "GET", "/v1/runs?job=god", says="did you mean 'good'?")


@case
def a_wait_ends_with_the_run_or_after_its_timeout():
    with Daemon() as d:
        d.start()
        run = d.add(command=["sleep", "0.5"])["run"]
        began = time.monotonic()
        answer = d.api().get("/v1/runs/%d?wait=60" % run)
        took = time.monotonic() - began
        assert answer["state"] == "succeeded" and len(answer["attempts"]) == 1 and took < 10, (took, answer)
        run = d.add(command=["sleep", "60"])["run"]
        began = time.monotonic()
        answer = d.api().get("/v1/runs/%d?wait=1" % run)
        took = time.monotonic() - began
        assert answer["state"] in ("claimed", "running", "queued") and 0.9 < took < 10, (took, answer)


@case
def cancelling_ends_waits_for_queued_and_running_runs():
    with Daemon("max-running = 1\n") as d:
        d.start()
        running, queued, other = (d.add(command=["sleep", "60"]) for _ in range(3))
        wait_until("the first runs", 10, lambda: d.api().get(
            "/v1/runs/%d" % running["run"])["state"] == "running")
        answers = {}

        def wait(job):
            api = Api(d.socket)
            answers[job["id"]] = api.get("/v1/runs/%d?wait=60" % job["run"])
            api.close()
        threads = [threading.Thread(target=wait, args=[j]) for j in (running, queued, other)]
        for t in threads:
            t.start()
        time.sleep(0.3)
        began = time.monotonic()
        gone = d.api().post("/v1/jobs/%d/cancel" % queued["id"])
        assert gone["queued_cancelled"] == 1 and gone["running"] == [] and gone["job"]["state"] == "cancelled", gone
        assert d.api().post("/v1/runs/%d/cancel" % other["run"])["state"] == "cancelled"
        gone = d.api().post("/v1/jobs/%d/cancel" % running["id"], {"running": True})
        assert [r["cancel_asked"] for r in gone["running"]] == [True], gone
        for t in threads:
            t.join()
        assert time.monotonic() - began < 20
        assert {a["state"] for a in answers.values()} == {"cancelled"}, answers


@case
def a_stopping_daemon_reports_the_result_of_each_submission():
    with Daemon() as d:
        d.start()
        answers, go = {}, threading.Barrier(9)

        def submit(number):
            api = Api(d.socket)
            go.wait()
            for i in range(100000):
                name = "s%d-%d" % (number, i)
                try:
                    status, answer = api.call("POST", "/v1/jobs", {"name": name, "command": TRUE, "schedule": LATER})
                except Unreachable:
                    return
                answers[name] = status
        threads = [threading.Thread(target=submit, args=[n]) for n in range(8)]
        for t in threads:
            t.start()
        go.wait()
        time.sleep(0.3)
        assert d.stop() == 0
        for t in threads:
            t.join()
        d.api().close()
        d.start()
        stored = {j["name"] for j in d.api().pages("/v1/jobs", "jobs")}
        taken, refused_ = ({n for n, s in answers.items() if s == want} for want in (201, 503))
        assert taken and taken <= stored, "acknowledged but lost: %s" % (taken - stored)
        assert not refused_ & stored, "refused but stored: %s" % (refused_ & stored)
        return "%d taken, %d refused" % (len(taken), len(refused_))


@case
def the_history_of_a_removed_job_is_kept():
    with Daemon() as d:
        d.start()
        job = d.add(name="gone", command=TRUE)
        d.wait_final(job["id"])
        status, answer = d.api().call("DELETE", "/v1/jobs/gone")
        assert status == 200 and answer["job"]["state"] == "removed", answer
        assert d.api().get("/v1/jobs")["jobs"] == [] and len(d.runs(job["id"])) == 1


@case
def output_is_read_completely_from_an_offset_or_from_its_end():
    with Daemon() as d:
        d.start()
        run = d.wait_final(d.add(script="seq 1 1000")["id"])
        path = "/v1/runs/%d/output" % run["id"]
        whole = "".join("%d\n" % i for i in range(1, 1001)).encode()
        answer = stream(d, path)
        assert answer.read() == whole and int(answer.headers["X-Jobsched-Output-Bytes"]) == len(whole)
        assert answer.headers["X-Jobsched-Output-Dropped"] == "0" and answer.headers["X-Jobsched-Attempt"] == "1"
        assert stream(d, path + "?from=100").read() == whole[100:]
        assert stream(d, path + "?tail=7").read() == whole[-7:]
        assert stream(d, path + "?tail=0").read() == b"" and stream(d, path + "?from=999999").read() == b""
        assert stream(d, path + "?follow=true").read() == whole
        refused(d, 404, "GET", path + "?attempt=2", says="no attempt 2")
        silent = d.wait_final(d.add(command=TRUE)["id"])
        assert stream(d, "/v1/runs/%d/output" % silent["id"]).read() == b""


@case
def dropped_output_is_counted_and_the_rest_is_returned():
    with Daemon() as d:
        d.start()
        run = d.wait_final(d.add(script="head -c 100000 /dev/zero | tr '\\0' x; echo end", output_limit=10000)["id"])
        answer = stream(d, "/v1/runs/%d/output" % run["id"])
        content = answer.read()
        total, dropped = (int(answer.headers["X-Jobsched-Output-" + h]) for h in ("Bytes", "Dropped"))
        assert total == 100004 and dropped == total - len(content) and 0 < len(content) <= 10000, (total, dropped)
        assert content.endswith(b"xend\n")


@case
def output_is_followed_as_it_is_written_and_ends_with_the_run():
    with Daemon() as d:
        d.start()
        # one pipe per pause: an early reader would get the end of file of the previous writer
        pauses = [os.path.join(d.dir, name) for name in ("first", "second")]
        for pause in pauses:
            os.mkfifo(pause)
        run = d.add(script="sleep 0.3; echo one; read _ <%s; echo two; read _ <%s" % tuple(pauses))["run"]
        answer = stream(d, "/v1/runs/%d/output?follow=true" % run)
        assert answer.read1() == b"one\n"

        def go_on(pause):
            with open(pause, "w") as f:
                f.write("\n")
        began = time.monotonic()
        go_on(pauses[0])
        # the follower waits again; only the file signals the second line
        assert answer.read1() == b"two\n"
        took = time.monotonic() - began
        go_on(pauses[1])
        assert answer.read() == b"" and took < 5, took
        return "second line after %.1f ms" % (took * 1000)


@case
def a_run_that_is_not_due_can_be_followed_and_cancelled():
    with Daemon("max-running = 1\n") as d:
        d.start()
        d.add(command=["sleep", "60"])
        job = d.add(command=TRUE)
        threads = threading.Timer(0.5, lambda: Api(d.socket).post("/v1/jobs/%d/cancel" % job["id"]))
        threads.start()
        assert stream(d, "/v1/runs/%d/output?follow=true" % job["run"]).read() == b""
        threads.join()


@case
def a_follower_gets_large_output_as_fast_as_it_reads():
    with Daemon() as d:
        d.start()
        run = d.add(script="head -c 8000000 /dev/zero", output_limit=100000000)["run"]
        answer = stream(d, "/v1/runs/%d/output?follow=true" % run)
        time.sleep(0.5)
        assert sum(len(piece) for piece in iter(lambda: answer.read(100000), b"")) == 8000000


@case
def a_response_that_does_not_match_openapi_json_is_detected():
    with Daemon() as d:
        d.start()
        job = d.add(command=TRUE, schedule=LATER)
        run = d.api().get("/v1/runs?limit=1")

        def faults(method, path, status, answer, **changes):
            try:
                CONTRACT.answer(method, path, status, {**answer, **changes})
                return ""
            except AssertionError as e:
                return str(e)
        one = ("GET", "/v1/jobs/%d" % job["id"], 200, d.api().get("/v1/jobs/%d" % job["id"]))
        assert faults(*one) == "", faults(*one)
        assert "answer.sandbox is 5" in faults(*one, sandbox=5)
        assert "has 'sandbocks'" in faults(*one, sandbocks=None)
        assert "the enum does not have" in faults(*one, state="ready")
        assert "not a time in UTC" in faults(*one, created_at="2026-11-16 09:00")
        assert "answer.tags.a is 1" in faults(*one, tags={"a": 1})
        assert "lacks 'next_cursor'" in faults("GET", "/v1/runs", 200, {"runs": run["runs"]})
        assert "answer.runs[0]" in faults("GET", "/v1/runs", 200, run, runs=[5])
        assert "no such path" in faults("GET", "/v1/nowhere", 200, {})
        assert "this status" in faults(one[0], one[1], 201, one[3])
        assert "lacks 'error'" in faults("GET", "/v1/nowhere", 404, {})


@case
def curl_over_the_socket_is_enough():
    need_program("curl")
    with Daemon() as d:
        d.start()
        curl = lambda *words: subprocess.run(["curl", "-sS", "--fail-with-body", "--unix-socket", d.socket, *words],
                                             capture_output=True, text=True, check=True).stdout
        answer = curl("http://localhost/v1/jobs", "-d", '{"command":["echo","hi"]}')
        assert answer.endswith("}\n")
        run = json.loads(answer)["run"]
        assert json.loads(curl("http://localhost/v1/runs/%d?wait=20" % run))["state"] == "succeeded"
        assert curl("http://localhost/v1/runs/%d/output" % run) == "hi\n"


@case
def the_status_has_counts_and_names():
    with Daemon() as d:
        d.start()
        d.wait_final(d.add(command=TRUE)["id"])
        d.add(command=TRUE, schedule=LATER)
        s = d.api().get("/v1/status")
        assert s["store"] == {"kind": "sqlite", "place": d.db_path, "away_since": None, "away_why": None, "full": False, "risk": None, "held": None} and s["spawner_up"] is True, s
        assert s["jobs"]["active"] == 1 and s["jobs"]["finished"] == 1 and s["runs"]["succeeded"] == 1, s
        assert s["next_slot"] == LATER and s["uptime"] >= 0 and s["version"] and s["node"]["id"], s


main()
