# SPDX-License-Identifier: Apache-2.0
# Several users of one daemon: what each may see, stop and start, and isolation from a hostile user.
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import FINAL, case, instant, main, sanitized, wait_until
from system import System, write


@case
def users_cannot_see_or_change_jobs_of_each_other():
    with System() as s:
        s.start()
        job = s.add("alice", name="secret", command=["echo", "my-word"], schedule="manual")["id"]
        s.jobctl("alice", "run", "secret", "--wait")
        run = s.runs("alice", job)[0]["id"]
        assert s.output("alice", run) == "my-word\n"
        for words in (["show", str(job)], ["show", "secret"], ["cancel", str(job)], ["rm", "--yes", "secret"], ["log", "#%d" % run],
                      ["log", "secret"], ["run", "secret"], ["pause", str(job)], ["set", str(job), "priority=1"], ["why", "secret"],
                      ["history", str(job)], ["undo", str(job)], ["runs", "secret"], ["events", "secret"], ["wait", "#%d" % run],
                      ["cancel", "#%d" % run], ["dead", "retry", "#%d" % run], ["next", "secret"]):
            got = s.jobctl("bob", *words, check=False)
            assert got.returncode == 3, (words, got.returncode, got.stderr)
            missing = s.jobctl("bob", *[w.replace("secret", "nonesu").replace(str(job), "77").replace("#%d" % run, "#77")
                                        for w in words], check=False)
            assert (got.returncode, got.stdout) == (missing.returncode, missing.stdout), words
            same = got.stderr.replace("secret", "nonesu").replace("'%d'" % job, "'77'").replace("#%d" % run, "#77").replace(
                "run %d" % run, "run 77").replace("job %d" % job, "job 77").replace("'#%d'" % run, "'#77'")
            assert same == missing.stderr, (words, got.stderr, missing.stderr)
        assert "secret" not in s.jobctl("bob", "list", "--all").stdout + s.jobctl("bob", "runs").stdout
        assert "audit: run %d starts as 'alice' (uid %d), pid " % (run, s.uid("alice")) in s.said()
        assert "my-word" not in s.said(), "the log must not contain commands and output"
        seen = s.api("bob").get("/v1/status")
        assert all(seen[k] is None for k in ("jobs", "runs", "in_flight", "room", "next_slot", "backlog", "notices")), seen
        assert seen["you"] == {"name": "bob", "uid": s.uid("bob"), "role": "user", "jobs": 0, "running": 0}, seen
        assert [q["jobs"] for q in s.api("bob").get("/v1/queues")["queues"]] == [None]
        assert s.api("alice").get("/v1/status")["you"]["jobs"] == 1
        assert s.api("carol").get("/v1/status")["jobs"]["active"] == 1
        assert "you     carol, administrator" in s.jobctl("carol", "status").stdout
        assert "secret" in s.jobctl("carol", "list").stdout, "an administrator sees all jobs"
        assert s.jobctl("carol", "log", "#%d" % run).stdout == "my-word\n"
        assert "secret" in s.jobctl("root", "list").stdout
        assert json.loads(s.jobctl("alice", "show", "secret", "--json").stdout)["state"] == "active"


@case
def an_administrator_can_act_for_others_and_the_events_record_it():
    with System() as s:
        s.start()
        for by in ("carol", "root"):
            job = int(s.jobctl(by, "add", "--as", "alice", "--", "sh", "-c", "id -un; pwd").stdout)
            run = s.wait_final("alice", job)
            assert s.output("alice", run["id"]) == "alice\n/home/alice\n"
            [added] = [e for e in s.api("alice").pages("/v1/events?job=%d" % job, "events") if e["what"] == "job.add"]
            assert (added["who"], added["uid"], added["result"]) == (by, s.uid(by), "ok"), added
        for words, code in ((["--as", "root", "--", "id"], 4), (["--as", "nonesuch", "--", "id"], 3),
                            (["--as", "nobody", "--", "id"], 4),
                            (["--as", "alice", "--env", "LD_PRELOAD=/tmp/x.so", "--", "id"], 2)):
            assert s.jobctl("carol", "add", *words, check=False).returncode == code, words
        denied = s.jobctl("bob", "add", "--as", "alice", "--", "id", check=False)
        assert denied.returncode == 4 and "administrators" in denied.stderr, denied.stderr
        s.jobctl("root", "add", "-n", "roots", "--manual", "--", "id")
        assert s.jobctl("carol", "set", "roots", "priority=1", check=False).returncode == 4
        assert s.jobctl("carol", "run", "roots", check=False).returncode == 4
        s.jobctl("carol", "pause", "roots")


