# SPDX-License-Identifier: Apache-2.0
# Warrants: the spawner starts only what root or the owner has approved, independent of the daemon.
import array
import contextlib
import errno
import fcntl
import hashlib
import hmac
import json
import os
import re
import signal
import pty
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import case, main, wait_until
from system import System, write

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/exec/proto/frame.h")) as header:
    HEADER = header.read()
TYPES = re.search(r"FRAME_HELLO = 1,(.*?)FRAME_TYPE_MAX", HEADER, re.S).group(1).replace(" ", "").split(",\n")
START_BODY = re.search(r"struct frame_start \{.*?\n(.*?)unsigned char warrant", HEADER, re.S).group(1)
START_NUMBERS = [name for line in re.findall(r"int64_t ([^;]*);", START_BODY) for name in line.split(", ")]
HELLO = 1
START, ASK, WELCOME, NOT_STARTED, ENDED, WARRANT, STATE = (
    2 + [t.strip() for t in TYPES if t.strip()].index("FRAME_" + name)
    for name in ("START", "ASK_WARRANT", "WELCOME", "NOT_STARTED", "ENDED", "WARRANT", "STATE"))
NO_WARRANT = 5
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def record(tag, data):
    return struct.pack("<HI", tag, len(data)) + data


JOB = bytes(range(16))


def order(uid, owner, *argv, stdin=None, notices=(), umask=0o77, name=None, job=JOB, env=(), gate=False):
    """An encoded execution specification, built independently of the C code. job=None: as in the first version of warrants."""
    text = record(1, struct.pack("<q", uid)) + record(2, owner.encode())
    text += b"".join(record(3, word.encode()) for word in argv) + record(4, b"UTC")
    text += b"".join(record(5, pair.encode()) for pair in env)
    if umask != 0o77:
        text += record(8, struct.pack("<q", umask))
    if stdin is not None:
        text += record(9, hashlib.sha256(stdin).digest())
    text += b"".join(record(10, n.encode()) for n in notices)
    if name is not None:
        text += record(43, name.encode())
    text += record(44, job) if job is not None else b""
    return text + (record(53, struct.pack("<q", 1)) if gate else b"")


def first_version(s, text):
    """The warrant of the first version for a specification."""
    with open(s.spawner_state + "/warrant.key", "rb") as f:
        return hmac.new(f.read(), b"jobsched order 1\0" + text, hashlib.sha256).digest()


def sealed(data):
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    return fd


class Spawner:
    """A connection to the spawner as a given uid: a compromised daemon or a warrant client."""

    def __init__(self, s, uid, name="spawner.sock"):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(20)
        os.setegid(uid)
        os.seteuid(uid)
        try:
            self.socket.connect(os.path.join(s.runtime, name))
        finally:
            os.seteuid(0)
            os.setegid(0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, kind, version, body, fds=()):
        frame = struct.pack("<HHI", kind, version, 8 + len(body)) + body
        self.socket.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
        for fd in fds:
            os.close(fd)

    def receive(self, *kinds):
        while True:
            data = self.socket.recv(65536)
            assert data, "the spawner has closed the connection"
            kind = struct.unpack("<H", data[:2])[0]
            if kind in kinds:
                return kind, data[8:]

    def hello(self, version=1):
        self.send(HELLO, 0, struct.pack("<II", version, version) + b"captured".ljust(128, b"\0"))
        return struct.unpack("<III", self.receive(WELCOME)[1][:12])[2]

    def ask(self, thing, check=None, kind=0):
        """The warrant, or None and the reason."""
        self.send(ASK, 0, struct.pack("<qq", kind, check is not None) + (check or bytes(32)), [sealed(thing)])
        body = self.receive(WARRANT)[1]
        given = struct.unpack("<q", body[:8])[0]
        return (body[8:40], "") if given else (None, body[40:].rstrip(b"\0").decode())

    def start(self, run, text, warrant=None, stdin=None, part=0, variables=()):
        """("ended", exit code), or the reason and the text of the refusal."""
        payload = struct.pack("<IIII", 0x326c706a, len(text), len(variables), 0) + text
        payload += b"".join(v.encode() + b"\0" for v in variables)
        numbers = dict.fromkeys(START_NUMBERS, 0)
        numbers.update(run=run, fence=1, attempt=1, output_limit=65536, part=part, has_stdin=stdin is not None,
                       has_warrant=warrant is not None)
        body = struct.pack("<%dq" % len(START_NUMBERS), *(numbers[name] for name in START_NUMBERS)) + (warrant or bytes(32))
        self.send(START, 1, body, [sealed(payload)] + ([sealed(stdin)] if stdin is not None else []))
        kind, answer = self.receive(NOT_STARTED, ENDED)
        if kind == NOT_STARTED:
            return struct.unpack("<4q", answer[:32])[3], answer[32:].rstrip(b"\0").decode()
        return "ended", struct.unpack("<8q", answer[:64])[7]


