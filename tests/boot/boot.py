#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Boots a real systemd in a container, installs our Debian package there and has guest.py look at it; relays its TAP.
#
# usage: tests/boot/boot.py      with top_builddir set; KEEP=1 keeps the console's output, LIMIT=n is for slow machines
#
# The root file system is made once with mmdebstrap and kept in $XDG_CACHE_HOME/jobsched-boot-test; what a boot writes
# goes into a tmpfs over it.
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("top_builddir", "build"))
SUITE = "bookworm"
NAME = "the package works in a machine with systemd"
SERVICE = """[Unit]
Description=Look at jobsched
After=multi-user.target
FailureAction=poweroff-force
[Service]
Type=exec
ExecStart=/usr/bin/python3 /payload/guest.py
Environment=PYTHONDONTWRITEBYTECODE=1
KillMode=process
"""


class Skip(Exception):
    """No machine can be booted here; the reason is printed."""


def run(*words, **more):
    result = subprocess.run(words, capture_output=True, text=True, **more)
    if result.returncode:
        raise RuntimeError("'%s' failed:\n%s%s" % (" ".join(words), result.stdout[-2000:], result.stderr[-2000:]))
    return result.stdout


def need():
    if os.geteuid() != 0:
        raise Skip("needs root to boot a container")
    for name in ("mmdebstrap", "dpkg-deb", "dpkg-shlibdeps", "systemd-nspawn"):
        if not shutil.which(name):
            raise Skip("needs " + name)


def packages(work):
    """The package of this build, twice: the second is an upgrade of the first."""
    found = []
    for version in ("0.1.0-1", "0.1.0-2"):
        said = run("make", "-s", "-C", BUILD, "deb", "DEB_VERSION=" + version)  # and what a make above us makes it say
        made = next(word for word in said.split() if word.endswith(".deb"))
        found.append(shutil.move(made, os.path.join(work, "jobsched-%s.deb" % version[-1])))
    return found


def dependencies(deb):
    """The first alternative of each, without versions."""
    fields = run("dpkg-deb", "-f", deb, "Depends")
    return [re.sub(r"[ (:|].*", "", word.strip()) for word in fields.split(",")]


def cache_directory():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    path = os.path.join(base, "jobsched-boot-test")
    os.makedirs(path, 0o700, exist_ok=True)
    return path


def make_root(cache, names):
    """A root file system with these packages, made if it is not there yet."""
    root = os.path.join(cache, SUITE + "-" + hashlib.sha256((" ".join(names) + SERVICE).encode()).hexdigest()[:12])
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
            raise Skip("mmdebstrap has not made a root file system within 180 s")
        if made.returncode:
            raise Skip("mmdebstrap could not make a root file system: " + made.stderr.strip()[-200:].replace("\n", " "))
        units = os.path.join(root + ".tmp", "etc/systemd/system")
        with open(os.path.join(units, "look.service"), "w") as f:
            f.write(SERVICE)
        os.makedirs(os.path.join(units, "multi-user.target.wants"), exist_ok=True)
        os.symlink("../look.service", os.path.join(units, "multi-user.target.wants/look.service"))
        for unit in ("systemd-firstboot.service", "apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer",
                     "fstrim.timer"):
            os.symlink("/dev/null", os.path.join(units, unit))
        with open(os.path.join(root + ".tmp", "etc/hostname"), "w") as f:
            f.write("boot-test\n")
        os.makedirs(os.path.join(root + ".tmp", "payload"), exist_ok=True)
        os.rename(root + ".tmp", root)
    return root


def boot_container(root, work, limit):
    """In a mount namespace that ends with it: the root below, a tmpfs above."""
    script = """set -e
mount -t tmpfs -o mode=755,size=1g tmpfs "$2/over"
mkdir "$2/over/upper" "$2/over/work" "$2/over/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/over/upper,workdir=$2/over/work" overlay "$2/over/root"
rc=133 # the machine wants to be booted again
while [ $rc = 133 ]; do
    rc=0
    timeout -k 10 "$3" systemd-nspawn --quiet --directory="$2/over/root" --machine="jobsched-$$" --register=no \\
        $4 --system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" --private-network \\
        --bind="$2/payload:/payload" --boot || rc=$?
done
rmdir "/run/systemd/nspawn/propagate/jobsched-$$" 2>/dev/null || :
"""
    os.mkdir(os.path.join(work, "over"))
    keep = "" if os.path.isdir("/run/systemd/system") else "--keep-unit"
    with open(os.path.join(work, "console"), "w") as console:
        subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", root, work, str(limit),
                        keep], stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                       env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1"))


def relay(work, seconds):
    """What the guest printed; that it came to its end is the last line."""
    out = os.path.join(work, "payload/out")
    lines = open(out, errors="replace").read().splitlines() if os.path.exists(out) else []
    print("\n".join(lines))
    if lines and lines[-1].startswith("1.."):
        return
    with open(os.path.join(work, "console"), errors="replace") as f:
        for line in f.read().splitlines()[-40:]:
            print("# " + re.sub(r"[^ -~]", "", line))
    done = sum(1 for line in lines if re.match(r"(not )?ok \d", line))
    print("not ok %d - %s\n# it did not come to its end within %d s\n1..%d" % (done + 1, NAME, seconds, done + 1))


def main():
    limit = int(os.environ.get("LIMIT", "100"))
    work = tempfile.mkdtemp(prefix="jobsched-boot.")
    try:
        need()
        payload = os.path.join(work, "payload")
        os.mkdir(payload, 0o755)
        os.chmod(work, 0o755)
        first, _ = packages(payload)
        root = make_root(cache_directory(), sorted({"systemd", "systemd-sysv", "dbus", "python3", "procps"}
                                                   | set(dependencies(first))))
        shutil.copy(os.path.join(HERE, "guest.py"), payload)
        start = time.monotonic()
        boot_container(root, work, limit)
        relay(work, limit)
        print("# the machine was up for %.0f s" % (time.monotonic() - start))
    except Skip as reason:
        print("ok 1 - %s # SKIP %s\n1..1" % (NAME, reason))
    finally:
        if os.environ.get("KEEP"):
            print("# kept " + work)
        else:
            shutil.rmtree(work, ignore_errors=True)


main()
