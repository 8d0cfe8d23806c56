# SPDX-License-Identifier: Apache-2.0
# Runs in the container of cron.py, once per boot: a machine with cron and twenty lines is handed over to jobschedd and back,
# with a reboot between the steps, and then to the package jobsched-cron and back.
import collections
import datetime
import glob
import json
import os
import re
import subprocess
import sys
import time
import traceback

sys.path.insert(0, "/payload")
from cron_tables import ALICE, BOB, DROP_IN, DUE, LINES, MAILER, RECORDER, SECOND, SYSTEM

PAYLOAD = "/payload"
MINUTES = int(open(PAYLOAD + "/minutes").read())
RECORDS, MAILS = "/var/log/records", "/var/log/mails"
NOTES = "/var/log/cron-notes.json"  # what one boot keeps for the next
CUT = """#!/bin/sh
[ "$1 $2" != "$CUT" ] || { /usr/bin/systemctl reboot -ff; sleep 60; }
exec /usr/bin/systemctl "$@"
"""


def say(text):
    with open(PAYLOAD + "/out", "a") as f:
        f.write(text + "\n")


def ok(name):
    notes["passed"] += 1
    say("ok %d - %s" % (notes["passed"], name))


def remark(text):
    say("# " + text.strip().replace("\n", "\n# "))


