# SPDX-License-Identifier: Apache-2.0
# Identity of jobs: user, groups, environment, directory; starts that the root spawner refuses on its own.
import os
import re
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import case, main, need_program, wait_until
from system import System, write

NSS_MODULE = r"""
#include <errno.h>
#include <nss.h>
#include <pwd.h>
#include <unistd.h>
#include <sys/stat.h>
enum nss_status _nss_jslow_getpwuid_r(uid_t u, struct passwd *p, char *b, size_t n, int *e)
{
	struct stat st;
	(void)p; (void)b; (void)n;
	if (u < 4000 || u > 5000) return NSS_STATUS_NOTFOUND;
	if (stat("/etc/jslow-hangs", &st) == 0) sleep(600);
	if (stat("/etc/jslow-down", &st) != 0) return NSS_STATUS_NOTFOUND;
	errno = *e = EIO;
	return NSS_STATUS_UNAVAIL;
}
enum nss_status _nss_jslow_getpwnam_r(const char *s, struct passwd *p, char *b, size_t n, int *e)
{
	(void)s; (void)p; (void)b; (void)n; (void)e;
	return NSS_STATUS_NOTFOUND;
}
"""


def not_started(s, user, job):
    """The error of the only attempt of a job that was not started."""
    run = wait_until("the job is not started", 30, lambda: next(iter(s.runs(user, job)), None))
    run = wait_until("its attempt has ended", 30,
                     lambda: next((r for r in s.runs(user, job) if r["state"] not in ("queued", "claimed", "running")), None))
    attempts = s.attempts(user, run["id"])
    assert len(attempts) == 1 and attempts[0]["outcome"] in ("not_started", "denied"), attempts
    return attempts[0]["error"]


@case
def a_job_runs_as_its_owner_with_all_groups():
    with System() as s:
        s.start()
        for user in ("alice", "bob", "carol"):
            said = s.run_job(user, "cat", "/proc/self/status")
            uid = str(s.uid(user))
            status = dict(line.split(":\t", 1) for line in said.splitlines() if ":\t" in line)
            assert status["Uid"].split() == [uid] * 4, status["Uid"]
            assert status["Gid"].split() == [uid] * 4, status["Gid"]
            assert sorted(map(int, status["Groups"].split())) == sorted([s.uid(user), *s.gids(user)]), status["Groups"]
            for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
                assert int(status[name], 16) == 0, (name, status[name])
            assert status["SigBlk"] == status["SigIgn"] == "0" * 16, status


@case
def the_environment_is_the_owners_and_inherits_nothing_from_root():
    with System() as s:
        s.env.update(LD_LIBRARY_PATH="/nowhere", BASH_ENV="/etc/passwd", IFS="x", PYTHONPATH="/x", STRAY="1", TMPDIR="/x")
        s.start()
        job = s.add("alice", command=["env"], env={"MINE": "a b", "LANG": "de_DE.UTF-8"}, tz="Europe/Berlin",
                    params={"p": "x"}, name="envy")["id"]
        run = s.wait_final("alice", job)
        said = dict(line.split("=", 1) for line in s.output("alice", run["id"]).splitlines())
        fixed = {"HOME": s.home("alice"), "LOGNAME": "alice", "USER": "alice", "SHELL": "/bin/sh", "MINE": "a b",
                 "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "de_DE.UTF-8", "TZ": "Europe/Berlin",
                 "JOBSCHED_PARAM_p": "x", "JOBSCHED_NAME": "envy", "JOBSCHED_JOB": str(job),
                 "JOBSCHED_RUN": str(run["id"]), "JOBSCHED_ATTEMPT": "1"}
        for name, value in fixed.items():
            assert said[name] == value, (name, said)
        others = {"JOBSCHED_" + n for n in ("SLOT", "SLOT_MS", "KEY", "FENCE", "NODE", "SPAWNER")} | {"TRACEPARENT"}
        assert set(said) == set(fixed) | others, set(said) ^ (set(fixed) | others)


@case
def the_path_of_root_has_the_sbin_directories():
    with System() as s:
        s.start()
        s.jobctl("root", "add", "-n", "r", "--wait", "--", "sh", "-c", 'echo "$PATH"; umask')
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        assert s.jobctl("root", "log", "r").stdout == path + "\n0022\n"
        assert "PATH=%s\n" % path in s.jobctl("root", "show", "--env", "r").stdout
        s.jobctl("alice", "add", "-n", "a", "--manual", "--", "true")
        assert "PATH=/usr/local/bin:/usr/bin:/bin\n" in s.jobctl("alice", "show", "--env", "a").stdout


