# SPDX-License-Identifier: Apache-2.0
# System mode for tests: a spawner as root, the daemon as user jobsched and several users in a private mount namespace.
#
#     from system import System
#     with System() as s:                      # System(spawner_conf="pam = account\n", engine_conf="max-running = 3\n")
#         s.start()
#         job = s.add("alice", command=["id", "-un"])["id"]
#         run = s.wait_final("alice", job)
#         assert s.output("alice", run["id"]) == "alice\n"
#         s.jobctl("bob", "show", str(job), check=False).returncode
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, FINAL, Api, Connection, Skip, Unreachable, wait_until

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)

USERS = {"jobsched": 990, "jobsched-net": 989, "alice": 4001, "bob": 4002, "carol": 4003}  # each has a group with the same name and number
GROUPS = {"jobsched-admin": (4100, ["carol"]), "team": (4101, ["alice", "bob"]), "extra": (4102, ["alice"])}


def mount(kind, where, options=""):
    result = subprocess.run(["mount", "-t", kind, *(["-o", options] if options else []), "none", where],
                            capture_output=True, text=True)
    if result.returncode != 0:
        raise Skip("cannot mount %s at %s: %s" % (kind, where, result.stderr.strip()))


def enter_namespace():
    """Enters a private mount namespace with overlays on /etc, /usr/local and /var/lib and empty /run and /home."""
    if os.geteuid() != 0:
        raise Skip("needs root to add users")
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        raise Skip("cannot create a mount namespace: " + os.strerror(ctypes.get_errno()))
    room = tempfile.mkdtemp(prefix="jobsched-room.")
    mount("tmpfs", room, "mode=0755")
    for place in ("/etc", "/usr/local", "/var/lib"):
        upper, work = (os.path.join(room, part + place.replace("/", "-")) for part in ("upper", "work"))
        os.makedirs(upper)
        os.makedirs(work)
        mount("overlay", place, "lowerdir=%s,upperdir=%s,workdir=%s" % (place, upper, work))
    subprocess.run(["umount", "-l", room], check=True)
    os.rmdir(room)
    for place in ("/run", "/home"):
        mount("tmpfs", place, "mode=0755")


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


class PeerConnection(Connection):
    """A connection with the effective uid and groups of another user."""

    def __init__(self, path, timeout, uid, gids=()):
        super().__init__(path, timeout)
        self.uid, self.gids = uid, list(gids)

    def connect(self):
        ours = os.getgroups()
        os.setgroups(self.gids)
        os.seteuid(self.uid)
        try:
            super().connect()
        finally:
            os.seteuid(0)
            os.setgroups(ours)


