# SPDX-License-Identifier: Apache-2.0
# Sandbox profiles: a job that attempts to escape, and ordinary programs that must still work.
import os
import shutil
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, Skip, case, main, need_program, wait_until
from system import System, Traced, children_of, mount

CONF = """require-warrant = none
[sandbox data]
base = strict
read-write = /srv/data %h
[sandbox lo]
base = standard
network = loopback
private-tmp = yes
[sandbox nothing]
base = compat
available = no
"""

# Attempts that succeed, by owner and profile; all others must fail. 'standard' does not restrict files, signals and the network.
FILES = {"write-own", "change-mode", "see-tmp", "see-devices"}
REACH = {"see-process", "signal-process", "connect-tcp", "connect-abstract", "connect-service", "shared-memory", "unusual-socket", "unusual-socketpair", "personality"}
ROOT = {"write-usr", "write-etc", "write-settings", "make-device", "chroot", "raw-socket", "packet-socket"}
EXPECTED = {
    ("alice", "standard"): FILES | REACH,
    ("root", "standard"): FILES | REACH | ROOT,
    ("alice", "strict"): set(),
    ("root", "strict"): set(),
    ("alice", "data"): {"write-own", "change-mode"},
}
# Attempts that must succeed under 'compat'. Otherwise they would prove nothing for the other profiles.
CAN = {
    "alice": FILES | REACH | {"trace-process", "read-environment", "read-memory", "take-descriptor", "unshare-users", "clone-users",
                              "clone3-users", "keyring", "io-uring", "setuid-program", "i386"},
    "root": FILES | REACH | ROOT | {"trace-process", "read-environment", "read-memory", "take-descriptor", "unshare-users",
                                    "clone-users", "clone3-users", "keyring", "io-uring", "mount", "fsopen", "join-namespaces",
                                    "kexec", "bpf", "perf", "userfaultfd", "clock", "reboot", "i386"},
}


class Targets:
    """Objects outside of the sandbox, which a job of that user must not reach."""

    def __init__(self, s, user):
        uid = s.uid(user)
        self.dir = "/srv/data/" + user
        os.makedirs(self.dir + "/mount", exist_ok=True)
        open(self.dir + "/file", "w").close()
        shutil.copy("/usr/local/bin/breakout", self.dir + "/whoami")
        for path in (self.dir, self.dir + "/file", self.dir + "/mount"):
            os.chown(path, uid, uid)
        os.chmod(self.dir + "/whoami", 0o4755)
        self.outside = subprocess.Popen(["sleep", "300"], user=uid, group=uid, extra_groups=[])
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind("\0jobsched-%d" % self.port)
        self.abstract.listen()
        self.service = socket.socket(socket.AF_UNIX)
        self.service.bind("/run/jobsched-%d" % self.port)
        os.chmod("/run/jobsched-%d" % self.port, 0o666)
        self.service.listen()
        self.key = 0x10000000 + self.port
        made = subprocess.run(["python3", "-c", "import ctypes; c = ctypes.CDLL(None); print(c.shmget(%d, 4096, 0o1666))" % self.key],
                              capture_output=True, text=True, check=True)
        self.shm = int(made.stdout)
        self.mark = "/tmp/%d" % self.key
        open(self.mark, "w").close()

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        self.outside.kill()
        self.outside.wait()
        self.tcp.close()
        self.abstract.close()
        self.service.close()
        os.unlink("/run/jobsched-%d" % self.port)
        os.unlink(self.mark)
        subprocess.run(["ipcrm", "-m", str(self.shm)], check=True)

    def command(self):
        return ["/usr/local/bin/breakout", self.dir, str(self.outside.pid), str(self.port), str(self.key)]


def prepared(conf=CONF, start=True):
    s = System(spawner_conf=conf)
    if not os.path.ismount("/srv"):
        mount("tmpfs", "/srv", "mode=0755")
        os.makedirs("/srv/data")
    shutil.copy(os.path.join(BUILD, "tests/integration/breakout"), "/usr/local/bin/breakout")
    return s.start() if start else s


def attempts(s, user, profile):
    with Targets(s, user) as t:
        said = s.run_job(user, *t.command(), sandbox=profile, cwd="/")
    return dict(line.split() for line in said.splitlines())