@case
def the_entries_of_a_system_table_become_jobs_of_their_users():
    with System() as s:
        s.start()
        table = "/etc/jobsched/table"
        words = ("import", "crontab", "--table", "system", table)
        write(table, "A=b\n1 2 * * * alice id -un; echo $A ${HOME##*/} $PATH\n1 2 * * * bob cd / && ./tidy\n")
        got = s.jobctl("root", *words)
        assert "2 added, 0 replaced, 0 unchanged" in got.stderr, got.stderr
        [job] = json.loads(s.jobctl("alice", "list", "--json").stdout)
        assert job["name"].startswith("id-") and job["schedule"] == ["1 2 * * *"], job
        s.jobctl("alice", "run", job["name"], "--wait")
        assert s.output("alice", s.runs("alice", job["id"])[0]["id"]) == "alice\nb alice /usr/bin:/bin\n"
        assert s.jobctl("bob", "list", "-o", "name").stdout.startswith("tidy-")
        assert "2 unchanged" in s.jobctl("root", *words).stderr
        assert s.jobctl("alice", *words, check=False).returncode == 4


@case
def an_owner_cannot_lift_an_administrators_pause():
    with System() as s:
        s.start()
        job = s.add("alice", name="heavy", command=["true"], schedule="every 1h", tags={"team": "a"})["id"]

        def denied(*words):
            got = s.jobctl("alice", *words, check=False)
            assert got.returncode == 4, (words, got.returncode, got.stderr)
            assert "by carol" in got.stderr and "disk full" in got.stderr and "only an administrator" in got.stderr, (words, got.stderr)
        s.jobctl("carol", "pause", "heavy", "--reason", "disk full")
        for words in (["resume", "heavy"], ["pause", "heavy", "--until", "1s"], ["run", "heavy"], ["run", "heavy", "--force"],
                      ["rm", "--yes", "heavy"], ["set", "heavy", "name=other"]):
            denied(*words)
        why = s.api("alice").get("/v1/jobs/%d/why" % job)["now"]
        assert why["code"] == "paused" and "only an administrator" in why["message"] and why["command"] is None, why
        assert s.api("carol").get("/v1/jobs/%d/why" % job)["now"]["command"] == "jobctl resume heavy"
        s.jobctl("alice", "set", "heavy", "priority=1", "schedule=every 2h")
        s.jobctl("alice", "add", "-n", "heavy", "--if-exists", "replace", "--every", "3h", "--", "true")
        s.jobctl("alice", "undo", "heavy")
        assert s.api("alice").get("/v1/jobs/%d" % job)["state"] == "paused"
        assert s.jobctl("alice", "thaw", check=False).returncode == 4
        told = s.jobctl("alice", "cancel", "heavy").stderr
        assert "only an administrator can undo that, because carol had paused it" in told and "jobctl resume" not in told, told
        why = s.api("alice").get("/v1/jobs/%d/why" % job)["now"]
        assert why["code"] == "cancelled" and "paused by carol" in why["message"] and why["command"] is None, why
        assert s.api("carol").get("/v1/jobs/%d/why" % job)["now"]["command"] == "jobctl resume %d" % job
        denied("resume", str(job))
        denied("rm", "--yes", str(job))
        denied("add", "-n", "heavy", "--every", "1h", "--", "true")
        s.jobctl("carol", "resume", str(job))
        s.jobctl("alice", "pause", "heavy")
        s.jobctl("alice", "resume", "heavy")
        s.jobctl("carol", "add", "--as", "alice", "-n", "imposed", "--paused", "--every", "1h", "--", "true")
        got = s.jobctl("alice", "resume", "imposed", check=False)
        assert got.returncode == 4 and "by carol" in got.stderr, got.stderr
        for scope in (["--owner", "alice"], ["--all", "--owner", "alice"], ["--tag", "team=a", "--owner", "alice"]):
            own = scope if scope[0] == "--owner" else scope[:-2]
            s.jobctl("carol", "pause", *scope, "--reason", "disk full")
            denied("resume", *own)
            denied("pause", *own, "--until", "1s")
            denied("run", "heavy", "--force")
            s.jobctl("carol", "resume", *scope)
        s.jobctl("alice", "run", "heavy")


