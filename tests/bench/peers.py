# SPDX-License-Identifier: Apache-2.0
# N jobs due at the same second: how late each one starts, for jobsched and for the other schedulers that are installed.
#
# usage: tests/bench/peers.py [N [NAME...]]      with top_builddir set, by root; names: jobsched, cron, bcron, at, systemd
#   PEERS_ROOT    a directory with unpacked packages (dpkg -x), searched before the system's programs
#   BENCH_PLOTS   the directory of the plot (default: the current directory)
# The other schedulers run in a private mount namespace with their own crontab and spool; the machine's tables are not read.
# Each program is started for one measurement and ended by its pid.
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../integration"))
from figures import percentile, plot
from harness import BUILD, Connection, Daemon, Skip
from system import enter_namespace, mount

STAMP = os.path.abspath(os.path.join(BUILD, "tests/bench/stamp"))
ROOT = os.environ.get("PEERS_ROOT", "")
PATHS = ["%s/%s" % (root, part) for root in ([ROOT] if ROOT else []) + [""] for part in ("usr/sbin", "usr/bin", "sbin", "bin")]


def found(name):
    path = shutil.which(name, path=":".join(PATHS))
    if not path:
        raise Skip("'%s' is not installed" % name)
    return path


def next_minute(lead):
    now = time.time()
    due = (int(now) // 60 + 1) * 60
    return due if due - now >= lead else due + 60


def read(path):
    if not os.path.exists(path):
        return []
    with open(path) as f:
        return [float(line) for line in f]


def wait(path, due, n, seconds=90):
    while time.time() < due + seconds and len(read(path)) < n:
        time.sleep(0.1)
    return sorted(t - due for t in read(path))


def started(words, **more):
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **more)


def end(process):
    os.killpg(process.pid, signal.SIGTERM)
    process.wait(20)


def crontab(due, n, path, user):
    at = time.localtime(due)
    line = "%d %d * * * %s%s %s\n" % (at.tm_min, at.tm_hour, user, STAMP, path)
    return 'MAILTO=""\n' + line * n


def jobsched(n, path):
    due = next_minute(6 + n // 2000)
    with Daemon("submissions-burst = 1000000\nsubmissions-per-second = 1000000\n").start() as d:
        c = Connection(d.socket, 60)
        at = time.gmtime(due)
        job = {"command": [STAMP, path], "schedule": ["%d %d * * *" % (at.tm_min, at.tm_hour)], "tz": "UTC"}
        for first in range(0, n, 1000):
            c.request("POST", "/v1/jobs/bulk", json.dumps({"jobs": [job] * min(1000, n - first)}), {"Content-Type": "application/json"})
            answer = c.getresponse()
            text = answer.read()
            assert answer.status in (200, 201), text[:300]
        return wait(path, due, n)


def cron(n, path):
    program, due = found("cron"), next_minute(8)
    with open("/etc/crontab", "w") as f:
        f.write(crontab(due, n, path, "root "))
    p = started([program, "-f"])
    try:
        return wait(path, due, n)
    finally:
        end(p)
        os.unlink("/etc/crontab")


def bcron(n, path):
    program, due = found("bcron-start"), next_minute(8)
    for name in ("crontabs", "tmp"):
        os.makedirs("/var/spool/cron/" + name, exist_ok=True)
    with open("/etc/crontab", "w") as f:
        f.write(crontab(due, n, path, "root "))
    p = started([program], env=dict(os.environ, PATH=":".join(PATHS) + ":" + os.environ["PATH"], BCRON_USER="root"))
    time.sleep(1)
    try:
        if p.poll() is not None:
            raise Skip("bcron-start ended with %d" % p.returncode)
        return wait(path, due, n)
    finally:
        if p.poll() is None:
            end(p)
        os.unlink("/etc/crontab")


def at(n, path):
    daemon, client = found("atd"), found("at")
    for place in ("atjobs", "atspool"):
        os.makedirs("/var/spool/cron/" + place, exist_ok=True)
        os.chmod("/var/spool/cron/" + place, 0o1770)
        shutil.chown("/var/spool/cron/" + place, "daemon", "daemon")
    open("/var/spool/cron/atjobs/.SEQ", "w").write("0")
    shutil.chown("/var/spool/cron/atjobs/.SEQ", "daemon", "daemon")
    due = next_minute(10 + n // 50)
    p = started([daemon, "-f", "-b", "0", "-l", "1000"])
    try:
        for _ in range(n):
            subprocess.run([client, "-t", time.strftime("%Y%m%d%H%M", time.localtime(due))], input="%s %s\n" % (STAMP, path), text=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return wait(path, due, n)
    finally:
        end(p)


def systemd(n, path):
    """Transient timers of the running service manager."""
    if not SYSTEMD:
        raise Skip("systemd is not the service manager here")
    due, units = next_minute(15 + n // 20), []
    try:
        for i in range(n):
            unit = "jobsched-bench-%d-%d" % (os.getpid(), i)
            subprocess.run(["systemd-run", "--quiet", "--collect", "--unit", unit, "--timer-property=AccuracySec=1us",
                            "--on-calendar", time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(due)), STAMP, path], check=True)
            units.append(unit + ".timer")
        return wait(path, due, n)
    finally:
        for first in range(0, len(units), 100):
            subprocess.run(["systemctl", "stop", *units[first:first + 100]], stderr=subprocess.DEVNULL)


PEERS = {"jobsched": jobsched, "cron": cron, "bcron": bcron, "at": at, "systemd": systemd}
SYSTEMD = os.path.isdir("/run/systemd/system")


def private_spool():
    if SYSTEMD:
        return  # systemd-run needs the machine's /run; the other schedulers are then not measured
    enter_namespace()
    os.makedirs("/var/spool/cron", exist_ok=True)
    mount("tmpfs", "/var/spool/cron", "mode=0755")
    if os.path.exists("/etc/crontab"):
        os.unlink("/etc/crontab")


def measure(name, n, here):
    path = os.path.join(here, "%s.%d" % (name, n))
    if SYSTEMD and name in ("cron", "bcron", "at"):
        raise Skip("would need the machine's own tables; run it in a container without systemd")
    late = PEERS[name](n, path)
    if not late:
        raise Skip("no job ran")
    print("%-9s n=%-6d first %8.3f  p50 %8.3f  p99 %8.3f  last %8.3f s  %7.0f/s%s" % (
        name, len(late), late[0], percentile(late, 50), percentile(late, 99), late[-1], len(late) / max(late[-1] - late[0], 1e-3),
        "" if len(late) == n else "  (%d did not run within 90 s)" % (n - len(late))), flush=True)
    return late


def main(n="1000", *names):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # the other schedulers are ended, too
    try:
        private_spool()
    except Skip as reason:
        sys.exit("the other schedulers are not measured: %s" % reason)
    here = tempfile.mkdtemp(prefix="jobsched-peers.")
    os.chmod(here, 0o777)
    n = int(n)
    series = []
    try:
        for name in names or PEERS:
            points = []
            for size in sorted({max(1, n // 100), max(1, n // 10), n}):
                try:
                    points.append((size, max(percentile(measure(name, size, here), 99), 0.0001) * 1000))
                except Skip as reason:
                    print("%-9s not measured: %s" % (name, reason), flush=True)
                    break
            if points:
                series.append((name, points))
    finally:
        shutil.rmtree(here, ignore_errors=True)
    plot(os.path.join(os.environ.get("BENCH_PLOTS", "."), "peers.svg"), "Delay of starts, N jobs due at the same second, 99 of 100", "N",
         "ms", series)


main(*sys.argv[1:])
