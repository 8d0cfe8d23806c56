#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# POSIX locks vanish when a process closes any descriptor of a file. The guard keeps the log of the store then, and the daemon leaves.
import ctypes
import os
import platform
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, Skip, case, main, wait_until

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_PEEKTEXT, PTRACE_POKEDATA, PTRACE_SINGLESTEP, PTRACE_GETREGS, PTRACE_SETREGS = 1, 5, 9, 12, 13
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
SYS_OPEN, SYS_CLOSE, EINTR = 2, 3, 4
NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs")
EXIT_TRY_AGAIN = 75


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in NAMES.split()]


def ptrace(request, pid, data=0, address=0):
    libc.ptrace.restype = ctypes.c_long
    ctypes.set_errno(0)
    result = libc.ptrace(ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(address),
                         ctypes.byref(data) if isinstance(data, Registers) else ctypes.c_void_p(data))
    if ctypes.get_errno():
        raise OSError(ctypes.get_errno(), "ptrace %d" % request)
    return result


def call_in(pid, regs, number, argument):
    """One system call by a stopped thread that stands behind a 'syscall' instruction."""
    now = Registers.from_buffer_copy(regs)
    now.rax, now.rdi, now.rsi, now.orig_rax, now.rip = number, argument, os.O_RDONLY, 2 ** 64 - 1, regs.rip - 2
    ptrace(PTRACE_SETREGS, pid, now)
    ptrace(PTRACE_SINGLESTEP, pid)
    os.waitpid(pid, 0)
    ptrace(PTRACE_GETREGS, pid, now)
    return now.rax


def stop_in_a_call(pid):
    """Stops the loop of the daemon while it is in a system call; its registers."""
    try:
        ptrace(PTRACE_ATTACH, pid)
    except OSError as e:
        raise Skip("may not trace: %s" % e) from e
    os.waitpid(pid, 0)
    regs = Registers()
    ptrace(PTRACE_GETREGS, pid, regs)
    if ptrace(PTRACE_PEEKTEXT, pid, 0, regs.rip - 2) & 0xffff == 0x050f:
        return regs
    ptrace(PTRACE_DETACH, pid)
    return None


def open_and_close(pid, fd):
    """What a library in the daemon does when it opens and closes a file of the store."""
    if platform.machine() != "x86_64":
        raise Skip("knows the registers of x86_64 only")
    regs = wait_until("the loop is in a system call", 30, lambda: stop_in_a_call(pid))
    name = (b"/proc/self/fd/%d" % fd).ljust(32, b"\0")
    room = (regs.rsp - 1024) & ~15  # below the stack
    for at in range(0, len(name), 8):
        ptrace(PTRACE_POKEDATA, pid, int.from_bytes(name[at:at + 8], "little"), room + at)
    copy = call_in(pid, regs, SYS_OPEN, room)
    assert copy < 4096, copy
    assert call_in(pid, regs, SYS_CLOSE, copy) == 0
    if regs.rax >= 2 ** 64 - 516:  # a wait that was interrupted; a call that was completed keeps its result
        regs.rax = 2 ** 64 - EINTR if regs.rax <= 2 ** 64 - 512 else regs.rax
    regs.orig_rax = 2 ** 64 - 1
    ptrace(PTRACE_SETREGS, pid, regs)
    ptrace(PTRACE_DETACH, pid)


def descriptor(pid, path):
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            if os.readlink("/proc/%d/fd/%s" % (pid, fd)) == path:
                return int(fd)
        except FileNotFoundError:
            pass
    raise AssertionError("%d has not opened %s" % (pid, path))


def lockers(path):
    """Who holds a POSIX lock on a file, by pid."""
    inode = os.stat(path).st_ino
    with open("/proc/locks") as f:
        lines = [line.split() for line in f]
    return {int(w[-4]) for w in lines if "POSIX" in w and int(w[-3].split(":")[2]) == inode}


def guard_of(d):
    """The pid of the guard, once it holds its locks."""
    def holds():
        both = lockers(d.db_path) & lockers(d.db_path + "-shm")
        return both - {d.process.pid}
    return wait_until("the guard holds its locks", 30, holds).pop()


def look_from_outside(d):
    """As sqlite3(1) does; a process of its own, because this one must not lock anything."""
    subprocess.run([sys.executable, "-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
                    "c.execute('select count(*) from jobs').fetchone(); c.close()", d.db_path], check=True, timeout=60)


def jobs_in(d):
    store = sqlite3.connect(d.db_path)
    found = {row[0] for row in store.execute("select id from jobs")}
    assert store.execute("pragma integrity_check").fetchall() == [("ok",)]
    store.close()
    return found


def add_jobs(d, n):
    return [d.add(command=["true"], schedule=["2036-01-01T00:00:00Z"])["id"] for _ in range(n)]


def lose_locks(ending):
    with Daemon() as d:
        d.start()
        guard_of(d)
        acknowledged = add_jobs(d, 10)
        open_and_close(d.process.pid, descriptor(d.process.pid, os.path.realpath(d.db_path + ending)))
        code = d.ended(60)
        assert code == EXIT_TRY_AGAIN and "lost its locks" in d.said(), (code, d.said())
        look_from_outside(d)
        assert set(acknowledged) <= jobs_in(d)
        d.start()
        assert set(acknowledged) <= {j["id"] for j in d.api().pages("/v1/jobs", "jobs")}


@case
def a_daemon_that_lost_its_lock_on_the_index_leaves_and_nothing_is_lost():
    lose_locks("-shm")


@case
def a_daemon_that_lost_its_lock_on_the_database_leaves_and_nothing_is_lost():
    lose_locks("")


@case
def without_the_locks_of_the_daemon_the_guard_keeps_the_log():
    with Daemon() as d:
        d.start()
        guard = guard_of(d)
        acknowledged = add_jobs(d, 10)
        os.kill(guard, signal.SIGSTOP)  # it holds its locks and cannot tell the daemon
        for ending in ("-shm", ""):
            open_and_close(d.process.pid, descriptor(d.process.pid, os.path.realpath(d.db_path + ending)))
        assert d.process.pid not in lockers(d.db_path) | lockers(d.db_path + "-shm")
        before = os.stat(d.db_path + "-wal").st_ino
        look_from_outside(d)
        assert os.stat(d.db_path + "-wal").st_ino == before, "the log was deleted"
        acknowledged += add_jobs(d, 10)
        d.kill()
        wait_until("the guard ends with the daemon", 30, lambda: not lockers(d.db_path))
        assert set(acknowledged) <= jobs_in(d)


@case
def a_guard_that_was_killed_is_started_again_and_ends_with_the_daemon():
    with Daemon() as d:
        d.start()
        first = guard_of(d)
        look_from_outside(d)
        os.kill(first, signal.SIGKILL)
        wait_until("it is gone", 30, lambda: first not in lockers(d.db_path))
        second = guard_of(d)
        d.kill()
        wait_until("it ends with the daemon", 30, lambda: second not in lockers(d.db_path))
        d.start()
        guard_of(d)
        assert d.stop() == 0
        assert not lockers(d.db_path), "the guard outlives an orderly end"


if __name__ == "__main__":
    main()
