#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Uses the archive and an artifact with s3rver, an S3 server from npm: uploads, lists, reads back. s3rver checks the access key
# but not signatures of version 4; tests/integration/storage.py checks those.
#
# usage: top_builddir=build tests/clients/s3_npm.py DIR     DIR keeps the packages; npm needs the network for the first run
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from harness import Daemon, wait_until
from storage import old_runs, prune

PACKAGE = "s3rver@3"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    place = os.path.abspath(sys.argv[1])
    os.makedirs(place, exist_ok=True)
    program = os.path.join(place, "node_modules", ".bin", "s3rver")
    if not os.path.exists(program):
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", PACKAGE], cwd=place, check=True)
    data, port = os.path.join(place, "data"), free_port()
    shutil.rmtree(data, ignore_errors=True)
    os.makedirs(os.path.join(data, "tools"))
    server = subprocess.Popen([program, "-d", data, "-a", "127.0.0.1", "-p", str(port), "--configure-bucket", "history",
                               "--configure-bucket", "tools"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        wait_until("s3rver listens", 60, lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0)
        use(port)
    finally:
        server.terminate()
        server.wait()


def use(port):
    config = ("archive = s3://history/cold\noutput-archive = yes\ns3-endpoint = http://127.0.0.1:%d\ns3-artifacts = history\n" % port)
    with Daemon(config) as d:
        d.env.update(AWS_ACCESS_KEY_ID="OTHER", AWS_SECRET_ACCESS_KEY="S3RVER", AWS_EC2_METADATA_DISABLED="true")
        d.start()
        status, answer = d.api().call("GET", "/v1/archive/runs")[:2]
        assert status != 200 and "InvalidAccessKeyId" in str(answer), (status, answer)
        print("a wrong access key is refused:", answer["error"]["message"])
        d.stop()
        net = d.net()
        if net:
            os.kill(net, 15)
            wait_until("jobsched-net has ended", 30, lambda: d.net() != net)
        d.env.update(AWS_ACCESS_KEY_ID="S3RVER")
        d.start()
        runs = old_runs(d, ["echo run %d" % i for i in range(20)] + ["yes 0123456789 | head -c 30000000", "exit 3"])
        d.start()
        print(prune(d).stdout.strip())
        assert d.runs() == []
        rows = [json.loads(x) for x in d.jobctl("runs", "--archived", "-o", "jsonl").stdout.splitlines()]
        assert sorted(r["id"] for r in rows) == sorted(r["id"] for r in runs), rows
        print("archived runs found again:", len(rows))
        some = [json.loads(x) for x in d.jobctl("runs", "--archived", "--failed", "-o", "jsonl").stdout.splitlines()]
        assert [r["exit_code"] for r in some] == [3], some
        for n, r in enumerate(runs[:20]):
            assert d.jobctl("log", "--archived", "#%d" % r["id"]).stdout == "run %d\n" % n
        text = d.jobctl("log", "--archived", "#%d" % runs[20]["id"]).stdout
        assert len(text) == 10 << 20, len(text)  # the kept part
        print("output read back in parts: %d bytes" % len(text))
        name = d.jobctl("show", "--archived", "#%d" % runs[0]["id"], "-o", "json").stdout
        output = "output/" + "/".join(json.loads(name)["archived_as"].split("/")[1:4])
        slot = json.loads(name)["archived_as"].split("/")[4].split("-")[0]
        url = "s3://history/cold/%s/%s-r%d.1" % (output, slot, runs[0]["id"])
        job = d.add(artifact=url, sha256=hashlib.sha256(b"run 0\n").hexdigest(), command=["sh", "-c", "cat $JOBSCHED_ARTIFACT/*"])["id"]
        run = d.wait_final(job, 60)
        assert run["state"] == "succeeded", d.api().get("/v1/runs/%d" % run["id"])
        assert d.jobctl("log", "#%d" % run["id"]).stdout == "run 0\n"
        print("artifact fetched from the bucket:", url)
        assert "archive" not in d.jobctl("doctor", check=False).stdout
        d.stop()


main()
