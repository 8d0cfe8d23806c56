# SPDX-License-Identifier: Apache-2.0
# The archive in S3-compatible storage and in a local directory: uploads, reading back, owners, artifacts, credentials.
import glob
import hashlib
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import Daemon, case, main, need_root, wait_until
from nodes import Cluster
from storage import BUCKET, KEY, KEYS, SECRET, Storage, age, old_runs, prune, record
from system import System
from web import Web

@case
def history_is_uploaded_before_it_is_deleted_and_read_back():
    with Storage() as s, Daemon(s.config + "output-archive = yes\n") as d:
        d.env.update(KEYS)
        d.start()
        runs = old_runs(d, ["echo first", "echo broken; exit 3", "yes 0123456789 | head -c 3000000", "true"])
        d.start()
        young = d.add(name="young", script="echo now")["id"]
        d.wait_final(young)
        said = prune(d, check=False).stdout
        assert not s.refused, s.refused
        assert "deleted 4 runs, 4 jobs" in said, said
        assert not s.refused, s.refused
        for r in runs:
            got = record(s, r)
            assert got["state"] == r["state"] and got["attempts"][0]["exit_code"] == r["exit_code"], got
        day = record(s, runs[0])["slot"][:10].replace("-", "/")
        assert any(n.startswith("cold/runs/%s/" % day) for n in s.names()), s.names()
        assert len(s.names("cold/jobs/")) == 4 and len(s.names("cold/output/")) == 3, s.names()
        assert [r["job_name"] for r in d.runs()] == ["young"]
        # read back: list, filters, pages, one run, output
        rows = [json.loads(x) for x in d.jobctl("runs", "--archived", "-o", "jsonl").stdout.splitlines()]
        assert sorted(r["id"] for r in rows) == sorted(r["id"] for r in runs), rows
        assert [r["id"] for r in rows] == [r["id"] for r in sorted(rows, key=lambda r: (r["slot"][:19], str(r["id"])))], rows
        failed = [json.loads(x) for x in d.jobctl("runs", "--archived", "--failed", "-o", "jsonl").stdout.splitlines()]
        assert [r["job_name"] for r in failed] == ["old1"], failed
        one = [json.loads(x) for x in d.jobctl("runs", "--archived", "old2", "-o", "jsonl").stdout.splitlines()]
        assert [r["id"] for r in one] == [runs[2]["id"]], one
        assert d.jobctl("runs", "--archived", "--since", "1d", "-o", "jsonl").stdout == ""
        assert d.jobctl("runs", "--archived", "--until", "60d", "-o", "jsonl").stdout == ""
        page, cursor = [], None
        for _ in range(10):
            answer = d.api().get("/v1/archive/runs?limit=1" + ("&cursor=" + cursor.replace("/", "%2F") if cursor else ""))
            page += [r["id"] for r in answer["runs"]]
            cursor = answer["next_cursor"]
            if not cursor:
                break
        assert page == [r["id"] for r in rows], (page, rows)
        shown = json.loads(d.jobctl("show", "--archived", "#%d" % runs[1]["id"], "-o", "json").stdout)
        assert shown["exit_code"] == 3 and shown["attempts"][0]["output_archived"] and "owner_number" not in shown, shown
        assert d.jobctl("log", "--archived", "#%d" % runs[1]["id"]).stdout == "broken\n"
        assert len(d.jobctl("log", "--archived", "#%d" % runs[2]["id"]).stdout) == 3000000
        assert d.jobctl("log", "--archived", "#%d" % runs[3]["id"]).stdout == ""
        missing = d.jobctl("show", "--archived", "#99999", check=False)
        assert missing.returncode == 3, missing
        assert "jobsched_archive_uploads_total{result=\"ok\"} 11" in subprocess.run(
            ["curl", "-s", "--unix-socket", d.socket, "http://localhost/metrics"], capture_output=True, text=True).stdout
        doctor = d.jobctl("doctor", check=False).stdout
        assert "archive" not in "".join(x for x in doctor.splitlines() if "error" in x.lower()), doctor