@case
def a_compromised_daemon_starts_only_approved_jobs_of_root():
    with System() as s:
        s.start_spawner()
        mine, other = order(0, "root", "/bin/true"), order(0, "root", "/bin/false")
        with Spawner(s, 0) as root:
            warrant, _ = root.ask(mine)
        assert warrant
        with Spawner(s, 990) as e:
            assert e.hello() == 1  # require-warrant = root
            assert e.start(1, mine)[0] == NO_WARRANT
            assert e.start(2, mine, bytes(32))[0] == NO_WARRANT
            for place in (0, 15, 31):
                assert e.start(3 + place, mine, bytes(b ^ (i == place) for i, b in enumerate(warrant)))[0] == NO_WARRANT
            assert e.start(100, other, warrant)[0] == NO_WARRANT
            assert e.start(101, order(0, "root", "/bin/true", umask=0), warrant)[0] == NO_WARRANT
            assert e.start(102, mine, warrant, stdin=b"more")[0] == NO_WARRANT  # approved without stdin
            assert e.start(103, mine, warrant) == ("ended", 0)
            assert e.start(104, order(4001, "alice", "/bin/true")) == ("ended", 0)  # jobs of other users need no warrant


@case
def a_warrant_covers_stdin_and_notice_commands():
    with System() as s:
        s.start_spawner()
        mine = order(0, "root", "/bin/sh", "-c", "read x; exit $x", stdin=b"7\n", notices=["exit 3", "exit 4"])
        with Spawner(s, 0) as root:
            warrant, _ = root.ask(mine)
        with Spawner(s, 990) as e:
            e.hello()
            assert e.start(1, mine, warrant, stdin=b"7\n") == ("ended", 7)
            assert e.start(2, mine, warrant, stdin=b"8\n")[0] == NO_WARRANT
            assert e.start(3, mine, warrant)[0] == NO_WARRANT
            assert e.start(4, mine, warrant, stdin=b"anything", part=1) == ("ended", 3)
            assert e.start(5, mine, warrant, part=2) == ("ended", 4)
            assert e.start(6, mine, stdin=b"x", part=1)[0] == NO_WARRANT


@case
def only_root_gets_warrants_for_jobs_of_root():
    with System() as s:
        s.start_spawner()
        mine = order(0, "root", "/bin/true")
        with Spawner(s, 990) as e:
            given, why = e.ask(mine)
            assert not given and "only root" in why, why
        with Spawner(s, 0) as root:
            warrant, _ = root.ask(mine)
        with Spawner(s, 990) as e:
            assert e.ask(mine, check=warrant)[0]  # any client may verify a warrant
        with Spawner(s, 990) as e:
            assert not e.ask(order(0, "root", "/bin/false"), check=warrant)[0]
        with Spawner(s, 0) as root:
            assert not root.ask(b"\1\2\3")[0]  # not a specification
        with Spawner(s, 0) as root:
            text, _ = root.ask(mine, kind=1)
            assert text and text != warrant  # a warrant of a template is not valid for a job
        with Spawner(s, 990) as e:
            e.hello()
            assert e.start(1, mine, text)[0] == NO_WARRANT
        assert not os.path.exists(s.runtime + "/warrant.sock")
        assert os.stat(s.spawner_state + "/warrant.key").st_mode & 0o777 == 0o600