@case
def directory_umask_input_and_descriptors_are_applied():
    with System() as s:
        s.start()
        assert s.run_job("alice", "pwd") == s.home("alice") + "\n"
        assert s.run_job("alice", "pwd", cwd="/usr") == "/usr\n"
        assert s.run_job("alice", "sh", "-c", "umask") == "0022\n"
        assert s.run_job("alice", "sh", "-c", "umask", umask="027") == "0027\n"
        assert s.run_job("alice", "cat", stdin="in") == "in"
        assert s.run_job("alice", "readlink", "/proc/self/fd/0") == "/dev/null\n"
        assert s.run_job("alice", "ls", "/proc/self/fd").split() == ["0", "1", "2", "3"]  # 3 is the directory that ls reads
        # chdir() is called as the owner, so a directory that only others may enter is refused
        os.mkdir(s.home("bob") + "/private", 0o700)
        job = s.add("alice", command=["pwd"], cwd=s.home("bob") + "/private")["id"]
        assert "Permission denied" in not_started(s, "alice", job)
        os.chmod(s.home("alice"), 0)
        os.chown(s.home("alice"), 0, 0)
        job = s.add("alice", command=["pwd"])["id"]
        run = s.wait_final("alice", job)
        assert s.output("alice", run["id"]) == "/\n"
        assert "ran in '/'" in s.attempts("alice", run["id"])[0]["error"]


@case
def jobs_do_not_run_for_a_deleted_user_or_a_reused_uid():
    with System() as s:
        s.start()
        assert s.run_job("alice", "id", "-un") == "alice\n"
        job = s.add("alice", command=["id"], schedule=["manual"])["id"]
        gone = s.users.pop("alice")
        s.write_users()
        api = s.api("root")
        api.connection.uid = gone
        run = api.post("/v1/jobs/%d/run" % job)
        s.users["mallory"] = gone  # a new user with the same uid
        said = lambda: [a["error"] for r in s.runs("root", job) for a in s.attempts("root", r["id"]) if a["error"]]
        wait_until("the run is refused", 20, lambda: any("no user with uid" in e for e in said()))
        s.write_users()
        os.makedirs(s.home("mallory"), exist_ok=True)
        s.api("root").call("POST", "/v1/jobs/%d/resume" % job)
        s.api("root").call("POST", "/v1/jobs/%d/run" % job)
        wait_until("the new user does not inherit the job", 20,
                   lambda: any("now belongs to 'mallory', but the job belongs to 'alice'" in e for e in said()))
        assert run


@case
def groups_are_looked_up_at_each_start():
    with System() as s:
        s.start()
        groups = lambda: sorted(map(int, s.run_job("bob", "id", "-G").split()))
        assert groups() == [4002, 4101]
        s.groups["extra"][1].append("bob")
        s.groups["team"][1].remove("bob")
        s.write_users()
        assert groups() == [4002, 4102]


@case
def jobs_of_uids_outside_of_allow_uids_are_refused():
    with System(spawner_conf="# ours\nallow-uids = 0 4001 4003-5000\n\n") as s:
        s.start()
        assert s.run_job("alice", "id", "-un") == "alice\n"
        job = s.add("bob", command=["id"])["id"]
        assert "allow-uids" in not_started(s, "bob", job)


@case
def only_the_daemon_and_root_can_connect_to_the_spawner():
    with System() as s:
        s.start_spawner()
        mode = os.stat(s.spawner_socket)
        assert stat.S_IMODE(mode.st_mode) == 0o660 and (mode.st_uid, mode.st_gid) == (0, 990), mode
        os.chmod(s.spawner_socket, 0o666)  # the check of the uid must work independently of the mode
        for uid, welcome in ((0, True), (990, True), (4001, False), (65534, False)):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as c:
                c.settimeout(5)
                os.seteuid(uid)
                try:
                    c.connect(s.spawner_socket)
                finally:
                    os.seteuid(0)
                hello = (1).to_bytes(2, "little") + bytes(2) + (144).to_bytes(4, "little") + \
                    (1).to_bytes(4, "little") * 2 + b"me".ljust(128, b"\0")
                try:
                    c.send(hello)
                    answered = len(c.recv(4096)) > 0
                except (ConnectionResetError, BrokenPipeError):
                    answered = False
                assert answered == welcome, uid
        assert "refused a connection of uid 4001" in s.said()


@case
def an_insecure_or_invalid_configuration_stops_the_spawner():
    with System() as s:
        def refused(text, words, mode=0o644, owner=0, directory=0o755):
            s.write_spawner_conf(text, mode)
            os.chown(s.conf_dir + "/spawner.conf", owner, 0)
            os.chmod(s.conf_dir, directory)
            result = subprocess.run(s.spawner_command(), env=s.env, capture_output=True, text=True, timeout=20)
            assert result.returncode == 78 and words in result.stderr, (text, result.returncode, result.stderr)
        refused("", "writable by root only", mode=0o664)
        refused("", "writable by root only", mode=0o646)
        refused("", "writable by root only", owner=4001)
        refused("", "writable by root only", directory=0o777)
        refused("allow-uid = 1\n", "spawner.conf:1: there is no key 'allow-uid'")
        refused("\npam = yes\n", "spawner.conf:2: the value of 'pam'")
        refused("allow-uids = 5-3\n", "the value of 'allow-uids'")
        refused("allow-uids = \n", "the value of 'allow-uids'")
        refused("pam = off\npam = off\n", "is set twice")
        refused("nonsense\n", "not KEY = VALUE")
        refused("engine-user = nosuch\n", "no user 'nosuch'")
        os.chmod(s.conf_dir, 0o755)


