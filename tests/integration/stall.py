# SPDX-License-Identifier: Apache-2.0
# What a user can do to hold up the start of his own job holds up nobody else's.
import fcntl
import os
import pwd
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import case, main
from system import System, write


def leased(path, uid):
    """A process of that user with a write lease on the file: whoever opens it waits until the kernel takes that away."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setresuid(uid, uid, uid)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        fd = os.open(path, os.O_RDWR)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        os.write(told, b"x")
        time.sleep(120)
        os._exit(0)
    assert os.read(ready, 1) == b"x"
    os.close(ready)
    os.close(told)
    return pid


def held_back(profile):
    with System() as s:
        s.start()
        path = os.path.join(pwd.getpwnam("alice").pw_dir, "job")
        write(path, "#!/bin/sh\nexit 0\n", 0o755)
        os.chown(path, s.uid("alice"), s.uid("alice"))
        holder = leased(path, s.uid("alice"))
        try:
            mine = s.add("alice", command=[path], sandbox=profile)["id"]
            time.sleep(0.3)
            began = time.monotonic()
            other = s.add("bob", command=["true"])["id"]
            assert s.wait_final("bob", other)["state"] == "succeeded"
            took = time.monotonic() - began
            assert took < 20, took
        finally:
            os.kill(holder, signal.SIGKILL)
            os.waitpid(holder, 0)
        if profile != "strict":  # there it is tried again, later and later
            assert s.wait_final("alice", mine)["state"] == "succeeded"
        return "the other's job took %.2f s" % took


@case
def a_program_that_its_owner_holds_back_delays_no_other_user():
    return held_back("standard")


@case
def nor_does_one_in_a_pid_namespace():
    return held_back("strict")


main()