@case
def no_attempt_to_escape_a_profile_succeeds():
    with prepared() as s:
        for (user, profile), may in EXPECTED.items():
            got = attempts(s, user, profile)
            out = {name for name, result in got.items() if result == "out"}
            assert out <= may, "%s under '%s' escaped by %s" % (user, profile, sorted(out - may))
            gone = {name for name in may if got[name] == "stopped"}
            assert not gone, "%s under '%s' was stopped at %s" % (user, profile, sorted(gone))


@case
def the_same_attempts_succeed_without_a_sandbox():
    with prepared() as s:
        for user, can in CAN.items():
            got = attempts(s, user, "compat")
            stopped = {name for name in can if got.get(name) == "stopped"}
            assert not stopped, "under compat %s was stopped at %s: these attempts prove nothing" % (user, sorted(stopped))


IN_TEMP_DIR = "d=$(mktemp -d) && trap 'rm -rf $d' EXIT && cd $d && "
PROGRAMS = {
    "a pipeline": "seq 1000 | sort -rn | head -1",
    "background children": "for i in 1 2 3; do (sleep 0.05; :) & done; wait; echo done",
    "python with threads and a child": "python3 -c 'import subprocess, threading as t; x = t.Thread(target=lambda: "
                                       "subprocess.run([\"true\"], check=True)); x.start(); x.join(); print(1)'",
    "a database": IN_TEMP_DIR + "sqlite3 a.db 'pragma journal_mode=wal; create table t(a); insert into t values(7); "
                  "select a from t'",
    "a compiler": IN_TEMP_DIR + "echo 'int main(void) { return 7; }' >a.c && cc a.c -o a && { ./a; test $? = 7; }",
    "a repository": IN_TEMP_DIR + "git init -q . && echo x >f && git add f && git -c user.name=n -c user.email=e@x commit -qm m "
                    "&& mkdir d && git mv f d/f && git -c user.name=n -c user.email=e@x commit -qm n && git log --oneline | wc -l",
    "devices": "head -c 8 /dev/urandom | wc -c && echo x >/dev/null && test -r /dev/stdin",
    "shared memory": "python3 -c 'import multiprocessing as m; print(m.Lock().acquire())'",
}


@case
def ordinary_programs_work_under_every_profile():
    with prepared() as s:
        for profile in ("standard", "strict", "data", "lo"):
            for what, script in PROGRAMS.items():
                if "git " in script and not shutil.which("git") or " cc " in script and not shutil.which("cc"):
                    continue
                job = s.add("alice", script=script, sandbox=profile, cwd="/")["id"]
                run = s.wait_final("alice", job)
                assert run["state"] == "succeeded", (what, profile, s.output("alice", run["id"]), s.attempts("alice", run["id"]))


@case
def debuggers_work_on_the_jobs_own_processes():
    if not shutil.which("strace"):
        raise Skip("needs strace")
    with prepared() as s:
        said = s.run_job("alice", "sh", "-c", "strace -f -e trace=execve sh -c /bin/true 2>&1 | grep -c execve", cwd="/")
        assert int(said) >= 1, said


@case
def a_strict_job_sees_only_itself_and_leaves_no_files():
    with prepared() as s:
        said = s.run_job("alice", "sh", "-c", "echo $$; set -- /proc/[0-9]*; echo $#; ls -A /tmp /var/tmp /dev/shm | grep -vc :;"
                         "echo x >/tmp/left; cat /proc/1/comm; cat /proc/1/environ 2>/dev/null | wc -c", sandbox="strict", cwd="/")
        assert said.split("\n")[:5] == ["2", "2", "2", "jobsched-init", "0"], said
        assert not os.path.exists("/tmp/left")
        said = s.run_job("alice", "sh", "-c", "ls /tmp", sandbox="strict", cwd="/")
        assert said == "", said


@case
def a_strict_job_receives_sigterm_and_its_orphans_are_killed():
    with prepared() as s:
        orphan = "sleep 301.%d" % os.getpid()  # unique, because another test may run at the same time
        job = s.add("alice", script="trap 'echo heard; exit 3' TERM; (setsid " + orphan + " &); (sleep 0 &); sleep 0.2;"
                    "grep -s '^State:.Z' /proc/[0-9]*/status; echo ready; while :; do sleep 0.05; done", sandbox="strict",
                    cwd="/")["id"]
        wait_until("it is ready", 20, lambda: s.runs("alice", job) and "ready" in s.jobctl(
            "alice", "log", str(job), check=False).stdout)
        s.jobctl("alice", "cancel", str(job), "--running")
        run = s.wait_final("alice", job)
        said = s.output("alice", run["id"])
        assert said.startswith("ready\n") and said.endswith("heard\n"), said  # no zombies, and the trap was executed
        wait_until("no process of the run is left", 20, lambda: not subprocess.run(
            ["pgrep", "-fx", orphan], capture_output=True).stdout and not children_of(s.spawner.pid))