@case
def a_connection_without_hello_does_not_become_root_after_a_reload():
    with System() as s:
        s.start_spawner()
        mine = order(0, "root", "/bin/true")
        with Spawner(s, 990) as e, Spawner(s, 990) as silent:
            e.hello()
            s.spawner.send_signal(signal.SIGHUP)
            wait_until("the new program has resumed", 30, lambda: "resumed with 0 workers" in s.said())
            try:
                warrant, why = silent.ask(mine)
            except (AssertionError, OSError):
                warrant, why = None, "only root"  # on a slow machine the hello timeout has expired
            assert not warrant and "only root" in why, (warrant, why)
            assert e.start(1, mine, warrant)[0] == NO_WARRANT


@case
def with_require_warrant_all_owners_approve_only_their_own_jobs():
    with System(spawner_conf="require-warrant = all\n") as s:
        s.start()
        hers = order(4001, "alice", "/bin/true")
        with Spawner(s, 4001, "warrant.sock") as a:
            warrant, _ = a.ask(hers)
            assert warrant
        with Spawner(s, 4002, "warrant.sock") as b:
            assert not b.ask(hers)[0]
        with Spawner(s, 4002, "warrant.sock") as b:
            b.send(HELLO, 0, struct.pack("<II", 1, 1) + b"engine".ljust(128, b"\0"))
            assert b.socket.recv(4096) == b"", "the warrant socket must not accept a daemon"
        status, answer = s.api("alice").call("POST", "/v1/jobs", {"command": ["true"]})
        assert (status, answer["error"]["field"]) == (403, "warrant"), answer
        big, taken, began = order(4001, "alice", "/bin/echo", "x" * 1000000), 0, time.monotonic()
        for _ in range(100):  # approvals of users are rate-limited
            with Spawner(s, 4001, "warrant.sock") as a:
                taken += len(big) if a.ask(big)[0] else 0
        assert taken <= (16 << 20) * (1 + time.monotonic() - began), taken
        with Spawner(s, 0) as root:
            assert root.ask(big)[0]
        time.sleep(1.1)
        job = s.jobctl("alice", "add", "--wait", "--", "sh", "-c", "id -un").stdout.split()[0]
        assert s.jobctl("alice", "log", job).stdout == "alice\n"
        s.engine.terminate()
        s.engine.wait(20)
        with Spawner(s, 990) as e:
            e.hello()
            assert e.start(1000, order(4002, "bob", "/bin/true"))[0] == NO_WARRANT
            assert e.start(1001, hers, warrant) == ("ended", 0)
            assert e.start(1002, order(990, "jobsched", "/bin/true")) == ("ended", 0)  # the daemon can run commands as its own user anyway


def connected(s, uid):
    """A connection to the warrant socket, tried again while the queue of the socket is full."""
    while True:
        try:
            return Spawner(s, uid, "warrant.sock")
        except BlockingIOError:
            time.sleep(0.01)


@case
def a_user_who_asks_for_many_warrants_leaves_others_their_share():
    with System(spawner_conf="require-warrant = all\n") as s:
        s.start()
        his = order(4002, "bob", "/bin/true")
        with contextlib.ExitStack() as kept:
            b = kept.enter_context(Spawner(s, 4002, "warrant.sock"))
            many = [kept.enter_context(connected(s, 4001)) for _ in range(40)]
            assert many[30].socket.recv(4096) == b"", "all connections were accepted, and the spawner keeps few of them"
            assert b.ask(his)[0], "the connections of one user close those of another"
        big = order(4001, "alice", "/bin/echo", "x" * 1000000)
        for _ in range(3):
            refused = False
            while not refused:
                with connected(s, 4001) as a:
                    refused = not a.ask(big)[0]
            with connected(s, 4002) as b:
                assert b.ask(order(4002, "bob", "/bin/echo", "x" * 1000000))[0], "alice has used bob's share"