@case
def the_examples_of_spawner_conf_are_valid():
    with System() as s:
        with open(os.path.join(os.environ.get("top_srcdir", "."), "man/spawner.conf.5"), encoding="utf-8") as f:
            blocks = re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", f.read(), re.S | re.M)
        blocks = [b for b in blocks if " = " in b]
        assert len(blocks) >= 2, blocks
        for text in (*blocks, "".join(blocks)):
            s.write_spawner_conf(text)
            checked = subprocess.run([*s.spawner_command(), "--can-read-state", "1"], env=s.env, capture_output=True, text=True,
                                     timeout=20)
            assert checked.returncode == 0, (text, checked.stderr)


def start_with_slow_nss(s):
    """Installs an NSS module that hangs or fails while a file exists. The daemon has alice cached, the spawner not yet."""
    need_program("cc")
    write("/usr/local/lib/jslow.c", NSS_MODULE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "/usr/local/lib/libnss_jslow.so.2", "/usr/local/lib/jslow.c"], check=True)
    subprocess.run(["ldconfig"], check=True)
    write("/etc/nsswitch.conf", "passwd: jslow [UNAVAIL=return] files\ngroup: files\n")
    for name in ("/etc/jslow-hangs", "/etc/jslow-down"):
        if os.path.exists(name):
            os.unlink(name)
    s.start()
    s.add("alice", command=["true"], schedule=["manual"])


@case
def an_unavailable_user_database_is_asked_again_and_no_user_is_taken_for_deleted():
    with System() as s:
        start_with_slow_nss(s)
        write("/etc/jslow-down", "")
        job = s.add("alice", command=["id", "-un"])["id"]
        wait_until("the lookup has failed", 20, lambda: "could not be looked up" in s.said())
        assert s.runs("alice", job)[0]["state"] in ("queued", "claimed")
        os.unlink("/etc/jslow-down")
        run = s.wait_final("alice", job, 60)
        assert run["state"] == "succeeded" and s.output("alice", run["id"]) == "alice\n", run


@case
def a_hanging_user_database_does_not_delay_cached_users():
    with System() as s:
        start_with_slow_nss(s)
        assert s.run_job("bob", "true") == ""
        write("/etc/jslow-hangs", "")
        job = s.add("alice", command=["true"])["id"]
        time.sleep(0.2)
        assert s.run_job("bob", "echo", "here") == "here\n"
        assert s.runs("alice", job)[0]["state"] == "claimed"
        assert "could not be looked up" not in s.said()
        os.unlink("/etc/jslow-hangs")
        assert s.wait_final("alice", job, 60)["state"] == "succeeded"
        assert "did not answer in time" in s.said()


@case
def a_start_that_waits_for_a_user_lookup_can_be_cancelled_and_is_dropped_with_its_daemon():
    with System() as s:
        start_with_slow_nss(s)
        write("/etc/jslow-hangs", "")
        marks = [os.path.join(s.home("alice"), name) for name in ("one", "two")]
        first, second = (s.add("alice", command=["/bin/touch", mark])["id"] for mark in marks)
        wait_until("both runs wait for the lookup", 20, lambda: all(s.runs("alice", j)[0]["state"] == "claimed" for j in (first, second)))
        began, timeouts = time.monotonic(), s.said().count("did not answer in time")
        s.api("alice").post("/v1/runs/%d/cancel" % s.runs("alice", first)[0]["id"])
        run = s.wait_final("alice", first)
        assert run["state"] == "cancelled", run
        # A cancellation that waited for the lookup would take 5 s, after the timeout message.
        assert time.monotonic() - began < 4 or s.said().count("did not answer in time") == timeouts
        s.engine.kill()
        s.engine.wait()
        s.start_engine()
        os.unlink("/etc/jslow-hangs")
        run = s.wait_final("alice", second, 60)
        assert run["state"] == "succeeded", (run, s.attempts("alice", run["id"]))
        assert [os.path.exists(mark) for mark in marks] == [False, True]


@case
def the_pam_account_check_can_deny_a_start():
    with System(spawner_conf="pam = account\n") as s:
        write("/etc/pam.d/jobsched", "account required pam_access.so accessfile=/etc/jobsched/access\n")
        write("/etc/jobsched/access", "-:bob:ALL\n+:ALL:ALL\n")
        probe = subprocess.run(s.spawner_command() + ["--can-read-state", "1"], env=s.env, capture_output=True, text=True)
        if "without PAM" in probe.stderr:
            return "built without PAM"
        s.start()
        assert s.run_job("alice", "id", "-un") == "alice\n"
        job = s.add("bob", command=["id"])["id"]
        assert "PAM denies the account of 'bob'" in not_started(s, "bob", job)
        write("/etc/pam.d/jobsched", "account required pam_deny.so\n")
        os.utime("/etc/passwd")  # drops the cached lookup
        job = s.add("alice", command=["id"])["id"]
        assert "PAM denies the account of 'alice'" in not_started(s, "alice", job)


if __name__ == "__main__":
    main()
