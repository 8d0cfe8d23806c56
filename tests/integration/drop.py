# SPDX-License-Identifier: Apache-2.0
# Each system call between the clone() of a worker and its exec() fails, or falsely reports success, in turn:
# the command runs completely as its owner, or not at all.
import contextlib
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import case, main, need_program, wait_until
from system import System, Traced

# It writes its identity to a file, in case the injected fault affects its output.
COMMAND = ["/bin/sh", "-c", "cat /proc/self/status >~/ids"]
CALL = re.compile(r"^(\d+)\s+(\w+)\((.*)$")


def birth(text):
    """The system calls of the worker up to its execve, each with its ordinal among calls of the same name."""
    calls, seen, worker = [], {}, None
    exec_line = next(l for l in text.splitlines() if 'execve("/bin/sh"' in l)
    worker = exec_line.split()[0]
    for line in text.splitlines():
        m = CALL.match(line)
        if not m or m.group(1) != worker:
            continue
        name = m.group(2)
        seen[name] = seen.get(name, 0) + 1
        calls.append((name, seen[name]))
        if name == "execve":
            return calls
    raise AssertionError("no execve")


def not_dumpable(text):
    """Whether the worker disables core dumps after it has changed to the owner and before it enters a directory of the owner."""
    worker = next(l for l in text.splitlines() if 'execve("/bin/sh"' in l).split()[0]
    mine = [l.split(None, 1)[1] for l in text.splitlines() if l.startswith(worker + " ")]
    turned = next((i for i, l in enumerate(mine) if l.startswith("prctl(PR_SET_DUMPABLE, SUID_DUMP_DISABLE")), None)
    first = {name: next(i for i, l in enumerate(mine) if l.startswith(name + "(")) for name in ("setresuid", "chdir")}
    return turned is not None and first["setresuid"] < turned < first["chdir"]


def identity(status):
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return {"uid": fields["Uid"].split(), "gid": fields["Gid"].split(), "groups": sorted(map(int, fields["Groups"].split())),
            "caps": [int(fields[n], 16) for n in ("CapPrm", "CapEff", "CapAmb")]}


def expected(s, user):
    uid = str(s.uid(user))
    return {"uid": [uid] * 4, "gid": [uid] * 4, "groups": sorted([int(uid), *s.gids(user)]), "caps": [0, 0, 0]}


def attempt(s, user):
    """None: the command ran, as its owner. Otherwise the reason why it did not run."""
    ids = s.home(user) + "/ids"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(ids)
    job = s.add(user, command=COMMAND)["id"]
    run = wait_until("it is decided", 30, lambda: next((r for r in s.runs(user, job) if r["attempt"] and
                     r["state"] not in ("claimed", "running", "queued")), None))
    try:
        with open(ids) as f:
            said = f.read()
    except FileNotFoundError:
        return s.attempts(user, run["id"])[0]["error"] or "the command could not write its file"
    owner = os.stat(ids)
    assert (owner.st_uid, owner.st_gid) == (s.uid(user), s.uid(user)), owner
    if "CapAmb" in said:  # otherwise the fault was injected into the command itself
        assert identity(said) == expected(s, user), (identity(said), expected(s, user))
    return None


@case
def a_failed_or_faked_system_call_never_runs_a_command_as_the_wrong_user():
    need_program("strace")
    with System() as s:
        s.start()
        assert attempt(s, "alice") is None  # the user is cached from now on, so the traces contain no lookup
        with Traced(s) as t:
            assert attempt(s, "alice") is None
            wait_until("it is in the trace", 10, lambda: 'execve("/bin/sh"' in t.text())
        calls = birth(t.text())
        names = {name for name, _ in calls}
        for name in ("setsid", "setgroups", "setresgid", "setresuid", "getresuid", "getresgid", "getgroups", "close_range"):
            assert name in names, (name, calls)
        assert not_dumpable(t.text()), "the owner could get a core dump of the memory that the worker shares with the spawner before exec"
        refused = []
        for name, place in calls:
            for lie in ("error=EPERM", "retval=0"):
                if (name, lie) == ("execve", "retval=0"):
                    continue  # it would continue without a command
                with Traced(s, "-e", "trace=" + name, "-e", "inject=%s:%s:when=%d" % (name, lie, place)):
                    why = attempt(s, "alice")
                if why is not None:
                    refused.append((name, place, lie))
        for name in ("setgroups", "setresgid", "setresuid"):  # the first call of each name is the change of identity
            for lie in ("error=EPERM", "retval=0"):
                assert (name, 1, lie) in refused, (name, lie, refused)
        assert attempt(s, "alice") is None
        return "%d calls, each failed and faked: %d refusals, no command of another identity" % (len(calls), len(refused))


if __name__ == "__main__":
    main()
