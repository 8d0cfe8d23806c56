#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Boots systemd in a container, installs the Debian package there, runs guest.py and prints its TAP output.
#
# usage: tests/boot/boot.py      with top_builddir set; KEEP=1 keeps the console output, LIMIT=n is the timeout in seconds
#
# The container writes to a tmpfs overlay, so the root file system is not changed.
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from container import SERVICE, boot_container, relay
from image import Skip, dependencies, make_root, need, packages

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "the package works in a machine with systemd"


def main():
    limit = int(os.environ.get("LIMIT", "100"))
    work = tempfile.mkdtemp(prefix="jobsched-boot.")
    try:
        need()
        payload = os.path.join(work, "payload")
        os.mkdir(payload, 0o755)
        os.chmod(work, 0o755)
        first, _ = packages(payload)
        root = make_root({"systemd", "systemd-sysv", "dbus", "python3", "procps"} | set(dependencies(first)),
                         {"look.service": SERVICE})
        shutil.copy(os.path.join(HERE, "guest.py"), payload)
        start = time.monotonic()
        boot_container(root, work, limit)
        relay(work, limit, NAME)
        print("# the container ran for %.0f s" % (time.monotonic() - start))
    except Skip as reason:
        print("ok 1 - %s # SKIP %s\n1..1" % (NAME, reason))
    finally:
        if os.environ.get("KEEP"):
            print("# files kept in " + work)
        else:
            shutil.rmtree(work, ignore_errors=True)


main()
