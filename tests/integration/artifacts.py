# SPDX-License-Identifier: Apache-2.0
# Jobs that bring something along: fetched over HTTP and from files, verified, unpacked, shown read-only.
import hashlib
import io
import os
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until
from system import System
from web import Web


def tar_of(compression="gz", **files):
    """Bytes of an archive with these files, executable all of them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:" + compression) as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo("bin/" + name)
            entry.size = len(text)
            entry.mode = 0o4777
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def sum_of(data):
    return hashlib.sha256(data).hexdigest()


class Server(Web):
    """Serves one archive; 'answers' says with what status first, then 200."""

    def __init__(self, data, answers=(), slow=0.0):
        self.asked, left = [], list(answers)

        def answer(request):
            self.asked.append(request.path)
            status = left.pop(0) if left else 200
            time.sleep(slow)
            request.send_response(status)
            if status == 302:
                request.send_header("Location", "/elsewhere" if len(self.asked) < 3 else "file:///etc/passwd")
            request.send_header("Content-Length", str(len(data)))
            request.end_headers()
            request.wfile.write(data)
        super().__init__(do_GET=answer)
        self.url += "/tool.tar.gz"


def said(d, run):
    connection = d.api().connection
    connection.request("GET", "/v1/runs/%d/output" % run)
    return connection.getresponse().read().decode()


def attempts(d, run):
    return d.api().get("/v1/runs/%d" % run)["attempts"]


TOOL = "#!/bin/sh\necho tool says \"$@\"\n"
SCRIPT = '"$JOBSCHED_ARTIFACT/bin/tool" hello; ls -l "$JOBSCHED_ARTIFACT/bin"'


@case
def many_runs_share_one_fetch_and_the_tree_is_read_only():
    data = tar_of(tool=TOOL)
    with Server(data, slow=0.5) as web, Daemon() as d:
        d.start()
        jobs = [d.add(script=SCRIPT, artifact=web.url, sha256=sum_of(data))["id"] for _ in range(10)]
        for job in jobs:
            run = d.wait_final(job)
            assert run["state"] == "succeeded", attempts(d, run["id"])
            assert said(d, run["id"]).startswith("tool says hello\n") and "-r-xr-xr-x" in said(d, run["id"]), said(d, run["id"])
        assert len(web.asked) == 1, web.asked
        d.kill()
        d.start()
        run = d.wait_final(d.add(script=SCRIPT, artifact=web.url, sha256=sum_of(data))["id"])
        assert run["state"] == "succeeded" and len(web.asked) == 1, (run, web.asked)


@case
def a_wrong_sum_is_said_and_retried_as_the_job_asks():
    data = tar_of(tool=TOOL)
    with Server(data) as web, Daemon() as d:
        d.start()
        job = d.add(script=SCRIPT, artifact=web.url + "?token=abc", sha256="0" * 64, retries=1, backoff="fixed:1s")["id"]
        run = d.wait_final(job)
        tries = attempts(d, run["id"])
        assert run["state"] == "failed" and len(tries) == 2 and len(web.asked) == 2, (run, tries, web.asked)
        assert all(t["outcome"] == "not_started" and sum_of(data) in t["error"] for t in tries), tries
        assert "abc" not in tries[0]["error"] and "abc" not in d.said(), "the query may be a token"


@case
def a_server_in_trouble_is_asked_again_without_using_up_a_retry():
    data = TOOL.encode()
    with Server(data, answers=[503, 302]) as web, Daemon() as d:
        d.start()
        run = d.wait_final(d.add(script='"$JOBSCHED_ARTIFACT/tool.tar.gz" x', artifact=web.url, sha256=sum_of(data))["id"])
        assert run["state"] == "succeeded" and len(attempts(d, run["id"])) == 1, attempts(d, run["id"])
        assert said(d, run["id"]) == "tool says x\n" and web.asked[2] == "/elsewhere", web.asked


@case
def what_is_not_found_or_leads_elsewhere_is_not_asked_for_again():
    with Server(b"x", answers=[404, 302, 302]) as web, Daemon() as d:
        d.start()
        for url, why in ((web.url, "404"), (web.url, "file")):
            run = d.wait_final(d.add(script="true", artifact=url, sha256=sum_of(b"x"))["id"])
            assert run["state"] == "failed" and why in attempts(d, run["id"])[0]["error"], attempts(d, run["id"])
        assert len(web.asked) == 3, web.asked


@case
def a_run_that_waits_for_its_artifact_can_be_cancelled_and_survives_the_engine():
    data = TOOL.encode()
    with Server(data, slow=2.0) as web, Daemon() as d:
        d.start()
        spec = dict(script="echo ran", artifact=web.url, sha256=sum_of(data))
        cancelled, kept = d.add(**spec)["id"], d.add(**spec)["id"]
        wait_until("it is asked for", 30, lambda: web.asked)
        d.jobctl("cancel", "--running", str(cancelled))
        assert d.wait_final(cancelled)["state"] == "cancelled"
        d.kill()
        d.start()
        run = d.wait_final(kept)
        assert run["state"] == "succeeded" and said(d, run["id"]) == "ran\n", attempts(d, run["id"])
        left = [n for n in os.listdir(os.path.join(d.state, "artifacts")) if n.startswith(".")]
        assert not left, left
        waits = d.add(**dict(spec, artifact=web.url + "2"))["id"]
        wait_until("it is asked for", 30, lambda: len(web.asked) == 3)
        assert d.stop() == 0
        assert waits


@case
def the_system_s_workers_see_it_at_a_fixed_place_and_nobody_can_write_to_it():
    data = tar_of(tool=TOOL)
    with System() as s, tempfile.TemporaryDirectory(dir="/var/lib") as room:
        os.chmod(room, 0o755)
        path = os.path.join(room, "tool.tar.gz")
        with open(path, "wb") as f:
            f.write(data)
        s.start()
        spec = dict(artifact="file:" + path, sha256=sum_of(data))
        out = s.run_job("alice", "sh", "-c", 'id -un; "$JOBSCHED_ARTIFACT/bin/tool" a; echo "$JOBSCHED_ARTIFACT"; '
                        'touch "$JOBSCHED_ARTIFACT/x" 2>&1; grep " $JOBSCHED_ARTIFACT " /proc/self/mounts; '
                        'ls /var/lib/jobsched 2>&1; true', **spec)
        lines = out.splitlines()
        assert lines[:3] == ["alice", "tool says a", "/run/jobsched/artifact"], out
        assert "Read-only file system" in lines[3] and "ro,nosuid,nodev" in lines[4], out
        assert "Permission denied" in lines[5], out
        assert s.run_job("bob", "/run/jobsched/artifact/bin/tool", "b", **spec) == "tool says b\n"
        assert s.run_job("bob", "sh", "-c", "$JOBSCHED_ARTIFACT/bin/tool s; find /run -type f -o -type s | wc -l", sandbox="strict",
                         cwd="/", **spec) == "tool says s\n1\n"
        for profile in ("compat", "strict"):
            out = s.run_job("bob", "sh", "-c", '"$JOBSCHED_ARTIFACT/bin/tool" c; touch "$JOBSCHED_ARTIFACT/x" 2>&1; true',
                            sandbox=profile, **spec)
            assert out.startswith("tool says c\n") and "Read-only file system" in out, (profile, out)
        assert not os.listdir("/run/jobsched/artifact"), "it is seen outside of the job"
        status, answer = s.api("root").call("POST", "/v1/jobs", dict(spec, command=["true"]))
        assert status == 400 and answer["error"]["field"] == "artifact", answer
        os.chmod(path, 0o640)
        os.chown(path, s.uid("jobsched"), 0)  # the engine could read it, alice could not
        other = dict(spec, artifact="file://" + path)
        run = s.wait_final("alice", s.add("alice", command=["true"], **other)["id"])
        assert run["state"] == "failed" and "readable by everybody" in s.attempts("alice", run["id"])[0]["error"], run
        own = os.path.join(s.state_dir, "jobs.db")
        run = s.wait_final("alice", s.add("alice", command=["true"], artifact="file:" + own, sha256="0" * 64)["id"])
        assert run["state"] == "failed" and "readable by everybody" in s.attempts("alice", run["id"])[0]["error"], run


main()