@case
def a_strict_job_can_kill_only_its_own_processes():
    with prepared() as s:
        said = s.run_job("root", "sh", "-c", "sleep 300 & { kill -9 1; kill -9 -1; wait; } 2>/dev/null; echo alone", sandbox="strict", cwd="/")
        assert said == "alone\n", said
        assert s.spawner.poll() is None
        assert s.run_job("alice", "echo", "well", sandbox="strict", cwd="/") == "well\n"
        wait_until("no child is left", 20, lambda: not children_of(s.spawner.pid))


@case
def a_job_of_root_has_the_capabilities_of_its_profile():
    with prepared() as s:
        caps = {}
        for profile in ("compat", "standard", "strict"):
            said = s.run_job("root", "grep", "-E", "^(CapEff|CapBnd|CapInh|CapAmb|NoNewPrivs)", "/proc/self/status", sandbox=profile,
                             cwd="/")
            caps[profile] = dict((name, int(value, 16)) for name, value in (line.split(":\t") for line in said.splitlines()))
        with open("/proc/self/status") as f:
            ours = next(int(line.split()[1], 16) for line in f if line.startswith("CapEff"))
        assert caps["compat"]["CapEff"] == ours, caps
        assert caps["standard"]["CapEff"] == caps["standard"]["CapBnd"] != 0, caps
        assert not caps["standard"]["CapEff"] & (1 << 21 | 1 << 16 | 1 << 39 | 1 << 19), caps  # admin, module, bpf, ptrace
        assert caps["strict"]["CapEff"] == 0, caps
        said = s.run_job("alice", "grep", "-E", "^Cap(Eff|Prm|Inh|Amb)", "/proc/self/status")
        assert set(line.split()[1] for line in said.splitlines()) == {"0" * 16}, said


@case
def configured_profiles_apply():
    with prepared() as s:
        said = s.run_job("alice", "sh", "-c", "echo x >~/kept && cat ~/kept; { echo x >/srv/x; } 2>/dev/null || echo refused",
                         sandbox="data", cwd="/")
        assert said == "x\nrefused\n", said
        assert os.path.exists(os.path.join("/home", "alice", "kept"))
        said = s.run_job("alice", "sh", "-c", "ls -A /tmp | wc -l; python3 -c 'import socket; a = socket.create_server((\"127.0.0.1\", 0));"
                         "socket.create_connection(a.getsockname()); print(\"connected\")'", sandbox="lo", cwd="/")
        assert said == "0\nconnected\n", said


@case
def the_daemon_refuses_profiles_that_the_spawner_does_not_have():
    with prepared() as s:
        found = {p["name"]: p for p in s.api("bob").get("/v1/sandboxes")["sandboxes"]}
        assert list(found) == ["compat", "standard", "strict", "data", "lo", "nothing"], found
        assert [name for name, p in found.items() if not p["available"]] == ["nothing"], found
        for profile, words in (("nothing", "not for jobs of this site"), ("tight", "there are: compat, standard, strict, data, lo")):
            status, answer = s.api("alice").call("POST", "/v1/jobs", {"command": ["true"], "sandbox": profile})[:2]
            assert status == 400 and answer["error"]["field"] == "sandbox" and words in answer["error"]["message"], answer
        job = s.add("alice", command=["true"], schedule=["manual"], sandbox="data")["id"]
        said = s.jobctl("alice", "show", str(job), "--sandbox").stdout
        assert said.startswith("sandbox data\n") and "read-write: /srv/data, %h" in said and "no network" in said, said
        said = s.jobctl("alice", "set", str(job), "sandbox=tight", check=False)
        assert said.returncode == 2 and "no sandbox profile 'tight'" in said.stderr, said
        s.jobctl("alice", "set", str(job), "sandbox=standard")
        assert "sudo" in s.jobctl("alice", "show", str(job), "--sandbox").stdout