@case
def jobctl_requests_warrants_of_root_automatically():
    with System() as s:
        s.start()
        status, answer = s.api("root").call("POST", "/v1/jobs", {"command": ["id"]})
        assert (status, answer["error"]["field"]) == (403, "warrant"), answer
        assert "jobctl" in answer["error"]["message"]

        def out(*words):
            s.jobctl("root", *words)
            return s.jobctl("root", "log", "r").stdout
        s.jobctl("root", "add", "-n", "r", "--manual", "-e", "B=2", "-e", "A=1", "--param", "x=1", "--", "sh", "-c",
                 'echo "$(id -u) $A$B $1"', "sh", "{x}")
        assert out("run", "r", "--wait") == "0 12 1\n"
        refused = s.jobctl("root", "set", "r", "env.A=5", check=False)  # no terminal for a confirmation
        assert refused.returncode == 4 and "--yes" in refused.stderr and "env: A=5" in refused.stderr, refused
        assert "job 'r', to run as root (uid 0)" in refused.stderr and "echo" in refused.stderr, refused
        assert out("run", "r", "--wait") == "0 12 1\n"
        s.jobctl("root", "set", "--yes", "r", "env.A=5")
        assert out("run", "r", "--wait") == "0 52 1\n"
        s.jobctl("root", "set", "r", "priority=5")  # the priority is not covered by the warrant
        assert out("run", "r", "--wait") == "0 52 1\n"
        assert s.jobctl("root", "run", "r", "--param", "x=two words", check=False).returncode == 4
        assert out("run", "r", "--param", "x=two words", "--wait", "--yes") == "0 52 two words\n"
        s.jobctl("root", "undo", "r", "--to", "1")
        assert out("run", "r", "--wait") == "0 12 1\n"
        s.env["EDITOR"] = "sed -i s/B.=.2/B\\ =\\ 3/"
        s.jobctl("root", "edit", "--yes", "r")
        assert out("run", "r", "--wait") == "0 13 1\n"
        s.jobctl("root", "set", "--yes", "r", "name=q")  # the warrant covers the name
        s.jobctl("root", "run", "q", "--wait")
        s.jobctl("root", "set", "--yes", "q", "name=r")
        for _ in range(2):  # a repeated submission has the same warrant and changes nothing
            s.jobctl("root", "add", "-n", "twice", "--if-exists", "replace", "--manual", "--", "true")
        assert s.api("root").get("/v1/jobs/twice")["revision"] == 1
        one, two = (s.jobctl("root", "add", "--key", "k", "--manual", "--", "true").stdout for _ in range(2))
        assert one == two, (one, two)
        assert "warrant" not in s.jobctl("root", "history", "r").stdout


@case
def exec_notices_of_root_run_as_root_and_mail_as_the_daemon():
    with System() as s:
        mailer = os.path.join(s.dir, "mailer")
        write(mailer, "#!/bin/sh\nid -u >%s/mailed\ncat >>%s/mailed\n" % (s.dir, s.dir), 0o755)
        os.chmod(s.dir, 0o1777)
        write(s.conf_dir + "/jobschedd.conf", "sendmail = %s\n" % mailer)
        s.start()
        s.jobctl("root", "add", "-n", "r", "--notify", "exec:id -u >%s/told; cat >>%s/told" % (s.dir, s.dir), "--notify",
                 "mail:root@localhost", "--", "false")

        def read(name):
            try:
                with open(os.path.join(s.dir, name)) as f:
                    return f.read()
            except FileNotFoundError:
                return ""
        wait_until("the command of the notice was run", 20, lambda: "failed" in read("told"))
        wait_until("the mail of the notice was sent", 20, lambda: "failed" in read("mailed"))
        assert read("told").startswith("0\n") and read("mailed").startswith("990\n"), (read("told"), read("mailed"))


@case
def warrants_survive_an_upgrade_and_a_reload_with_an_invalid_configuration():
    with System(spawner_conf="require-warrant = all\n") as s:
        s.start()
        s.jobctl("alice", "add", "-n", "a", "--manual", "--", "true")
        job = s.jobctl("alice", "add", "-n", "long", "--", "sleep", "600").stdout.strip()
        wait_until("the job runs", 20, lambda: s.runs("alice", job)[0]["state"] == "running")
        s.write_spawner_conf("require-warrant = some\n")
        s.spawner.send_signal(signal.SIGHUP)
        wait_until("the reload is refused", 20, lambda: "not reloaded" in s.said())
        s.write_spawner_conf("require-warrant = all\n")
        s.spawner.send_signal(signal.SIGHUP)
        wait_until("the new program has resumed", 20, lambda: "resumed with 1 workers" in s.said())
        s.jobctl("alice", "run", "a", "--wait")
        s.jobctl("alice", "add", "--wait", "--", "true")
        assert s.runs("alice", job)[0]["state"] == "running"
        s.jobctl("alice", "cancel", "--running", "long")


