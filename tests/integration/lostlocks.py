#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# A process loses its POSIX locks on a file when it closes any descriptor of that file.
# The guard process then keeps the WAL, and the daemon exits.
import ctypes
import fcntl
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import time

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


def call_in(pid, regs, number, argument, signals):
    """
    Makes a stopped thread execute one system call. Its instruction pointer is behind a 'syscall' instruction. Signals that
    arrive meanwhile are added to 'signals'.
    """
    now = Registers.from_buffer_copy(regs)
    now.rax, now.rdi, now.rsi, now.orig_rax, now.rip = number, argument, os.O_RDONLY, 2 ** 64 - 1, regs.rip - 2
    ptrace(PTRACE_SETREGS, pid, now)
    while True:
        ptrace(PTRACE_SINGLESTEP, pid)
        stopped_by = os.WSTOPSIG(os.waitpid(pid, 0)[1])
        if stopped_by == signal.SIGTRAP:
            break
        if stopped_by != signal.SIGSTOP:  # a signal arrived before the step, for example SIGCHLD: it is sent again later
            signals.append(stopped_by)
    ptrace(PTRACE_GETREGS, pid, now)
    return now.rax


def stop_in_a_call(pid):
    """Stops the main thread of the daemon. Returns its registers, or None if it was not in a system call."""
    try:
        ptrace(PTRACE_ATTACH, pid)
    except OSError as e:
        raise Skip("ptrace is not permitted: %s" % e) from e
    os.waitpid(pid, 0)
    regs = Registers()
    ptrace(PTRACE_GETREGS, pid, regs)
    if ptrace(PTRACE_PEEKTEXT, pid, 0, regs.rip - 2) & 0xffff == 0x050f:
        return regs
    ptrace(PTRACE_DETACH, pid)
    return None


def open_and_close(pid, fd):
    """Makes the daemon open and close a file of the store, as a library in the process could do."""
    if platform.machine() != "x86_64":
        raise Skip("the test supports x86_64 only")
    regs = wait_until("the loop is in a system call", 30, lambda: stop_in_a_call(pid))
    name = (b"/proc/self/fd/%d" % fd).ljust(32, b"\0")
    room = (regs.rsp - 1024) & ~15  # below the stack
    for at in range(0, len(name), 8):
        ptrace(PTRACE_POKEDATA, pid, int.from_bytes(name[at:at + 8], "little"), room + at)
    signals = []
    copy = call_in(pid, regs, SYS_OPEN, room, signals)
    assert copy < 4096, copy
    assert call_in(pid, regs, SYS_CLOSE, copy, signals) == 0
    if regs.rax >= 2 ** 64 - 516:  # the call was interrupted and returns EINTR; a completed call keeps its result
        regs.rax = 2 ** 64 - EINTR if regs.rax <= 2 ** 64 - 512 else regs.rax
    regs.orig_rax = 2 ** 64 - 1
    ptrace(PTRACE_SETREGS, pid, regs)
    ptrace(PTRACE_DETACH, pid)
    for number in signals:
        os.kill(pid, number)


def descriptor(pid, path):
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            if os.readlink("/proc/%d/fd/%s" % (pid, fd)) == path:
                return int(fd)
        except FileNotFoundError:
            pass
    raise AssertionError("%d has not opened %s" % (pid, path))


def lockers(path):
    """The pids that hold a POSIX lock on a file."""
    inode = os.stat(path).st_ino
    with open("/proc/locks") as f:
        lines = [line.split() for line in f]
    return {int(w[-4]) for w in lines if "POSIX" in w and int(w[-3].split(":")[2]) == inode}


def guard_of(d):
    """Waits until the guard holds its locks, and returns its pid."""
    def holds():
        both = lockers(d.db_path) & lockers(d.db_path + "-shm")
        return both - {d.process.pid}
    return wait_until("the guard holds its locks", 30, holds).pop()


def read_as_other_process(d):
    """Reads the store in a separate process, like sqlite3(1), so that this process holds no locks."""
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
        read_as_other_process(d)
        assert set(acknowledged) <= jobs_in(d)
        d.start()
        assert set(acknowledged) <= {j["id"] for j in d.api().pages("/v1/jobs", "jobs")}


@case
def a_daemon_that_lost_its_lock_on_the_wal_index_exits_without_data_loss():
    lose_locks("-shm")


@case
def a_daemon_that_lost_its_lock_on_the_database_exits_without_data_loss():
    lose_locks("")


@case
def the_guard_keeps_the_wal_when_the_daemon_has_lost_its_locks():
    with Daemon() as d:
        d.start()
        guard = guard_of(d)
        acknowledged = add_jobs(d, 10)
        os.kill(guard, signal.SIGSTOP)  # the guard keeps its locks, but cannot notify the daemon
        for ending in ("-shm", ""):
            open_and_close(d.process.pid, descriptor(d.process.pid, os.path.realpath(d.db_path + ending)))
        assert d.process.pid not in lockers(d.db_path) | lockers(d.db_path + "-shm")
        before = os.stat(d.db_path + "-wal").st_ino
        read_as_other_process(d)
        assert os.stat(d.db_path + "-wal").st_ino == before, "the WAL was deleted"
        acknowledged += add_jobs(d, 10)
        d.kill()
        wait_until("the guard ends with the daemon", 30, lambda: not lockers(d.db_path))
        assert set(acknowledged) <= jobs_in(d)


@case
def a_killed_guard_is_restarted_and_ends_with_the_daemon():
    with Daemon() as d:
        d.start()
        first = guard_of(d)
        read_as_other_process(d)
        os.kill(first, signal.SIGKILL)
        wait_until("the first guard has ended", 30, lambda: first not in lockers(d.db_path))
        second = guard_of(d)
        d.kill()
        wait_until("the second guard has ended", 30, lambda: second not in lockers(d.db_path))
        d.start()
        guard_of(d)
        assert d.stop() == 0
        assert not lockers(d.db_path), "the guard was still running after the daemon had stopped"


# Locks and unlocks ranges of a file without end, so that the kernel's list of locks changes while it is read.
CHURN = """
import fcntl, random, sys, tempfile
with tempfile.TemporaryFile() as f:
    while True:
        at = random.randrange(400) * 2
        fcntl.lockf(f, random.choice((fcntl.LOCK_EX, fcntl.LOCK_UN)), 1, at)
"""


@case
def lost_locks_are_detected_among_the_locks_of_other_programs():
    with Daemon() as d:
        d.start()
        assert d.stop() == 0
        with open(d.db_path, "r+b") as other:
            fcntl.lockf(other, fcntl.LOCK_SH, 510, 0x40000002)  # before the daemon, so that the kernel names this holder
            d.start()
            guard_of(d)
            churning = [subprocess.Popen([sys.executable, "-c", CHURN]) for _ in range(3)]
            try:
                for _ in range(300):  # each close makes the guard check the locks
                    os.close(os.open(d.db_path + "-shm", os.O_RDONLY))
                    time.sleep(0.02)
            finally:
                for process in churning:
                    process.kill()
                    process.wait()
            assert d.process.poll() is None, d.said()
            open_and_close(d.process.pid, descriptor(d.process.pid, os.path.realpath(d.db_path)))  # the lock of 'other' stays
            assert d.ended(60) == EXIT_TRY_AGAIN, d.said()


if __name__ == "__main__":
    main()
