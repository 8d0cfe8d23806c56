# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages and root file systems of the boot tests. mmdebstrap makes each root file system once; it is
# kept in $XDG_CACHE_HOME/jobsched-boot-test.
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import time

BUILD = os.path.abspath(os.environ.get("top_builddir", "build"))
SUITE = "bookworm"


class Skip(Exception):
    """A container cannot be booted on this machine. The reason is printed."""


def run(*words, **more):
    result = subprocess.run(words, capture_output=True, text=True, **more)
    if result.returncode:
        raise RuntimeError("'%s' failed:\n%s%s" % (" ".join(words), result.stdout[-2000:], result.stderr[-2000:]))
    return result.stdout


def need(*more):
    if os.geteuid() != 0:
        raise Skip("needs root to boot a container")
    for name in ("mmdebstrap", "dpkg-deb", "dh", "systemd-nspawn", *more):
        if not shutil.which(name):
            raise Skip("needs " + name)


def packages(work):
    """Builds the package twice. The second is an upgrade of the first."""
    found = []
    for version in ("0.1.0-1", "0.1.0-2"):
        said = run("make", "-s", "-C", BUILD, "deb", "DEB_VERSION=" + version)  # under a parent make, the output has further lines
        made = next(word for word in said.split() if re.search(r"/jobsched_[^/]*\.deb$", word))
        found.append(shutil.move(made, os.path.join(work, "jobsched-%s.deb" % version[-1])))
    return found


def dependencies(deb):
    """The names of the dependencies: the first alternative of each, without versions."""
    fields = run("dpkg-deb", "-f", deb, "Depends")
    return [re.sub(r"[ (:|].*", "", word.strip()) for word in fields.split(",")]


def cache_directory():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(base, "jobsched-boot-test")
    os.makedirs(path, 0o700, exist_ok=True)
    return path


def make_root(names, services=None):
    """Returns a root file system with these packages and services, from the cache or newly made. Services start at boot."""
    names, services, cache = sorted(names), services or {}, cache_directory()
    what = " ".join(names) + "".join(services.values())
    root = os.path.join(cache, SUITE + "-" + hashlib.sha256(what.encode()).hexdigest()[:12])
    with open(os.path.join(cache, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(root):
            return root
        for old in glob.glob(os.path.join(cache, SUITE + "-*")):
            if old.endswith(".tmp") or os.stat(old).st_ctime < time.time() - 14 * 86400:
                shutil.rmtree(old, ignore_errors=True)
        print("# making %s with %s" % (root, " ".join(names)), flush=True)
        made = subprocess.run(["timeout", "180", "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase",
                               "--include=" + ",".join(names), SUITE, root + ".tmp"], capture_output=True, text=True)
        if made.returncode == 124:
            raise Skip("mmdebstrap did not finish within 180 s")
        if made.returncode:
            raise Skip("mmdebstrap could not make a root file system: " + made.stderr.strip()[-200:].replace("\n", " "))
        units = os.path.join(root + ".tmp", "etc/systemd/system")
        os.makedirs(os.path.join(units, "multi-user.target.wants"), exist_ok=True)
        for name, text in services.items():
            with open(os.path.join(units, name), "w") as f:
                f.write(text)
            os.symlink("../" + name, os.path.join(units, "multi-user.target.wants", name))
        for unit in ("systemd-firstboot.service", "apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer",
                     "fstrim.timer"):
            os.symlink("/dev/null", os.path.join(units, unit))
        with open(os.path.join(root + ".tmp", "etc/hostname"), "w") as f:
            f.write("boot-test\n")
        os.makedirs(os.path.join(root + ".tmp", "payload"), exist_ok=True)
        os.rename(root + ".tmp", root)
    return root