@case
def the_warrant_key_is_replaced_while_roots_jobs_run():
    """The steps of jobsched-spawner(8)."""
    with System() as s:
        s.start()
        key, second = "/var/lib/jobsched-spawner/warrant.key", "/var/lib/jobsched-spawner/warrant.key.second"

        def reload():
            before = s.said().count("resumed with")
            s.spawner.send_signal(signal.SIGHUP)
            wait_until("the spawner has reloaded", 30, lambda: s.said().count("resumed with") > before)

        def run(name):
            s.jobctl("root", "run", name, "--wait")
        s.jobctl("root", "add", "-n", "early", "--manual", "--", "true")
        s.jobctl("root", "add", "-n", "forgotten", "--manual", "--", "true")
        with open(os.open(second, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(os.urandom(32))
        reload()
        run("early")
        os.rename(key, key + ".old")
        os.rename(second, key)
        os.rename(key + ".old", second)
        reload()
        run("early")
        s.jobctl("root", "add", "-n", "late", "--manual", "--", "true")
        s.jobctl("root", "approve", "--yes", "early")
        os.unlink(second)
        reload()
        run("early")
        run("late")
        s.jobctl("root", "run", "forgotten")
        wait_until("the run is refused", 20, lambda: any("warrant" in (a["error"] or "") for r in s.runs("root", 2)
                                                    for a in s.attempts("root", r["id"])))


@case
def a_template_of_root_is_used_only_unchanged():
    with System() as s:
        s.start()
        s.jobctl("root", "template", "add", "t", "--param", "host", "--param", "days=7", "--", "echo", "{host}", "{days}")
        refused = s.jobctl("root", "add", "--template", "t", "--param", "host=db", check=False)
        assert refused.returncode == 4 and "command: echo db 7" in refused.stderr and "--yes" in refused.stderr, refused
        s.jobctl("root", "add", "--template", "t", "--param", "host=db", "-n", "j", "--wait", "--yes")
        assert s.jobctl("root", "log", "j").stdout == "db 7\n"
        s.jobctl("bob", "add", "--template", "t", "--param", "host=b", "-n", "j", "--wait")
        assert s.jobctl("bob", "log", "j").stdout == "b 7\n"
        # the daemon answers with another template of root, which was approved under its own name
        good = s.api("root").get("/v1/templates/t")
        body = dict(good["definition"], params=good["params"])
        assert s.api("root").call("PUT", "/v1/templates/other", body)[0] == 201
        result = s.jobctl("root", "add", "--template", "other", "--param", "host=db", "--yes", check=False)
        assert result.returncode == 4 and "not approved" in result.stderr, result
        # the daemon has changed the template and kept the old warrant
        body = dict(good["definition"], params=good["params"], command=["echo", "worse", "{host}", "{days}"])
        assert s.api("root").call("PUT", "/v1/templates/t", body)[0] == 200
        result = s.jobctl("root", "add", "--template", "t", "--param", "host=db", "--yes", check=False)
        assert result.returncode == 4 and "not approved" in result.stderr, result


@case
def changes_to_a_job_without_a_warrant_are_refused():
    with System(spawner_conf="require-warrant = none\n") as s:
        s.start()
        s.api("root").post("/v1/jobs", {"command": ["id", "-u"], "name": "r", "schedule": ["manual"]})
        s.jobctl("root", "run", "r", "--wait")
        for process in (s.engine, s.spawner):
            process.terminate()
            process.wait(20)
        s.write_spawner_conf("require-warrant = root\n")
        s.start()
        result = s.jobctl("root", "set", "--yes", "r", "env.A=1", check=False)
        assert result.returncode == 4 and "as stored is not approved" in result.stderr, result
        assert "jobctl approve 1" in result.stderr, result
        s.jobctl("root", "run", "r")
        wait_until("the run is refused", 20, lambda: any("no warrant" in (a["error"] or "") for r in s.runs("root", 1)
                                                    for a in s.attempts("root", r["id"])))
        s.jobctl("root", "approve", "--yes", "r")
        s.jobctl("root", "run", "r", "--wait")
        s.jobctl("root", "set", "--yes", "r", "env.A=1")


@case
def a_warrant_is_valid_for_one_job_and_one_name():
    with System() as s:
        s.start_spawner()
        argv = ["/bin/sh", "-c", 'test "$JOBSCHED_NAME" = mine']
        mine = order(0, "root", *argv, name="mine")
        with Spawner(s, 0) as root:
            warrant, _ = root.ask(mine)
        with Spawner(s, 990) as e:
            e.hello()
            assert e.start(1, mine, warrant) == ("ended", 0)
            assert e.start(2, order(0, "root", *argv, name="other"), warrant)[0] == NO_WARRANT
            assert e.start(3, order(0, "root", *argv), warrant)[0] == NO_WARRANT
            assert e.start(4, order(0, "root", *argv, name="mine", job=bytes(16)), warrant)[0] == NO_WARRANT
            assert e.start(5, order(0, "root", *argv, job=None), warrant)[0] == NO_WARRANT
            assert e.start(6, mine, warrant, variables=["JOBSCHED_NAME=other"]) == ("ended", 0)  # the approved name replaces it
        with Spawner(s, 0) as root:
            assert not root.ask(order(0, "root", *argv, name="mine", job=None))[0]  # a name without an identity is refused
        with Spawner(s, 0) as root:
            given, why = root.ask(order(0, "root", *argv, job=None))
            assert not given and "jobctl of this version" in why, why


@case
def a_warrant_covers_the_gate():
    with System() as s:
        s.start()
        s.jobctl("root", "add", "-n", "r", "--manual", "--gate", "echo approved", "--gate-timeout", "20s", "--", "echo", "started")
        s.jobctl("root", "run", "r", "--wait")
        assert s.jobctl("root", "log", "r").stdout == "approved\nstarted\n"
        # without a terminal root cannot confirm another gate
        for change in ("gate=echo worse", "gate-timeout=30s"):
            refused = s.jobctl("root", "set", "r", change, check=False)
            assert refused.returncode == 4 and "--yes" in refused.stderr and "command: " in refused.stderr, refused
        # the API refuses another gate, gate time or no gate with the warrant of the first one
        approved = s.api("root").get("/v1/jobs/r")["warrant"]
        for change in ({"gate": "echo worse"}, {"gate_timeout": 30}, {"gate": None}):
            status, answer = s.api("root").call("PATCH", "/v1/jobs/r", dict(change, warrant=approved))
            assert (status, answer["error"]["field"]) == (403, "warrant"), answer
        s.jobctl("root", "run", "r", "--wait")
        s.jobctl("root", "set", "--yes", "r", "gate=echo other")
        s.jobctl("root", "run", "r", "--wait")
        assert s.jobctl("root", "log", "r").stdout == "other\nstarted\n"
        s.engine.terminate()
        s.engine.wait(20)
        # the spawner itself, without the definition: any word before the command, and that they are a gate
        words = ["/bin/sh", "-c", '[ "$1" = open ] || exit 7; shift; exec "$@"', "gate"]
        mine = order(0, "root", *words, "open", "/bin/true", gate=True)
        with Spawner(s, 0) as root:
            warrant, _ = root.ask(mine)
        with Spawner(s, 990) as e:
            e.hello()
            assert e.start(1000, mine, warrant) == ("ended", 0)
            assert e.start(1001, order(0, "root", *words, "closed", "/bin/true", gate=True), warrant)[0] == NO_WARRANT
            assert e.start(1002, order(0, "root", *words, "open", "/bin/true"), warrant)[0] == NO_WARRANT
            assert e.start(1003, order(0, "root", "/bin/true"), warrant)[0] == NO_WARRANT


@case
def a_compromised_daemon_neither_reads_nor_changes_the_state_of_roots_runs():
    with System() as s:
        s.start()
        refused = s.jobctl("root", "add", "--manual", "--checkpoint", "--state-size", "1M", "--", "true", check=False)
        assert refused.returncode != 0 and "stays on its node" in refused.stderr, refused
        s.engine.terminate()
        s.engine.wait(20)
        output = s.spawner_state + "/output"
        for run, uid in ((70, 0), (71, s.uid("alice"))):
            os.mkdir("%s/%d.state" % (output, run), 0o700)
            with open("%s/%d.state/secret" % (output, run), "w") as f:
                f.write("kept")
            os.chown("%s/%d.state" % (output, run), uid, uid)
            os.chown("%s/%d.state/secret" % (output, run), uid, uid)

        def state(e, run, uid, owner, verb, fd):
            kept = os.dup(fd)
            answer = ask_state(e, run, uid, owner, verb, fd)
            while answer[0] == errno.EBUSY:  # the last child has reported and is exiting
                time.sleep(0.05)
                answer = ask_state(e, run, uid, owner, verb, os.dup(kept))
            os.close(kept)
            return answer

        def ask_state(e, run, uid, owner, verb, fd):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.settimeout(30)
            e.send(STATE, 6, struct.pack("<4q", run, 1, uid, verb) + owner.encode().ljust(256, b"\0"), [fd, theirs.detach()])
            return struct.unpack("<iiq", ours.recv(64))

        def archive():
            fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, 4096)
            return fd
        with Spawner(s, 990) as e:
            e.hello(6)
            # alice's state can be packed: the daemon can start any command as alice
            fd = archive()
            kept = os.dup(fd)
            error, left_out, size = state(e, 71, s.uid("alice"), "alice", 0, fd)
            packed = os.pread(kept, size, 0)
            assert (error, left_out) == (0, 0) and b"secretkept" in packed, (error, packed)
            # that of root neither under its own name nor as alice's, and no state is unpacked over it
            for uid, owner in ((0, "root"), (s.uid("alice"), "alice")):
                assert state(e, 70, uid, owner, 0, archive())[0] == errno.EACCES
                assert state(e, 70, uid, owner, 2, sealed(packed.replace(b"kept", b"evil")))[0] == errno.EACCES
            # a damaged archive leaves nothing outside of the directory
            for bad in (packed.replace(b"secret", b"../../"), packed[:-1], packed + b"x", b"L" + packed[1:].replace(b"kept", b"/etc"), b"D" * 4000):
                assert state(e, 71, s.uid("alice"), "alice", 2, sealed(bad))[0] == errno.EBADMSG, bad
            assert state(e, 71, s.uid("alice"), "alice", 2, sealed(packed))[0] == 0
        for run in (70, 71):
            assert os.listdir("%s/%d.state" % (output, run)) == ["secret"]
            with open("%s/%d.state/secret" % (output, run)) as f:
                assert f.read() == "kept"


@case
def a_warrant_of_the_first_version_starts_its_job_but_changes_are_refused():
    with System(spawner_conf="require-warrant = none\n") as s:
        s.start()
        old = first_version(s, order(0, "root", "id", "-u", job=None)).hex()
        s.api("root").post("/v1/jobs", {"command": ["id", "-u"], "name": "r", "schedule": ["manual"], "warrant": old,
                                        "umask": "077", "tz": "UTC"})
        for process in (s.engine, s.spawner):
            process.terminate()
            process.wait(20)
        s.write_spawner_conf("")
        s.start()
        s.jobctl("root", "run", "r", "--wait")
        result = s.jobctl("root", "set", "--yes", "r", "env.A=1", check=False)
        assert result.returncode == 4 and "earlier version" in result.stderr and "jobctl approve 1" in result.stderr, result
        assert s.jobctl("root", "approve", "r", check=False).returncode == 4
        s.jobctl("root", "approve", "--yes", "1")
        s.jobctl("root", "set", "--yes", "r", "env.A=1")
        s.jobctl("root", "run", "r", "--wait")


@case
def jobctl_asks_before_it_approves_input_of_the_daemon():
    with System() as s:
        s.start()
        s.jobctl("root", "add", "-n", "r", "--manual", "-e", "A=1", "--", "sh", "-c", "exit $A")

        def answer(text):
            main_end, end = pty.openpty()
            process = subprocess.Popen([s.jobctl_path, "set", "r", "env.A=0"], stdin=end, stdout=subprocess.DEVNULL, stderr=end,
                                       env=s.env, cwd="/")
            os.close(end)
            said = b""
            with contextlib.suppress(OSError):  # EIO: the process has ended
                while chunk := os.read(main_end, 4096):
                    said += chunk
                    if b"[y/N]" in chunk:
                        os.write(main_end, text)
            os.close(main_end)
            return process.wait(20), said.decode()
        code, said = answer(b"n\n")
        assert code == 4 and "env: A=0" in said and "not approved" in said, (code, said)
        code, said = answer(b"y\n")
        assert code == 0 and "to run as root (uid 0)" in said, (code, said)
        s.jobctl("root", "run", "r", "--wait")


class FakeDaemon:
    """A compromised daemon: it answers every GET with 'shown' and requires a warrant for every change."""

    def __init__(self, s, shown):
        self.shown, self.got = shown, []
        with contextlib.suppress(FileNotFoundError):
            os.unlink(s.socket)
        self.listen = socket.socket(socket.AF_UNIX)
        self.listen.bind(s.socket)
        os.chmod(s.socket, 0o666)
        self.listen.listen(8)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listen.accept()
            with connection, connection.makefile("rb") as f:
                while line := f.readline():
                    length = 0
                    while (head := f.readline()) not in (b"\r\n", b""):
                        if head.lower().startswith(b"content-length:"):
                            length = int(head.split(b":")[1])
                    self.answer(connection, line.split()[0], f.read(length))

    def answer(self, connection, method, body):
        status, answer = b"200 OK", self.shown
        if method != b"GET" and b'"warrant"' not in body:
            status, answer = b"403 Forbidden", {"error": {"code": "denied", "field": "warrant", "message": "a warrant is needed"}}
        elif method != b"GET":
            self.got.append(json.loads(body))
        data = json.dumps(answer).encode()
        connection.sendall(b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(data)) +
                           data)