@case
def allow_and_deny_files_decide_who_may_submit_and_fail_closed():
    with System() as s:
        s.start()
        allow, deny = s.conf_dir + "/allow", s.conf_dir + "/deny"
        write(s.conf_dir + "/jobschedd.conf", "allow-file = %s\ndeny-file = %s\n" % (allow, deny))
        s.engine.terminate()
        s.engine.wait()
        s.start_engine()
        kept = s.add("bob", name="kept", command=["true"], schedule="manual")["id"]

        def may(user):
            got = s.jobctl(user, "add", "--manual", "--", "true", check=False)
            assert got.returncode in (0, 4), (got.returncode, got.stderr)
            assert got.returncode == 0 or "ask your administrator" in got.stderr, got.stderr
            return got.returncode == 0
        write(deny, "bob # he knows why\n")
        assert may("alice") and not may("bob") and may("root")
        write(allow, "bob\n")
        assert not may("alice") and may("bob") and may("root") and not may("carol")
        os.unlink(allow)
        s.jobctl("bob", "show", "kept")
        assert s.jobctl("bob", "run", "kept", check=False).returncode == 4
        s.jobctl("bob", "cancel", str(kept))
        for text, mode in (("bo b\n", 0o644), ("alice\n", 0o600), ("alice\n", 0o666)):
            write(deny, text, mode)
            assert not may("alice") and not may("bob") and not may("carol") and may("root"), (text, mode)
        os.unlink(deny)
        assert may("bob")


@case
def jobs_of_a_deleted_user_are_suspended_until_the_user_is_back():
    with System() as s:
        s.start()
        job = s.add("alice", name="tick", command=["id", "-un"], schedule="every 1s", catchup="none")["id"]
        wait_until("the job has run", 30, lambda: [r for r in s.runs("root", job) if r["state"] == "succeeded"])
        uid = s.users.pop("alice")
        s.write_users()
        shown = wait_until("the job is suspended", 90, lambda: (lambda j: j["state"] == "suspended" and j)(
            s.api("root").get("/v1/jobs/%d" % job)))
        assert shown["reason"] == "no_such_user", shown
        [denied] = [r for r in s.runs("root", job) if r["reason"] == "no_such_user"][:1]
        assert denied["state"] == "failed" and s.attempts("root", denied["id"])[-1]["outcome"] == "denied"
        assert "job.suspend" in s.jobctl("root", "events", str(job)).stdout
        why = s.jobctl("root", "why", str(job)).stdout
        assert "'alice' no longer exists on this machine" in why and "jobctl resume" in why, why
        s.users["alice"] = uid
        s.write_users()
        before = len(s.runs("root", job))
        s.jobctl("root", "resume", str(job))
        wait_until("the job runs again", 90, lambda: [r for r in s.runs("root", job)[:-before] if r["state"] == "succeeded"])


@case
def a_new_user_with_a_reused_uid_inherits_nothing():
    with System() as s:
        s.start()
        job = s.add("alice", name="mine", command=["sh", "-c", "id -un; echo word"], schedule="manual")["id"]
        s.jobctl("alice", "template", "add", "plan", "--", "echo", "word")
        s.jobctl("alice", "run", "mine", "--wait")
        run = s.runs("alice", job)[0]["id"]
        s.users["mallory"] = s.users.pop("alice")
        s.write_users()
        s.engine.terminate()  # without a restart the daemon notices the change within a minute
        s.engine.wait()
        s.start_engine()
        assert s.jobctl("mallory", "list", "--all", "--json").stdout.strip() == "[]"
        assert "mine" not in s.jobctl("mallory", "events").stdout
        assert "plan" not in s.jobctl("mallory", "template", "list").stdout
        for words in (["show", str(job)], ["log", "#%d" % run], ["run", "mine"], ["cancel", str(job)], ["add", "--template", "plan"]):
            assert s.jobctl("mallory", *words, check=False).returncode == 3, words
        own = s.add("mallory", name="mine", command=["id", "-un"], schedule="manual")
        assert own["uid"] == s.uid("mallory") and own["owner"] == "mallory", own
        s.jobctl("mallory", "run", "mine", "--wait")
        assert s.output("mallory", s.runs("mallory", own["id"])[0]["id"]) == "mallory\n"
        s.jobctl("root", "run", str(job))
        refused = wait_until("the run is refused", 90, lambda: (lambda r: r["state"] == "failed" and r)(s.runs("root", job)[0]))
        assert refused["reason"] == "other_user", refused
        assert s.api("root").get("/v1/jobs/%d" % job)["state"] == "suspended"


@case
def the_daemon_survives_repeated_crashes_of_the_spawner():
    with System() as s:
        s.start()
        jobs = s.api("bob").post("/v1/jobs/bulk", {"jobs": [{"command": ["sleep", "0.1"], "on_lost": "rerun"}] * 1000})["jobs"]
        for _ in range(8):
            before = s.api("root").get("/v1/status")["runs"]["queued"]
            wait_until("runs start", 30, lambda: s.api("root").get("/v1/status")["runs"]["queued"] < max(before - 30, 1))
            s.spawner.kill()
            s.spawner.wait()
            s.start_spawner()
            assert s.engine.poll() is None, s.said()[-2000:]
        ids = {j["id"] for j in jobs}
        wait_until("all runs have ended", 60, lambda: all(r["state"] in FINAL for r in s.api("root").pages("/v1/runs", "runs")))
        assert {r["job"] for r in s.api("root").pages("/v1/runs", "runs")} == ids


