# SPDX-License-Identifier: Apache-2.0
# Artifacts: downloaded by HTTP or copied from files, verified, unpacked, mounted read-only.
import gzip
import hashlib
import io
import os
import signal
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until
from system import System
from web import Web


def tar_of(compression="gz", **files):
    """An archive with these files, all executable, as bytes."""
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
    """Serves one archive; 'answers' are the first status codes, then 200."""

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
def many_runs_share_one_download_and_the_tree_is_read_only():
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
def a_wrong_sum_is_reported_and_retried():
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
def a_server_error_is_retried_without_a_retry_of_the_job():
    data = TOOL.encode()
    with Server(data, answers=[503, 302]) as web, Daemon() as d:
        d.start()
        run = d.wait_final(d.add(script='"$JOBSCHED_ARTIFACT/tool.tar.gz" x', artifact=web.url, sha256=sum_of(data))["id"])
        assert run["state"] == "succeeded" and len(attempts(d, run["id"])) == 1, attempts(d, run["id"])
        assert said(d, run["id"]) == "tool says x\n" and web.asked[2] == "/elsewhere", web.asked


@case
def a_missing_artifact_or_redirect_to_a_file_is_not_requested_again():
    with Server(b"x", answers=[404, 302, 302]) as web, Daemon() as d:
        d.start()
        for url, why in ((web.url, "404"), (web.url, "file")):
            run = d.wait_final(d.add(script="true", artifact=url, sha256=sum_of(b"x"))["id"])
            assert run["state"] == "failed" and why in attempts(d, run["id"])[0]["error"], attempts(d, run["id"])
        assert len(web.asked) == 3, web.asked


@case
def a_run_that_waits_for_its_artifact_can_be_cancelled_and_survives_the_daemon():
    data = TOOL.encode()
    with Server(data, slow=2.0) as web, Daemon() as d:
        d.start()
        spec = dict(script="echo ran", artifact=web.url, sha256=sum_of(data))
        cancelled, kept = d.add(**spec)["id"], d.add(**spec)["id"]
        wait_until("the artifact is requested", 30, lambda: web.asked)
        d.jobctl("cancel", "--running", str(cancelled))
        assert d.wait_final(cancelled)["state"] == "cancelled"
        d.kill()
        d.start()
        run = d.wait_final(kept)
        assert run["state"] == "succeeded" and said(d, run["id"]) == "ran\n", attempts(d, run["id"])
        cache = os.path.join(d.state, "artifacts")
        wait_until("no unfinished entry is left", 30, lambda: not [n for n in os.listdir(cache) if n.startswith(".")])
        before = len(web.asked)  # jobsched-net may have finished or restarted the download of the first daemon
        waits = d.add(**dict(spec, artifact=web.url + "2"))["id"]
        wait_until("the artifact is requested", 30, lambda: len(web.asked) > before)
        assert d.stop() == 0
        assert waits


@case
def in_system_mode_the_artifact_has_a_fixed_path_and_is_read_only():
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
        os.chown(path, s.uid("alice"), 0)
        os.chmod(path, 0o600)  # a private file can be used by its owner only
        other = dict(spec, artifact="file://" + path)
        assert s.run_job("alice", "/run/jobsched/artifact/bin/tool", "mine", **other) == "tool says mine\n"
        run = s.wait_final("bob", s.add("bob", command=["true"], **other)["id"])
        assert run["state"] == "failed" and "Permission denied" in s.attempts("bob", run["id"])[0]["error"], run


def refusal(s, url, sha256="0" * 64):
    """The error of a run of alice with this artifact."""
    run = s.wait_final("alice", s.add("alice", command=["true"], artifact=url, sha256=sha256)["id"], 60)
    assert run["state"] == "failed", run
    return s.attempts("alice", run["id"])[0]["error"]


def locks(paths):
    """POSIX locks on these files, from /proc/locks."""
    numbers = {os.stat(path).st_ino for path in paths}
    with open("/proc/locks") as f:
        rows = [line.split() for line in f]
    return sorted(tuple(row[3:]) for row in rows if row[1] == "POSIX" and int(row[5].split(":")[2]) in numbers)


@case
def the_daemon_opens_no_file_of_a_job_and_keeps_its_locks():
    with System() as s:
        s.start()
        s.run_job("bob", "true")
        store = [os.path.join(s.state_dir, n) for n in ("jobs.db", "jobs.db-shm")]
        before = locks(store)
        assert before, "the daemon has locks on its store"
        for path in store:
            assert "Permission denied" in refusal(s, "file:" + path)
        assert locks(store) == before, (before, locks(store))


@case
def files_of_procfs_and_magic_links_are_refused():
    with System() as s:
        s.start()
        for path in ("/proc/self/maps", "/proc/self/status", "/proc/self/environ", "/proc/self/fd/0", "/proc/self/fd/1",
                     "/proc/self/exe", "/sys/kernel/uevent_seqnum", "/dev/null", "/etc"):
            error = refusal(s, "file:" + path)
            assert "not a regular file of an ordinary file system" in error and "SHA-256" not in error, (path, error)
        assert "Permission denied" in refusal(s, "file:/etc/shadow")


