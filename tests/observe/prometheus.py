#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# A real Prometheus scrapes three nodes over TCP and fires the shipped alerts when a job fails and when one does not run.
# It is run by hand and takes about two minutes:
#   top_builddir=build tests/observe/prometheus.py     needs 'prometheus' in $PATH
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "integration"))
from harness import wait_until
from nodes import Cluster


def port_of(d):
    found = wait_until("the node listens", 30, lambda: re.search(r"127\.0\.0\.1:([1-9][0-9]*)", d.said()))
    return int(found[1])


def alerts(url):
    with urllib.request.urlopen(url + "/api/v1/alerts") as answer:
        found = json.load(answer)["data"]["alerts"]
    return {(a["labels"]["alertname"], a["labels"].get("reason") or a["labels"].get("name")) for a in found if a["state"] == "firing"}


def query(url, text):
    with urllib.request.urlopen(url + "/api/v1/query?query=" + urllib.parse.quote(text)) as answer:
        return [(r["metric"], float(r["value"][1])) for r in json.load(answer)["data"]["result"]]


def main():
    program = shutil.which("prometheus") or sys.exit("prometheus is not in $PATH")
    work = tempfile.mkdtemp(prefix="jobsched-prom.")
    with Cluster(3, config="listen = 127.0.0.1:0\n") as c:
        token = c.nodes[0].api().post("/v1/tokens", {"name": "prometheus", "role": "viewer", "all": True, "scope": "metrics"})["token"]
        with open(os.path.join(work, "token"), "w") as f:
            f.write(token)
        shutil.copy(os.path.join(TOP, "packaging", "metrics", "alerts.yml"), work)
        ports = [port_of(d) for d in c.nodes]
        with open(os.path.join(work, "prometheus.yml"), "w") as f:
            f.write("global: {scrape_interval: 2s, evaluation_interval: 2s}\n"
                    "rule_files: [%s/alerts.yml]\n"
                    "scrape_configs:\n"
                    "  - job_name: jobsched\n"
                    "    authorization: {credentials_file: %s/token}\n"
                    "    static_configs: [{targets: %s}]\n" % (work, work, json.dumps(["127.0.0.1:%d" % p for p in ports])))
        with open(os.path.join(work, "log"), "w") as log:
            prom = subprocess.Popen([program, "--config.file=%s/prometheus.yml" % work, "--storage.tsdb.path=%s/data" % work,
                                     "--web.listen-address=127.0.0.1:0"], stdout=log, stderr=log)
        try:
            said = wait_until("Prometheus listens", 60, lambda: re.search(r"Listening on.*address=127\.0\.0\.1:([0-9]+)",
                                                                        open(os.path.join(work, "log")).read()))
            url = "http://127.0.0.1:%s" % said[1]
            wait_until("Prometheus is ready", 60, lambda: "Server is ready" in open(os.path.join(work, "log")).read())
            wait_until("three nodes are scraped", 60, lambda: len([1 for _, v in query(url, "up{job='jobsched'}") if v == 1]) == 3, 1)
            took = query(url, "max_over_time(scrape_duration_seconds[1m])")
            print("ok - three nodes are scraped; longest scrape %.1f ms, %d samples of a node" % (
                max(v for _, v in took) * 1000, query(url, "scrape_samples_scraped")[0][1]))
            print("ok - leaders: %s" % query(url, "sum(jobsched_leader)")[0][1])
            time.sleep(10)  # the series have values of 0 before the failure
            quiet = {name for name, _ in alerts(url)}
            assert not quiet, quiet
            print("ok - no alert fires on a healthy cluster")
            c.nodes[1].add(command=["false"], name="fails", schedule=["PT1H"], tz="UTC", tags={"metrics": "yes"})
            c.nodes[1].jobctl("run", "fails", "--wait", check=False)
            begun = time.monotonic()
            wait_until("the alert about the failure fires", 60, lambda: ("JobschedRunFailed", "exit") in alerts(url) and
                       ("JobschedJobFailed", "fails") in alerts(url), 0.5)
            print("ok - JobschedRunFailed and JobschedJobFailed fire %.0f s after the failure" % (time.monotonic() - begun))
            c.nodes[2].add(command=["sleep", "8"], name="overlaps", schedule=["PT2S"], tz="UTC", tags={"metrics": "yes"})
            begun = time.monotonic()
            wait_until("the alert about the missed slot fires", 60, lambda: ("JobschedRunMissed", "overlap") in alerts(url) and
                       ("JobschedJobDidNotRun", "overlaps") in alerts(url), 0.5)
            print("ok - JobschedRunMissed and JobschedJobDidNotRun fire %.0f s after the job was added" % (time.monotonic() - begun))
        finally:
            prom.send_signal(signal.SIGTERM)
            prom.wait(30)
    shutil.rmtree(work, ignore_errors=True)


main()