# ---- a hostile user ----

HOSTILE = r"""
import http.client, json, os, resource, socket, sys, threading, time
path, seconds, command, uid = sys.argv[1], float(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4])
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
counts, idle, lock = {}, [], threading.Lock()

class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(path)

def ask(c, target, body):
    c.request("POST", target, json.dumps(body), {"Content-Type": "application/json"})
    answer = c.getresponse()
    answer.read()
    with lock:
        counts[str(answer.status)] = counts.get(str(answer.status), 0) + 1
    return answer.status

def flood():
    c = None
    while time.time() < end:
        try:
            c = c or Connection("localhost")
            ask(c, "/v1/jobs", {"command": ["true"], "schedule": "manual"})
        except OSError as e:
            with lock:
                counts["broken"] = counts.get("broken", 0) + 1
            c = None

work = ask(Connection("localhost"), "/v1/jobs/bulk", {"jobs": [{"command": command}] * 10000})
end = time.time() + seconds  # after the bulk, which can take as long on a busy machine
floods = [threading.Thread(target=flood) for _ in range(4)]
for f in floods:
    f.start()
while time.time() < end:
    if len(idle) < 1100:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(5)
        try:
            s.connect(path)
            s.send(b"GET /v1/jobs HTTP/1.1\r\nX: ")  # the request is never completed
            idle.append(s)
        except OSError:
            time.sleep(0.01)
    else:
        for s in idle[::50]:
            try:
                s.send(b"x")
            except OSError:
                pass
        time.sleep(0.2)
for f in floods:
    f.join()
print(json.dumps({"bulk": work, "idle": len(idle), "answers": counts}))
"""


def percent(values, n):
    return sorted(values)[min(len(values) - 1, len(values) * n // 100)]


def beside_a_hostile_neighbour(command, seconds, conf):
    """Measures the delay of alice's runs and the latency of her requests while bob floods the daemon."""
    with System(engine_conf="submissions-per-second = 100\n" + conf) as s:  # bob exceeds this on a slow machine, too
        s.start()
        s.add("alice", name="tick", command=["true"], schedule="* * * * * *", overlap="allow")
        bob = subprocess.Popen([sys.executable, "-c", HOSTILE, s.socket, str(seconds), json.dumps(command), str(s.uid("bob"))],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd="/")
        try:
            wait_until("runs of bob are queued", 30, lambda: s.api("root").get("/v1/status")["runs"]["queued"] > 2000)
            began, took, waiting = time.time(), [], []
            while bob.poll() is None:
                at = time.time()
                s.api("alice").get("/v1/jobs/tick")
                took.append(time.time() - at)
                if len(took) % 20 == 1:
                    waiting.append(s.api("root").get("/v1/status")["runs"]["queued"])
                time.sleep(0.02)
            ended = time.time()
            said = json.loads(bob.communicate()[0])
        finally:
            if bob.poll() is None:
                bob.kill()
                bob.wait()
        runs = [r for r in s.runs("alice", "tick") if began < instant(r["slot"]) < ended - 3]
        assert all(r["started_at"] for r in runs), [(r["slot"], r["state"], r["reason"]) for r in runs]
        late = [instant(r["started_at"]) - instant(r["slot"]) for r in runs]
        assert said["bulk"] == 201 and said["answers"].get("429", 0) > 0, said
        assert min(waiting) > 1000 and len(runs) >= (ended - began) - 6, (waiting, len(runs), ended - began)
        # the figures are printed; the limits are wide, so that a busy machine does not fail the test
        assert sanitized() or (percent(late, 50) < 3 and percent(took, 50) < 5), (late, percent(took, 99))
        return "bob: %d idle connections, %s; %d of his runs waited; alice: runs late by %.0f ms in the middle, %.0f ms at worst; " \
               "her %d calls took %.1f ms in the middle, %.1f ms at p99" % (
                   said["idle"], said["answers"], min(waiting), percent(late, 50) * 1000, max(late) * 1000, len(took),
                   percent(took, 50) * 1000, percent(took, 99) * 1000)


@case
def short_runs_connections_and_submissions_of_one_user_do_not_delay_others():
    return beside_a_hostile_neighbour(["sleep", "0.2"], 12, "")


@case
def endless_runs_of_one_user_do_not_delay_others():
    return beside_a_hostile_neighbour(["sleep", "1000"], 8, "max-running = 40\n")


if __name__ == "__main__":
    main()
