#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Boots a machine with cron and twenty lines: shadow mode, comparison, takeover and give-back with reboots between their steps,
# the package jobsched-cron instead of cron and back, purge. Not part of 'make check'.
#
# usage: tests/boot/cron.py [MINUTES]     with top_builddir set; MINUTES (4) of shadow mode and again after the takeover;
#                                         KEEP=1 keeps the console output; DEBS=DIRECTORY has packages that were already built
#
# The judgement: every line starts exactly once in each minute in which it is due, and in no other. The slots of jobschedd are
# second 0 of these minutes. It starts no line before its slot, and each within one second; if the load average exceeds twice
# the number of processors, half of them. cron wakes up one to two seconds after the minute; that is printed.
import glob
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from container import SERVICE, boot_container, relay
from image import BUILD, Skip, dependencies, make_root, need, run

HERE = os.path.dirname(os.path.abspath(__file__))


def packages(payload):
    """Puts jobsched.deb, jobsched-cron.deb and Debian's cron.deb into the payload; returns the paths of the first two."""
    built = os.environ.get("DEBS")
    if built:
        found = sorted(glob.glob(os.path.join(built, "jobsched*.deb")))
    else:
        found = [word for word in run("make", "-s", "-C", BUILD, "deb").split() if word.endswith(".deb")]
    for path in found:
        shutil.copy(path, os.path.join(payload, os.path.basename(path).split("_")[0] + ".deb"))
    run("apt-get", "-q", "download", "cron", cwd=payload)
    os.rename(glob.glob(os.path.join(payload, "cron_*.deb"))[0], os.path.join(payload, "cron.deb"))
    return [os.path.join(payload, name + ".deb") for name in ("jobsched", "jobsched-cron")]


def main():
    minutes = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    work = tempfile.mkdtemp(prefix="jobsched-cron.")
    try:
        need()
        payload = os.path.join(work, "payload")
        os.mkdir(payload, 0o755)
        os.chmod(work, 0o755)
        debs = packages(payload)
        with open(os.path.join(payload, "minutes"), "w") as f:
            f.write(str(minutes))
        needed = set(sum(map(dependencies, debs), [])) - {"jobsched"}
        root = make_root({"systemd", "systemd-sysv", "dbus", "python3", "procps", "cron"} | needed, {"look.service": SERVICE})
        shutil.copy(os.path.join(HERE, "cron_guest.py"), os.path.join(payload, "guest.py"))
        shutil.copy(os.path.join(HERE, "cron_tables.py"), payload)
        limit = 60 * (minutes + 8)  # of each boot
        boot_container(root, work, limit)
        relay(work, limit, "the crontabs are handed over and back")
    except Skip as reason:
        print("ok 1 - the crontabs are handed over and back # SKIP %s\n1..1" % reason)
    finally:
        if os.environ.get("KEEP"):
            print("# files kept in " + work)
        else:
            shutil.rmtree(work, ignore_errors=True)


main()