@case
def jobs_of_a_removed_profile_fail_with_the_reason():
    with prepared() as s:
        job = s.add("alice", command=["true"], schedule=["manual"], sandbox="data")["id"]
        s.write_spawner_conf("require-warrant = none\n")
        os.kill(s.spawner.pid, signal.SIGHUP)
        wait_until("the daemon has the new list", 20, lambda: len(s.api("alice").get("/v1/sandboxes")["sandboxes"]) == 3)
        s.jobctl("alice", "run", str(job))
        run = s.wait_final("alice", job)
        assert "no sandbox profile 'data'" in s.attempts("alice", run["id"])[-1]["error"], s.attempts("alice", run["id"])
        assert s.jobctl("alice", "show", str(job), "--sandbox", check=False).returncode == 3


@case
def a_failure_with_a_setuid_program_suggests_compat():
    with System() as s:
        s.start()
        assert os.stat("/usr/bin/su").st_mode & 0o4000, "a Debian system has a set-user-ID su"

        def error(command, code=1, user="alice", **spec):
            job = s.add(user, command=command, **spec)["id"]
            run = s.wait_final(user, job)
            assert run["exit_code"] == code, run
            return s.attempts(user, run["id"])[0]["error"] or ""
        for command in (["su", "--no-such-option"], ["/usr/bin/su", "--no-such-option"], ["sh", "-c", "true; (su --no-such-option)"]):
            said = error(command)
            assert "set-user-ID" in said and "'standard'" in said and "--sandbox compat" in said, (command, said)
        job = s.add("alice", name="shown", command=["su", "--no-such-option"])["id"]
        s.wait_final("alice", job)
        assert "--sandbox compat" in s.jobctl("alice", "why", "shown").stdout
        assert error(["su", "--no-such-option"], sandbox="compat") == ""
        assert error(["sh", "-c", "exit 1"]) == ""
        assert error(["echo", "su"], 0) == ""
        assert error(["sh", "-c", "exit 3", "/srv/su", "../bin/su", "/usr/bin/x/su"], 3) == ""


@case
def a_failure_with_a_refused_system_call_suggests_compat():
    with prepared() as s:
        def ends(command, user="alice", **spec):
            job = s.add(user, command=command, cwd="/", **spec)["id"]
            run = s.wait_final(user, job)
            return run, s.attempts(user, run["id"])[0]["error"] or ""
        refused = ["unshare", "--user", "true"]
        for profile in ("standard", "strict"):
            for user in ("alice", "root"):
                run, said = ends(refused, user, sandbox=profile)
                assert run["exit_code"] == 1 and "'Operation not permitted'" in said and "--sandbox compat" in said, (profile, user, said)
                assert "'%s'" % profile in said, said
        many = ["sh", "-c", "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done; exec unshare --user true"]
        assert "Operation not permitted" in ends(many, output_limit=4096)[1]
        run, said = ends(["sh", "-c", "echo Operation not permitted; while [ ${i:-0} -lt 200 ]; do echo $i; i=$((i+1)); done; exit 1"])
        assert said == "", said
        assert ends(["sh", "-c", "unshare --user true; exit 0"])[1] == ""
        assert ends(["sh", "-c", "exit 1"])[1] == ""
        run, said = ends(["/usr/local/bin/breakout", "--i386"])
        assert os.uname().machine != "x86_64" or run["signal"] == signal.SIGSYS and "another architecture" in said and "--sandbox compat" in said, (run, said)
        assert "--sandbox compat" not in ends(refused, sandbox="compat")[1]


@case
def many_strict_runs_leak_no_process_and_no_descriptor():
    with prepared() as s:
        s.run_job("alice", "true", sandbox="strict", cwd="/")
        wait_until("its init process has exited", 20, lambda: not children_of(s.spawner.pid))
        fds = len(os.listdir("/proc/%d/fd" % s.spawner.pid))
        body = [{"script": "(setsid sleep 300 &) ; exit %d" % (i % 2), "sandbox": "strict", "cwd": "/"} for i in range(150)]
        body += [{"command": ["/does/not/exist"], "sandbox": "strict", "cwd": "/"} for i in range(10)]
        s.api("alice").post("/v1/jobs/bulk", {"jobs": body})
        wait_until("all runs have ended", 60, lambda: s.api("root").get("/v1/status")["runs"]["failed"] == 85)
        assert "its run cannot be identified" not in s.said(), s.said()
        wait_until("no child is left", 20, lambda: not children_of(s.spawner.pid))
        wait_until("all descriptors are closed", 20, lambda: len(os.listdir("/proc/%d/fd" % s.spawner.pid)) <= fds)


