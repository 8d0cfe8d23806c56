# SPDX-License-Identifier: Apache-2.0
# Runs inside the machine that boot.py boots, once per boot: installs the package, uses it as its users do, prints TAP.
import json
import os
import pwd
import signal
import stat
import subprocess
import time
import traceback

PAYLOAD = "/payload"
BOOTS = []  # functions, one per boot of the machine, in order


def boot(f):
    BOOTS.append(f)
    return f


def say(text):
    with open(PAYLOAD + "/out", "a") as f:
        f.write(text + "\n")


def state():
    """What is kept over boots: how many there were, and the cases so far."""
    try:
        with open(PAYLOAD + "/state") as f:
            return json.load(f)
    except FileNotFoundError:
        return {"boots": 0, "cases": 0, "notes": {}}


def keep(s):
    with open(PAYLOAD + "/state.new", "w") as f:
        json.dump(s, f)
    os.rename(PAYLOAD + "/state.new", PAYLOAD + "/state")


def sh(*words, check=True, user=None, **more):
    if user:
        words = ("runuser", "-u", user, "--", *words)
    result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, cwd="/", **more)
    if check and result.returncode:
        raise AssertionError("'%s' exits %d: %s%s" % (" ".join(words), result.returncode, result.stdout, result.stderr))
    return result


def jobctl(*words, user=None, check=True):
    return sh("jobctl", *words, user=user, check=check)


def ask(*words, user=None):
    return json.loads(jobctl("--json", *words, user=user).stdout)


def wait_until(what, seconds, condition, pause=0.1):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited %g s in vain: %s" % (seconds, what))
        time.sleep(pause)


class Cases:
    def __init__(self, kept):
        self.kept = kept
        self.notes = kept["notes"]

    def case(self, name, f):
        self.kept["cases"] += 1
        try:
            f(self.notes)
            say("ok %d - %s" % (self.kept["cases"], name))
        except Exception:
            say("not ok %d - %s" % (self.kept["cases"], name))
            for line in traceback.format_exc().splitlines():
                say("# " + line)
            for line in sh("journalctl", "-q", "-b", "-n", "30", "--no-pager", "-u", "jobschedd", "-u", "jobsched-spawner",
                           check=False).stdout.splitlines():
                say("# journal: " + line)
        keep(self.kept)

    def all(self, functions):
        for f in functions:
            self.case(f.__name__.replace("_", " "), f)


def install(notes):
    said = sh("dpkg", "-i", PAYLOAD + "/jobsched-1.deb")
    for unit in ("jobsched-spawner", "jobschedd", "jobschedd.socket"):
        assert sh("systemctl", "is-enabled", unit, check=False).stdout.strip() == "enabled", unit
        assert sh("systemctl", "is-active", unit, check=False).stdout.strip() == "active", (unit, said.stdout, said.stderr)
    sh("systemctl", "enable", "--now", "jobschedd")
    sh("useradd", "-m", "-s", "/bin/sh", "-G", "users,games", "alice")
    sh("useradd", "-m", "bob")


def places_belong_to_the_right_ones(notes):
    expected = {
        "/run/jobsched": ("root", 0o755),
        "/run/jobsched/jobsched.sock": ("root", 0o666),
        "/var/lib/jobsched": ("jobsched", 0o700),
        "/var/lib/jobsched-spawner": ("root", 0o2750),
        "/var/lib/jobsched-spawner/output": ("root", 0o2750),
        "/etc/jobsched": ("root", 0o755),
    }
    for path, (owner, mode) in expected.items():
        st = os.stat(path)
        assert (pwd.getpwuid(st.st_uid).pw_name, stat.S_IMODE(st.st_mode)) == (owner, mode), (path, st)
    st = os.stat("/run/jobsched/spawner.sock")
    assert st.st_uid == 0 and not st.st_mode & 0o007, st


@boot
def first(c):
    c.all([install, places_belong_to_the_right_ones])


def main():
    kept = state()
    number = kept["boots"]
    kept["boots"] += 1
    keep(kept)
    BOOTS[number](Cases(kept))
    if number + 1 == len(BOOTS):
        say("1..%d" % kept["cases"])
        sh("systemctl", "--no-block", "poweroff")


main()
