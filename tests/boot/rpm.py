#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Boots systemd in a container with rpm and installs, upgrades and removes the rpm packages there, so that their scriptlets run.
# Not part of 'make check'.
#
# usage: tests/boot/rpm.py      with top_builddir set; KEEP=1 keeps the console output; RPMS=DIRECTORY has the packages of the
#                               releases 1 and 2, DEB=FILE is the Debian package; otherwise they are built
#
# The container is a Debian system: the packages are installed without a check of their dependencies.
import glob
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from container import SERVICE, boot_container, relay
from image import BUILD, Skip, dependencies, make_root, need, run

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "the rpm packages work in a machine with systemd"
LIMIT = 300


def packages(payload):
    built = os.environ.get("RPMS")
    if not built:
        built = os.path.join(os.path.dirname(payload), "rpms")
        os.mkdir(built)
        for release in ("1", "2"):
            for path in run("make", "-s", "-C", BUILD, "rpm", env=dict(os.environ, RPM_RELEASE=release)).split():
                if path.endswith(".rpm"):
                    shutil.move(path, built)
    for path in glob.glob(os.path.join(built, "*.rpm")):
        name, release = re.match(r"(jobsched|jobsched-cron)-\d[^-]*-(\d)", os.path.basename(path)).groups()
        shutil.copy(path, os.path.join(payload, "%s-%s.rpm" % (name, release)))


def jobsched_deb():
    """The Debian package, whose dependencies name the libraries."""
    return next(word for word in run("make", "-s", "-C", BUILD, "deb").split() if re.search(r"/jobsched_[^/]*\.deb$", word))


def main():
    work = tempfile.mkdtemp(prefix="jobsched-rpm.")
    try:
        need("rpmbuild")
        payload = os.path.join(work, "payload")
        os.mkdir(payload, 0o755)
        os.chmod(work, 0o755)
        packages(payload)
        libraries = dependencies(os.environ.get("DEB") or jobsched_deb())
        root = make_root({"systemd", "systemd-sysv", "dbus", "python3", "procps", "rpm"} | set(libraries), {"look.service": SERVICE})
        shutil.copy(os.path.join(HERE, "rpm_guest.py"), os.path.join(payload, "guest.py"))
        boot_container(root, work, LIMIT)
        relay(work, LIMIT, NAME)
    except Skip as reason:
        print("ok 1 - %s # SKIP %s\n1..1" % (NAME, reason))
    finally:
        if os.environ.get("KEEP"):
            print("# files kept in " + work)
        else:
            shutil.rmtree(work, ignore_errors=True)


main()