@case
def a_large_output_with_a_gap_is_uploaded_as_it_was_kept():
    with Storage() as s, Daemon(s.config + "output-archive = yes\noutput-limit = 100000\n") as d:
        d.env.update(KEYS)
        d.start()
        run = old_runs(d, ["seq 1 100000"])[0]
        d.start()
        kept = d.jobctl("log", "#%d" % run["id"]).stdout
        assert kept.startswith("1\n2\n") and kept.endswith("\n100000\n") and len(kept) < 110000, len(kept)
        prune(d)
        name, = s.names("cold/output/")
        assert s.objects[name].decode() == kept
        assert d.jobctl("log", "--archived", "#%d" % run["id"]).stdout == kept


@case
def credentials_come_from_a_file_or_the_instance_and_are_renewed_when_refused():
    asked = []

    def instance(request):
        keys = ("AKOLD", "old") if len(asked) < 3 else ("AKNEW", "new")  # each reading is three requests
        asked.append((request.command, request.path, request.headers.get("X-aws-ec2-metadata-token")))
        answers = {"/latest/api/token": "TOK", "/latest/meta-data/iam/security-credentials/": "role",
                   "/latest/meta-data/iam/security-credentials/role": json.dumps(
                       {"Code": "Success", "AccessKeyId": keys[0], "SecretAccessKey": keys[1], "Token": "session",
                        "Expiration": "2099-01-01T00:00:00Z"})}
        body = answers[request.path].encode()
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    with Web(do_GET=instance, do_PUT=instance) as meta, Storage(keys={"AKNEW": "new"}, token="session") as s, Daemon(s.config) as d:
        d.env.update(AWS_EC2_METADATA_SERVICE_ENDPOINT=meta.url, HOME=d.dir)
        d.start()
        assert d.api().call("GET", "/v1/archive/runs")[0] == 200, (s.refused, asked)
        assert [r[2] for r in s.refused] == ["InvalidAccessKeyId"] and len(asked) == 6, (s.refused, asked)
        assert asked[0] == ("PUT", "/latest/api/token", None) and asked[1][2] == "TOK", asked
        d.stop()
    with Storage() as s, Daemon(s.config) as d:
        path = os.path.join(d.dir, "credentials")
        with open(path, "w") as f:
            f.write("[default]\naws_access_key_id = x\naws_secret_access_key = y\n[cold]\naws_access_key_id = %s\naws_secret_access_key = %s\n"
                    % (KEY, SECRET))
        d.env.update(AWS_SHARED_CREDENTIALS_FILE=path, AWS_PROFILE="cold", AWS_EC2_METADATA_DISABLED="true")
        d.start()
        assert d.api().call("GET", "/v1/archive/runs")[0] == 200, s.refused
        d.stop()


@case
def an_artifact_in_a_listed_bucket_is_fetched_and_others_are_refused():
    script = b"#!/bin/sh\necho from storage\n"
    total = hashlib.sha256(script).hexdigest()
    with Storage() as s, Daemon(s.config + "s3-artifacts = %s\n" % BUCKET) as d:
        s.objects["tools/run now.sh"] = script
        d.env.update(KEYS)
        d.start()
        job = d.add(artifact="s3://%s/tools/run now.sh".replace(" ", "") % BUCKET, sha256=total, command=["true"])["id"]
        assert d.wait_final(job, 60)["state"] == "failed"  # there is no such object
        s.objects["tools/run.sh"] = script
        job = d.add(artifact="s3://%s/tools/run.sh" % BUCKET, sha256=total, command=["sh", "-c", ". $JOBSCHED_ARTIFACT/run.sh"])["id"]
        run = d.wait_final(job, 60)
        assert run["state"] == "succeeded", (run, d.api().get("/v1/runs/%d" % run["id"]), s.refused)
        assert d.jobctl("log", "#%d" % run["id"]).stdout == "from storage\n"
        status, answer = d.api().call("POST", "/v1/jobs", dict(artifact="s3://other-bucket/x", sha256=total, command=["true"]))[:2]
        assert status == 400 and "s3-artifacts" in str(answer), answer
        for url in ("s3://Other/x", "s3://%s" % BUCKET, "s3://%s/" % BUCKET, "s3://127.0.0.1:80/x"):
            status, answer = d.api().call("POST", "/v1/jobs", dict(artifact=url, sha256=total, command=["true"]))[:2]
            assert status == 400 and answer["error"]["field"] == "artifact", (url, answer)
        d.stop()
        d.write_config(s.config)
        d.start()
        count = s.count
        again = d.api().post("/v1/jobs/%d/run" % job)["id"]
        wait_until("it has ended", 60, lambda: d.api().get("/v1/runs/%d" % again)["state"] == "failed")
        assert s.count == count and "s3-artifacts" in json.dumps(d.api().get("/v1/runs/%d" % again)["attempts"])
        d.stop()