class System:
    entered = False
    sbin, conf_dir, state_dir = "/usr/local/sbin", "/etc/jobsched", "/var/lib/jobsched"
    spawner_state, runtime = "/var/lib/jobsched-spawner", "/run/jobsched"
    net_state, net_runtime = "/var/lib/jobsched-net", "/run/jobsched/net"
    jobctl_path = "/usr/local/bin/jobctl"

    def __init__(self, spawner_conf="", engine_conf=""):
        if not System.entered:
            enter_namespace()
            System.entered = True
        self.spawner = self.engine = self.net = None
        self.dir = tempfile.mkdtemp(prefix="jobsched-system.")
        os.chmod(self.dir, 0o755)
        self.log = os.path.join(self.dir, "log")
        self.socket = os.path.join(self.runtime, "jobsched.sock")
        self.spawner_socket = os.path.join(self.runtime, "spawner.sock")
        self.users, self.groups = dict(USERS), {g: (gid, list(members)) for g, (gid, members) in GROUPS.items()}
        self.env = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
        self.env.update(PATH="/usr/local/bin:/usr/bin:/bin", LC_ALL="C.UTF-8", JOBSCHED_SOCKET=self.socket)
        self.before_spawner = []  # a command prefix for the spawner (strace)
        for place in (self.conf_dir, self.state_dir, self.spawner_state, self.net_state, self.runtime, self.net_runtime):
            shutil.rmtree(place, ignore_errors=True)
            os.makedirs(place, mode=0o755)
        os.chown(self.state_dir, USERS["jobsched"], USERS["jobsched"])
        os.chmod(self.state_dir, 0o700)
        os.chown(self.runtime, USERS["jobsched"], USERS["jobsched"])
        for place in (self.net_state, self.net_runtime):
            os.chown(place, USERS["jobsched-net"], USERS["jobsched-net"])
        os.chmod(self.net_state, 0o700)
        write("/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\n")
        self.write_users()
        self.write_spawner_conf(spawner_conf)
        write(os.path.join(self.conf_dir, "jobschedd.conf"), engine_conf)
        for program in ("jobschedd", "jobsched-spawner", "jobsched-net", "jobsched-init", "jobctl"):
            to = self.jobctl_path if program == "jobctl" else os.path.join(self.sbin, program)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(os.path.join(BUILD, program), to + ".new")
            os.rename(to + ".new", to)

    def __enter__(self):
        return self

    def __exit__(self, kind, *rest):
        self.close(failed=kind is not None)

    # ---- users ----

    def write_users(self):
        """Writes passwd, group and shadow from self.users (name: uid) and self.groups (name: (gid, members))."""
        root = "root:x:0:0:root:/root:/bin/bash\n"
        write("/etc/passwd.new", root + "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n" + "".join(
            "%s:x:%d:%d::/home/%s:/bin/sh\n" % (name, uid, uid, name) for name, uid in self.users.items()))
        write("/etc/group.new", "root:x:0:\nnogroup:x:65534:\n" + "".join(
            "%s:x:%d:\n" % (name, uid) for name, uid in self.users.items()) + "".join(
            "%s:x:%d:%s\n" % (name, gid, ",".join(members)) for name, (gid, members) in self.groups.items()))
        write("/etc/shadow.new", "".join("%s:*:19000:0:99999:7:::\n" % name for name in ["root", *self.users]), 0o600)
        for name in ("passwd", "group", "shadow"):
            os.rename("/etc/%s.new" % name, "/etc/" + name)
        for name, uid in self.users.items():
            home = "/home/" + name
            os.makedirs(home, mode=0o700, exist_ok=True)
            os.chown(home, uid, uid)
            os.chmod(home, 0o700)

    def uid(self, user):
        return 0 if user == "root" else self.users[user]

    def home(self, user):
        return "/home/" + user

    def gids(self, user):
        return [gid for gid, members in self.groups.values() if user in members]

    def write_spawner_conf(self, text, mode=0o644):
        write(os.path.join(self.conf_dir, "spawner.conf"), text, mode)

    # ---- the programs ----

    def popen(self, words, **more):
        def die_with_parent():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        with open(self.log, "ab") as log:
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(self.env), cwd="/",
                                    preexec_fn=die_with_parent, **more)

    def spawner_command(self):
        return [os.path.join(self.sbin, "jobsched-spawner"), "--system", "--config", self.conf_dir + "/spawner.conf",
                "--runtime-dir", self.runtime, "--state-dir", self.spawner_state, "--output-dir",
                self.spawner_state + "/output", "--linger", "0"]

    def start_spawner(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.spawner_socket)
        self.spawner = self.popen([*self.before_spawner, *self.spawner_command()])
        self.wait_for(self.spawner, "the spawner listens", lambda: os.path.exists(self.spawner_socket))

    def start_net(self):
        """Starts jobsched-net as user jobsched-net."""
        self.net = self.popen([os.path.join(self.sbin, "jobsched-net"), "--system", "--runtime-dir", self.net_runtime,
                               "--state-dir", self.net_state, "--linger", "0"], user=USERS["jobsched-net"],
                              group=USERS["jobsched-net"], extra_groups=[])
        self.wait_for(self.net, "jobsched-net listens", lambda: os.path.exists(self.net_runtime + "/net.sock"))

    def start_engine(self):
        self.engine = self.popen([os.path.join(self.sbin, "jobschedd"), "--config", self.conf_dir + "/jobschedd.conf",
                                  "--state-dir", self.state_dir, "--runtime-dir", self.runtime, "--output-dir",
                                  self.spawner_state + "/output"], user=USERS["jobsched"], group=USERS["jobsched"],
                                 extra_groups=[])

        def serves():
            try:
                return self.api("root").call("GET", "/v1/status")[0] == 200
            except Unreachable:
                return False
        self.wait_for(self.engine, "the daemon answers requests", serves)

    def wait_for(self, process, what, condition):
        def checked():
            assert process.poll() is None, "the program exited with %d:\n%s" % (process.returncode, self.said())
            return condition()
        wait_until(what, 60, checked)

    def start(self):
        self.start_spawner()
        self.start_net()
        self.start_engine()
        return self

    def said(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def close(self, failed=False):
        for process in (self.engine, self.spawner, self.net):
            if process and process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        said = self.said() if os.path.exists(self.log) else ""
        shutil.rmtree(self.dir, ignore_errors=True)
        if failed:
            sys.stdout.writelines("# system: %s\n" % line for line in said.splitlines()[-60:])
        # Under strace the leak check of a short process cannot run: "LeakSanitizer has encountered a fatal error".
        for mark in ("AddressSanitizer", "LeakSanitizer: ", "runtime error:"):
            assert mark not in said, "sanitizer report:\n" + said[said.index(mark):][:4000]

    # ---- actions of a user ----

    def run_as(self, user, words, **more):
        uid = self.uid(user)
        env = dict(self.env, HOME="/root" if uid == 0 else "/home/" + user, USER=user, LOGNAME=user)
        return subprocess.run(words, user=uid, group=uid, extra_groups=self.gids(user), env=env, cwd="/",
                              capture_output=True, text=True, **more)

    def jobctl(self, user, *words, check=True, **more):
        result = self.run_as(user, [self.jobctl_path, *words], **more)
        if check:
            assert result.returncode == 0, (user, words, result.returncode, result.stderr)
        return result

    def api(self, user):
        api = Api(self.socket)
        api.connection = PeerConnection(self.socket, 60, self.uid(user), self.gids(user))
        return api

    def add(self, user, **spec):
        return self.api(user).post("/v1/jobs", spec)

    def runs(self, user, job):
        return self.api(user).pages("/v1/runs?job=%s" % job, "runs")

    def attempts(self, user, run):
        return self.api(user).get("/v1/runs/%d" % run)["attempts"]

    def wait_final(self, user, job, seconds=30):
        """Waits until the newest run of a job has ended, and returns it."""
        def final():
            found = self.runs(user, job)
            return found and found[0]["state"] in FINAL and found[0]
        return wait_until("job %s of %s has ended" % (job, user), seconds, final)

    def output(self, user, run):
        return self.jobctl(user, "log", "#%d" % run).stdout

    def run_job(self, user, *command, **spec):
        """Runs a command as a job of this user, expects success and returns the output."""
        job = self.add(user, command=list(command), **spec)["id"]
        run = self.wait_final(user, job)
        assert run["state"] == "succeeded", (run, self.attempts(user, run["id"]))
        return self.output(user, run["id"])


def stop_all_of(uid):
    """A process that repeatedly stops all other processes of this user. The test has its own PID namespace."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setresuid(uid, uid, uid)
        while os.getppid() == parent:
            os.kill(-1, signal.SIGSTOP)
            time.sleep(0.0002)
        os._exit(0)
    return pid


def stopped_processes(uid):
    """Stopped processes of that user, possibly before exec()."""
    found = []
    for pid in (p for p in os.listdir("/proc") if p.isdigit()):
        try:
            with open("/proc/%s/status" % pid) as f:
                status = f.read()
        except OSError:
            continue
        if "\nState:\tT" in status and "\nUid:\t%d\t" % uid in status:
            found.append(int(pid))
    return found


def launchers_of(pid):
    """The pids of the launchers of a spawner, the child processes that start workers."""
    return [p for p in processes_below(pid) if comm(p) == "jobsched-launch"]


def children_of(pid):
    """The pids of the children of a spawner without its launchers."""
    return [p for p in processes_below(pid) if comm(p) != "jobsched-launch"]


def processes_below(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return f.read().split()


def comm(pid):
    try:
        with open("/proc/%s/comm" % pid) as f:
            return f.read().strip()
    except OSError:
        return ""


class Traced:
    """Runs strace on the spawner, its launchers and their children inside a 'with' block."""

    def __init__(self, s, *options):
        self.out = os.path.join(s.dir, "trace")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.out)
        pids = [str(s.spawner.pid), *launchers_of(s.spawner.pid)]
        self.process = subprocess.Popen(["strace", "-f", "-o", self.out, *options, *(w for p in pids for w in ("-p", p))],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in pids:
            line = self.process.stderr.readline()
            if "attached" not in line:
                self.process.kill()
                raise Skip("strace cannot attach: " + line.strip())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()

    def text(self):
        with open(self.out, errors="replace") as f:
            return f.read()