def sh(*words, check=True, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    assert not check or done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
    return done


def as_user(user, *words, **more):
    return sh("setpriv", "--reuid", user, "--regid", user, "--init-groups", "--reset-env", *words, **more)


def write(path, text, mode=0o644, owner=None):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w") as f:
        f.write(text)
    os.chmod(path + ".new", mode)
    if owner:
        sh("chown", owner + ":crontab", path + ".new")
    os.rename(path + ".new", path)


def wait_minutes(n):
    """Waits for n whole minutes and returns the time of the first."""
    begin = (int(time.time()) // 60 + 1) * 60
    time.sleep(begin + 60 * n - 8 - time.time())
    return begin


def records(begin, end):
    found = collections.defaultdict(list)
    for path in glob.glob(RECORDS + "/*"):
        if not path.endswith(".new"):
            record = json.load(open(path))
            if begin <= record["at"] < end:
                found[record["line"]].append(record)
    return found


def take_mails():
    found = collections.Counter()
    for path in glob.glob(MAILS + "/*.mail"):
        head, _, body = open(path).read().partition("\n\n")
        lines = [line for line in head.split("\n") if not line.startswith(("Date:", "Message-ID:", "Auto-Submitted:", "X-Cron-Env: <HOME"))]
        found["\n".join(sorted(lines)) + "\n\n" + body] += 1
        os.unlink(path)
    return found


def state():
    return json.loads(sh("jobctl", "cron", "status", "-o", "json").stdout)


def wait_until(what, seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.5)


def unit_is_active(name):
    return sh("systemctl", "is-active", name, check=False).stdout.strip() == "active"


# ---- what is judged ----

def check_minutes(found, begin, minutes):
    """
    Every line has started exactly once in each minute in which it is due, and in no other: no start is missing, none is
    early, none is double. Returns the earliest and the latest second of the minute.
    """
    for line in LINES:
        due = [m for m in range(minutes) if line not in DUE or DUE[line](time.localtime(begin + 60 * m))]
        started = sorted(int((r["at"] - begin) // 60) for r in found.get(line, []))
        assert started == due, ("line " + line, "due in the minutes", due, "started in", started)
    seconds = sorted(r["at"] % 60 for line in LINES for r in found.get(line, []))
    return "%d starts, %.2f s to %.2f s past the minute, median %.2f s; load average %.1f" % (
        len(seconds), seconds[0], seconds[-1], seconds[len(seconds) // 2], os.getloadavg()[0])


def check_slots(found, begin, minutes):
    """
    The slots of the runs are second 0 of the minutes in which the lines are due. No process was started before its slot. Half
    of them, and all if the machine is not busy with other work, were started within one second of it.
    """
    jobs = {job["id"]: json.dumps(job) for job in json.loads(sh("jobctl", "list", "--all", "-o", "json").stdout)}
    slots, late = collections.defaultdict(list), []
    stamps = [datetime.datetime.fromtimestamp(t).astimezone().isoformat() for t in (begin, begin + 60 * minutes)]
    for run in json.loads(sh("jobctl", "runs", "-n", "0", "--since", stamps[0], "--until", stamps[1], "-o", "json").stdout):
        slot, started = (datetime.datetime.fromisoformat(run[key].replace("Z", "+00:00")).timestamp() for key in ("slot", "first_start"))
        line = re.search(r"\brec (\w+)", jobs[run["job"]]).group(1)
        assert slot % 60 == 0 and started >= slot, run
        slots[line].append(slot)
        late.append(started - slot)
    for line in LINES:
        minutes_started = sorted(r["at"] // 60 * 60 for r in found.get(line, []))
        assert minutes_started == sorted(slots[line]), (line, minutes_started, slots[line])
    late.sort()
    busy = os.getloadavg()[0] > 2 * os.cpu_count()
    assert late[-1 if not busy else len(late) // 2] < 1, ("starts after their slots", late[-20:], os.getloadavg())
    return "%d slots are second 0 of the minute; starts %.3f s to %.3f s after them, median %.3f s%s" % (
        len(late), late[0], late[-1], late[len(late) // 2], "; the last is not judged, the machine is busy" if busy else "")


def check_same(cron, ours):
    """The lines that both have started had the same surroundings."""
    both = [line for line in LINES if line in cron and line in ours]
    for line in both:
        for key in ("args", "env", "cwd", "umask", "uid", "groups", "stdin"):
            seen = {json.dumps(r[key], sort_keys=True) for r in cron[line] + ours[line]}
            assert len(seen) == 1, (line, key, seen)
    return both


def check_one_minute():
    begin = wait_minutes(1)
    time.sleep(4)
    return check_minutes(records(begin, begin + 60), begin, 1)


def check_boot_lines():
    """The @reboot line has started once in each boot after the first, whichever program runs the tables."""
    wanted = notes["boots"]
    wait_until("the @reboot line starts", 30, lambda: len(records(0, time.time())["boot"]) >= wanted)
    found = len(records(0, time.time())["boot"])
    assert found == wanted, "the @reboot line has started %d times in %d boots" % (found, wanted)


def cut(call, *words):
    """Runs a command that a reboot ends before this call of systemctl. The next boot continues with the next stage."""
    write("/opt/cut/systemctl", CUT, 0o755)
    notes["boots"] += 1
    next_stage()
    sh(*words, env=dict(os.environ, PATH="/opt/cut:" + os.environ["PATH"], CUT=call))
    raise AssertionError("'%s' was not called by %s" % (call, words))


# ---- stages: each ends with a reboot ----

def prepare():
    for user in ("alice", "bob"):
        sh("useradd", "-m", "-s", "/bin/bash", user)
    for place in (RECORDS, MAILS):
        os.makedirs(place)
        os.chmod(place, 0o1777)
    for path in glob.glob("/etc/cron.d/*"):  # of packages in the root file system
        os.unlink(path)
    write("/usr/local/bin/rec", RECORDER, 0o755)
    write("/usr/sbin/sendmail", MAILER, 0o755)
    write("/etc/crontab", SYSTEM)
    write("/etc/cron.d/package", DROP_IN)
    write("/etc/cron.d/second", SECOND)
    write("/etc/cron.d/second.dpkg-old", SECOND)
    for user, text in (("alice", ALICE), ("bob", BOB)):
        write("/var/spool/cron/crontabs/" + user, text, 0o600, user)
    sh("systemctl", "restart", "cron")
    sh("dpkg", "-i", PAYLOAD + "/jobsched.deb")
    write("/etc/jobsched/jobschedd.conf", "crontabs = shadow\n")
    sh("systemctl", "enable", "--now", "jobschedd")
    sh("systemctl", "reload-or-restart", "jobschedd")
    wait_until("the tables are read", 60, lambda: state()["read"])
    return sum(t["jobs"] for t in state()["tables"])


def shadow_and_takeover():
    jobs = prepare()
    remark("%d lines are planned in shadow mode" % jobs)
    assert jobs == len(LINES) + 1, state()
    take_mails()
    begin = wait_minutes(MINUTES)
    cron = records(begin, begin + 60 * MINUTES)
    notes["cron"], notes["cron_mails"] = cron, take_mails()
    remark("cron: " + check_minutes(cron, begin, MINUTES))
    time.sleep(125)  # compare leaves out the last two minutes
    compared = sh("jobctl", "cron", "compare", check=False)
    remark("compare: " + compared.stdout)
    assert compared.returncode == 0 and " 0 differ" in compared.stdout, compared
    assert MINUTES == 1 or not compared.stdout.startswith("0 starts"), "nothing was compared"
    ok("shadow mode plans what cron runs")
    remark(sh("jobctl", "cron", "takeover", "--dry-run").stdout)
    cut("mask cron.service", "jobctl", "cron", "takeover")


def reboot_before_the_mask():
    assert unit_is_active("cron") and state()["mode"] == "on" and state()["held"], state()
    check_boot_lines()
    check_one_minute()
    ok("after a reboot before cron was masked, cron runs each line once and the jobs are held")
    cut("stop cron.service", "jobctl", "cron", "takeover")


def reboot_after_the_mask():
    assert not unit_is_active("cron") and state()["mode"] == "on" and not state()["held"], state()
    check_boot_lines()
    check_one_minute()
    ok("after a reboot between mask and stop, jobschedd runs each line once")
    sh("jobctl", "cron", "takeover")
    assert not unit_is_active("cron") and not state()["held"], state()
    take_mails()
    begin = wait_minutes(MINUTES)
    ours = records(begin, begin + 60 * MINUTES)
    our_mails = take_mails()
    remark("jobschedd: " + check_minutes(ours, begin, MINUTES))
    remark("jobschedd: " + check_slots(ours, begin, MINUTES))
    both = check_same(notes["cron"], ours)
    remark("%d lines were started in both periods" % len(both))
    kinds = [set(mails) for mails in (notes["cron_mails"], our_mails)]
    differ = {m for m in kinds[0] ^ kinds[1] if any("line %s\n" % k in m for k in both)}
    assert kinds[0] & kinds[1] and not differ, differ
    remark("mails: cron %d, jobschedd %d, of %d kinds in both" % (
        sum(notes["cron_mails"].values()), sum(our_mails.values()), len(kinds[0] & kinds[1])))
    ok("after the takeover the same lines start in the same minutes, with the same environment and mail")
    cut("start cron.service", "jobctl", "cron", "give-back")


def reboot_after_the_unmask():
    assert unit_is_active("cron") and state()["held"], state()
    check_boot_lines()
    check_one_minute()
    ok("after a reboot between unmask and start, cron runs each line once and the jobs are held")
    cut("reload-or-restart jobschedd.service", "jobctl", "cron", "give-back")


def reboot_before_the_mode():
    assert unit_is_active("cron") and state()["mode"] in ("shadow", "on"), state()
    check_boot_lines()
    check_one_minute()
    sh("jobctl", "cron", "give-back")
    assert unit_is_active("cron") and state()["mode"] == "shadow", state()
    assert not os.path.exists("/etc/jobsched/cron-takeover")
    check_one_minute()
    ok("after a reboot at the end of give-back and a second give-back, cron runs each line once")
    install_over_cron()
    notes["boots"] += 1
    next_stage()
    sh("systemctl", "--no-block", "reboot")
    time.sleep(60)


def install_over_cron():
    os.unlink("/etc/jobsched/jobschedd.conf")
    said = sh("apt-get", "install", "-y", PAYLOAD + "/jobsched-cron.deb", env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"))
    assert "REMOVED" in said.stdout, said.stdout
    assert not unit_is_active("cron")
    wait_until("jobschedd runs the tables", 30, lambda: state()["mode"] == "on" and state()["read"] and not state()["held"])
    assert os.path.exists("/var/spool/cron/crontabs/alice"), "the tables of users are gone"
    begin = wait_minutes(1)
    time.sleep(4)
    ours = records(begin, begin + 60)
    remark("jobsched-cron: " + check_minutes(ours, begin, 1))
    check_same(notes["cron"], ours)
    ok("jobsched-cron replaces cron, and the same lines start with the same environment")
    refused = sh("jobctl", "cron", "give-back", check=False)
    remark("give-back: " + refused.stderr)
    assert refused.returncode != 0 and "jobsched-cron is installed" in refused.stderr, refused
    ok("give-back is refused while jobsched-cron is installed, with the reason")
    listed = as_user("alice", "crontab", "-l").stdout
    assert listed == ALICE.split("\n", 1)[1], listed  # as Debian's, which leaves out comments in the first three lines
    as_user("bob", "crontab", "-", input=BOB + "* * * * * /usr/local/bin/rec added\n")
    as_user("alice", "at", "now", input="/usr/local/bin/rec at\n")
    wait_until("the at job starts", 30, lambda: records(begin, time.time())["at"])
    wait_until("the new line starts", 90, lambda: records(begin, time.time())["added"])
    as_user("bob", "crontab", "-", input=BOB)
    ok("crontab and at of jobsched-cron work for users")


def reboot_with_the_package():
    wait_until("jobschedd runs the tables", 30, lambda: state()["mode"] == "on" and not state()["held"])
    check_boot_lines()
    check_one_minute()
    ok("after a reboot with jobsched-cron each line runs once")
    sh("apt-get", "install", "-y", PAYLOAD + "/cron.deb", env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"))
    assert unit_is_active("cron")
    wait_until("the jobs are held", 30, lambda: state()["held"])
    check_one_minute()
    ok("cron replaces jobsched-cron, and cron runs each line once")
    sh("dpkg", "--purge", "jobsched-cron", "jobsched")
    assert unit_is_active("cron") and not os.path.exists("/var/lib/jobsched") and not os.path.exists("/etc/jobsched")
    check_one_minute()
    ok("the packages are purged and cron goes on")
    say("1..%d" % notes["passed"])
    sh("systemctl", "--no-block", "poweroff")


STAGES = (shadow_and_takeover, reboot_before_the_mask, reboot_after_the_mask, reboot_after_the_unmask, reboot_before_the_mode,
          reboot_with_the_package)


def next_stage():
    notes["stage"] += 1
    with open(NOTES, "w") as f:
        json.dump(notes, f)


notes = json.load(open(NOTES)) if os.path.exists(NOTES) else {"stage": 0, "passed": 0, "boots": 0}
try:
    if notes["stage"]:
        wait_until("the daemon answers", 60, lambda: sh("jobctl", "cron", "status", check=False).returncode == 0 and state()["read"])
    STAGES[notes["stage"]]()
except BaseException:
    say("not ok %d - %s\n" % (notes["passed"] + 1, STAGES[notes["stage"]].__name__) +
        "".join("# %s\n" % line for line in traceback.format_exc().splitlines()))
    for unit in ("jobschedd", "jobsched-spawner", "cron"):
        said = sh("journalctl", "--no-pager", "-n", "25", "-u", unit, check=False).stdout
        say("".join("# %s\n" % line for line in said.splitlines()))
    say("1..%d" % (notes["passed"] + 1))
    sh("systemctl", "--no-block", "poweroff")