@case
def a_compromised_daemon_cannot_pass_off_roots_job_as_another():
    with System() as s:
        s.start()
        roots = s.jobctl("root", "add", "--name", "harmless", "--every", "1h", "--", "true").stdout.split()[0]
        hers = s.jobctl("alice", "add", "--name", "report", "--every", "1h", "--", "/srv/report").stdout.split()[0]
        approved, other = (s.api("root").get("/v1/jobs/" + job) for job in (roots, hers))
        s.engine.kill()
        s.engine.wait()
        command = ["--", "/srv/report2"]
        fake = FakeDaemon(s, dict(approved, id=other["id"], name="report"))
        for words, why in ((["set", "--yes", "report", *command], "not approved"),
                           (["run", "--yes", "report", "--param", "x=1"], "not approved")):
            result = s.jobctl("root", *words, check=False)
            assert result.returncode == 4 and why in result.stderr and not fake.got, (result, fake.got)
        fake.shown = dict(approved, id=other["id"])  # with the approved name
        result = s.jobctl("root", "set", "--yes", "report", *command, check=False)
        assert result.returncode == 4 and "to a request for 'report'" in result.stderr and not fake.got, (result, fake.got)
        # by number, the daemon can show any approved job; jobctl shows its name to root and asks
        result = s.jobctl("root", "set", hers, *command, check=False)
        assert result.returncode == 4 and "job 'harmless', to run as root (uid 0)" in result.stderr, result
        assert "command: /srv/report2" in result.stderr and not fake.got, (result, fake.got)
        fake.shown = dict(other, warrant=approved["warrant"])  # her job, with the warrant of root's job
        result = s.jobctl("root", "set", "--yes", "report", *command, check=False)
        assert result.returncode == 4 and not fake.got, (result, fake.got)


if __name__ == "__main__":
    main()
