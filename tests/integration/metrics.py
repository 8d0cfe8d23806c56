# SPDX-License-Identifier: Apache-2.0
# Tests the metrics of a daemon: formats, values, access, the text file.
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Connection, Daemon, Skip, case, main, wait_until

SOURCE = os.environ.get("top_srcdir", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
OPEN = "application/openmetrics-text;version=1.0.0"
SAMPLE = re.compile(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*\})? (NaN|-?[0-9]+(?:\.[0-9]+)?)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"')
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "info": ("_info",), "histogram": ("_bucket", "_sum", "_count")}


def scrape(d, accept=None):
    connection = Connection(d.socket, 30)
    connection.request("GET", "/metrics", headers={"Accept": accept} if accept else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, (answer.status, text)
    connection.close()
    return answer.headers["Content-Type"], text


class Metrics:
    """A strict reader of both formats: it refuses everything that is not in their grammar."""

    def __init__(self, text, openmetrics=False):
        self.types, self.help, self.values = {}, {}, {}
        family = None
        lines = text.split("\n")
        assert lines.pop() == "", "the last line has no end"
        if openmetrics:
            assert lines.pop() == "# EOF"
        for line in lines:
            if line.startswith("# "):
                word, name, rest = line[2:].split(" ", 2)
                if name != family:
                    assert name not in self.help, "the family %s is not in one piece" % name
                    family = name
                if word == "HELP":
                    assert name not in self.help and rest
                    self.help[name] = rest
                elif word == "TYPE":
                    assert name not in self.types and rest in SUFFIXES, line
                    self.types[name] = rest
                else:
                    assert word == "UNIT" and openmetrics and name.endswith("_" + rest), line
                continue
            found = SAMPLE.match(line)
            assert found, line
            name, labels, value = found.groups()
            kind = self.types[family]
            suffixes = SUFFIXES[kind] if openmetrics or kind == "histogram" else ("",)
            assert name in [family + s for s in suffixes], (family, line)
            pairs = LABEL.findall(labels or "")
            assert len(dict(pairs)) == len(pairs), line
            key = (name, tuple(sorted(pairs)))
            assert key not in self.values, "twice: %s" % line
            self.values[key] = float(value)
        assert set(self.types) == set(self.help)
        self.check_histograms()

    def check_histograms(self):
        for name in [n for n, kind in self.types.items() if kind == "histogram"]:
            series = {}
            for (sample, labels), value in self.values.items():
                if sample == name + "_bucket":
                    rest = tuple(p for p in labels if p[0] != "le")
                    series.setdefault(rest, []).append((float(dict(labels)["le"]), value))
            for rest, buckets in series.items():
                assert buckets == sorted(buckets) and buckets[-1][0] == float("inf"), (name, buckets)
                counts = [n for _, n in buckets]
                assert counts == sorted(counts), (name, rest, counts)
                assert counts[-1] == self.values[(name + "_count", rest)]
                assert (name + "_sum", rest) in self.values

    def get(self, sample, **labels):
        return self.values[(sample, tuple(sorted(labels.items())))]


def metrics(d):
    return Metrics(scrape(d)[1])


@case
def both_formats_are_valid_and_have_the_same_series():
    with Daemon() as d:
        d.start()
        d.add(command=["true"], name="plain", tags={"metrics": "yes"})
        kind, text = scrape(d)
        assert kind == "text/plain; version=0.0.4; charset=utf-8", kind
        old = Metrics(text)
        kind, text = scrape(d, OPEN)
        assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8", kind
        new = Metrics(text, openmetrics=True)
        assert {k for k in old.values if not k[0].startswith("jobsched_job_")} == \
            {k for k in new.values if not k[0].startswith("jobsched_job_")}
        assert new.types["jobsched_cluster_slots"] == "counter" and old.types["jobsched_cluster_slots_total"] == "counter"


@case
def promtool_accepts_the_metrics():
    promtool = shutil.which("promtool")
    if not promtool:
        raise Skip("promtool is missing: it is in the package prometheus")
    with Daemon() as d:
        d.start()
        d.add(command=["true"], schedule=["PT1H"], tz="UTC", name="tagged", tags={"metrics": "yes"})
        result = subprocess.run([promtool, "check", "metrics"], input=scrape(d)[1], capture_output=True, text=True)
        assert result.returncode == 0 and not result.stdout + result.stderr, (result.stdout, result.stderr)


@case
def every_series_exists_from_the_start_and_later_ones_are_the_same():
    with Daemon() as d:
        d.start()
        before = metrics(d)
        assert before.get("jobsched_cluster_slots_total", outcome="failed", reason="exit") == 0
        assert before.get("jobsched_api_requests_total", route="POST /v1/jobs", code="4xx") == 0
        job = d.add(command=["false"])["id"]
        d.wait_final(job)
        d.api().call("POST", "/v1/jobs", {"nonsense": 1})
        after = metrics(d)
        assert set(before.values) == set(after.values)
        assert after.get("jobsched_cluster_slots_total", outcome="failed", reason="exit") == 1
        assert after.get("jobsched_attempts_total", result="failed") == 1
        assert after.get("jobsched_attempt_duration_seconds_count") == 1
        assert after.get("jobsched_start_lateness_seconds_count") == 1
        assert after.get("jobsched_api_requests_total", route="POST /v1/jobs", code="4xx") == 1
        assert after.get("jobsched_submissions_total", result="accepted") == 1
        assert after.get("jobsched_submissions_total", result="invalid") == 1
        assert after.get("jobsched_store_commits_total", result="ok") > before.get("jobsched_store_commits_total", result="ok")
        assert after.get("jobsched_leader") == 1 and after.get("jobsched_segments") == 64
        assert after.get("jobsched_spawner_up") == 1 and after.get("jobsched_store_up") == 1
        assert after.get("jobsched_lease_remaining_seconds") > 0


@case
def the_manual_page_lists_every_metric_with_its_type_and_labels():
    with open(os.path.join(SOURCE, "man", "jobsched-metrics.7")) as f:
        listed = dict(re.findall(r"^\.It Sy (jobsched_[a-z_]+) Pq (.*)$", f.read(), re.M))
    with Daemon() as d:
        d.start()
        d.add(command=["true"], schedule=["PT1H"], tz="UTC", name="x", tags={"metrics": "yes"})
        now = metrics(d)
    expected = {}
    for family, kind in now.types.items():
        labels = []
        for name, pairs in now.values:
            if name in [family + s for s in ("", "_bucket", "_sum")]:
                labels += [p[0] for p in pairs if p[0] != "le" and p[0] not in labels]
        expected[family] = (kind, sorted(labels))
    told = {name: (text.split("; ")[0], sorted(text.split("; ")[1].split(", ")) if "; " in text else [])
            for name, text in listed.items()}
    assert told == expected, sorted(set(map(str, told.items())) ^ set(map(str, expected.items())))


@case
def retries_and_dead_letters_are_counted():
    with Daemon() as d:
        d.start()
        job = d.add(command=["false"], retries=1, backoff="fixed:1ms")["id"]
        run = d.wait_final(job)
        now = metrics(d)
        assert now.get("jobsched_retries_total") == 1
        assert now.get("jobsched_cluster_dead_letters") == 1
        assert now.get("jobsched_cluster_slots_total", outcome="failed", reason="retries") == 1
        d.api().call("POST", "/v1/runs/%d/purge" % run["id"])
        assert metrics(d).get("jobsched_cluster_dead_letters") == 0


@case
def a_tagged_job_shows_its_last_results():
    with Daemon() as d:
        d.start()
        begun = time.time()
        d.add(command=["sh", "-c", "exit $JOBSCHED_PARAM_CODE"], schedule=["PT1H"], tz="UTC", name="tagged", tags={"metrics": "yes"},
              params={"CODE": "0"})
        d.add(command=["true"], schedule=["PT1H"], tz="UTC", name="plain")
        label = {"job": "1", "name": "tagged", "owner": d.api().get("/v1/status")["you"]["name"]}
        now = metrics(d)
        assert now.get("jobsched_job_last_success_timestamp_seconds", **label) == 0
        assert now.get("jobsched_job_next_slot_timestamp_seconds", **label) > begun
        assert not [k for k in now.values if ("name", "plain") in k[1]]
        for code, name in (("0", "success"), ("1", "failure")):
            d.jobctl("run", "tagged", "--param", "CODE=" + code, "--wait", check=False)
            now = metrics(d)
            assert begun <= now.get("jobsched_job_last_%s_timestamp_seconds" % name, **label) <= time.time() + 1
        assert now.get("jobsched_job_last_duration_seconds", **label) > 0


@case
def all_jobs_have_series_if_configured_up_to_the_limit():
    with Daemon("metrics-jobs = all\nmetrics-jobs-max = 2\n") as d:
        d.start()
        for i in range(3):
            d.add(command=["true"], schedule=["PT1H"], tz="UTC", name="job%d" % i)
        d.jobctl("run", "job1", "--wait")
        now = metrics(d)
        names = {dict(k[1])["name"] for k in now.values if k[0].startswith("jobsched_job_")}
        assert names == {"job0", "job1"}, names
        found = [v for k, v in now.values.items() if k[0] == "jobsched_job_last_success_timestamp_seconds" and ("name", "job1") in k[1]]
        assert found[0] > 0


@case
def the_counts_of_the_cluster_survive_a_restart():
    with Daemon() as d:
        d.start()
        d.wait_final(d.add(command=["true"])["id"])
        d.stop()
        d.start()
        now = metrics(d)
        assert now.get("jobsched_cluster_slots_total", outcome="succeeded", reason="none") == 1
        assert now.get("jobsched_attempts_total", result="succeeded") == 0


@case
def the_text_file_is_replaced_in_one_step_and_removed_at_the_end():
    with Daemon() as d:
        path = os.path.join(d.dir, "jobsched.prom")
        d.write_config("metrics-textfile = %s\nmetrics-textfile-interval = 1\n" % path)
        d.start()
        wait_until("the file is there", 30, lambda: os.path.exists(path))
        first = os.stat(path)
        assert first.st_mode & 0o777 == 0o644
        with open(path) as f:
            assert Metrics(f.read()).get("jobsched_store_up") == 1
        wait_until("the file is replaced", 30, lambda: os.stat(path).st_mtime_ns != first.st_mtime_ns)
        d.stop()
        assert not os.path.exists(path)


@case
def a_directory_that_cannot_be_written_is_named_in_the_log():
    with Daemon("metrics-textfile = /nonexistent/x.prom\nmetrics-textfile-interval = 1\n") as d:
        d.start()
        wait_until("the log names the file", 30, lambda: "could not write '/nonexistent/x.prom.new'" in d.said())
        assert metrics(d).get("jobsched_store_up") == 1
    with Daemon("metrics-textfile = x.txt\n") as d:
        d.start()
        assert "not an absolute path that ends with .prom" in d.said()


@case
def a_scrape_while_the_store_is_locked_has_the_series_of_the_node():
    with Daemon() as d:
        d.start()
        d.wait_final(d.add(command=["true"])["id"])

        other = sqlite3.connect(d.db_path, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        try:
            d.jobctl("add", "--in", "1h", "--", "true", check=False, timeout=60)
            wait_until("the node says that the store is away", 60, lambda: "jobsched_store_up 0\n" in scrape(d)[1])
            text = scrape(d)[1]
            assert "jobsched_cluster_" not in text and "jobsched_workers 0\n" in text
        finally:
            other.execute("ROLLBACK")
            other.close()
        wait_until("the store is back", 60, lambda: "jobsched_store_up 1\n" in scrape(d)[1])


main()
