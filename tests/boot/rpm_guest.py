# SPDX-License-Identifier: Apache-2.0
# Runs in the container of rpm.py: installs, upgrades and removes the rpm packages.
import json
import os
import pwd
import subprocess
import time
import traceback

PAYLOAD = "/payload"
UNITS = ("jobsched-spawner.service", "jobsched-net.service", "jobschedd.socket", "jobschedd.service")


def say(text):
    with open(PAYLOAD + "/out", "a") as f:
        f.write(text + "\n")


def sh(*words, check=True, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    assert not check or done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
    return done


def as_alice(*words, **more):
    return sh("setpriv", "--reuid", "alice", "--regid", "alice", "--init-groups", "--reset-env", *words, **more)


def rpm(*words, **more):
    return sh("rpm", "--nodeps", *words, **more)


def is_active(unit):
    return sh("systemctl", "is-active", unit, check=False).stdout.strip() == "active"


def wait_until(what, seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.3)


def tables():
    return json.loads(sh("jobctl", "cron", "status", "-o", "json").stdout)


def an_installation_makes_users_and_directories():
    rpm("-i", PAYLOAD + "/jobsched-1.rpm")
    for user in ("jobsched", "jobsched-net"):
        pwd.getpwnam(user)
    for unit in UNITS:
        assert sh("systemctl", "is-enabled", unit, check=False).stdout.strip() == "enabled", unit
    sh("useradd", "-m", "alice")


def the_services_start_with_one_command():
    sh("systemctl", "enable", "--now", "jobschedd")
    wait_until("the daemon answers", 30, lambda: sh("jobctl", "status", check=False).returncode == 0)
    for unit in UNITS[:1] + UNITS[2:]:
        assert is_active(unit), unit
    assert as_alice("jobctl", "add", "--wait", "--", "id", "-un").returncode == 0


def a_running_job_survives_an_upgrade():
    as_alice("jobctl", "add", "-n", "long", "--", "sh", "-c", "sleep 20; echo end >/tmp/long")
    wait_until("the job runs", 20, lambda: "running" in as_alice("jobctl", "runs", "long", "-o", "json").stdout)
    daemon = sh("systemctl", "show", "-p", "MainPID", "--value", "jobschedd").stdout
    spawner = sh("systemctl", "show", "-p", "MainPID", "--value", "jobsched-spawner").stdout
    rpm("-U", PAYLOAD + "/jobsched-2.rpm")
    assert sh("rpm", "-q", "--qf", "%{RELEASE}", "jobsched").stdout.startswith("2")
    wait_until("the daemon answers", 30, lambda: sh("jobctl", "status", check=False).returncode == 0)
    assert sh("systemctl", "show", "-p", "MainPID", "--value", "jobschedd").stdout != daemon
    assert sh("systemctl", "show", "-p", "MainPID", "--value", "jobsched-spawner").stdout == spawner  # reloaded in place
    assert as_alice("jobctl", "wait", "long", "--timeout", "60s").returncode == 0
    assert os.path.exists("/tmp/long")


def a_downgrade_is_refused_with_the_reason():
    os.rename("/usr/sbin/jobschedd", "/usr/sbin/jobschedd.kept")
    with open("/usr/sbin/jobschedd", "w") as f:
        f.write("#!/bin/sh\necho jobschedd 9.0.0\n")  # the installed version as the scriptlet reads it
    os.chmod("/usr/sbin/jobschedd", 0o755)
    refused = rpm("-U", "--oldpackage", PAYLOAD + "/jobsched-1.rpm", check=False)
    os.rename("/usr/sbin/jobschedd.kept", "/usr/sbin/jobschedd")
    assert refused.returncode != 0 and "is older than the installed 9.0.0" in refused.stderr, refused
    assert sh("rpm", "-q", "--qf", "%{RELEASE}", "jobsched").stdout.startswith("2")


def the_sub_package_runs_the_tables_of_users():
    rpm("-i", PAYLOAD + "/jobsched-cron-2.rpm")
    assert is_active("jobsched-crontab.socket")
    wait_until("the tables are read", 30, lambda: tables()["mode"] == "on" and tables()["read"])
    assert tables()["parser"] == "cronie", tables()
    as_alice("crontab", "-", input="* * * * * echo run >>/tmp/table\n")
    assert as_alice("crontab", "-l").stdout == "* * * * * echo run >>/tmp/table\n"
    assert os.path.exists("/var/spool/cron/alice")
    as_alice("at", "now", input="echo at >/tmp/at\n")
    wait_until("the at job has run", 30, lambda: os.path.exists("/tmp/at"))
    wait_until("the line has run", 80, lambda: os.path.exists("/tmp/table"))


def give_back_is_refused_while_the_sub_package_is_installed():
    refused = sh("jobctl", "cron", "give-back", check=False)
    assert refused.returncode != 0 and "jobsched-cron is installed" in refused.stderr, refused


def a_removal_stops_the_services_and_keeps_the_data():
    rpm("-e", "jobsched-cron")
    assert not is_active("jobsched-crontab.socket") and not os.path.exists("/usr/bin/crontab")
    wait_until("the tables are not used", 30, lambda: tables()["mode"] == "off")
    assert os.path.exists("/var/spool/cron/alice")
    rpm("-e", "jobsched")
    for unit in UNITS:
        assert not is_active(unit), unit
    assert not os.path.exists("/usr/bin/jobctl") and os.path.exists("/var/lib/jobsched/jobs.db")


CASES = (an_installation_makes_users_and_directories, the_services_start_with_one_command, a_running_job_survives_an_upgrade,
         a_downgrade_is_refused_with_the_reason, the_sub_package_runs_the_tables_of_users,
         give_back_is_refused_while_the_sub_package_is_installed, a_removal_stops_the_services_and_keeps_the_data)

for number, case in enumerate(CASES, 1):
    try:
        case()
        say("ok %d - %s" % (number, case.__name__))
    except BaseException:
        say("not ok %d - %s\n" % (number, case.__name__) + "".join("# %s\n" % line for line in traceback.format_exc().splitlines()))
        said = sh("journalctl", "--no-pager", "-n", "30", check=False).stdout
        say("".join("# %s\n" % line for line in said.splitlines()))
say("1..%d" % len(CASES))
sh("systemctl", "--no-block", "poweroff")