@case
def a_bucket_can_be_part_of_the_host_name():
    with Storage(virtual=".localhost") as s, Daemon() as d:  # libcurl itself resolves names below localhost
        d.write_config(s.config.replace("127.0.0.1", "localhost") + "s3-addressing = virtual\n")
        d.env.update(KEYS)
        d.start()
        runs = old_runs(d, ["true"])
        d.start()
        prune(d)
        assert record(s, runs[0])["id"] == runs[0]["id"] and not s.refused, (s.requests, s.refused)
        assert [r["id"] for r in d.api().get("/v1/archive/runs")["runs"]] == [runs[0]["id"]]


@case
def a_search_without_matches_goes_on_in_steps():
    with Storage() as s, Daemon(s.config) as d:
        for i in range(5200):
            s.objects["cold/runs/2026/01/01/%06d-r%d-o0-j1-succeeded-root-x.json" % (i % 240000, i + 1)] = b"{}"
        d.env.update(KEYS)
        d.start()
        first = d.api().get("/v1/archive/runs?job=other")
        assert first["runs"] == [] and first["next_cursor"], first
        second = d.api().get("/v1/archive/runs?job=other&cursor=" + first["next_cursor"].replace("/", "%2F"))
        assert second == {"runs": [], "next_cursor": None}, second
        status, answer = d.api().call("GET", "/v1/archive/runs?cursor=jobs%2Fx")[:2]
        assert status == 400 and answer["error"]["field"] == "cursor", answer
        assert "no run" in d.jobctl("show", "--archived", "x#9999", check=False).stderr