@case
def a_strict_run_continues_while_the_spawner_is_reloaded():
    with prepared() as s:
        job = s.add("alice", script="echo one; while ! test -e /srv/data/go; do sleep 0.05; done; echo two; exit 7", sandbox="strict",
                    cwd="/")["id"]
        wait_until("it runs", 20, lambda: s.runs("alice", job) and s.jobctl("alice", "log", str(job), check=False).stdout)
        os.kill(s.spawner.pid, signal.SIGHUP)
        wait_until("it was reloaded", 20, lambda: "resumed with 1 workers" in s.said())
        open("/srv/data/go", "w").close()
        run = s.wait_final("alice", job)
        os.unlink("/srv/data/go")
        assert run["exit_code"] == 7 and s.output("alice", run["id"]) == "one\ntwo\n", run
        wait_until("its init process has exited", 20, lambda: not children_of(s.spawner.pid))


def without_init(conf):
    """A system without PID namespaces, because jobsched-init is not installed."""
    s = System(spawner_conf=conf)
    os.unlink(os.path.join(s.sbin, "jobsched-init"))
    return s.start()


@case
def a_job_with_an_unsupported_profile_is_refused():
    with without_init("require-warrant = none\n") as s:
        status, answer = s.api("alice").call("POST", "/v1/jobs", {"command": ["true"], "sandbox": "strict"})[:2]
        assert status == 400 and "cannot be had here: private-pids (init process:" in answer["error"]["message"], answer
        assert s.run_job("alice", "echo", "well") == "well\n"
        assert "sandbox profile 'strict' is not supported by this machine: private-pids" in s.said(), s.said()


@case
def an_unsupported_part_is_reported_if_configured():
    with without_init("require-warrant = none\nsandbox-missing = report\n") as s:
        job = s.add("alice", script="ls /tmp | wc -l; test -e /proc/$PPID/status && echo $$", sandbox="strict", cwd="/")["id"]
        run = s.wait_final("alice", job)
        said = s.output("alice", run["id"]).split()
        assert said[0] == "0" and int(said[1]) > 2, said  # the rest of the profile applies
        assert "ran without a part of sandbox 'strict': private-pids" in s.attempts("alice", run["id"])[0]["error"]
        assert "missing on this machine: private-pids" in s.jobctl("alice", "show", str(job), "--sandbox").stdout


@case
def killing_a_process_during_sandbox_setup_affects_no_other_job():
    if not shutil.which("strace"):
        raise Skip("needs strace")
    s = System(spawner_conf="require-warrant = none\n")
    s.env["ASAN_OPTIONS"] = "detect_leaks=0"  # the leak check does not work under strace
    s.before_spawner = ["strace", "-f", "-o", "/dev/null", "-e", "trace=mount_setattr", "-e", "inject=mount_setattr:signal=SIGKILL"]
    with s.start():
        status, answer = s.api("alice").call("POST", "/v1/jobs", {"command": ["true"], "sandbox": "strict"})[:2]
        assert status == 400 and "private-pids (clone: Interrupted" in answer["error"]["message"], answer
        assert s.run_job("alice", "echo", "well", cwd="/") == "well\n"
        os.kill(int(children_of(s.spawner.pid)[0]), signal.SIGTERM)  # strace does not forward the signal
        s.spawner.wait(20)


@case
def without_landlock_standard_still_denies_tracing():
    need_program("strace")
    s = prepared(start=False)
    s.env["ASAN_OPTIONS"] = "detect_leaks=0"
    s.before_spawner = ["strace", "-f", "-o", "/dev/null", "-e", "trace=landlock_create_ruleset", "-e",
                        "inject=landlock_create_ruleset:error=ENOSYS"]
    with s.start():
        got = attempts(s, "alice", "standard")
        out = {name for name, result in got.items() if result == "out"}
        assert out <= FILES | REACH | {"read-memory", "read-environment"}, sorted(out)
        assert got["trace-process"] == got["take-descriptor"] == "stopped", got
        assert "landlock (this kernel has none" in s.said()
        status, answer = s.api("alice").call("POST", "/v1/jobs", {"command": ["true"], "sandbox": "strict"})[:2]
        assert status == 400 and "cannot be had here: landlock (landlock:" in answer["error"]["message"], answer
        os.kill(int(children_of(s.spawner.pid)[0]), signal.SIGTERM)
        s.spawner.wait(20)