def hard_link_bomb(size):
    """A gzip archive with a hard link that has a body of so many zeros."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1) as f:
        first = tarfile.TarInfo("a")
        first.size = 1
        f.write(first.tobuf(tarfile.USTAR_FORMAT) + b"x".ljust(512, b"\0"))
        link = tarfile.TarInfo("b")
        link.type, link.linkname, link.size = tarfile.LNKTYPE, "a", size
        link.pax_headers = {"comment": "a pax header makes the size of a link count"}
        f.write(link.tobuf(tarfile.PAX_FORMAT))
        for _ in range(size >> 20):
            f.write(bytes(1 << 20))
        f.write(bytes(1024))
    return out.getvalue()


@case
def the_body_of_a_hard_link_counts_against_the_limit():
    data = hard_link_bomb(96 << 20)
    with Server(data) as web, Daemon("artifact-limit = 64M\n") as d:
        d.start()
        run = d.wait_final(d.add(script="true", artifact=web.url, sha256=sum_of(data))["id"], 60)
        assert run["state"] == "failed" and "artifact-limit" in attempts(d, run["id"])[0]["error"], attempts(d, run["id"])


def disk_use(path):
    return sum(os.lstat(os.path.join(top, name)).st_blocks * 512 for top, _, names in os.walk(path) for name in names)


@case
def artifacts_in_use_count_against_the_budget():
    """The second run waits in its queue until the first run ends."""
    archives = [tar_of(tool=TOOL, ballast=str(i) * (3 << 20)) for i in range(2)]
    with System(engine_conf="artifact-limit = 4M\nartifact-budget = 4M\n") as s, tempfile.TemporaryDirectory(dir="/var/lib") as room:
        os.chmod(room, 0o755)
        jobs = []
        s.start()
        for i, data in enumerate(archives):
            path = os.path.join(room, "tool%d.tar.gz" % i)
            with open(path, "wb") as f:
                f.write(data)
            os.chmod(path, 0o644)
            script = "while ! test -e %s/go; do sleep 0.1; done; \"$JOBSCHED_ARTIFACT/bin/tool\" %d" % (room, i)
            jobs.append(s.add("alice", command=["sh", "-c", script], artifact="file:" + path, sha256=sum_of(data))["id"])
            wait_until("the first run is running", 30, lambda: s.runs("alice", jobs[0])[0]["state"] == "running")

        def waits():
            return "artifact-budget" in s.jobctl("alice", "why", str(jobs[1]), check=False).stdout
        wait_until("'why' shows what the second run waits for", 30, waits)
        assert s.runs("alice", jobs[1])[0]["state"] == "queued"
        assert disk_use(s.net_state) <= 4 << 20, disk_use(s.net_state)
        open(os.path.join(room, "go"), "w").close()
        for i, job in enumerate(jobs):
            run = s.wait_final("alice", job, 60)
            assert run["state"] == "succeeded" and s.output("alice", run["id"]) == "tool says %d\n" % i, run


@case
def a_job_cannot_alter_the_artifact_of_the_next_run():
    """In user mode jobs have the uid of the cache and can write to it."""
    data = tar_of(tool=TOOL)
    with Server(data) as web, Daemon() as d:
        d.start()
        cache = os.path.join(d.state, "artifacts")
        spec = dict(artifact=web.url, sha256=sum_of(data))
        evil = 'cd "$JOBSCHED_ARTIFACT"; chmod -R u+w . ; printf "#!/bin/sh\necho evil\n" >bin/tool; bin/tool; ' \
               'for f in %s/*/file; do chmod u+w $f; echo evil >$f; done' % cache
        run = d.wait_final(d.add(script=evil, **spec)["id"])
        assert said(d, run["id"]) == "evil\n", said(d, run["id"])
        run = d.wait_final(d.add(script=SCRIPT, **spec)["id"])
        assert said(d, run["id"]).startswith("tool says hello\n"), said(d, run["id"])
        assert len(web.asked) == 2, "the altered archive is noticed and fetched again"
        wait_until("private copies are removed", 30, lambda: not [n for n in os.listdir(cache) if n.startswith(("run-", "."))])


@case
def a_run_waits_for_jobsched_net_and_why_names_the_command():
    data = tar_of(tool=TOOL)
    with Server(data) as web, System() as s:
        s.start()
        s.net.terminate()
        s.net.wait()
        job = s.add("alice", command=["sh", "-c", '"$JOBSCHED_ARTIFACT/bin/tool" a'], artifact=web.url, sha256=sum_of(data))["id"]

        def says():
            return "systemctl start jobsched-net" in s.jobctl("alice", "why", str(job), check=False).stdout
        wait_until("'why' names the command", 30, says)
        s.start_net()
        run = s.wait_final("alice", job, 60)
        assert run["state"] == "succeeded" and s.output("alice", run["id"]) == "tool says a\n", run
        assert len(s.attempts("alice", run["id"])) == 1, "waiting uses up no attempt"


@case
def the_artifact_of_a_running_job_survives_restarts_of_both_programs():
    data = tar_of(tool=TOOL)
    with Server(data) as web, Daemon("artifact-budget = 64K\n") as d:
        d.start()
        go = os.path.join(d.dir, "go")
        wait = 'echo up; while ! test -e %s; do sleep 0.1; done; "$JOBSCHED_ARTIFACT/bin/tool" late' % go
        job = d.add(script=wait, artifact=web.url, sha256=sum_of(data))["id"]
        wait_until("it runs", 30, lambda: d.runs(job) and d.runs(job)[0]["state"] == "running")
        d.kill()
        os.kill(d.net(), signal.SIGKILL)
        d.start()
        other = d.wait_final(d.add(script=SCRIPT, artifact=web.url, sha256=sum_of(data))["id"])
        assert other["state"] == "succeeded", attempts(d, other["id"])
        open(go, "w").close()
        run = d.wait_final(job)
        assert run["state"] == "succeeded" and said(d, run["id"]) == "up\ntool says late\n", said(d, run["id"])


main()