@case
def each_node_archives_the_runs_whose_output_it_has():
    with Storage() as s, Cluster(2, config=s.config + "output-archive = yes\n") as c:
        for n, d in enumerate(c.nodes):
            with open(d.config, "a") as f:
                f.write("node-labels = disk=d%d\n" % n)
            d.env.update(KEYS)
            d.stop()
            d.start()
        jobs = [c.nodes[0].add(name="j%d" % i, script="echo %d" % i, node_labels=["disk=d%d" % (i % 3 // 2)])["id"] for i in range(12)]
        runs = [c.nodes[0].wait_final(j, 60) for j in jobs]
        where = {r["id"]: r["node_name"] for r in runs}
        for d in c.nodes:
            d.stop()
        age(c.store)
        for d in c.nodes:
            d.start()
        wait_until("both nodes are alive", 60, lambda: all(d.api().get("/v1/status")["cluster"]["nodes"] == 2 for d in c.nodes))
        for n, d in enumerate(c.nodes):
            mine = sum(name == "n%d" % n for name in where.values())
            assert mine == (8, 4)[n], where
            said = prune(d).stdout
            assert "deleted %d runs" % mine in said, (n, said, where)
        assert c.nodes[0].runs() == [] and len(s.names("cold/runs/")) == len(s.names("cold/output/")) == 12, s.names()
        for n, r in enumerate(runs):
            assert c.nodes[n % 2].jobctl("log", "--archived", "#%d" % r["id"]).stdout == "%d\n" % n


@case
def a_local_archive_is_read_back_with_its_output():
    with Daemon() as d:
        archive = os.path.join(d.dir, "archive")
        d.write_config("archive = %s\noutput-archive = yes\n" % archive)
        runs = []
        for turn in range(2):
            d.start()
            runs += old_runs(d, ["echo %d-%d" % (turn, i) for i in range(4)])
            d.start()
            prune(d)
            d.stop()
            time.sleep(1.1)  # each pass has its own file
        assert len(glob.glob(archive + "/*.gz")) == 2
        d.start()
        rows = [json.loads(x) for x in d.jobctl("runs", "--archived", "-o", "jsonl").stdout.splitlines()]
        assert sorted(r["id"] for r in rows) == sorted(r["id"] for r in runs), rows
        seen, cursor = [], None
        while True:
            answer = d.api().get("/v1/archive/runs?limit=3" + ("&cursor=" + cursor if cursor else ""))
            seen += [r["id"] for r in answer["runs"]]
            cursor = answer["next_cursor"]
            if not cursor:
                break
        assert seen == [r["id"] for r in rows], (seen, rows)
        for n, r in enumerate(runs):
            assert d.jobctl("log", "--archived", "#%d" % r["id"]).stdout == "%d-%d\n" % divmod(n, 4)
        for name in ("../../../etc/passwd", "x:1:1", "20260101T000000Z:0:0", "%s:0:9999" % rows[0]["archived_as"].split(":")[0]):
            status = d.api().call("GET", "/v1/archive/output?name=" + name)[0]
            assert status == 404, (name, status)
        d.stop()


@case
def a_user_sees_only_archived_runs_of_their_own():
    need_root()
    with Storage() as s, System() as m:
        with open(os.path.join(m.conf_dir, "jobschedd.conf"), "a") as f:
            f.write(s.config + "output-archive = yes\n")
        m.env.update(KEYS)
        m.start()
        for user in ("alice", "bob"):
            assert m.jobctl(user, "add", "-n", "of-" + user, "--wait", "--", "echo", "secret of " + user).returncode == 0
        m.engine.terminate()
        m.engine.wait(30)
        age(os.path.join(m.state_dir, "jobs.db"))
        m.start_engine()
        pruned = m.jobctl("root", "db", "prune", "--yes")
        assert pruned.returncode == 0 and "deleted 2 runs" in pruned.stdout, (pruned, s.refused)
        rows = {u: [json.loads(x) for x in m.jobctl(u, "runs", "--archived", "-o", "jsonl").stdout.splitlines()] for u in ("alice", "bob", "root")}
        assert [r["job_name"] for r in rows["alice"]] == ["of-alice"], rows
        assert [r["job_name"] for r in rows["bob"]] == ["of-bob"], rows
        assert len(rows["root"]) == 2, rows
        of_bob = rows["bob"][0]
        assert m.jobctl("bob", "log", "--archived", "#%d" % of_bob["id"]).stdout == "secret of bob\n"
        assert m.jobctl("alice", "log", "--archived", "#%d" % of_bob["id"], check=False).returncode == 3
        direct = m.run_as("alice", ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", m.socket,
                                    "http://localhost/v1/archive/output?name=" + of_bob["archived_as"]])
        assert direct.stdout == "404", direct
        # an object decides by its content to which user it belongs
        forged = of_bob["archived_as"].replace("-o%d-" % of_bob["uid"], "-o%d-" % rows["alice"][0]["uid"]).replace("-r", "-r1", 1)
        s.objects["cold/" + forged] = s.objects["cold/" + of_bob["archived_as"]]
        assert "of-bob" not in m.jobctl("alice", "runs", "--archived", "-o", "jsonl").stdout
        direct = m.run_as("alice", ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", m.socket,
                                    "http://localhost/v1/archive/output?name=" + forged])
        assert direct.stdout == "404", direct
        forged = of_bob["archived_as"].replace("-o%d-" % of_bob["uid"], "-o%d-" % rows["alice"][0]["uid"])
        direct = m.run_as("alice", ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", m.socket,
                                    "http://localhost/v1/archive/output?name=" + forged])
        assert direct.stdout == "404", direct


if __name__ == "__main__":
    main()