# System calls that apply the sandbox in a worker, helper or init process, each with its number within one process.
SANDBOX_CALLS = ("mount_setattr:1", "mount_setattr:2", "mount:1", "mount:2", "mount:3", "mknodat:1", "setns:1", "unshare:1", "prctl:1",
               "prctl:2", "prctl:3", "capset:1", "landlock_create_ruleset:1", "landlock_add_rule:2", "landlock_restrict_self:1",
               "seccomp:1", "execveat:1")


@case
def the_command_does_not_run_if_a_sandbox_step_fails():
    need_program("strace")
    with prepared() as s:
        for call in SANDBOX_CALLS:
            name, number = call.split(":")
            with Traced(s, "-e", "trace=" + name, "-e", "inject=%s:error=EDOM:when=%s" % (name, number)):
                job = s.add("alice", command=["echo", "it ran"], sandbox="strict", cwd="/")["id"]
                run = s.wait_final("alice", job)
            why = s.attempts("alice", run["id"])[-1]["error"]
            assert run["state"] == "failed" and "Numerical argument out of domain" in (why or ""), (call, run["state"], why)
            assert s.output("alice", run["id"]) == "", call
        assert s.run_job("alice", "echo", "well", sandbox="strict", cwd="/") == "well\n"
        wait_until("no child is left", 20, lambda: not children_of(s.spawner.pid))


@case
def a_writable_path_follows_no_link_and_keeps_read_only_mounts():
    conf = "[sandbox work]\nbase = strict\nread-write = %h/work\n[sandbox landlock]\nbase = standard\nlandlock = paths\n" \
           "read-write = %h/work\n"
    with prepared(conf) as s:
        work = s.home("alice") + "/work"
        data = os.path.dirname(s.home("alice")) + "/data"
        for path in (work, data):
            os.makedirs(path, exist_ok=True)
            os.chown(path, s.uid("alice"), s.uid("alice"))
        write = ["sh", "-c", "echo x >%s/here && echo wrote" % work]
        for profile in ("work", "landlock"):
            assert s.run_job("alice", *write, sandbox=profile, cwd="/") == "wrote\n"
        subprocess.run(["mount", "--bind", work, work], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", work], check=True)
        try:
            run = s.wait_final("alice", s.add("alice", command=write, sandbox="work", cwd="/")["id"])
            assert run["state"] == "failed" and "Read-only file system" in s.output("alice", run["id"]), run
        finally:
            subprocess.run(["umount", work], check=True)
        shutil.rmtree(work)
        os.symlink(data, work)
        for profile in ("work", "landlock"):
            run = s.wait_final("alice", s.add("alice", command=write, sandbox=profile, cwd="/")["id"])
            why = s.attempts("alice", run["id"])[0]
            assert why["outcome"] == "not_started" and "symbolic link below the home directory" in why["error"], why
        assert os.listdir(data) == []


@case
def profiles_work_in_user_mode_as_far_as_the_kernel_allows():
    with prepared() as s, Targets(s, "bob") as t:
        place = os.path.join(s.dir, "bob")
        os.makedirs(place)
        os.chown(place, s.uid("bob"), s.uid("bob"))
        s.env.update(XDG_STATE_HOME=place, XDG_RUNTIME_DIR=place, JOBSCHED_SOCKET=place + "/jobsched/jobsched.sock")
        daemon = subprocess.Popen([s.sbin + "/jobschedd", "--user"], user=s.uid("bob"),
                                  group=s.uid("bob"), extra_groups=[], env=s.env, cwd="/", stderr=subprocess.DEVNULL)
        try:
            wait_until("it serves", 30, lambda: s.jobctl("bob", "status", check=False).returncode == 0)
            for profile, may in (("standard", FILES | REACH), ("strict", set())):
                s.jobctl("bob", "add", "-n", profile, "--manual", "--sandbox", profile, "--", "true")
                if "missing" in s.jobctl("bob", "show", profile, "--sandbox").stdout:
                    continue
                said = s.jobctl("bob", "add", "--sandbox", profile, "--follow", "--", *t.command()).stdout
                got = dict(line.split() for line in said.splitlines() if line.count(" ") == 1)
                out = {name for name, result in got.items() if result == "out"}
                assert len(got) > 30 and out <= may, "under '%s' escaped by %s" % (profile, sorted(out - may))
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
