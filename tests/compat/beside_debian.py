# SPDX-License-Identifier: Apache-2.0
"""Runs crontab, at, atq, atrm and batch beside those of Debian and compares output and exit status.

usage: top_builddir=build python3 tests/compat/beside_debian.py [-v] [DIRECTORY-WITH-DEBS]

It needs root and the packages cron and at, which 'apt-get download' fetches if no directory is given. They are unpacked, not
installed: both sets of commands run as several users in a private mount namespace. -v prints every invocation side by side.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
from cron_system import BIN, CronSystem
from harness import Skip, enter_pid_namespace
from system import mount, write

DEBIAN = "/usr/local/debian"
SPOOL = "/var/spool/cron"
DAEMON_UID = 1


class Differs(str):
    """A command whose result is meant to differ, with the reason."""

    def __new__(cls, command, reason):
        self = super().__new__(cls, command)
        self.reason = reason
        return self


HELP = "the text of a new table and the version are our own"
OWNER = "jobs of other users are not revealed"
ENDLESS = "Debian asks for ever at the end of the input; it is stopped after two seconds"
MISSING = "Debian gives a job without a time the time 0"

# Each scenario starts without tables and jobs. USER: COMMAND; {1} is the number of the first job.
SCENARIOS = {
    "crontab: list, replace, remove": [
        "alice: crontab -l", "alice: crontab -r", "alice: echo '* * * * * true' | crontab -", "alice: crontab -l",
        "alice: CRONTAB_NOHEADER=Y crontab -l", "alice: CRONTAB_NOHEADER=N crontab -l | sed -n '1p;4,$p'",
        "alice: echo '@daily x' >t; crontab t; crontab -l", "alice: crontab <t", "alice: crontab -u alice -l", "alice: crontab -r",
        "alice: crontab -l", "alice: printf '# 1\\n# 2\\n# 3\\n# 4\\n' | crontab -; crontab -l", "alice: crontab /dev/null; crontab -l",
        "alice: printf 'A=\\bx\\r\\n' | crontab -; crontab -l | od -c",
        "alice: printf '# \\033[31mred\\n' | crontab -; crontab -l | od -c"],
    "crontab: check before the installation": [
        "alice: echo '61 * * * * x' | crontab -", "alice: printf '\\n\\n* 24 * * * x\\n' | crontab -",
        "alice: printf 'A=1\\n* * 0 * * x\\n' | crontab -", "alice: echo '* * * 13 * x' | crontab -",
        "alice: echo '* * * * 8 x' | crontab -", "alice: echo '@nightly x' | crontab -", "alice: echo '* * * * *' | crontab -",
        "alice: echo 'x' | crontab -", "alice: printf '* * * * * x' | crontab -", "alice: printf '# x' | crontab -",
        "alice: printf 'A=1' | crontab -", "alice: echo '5-1 * * * * x' | crontab -", "alice: echo '*/0 * * * * x' | crontab -",
        "alice: printf '* * * * * ok\\n1 2 3 4 mon,tue x\\n60 * * * * y\\n' >t; crontab t", "alice: crontab -n t",
        "alice: echo '@reboot x' | crontab -n -", "alice: crontab -l", "alice: crontab nonexistent", "alice: crontab .",
        "alice: crontab /etc/shadow", "alice: yes '#' | head -n 10001 | crontab -", "alice: yes '#' | head -n 9990 | crontab -"],
    "crontab: options": [
        "alice: crontab -h", "alice: crontab -x", "alice: crontab -u", "alice: crontab -l -r", "alice: crontab -l x",
        "alice: crontab -n", "alice: crontab -u alice", "alice: crontab -u nonesuch -l", "alice: crontab -u root -l",
        "bob: crontab -u alice -r", "root: crontab -u nonesuch -l", "root: crontab -u alice -l",
        "root: echo '@daily x' | crontab -u alice -", "alice: crontab -l", "root: crontab -l",
        "alice: echo n | crontab -i -r", "alice: printf 'what\\nY\\n' | crontab -r -i", "alice: crontab -r -i </dev/null",
        "root: ls -l %s/crontabs | wc -l" % SPOOL],
    "crontab: question without an answer": [
        "alice: echo '@daily x' | crontab -", Differs("alice: timeout 2 crontab -i -r </dev/null 2>&1 | head -c 100", ENDLESS)],
    "crontab: files of the spool": [
        "alice: echo '@daily x' | crontab -", "root: echo '@daily y' | crontab -u bob -", "root: echo '@daily z' | crontab -",
        "root: cd %s/crontabs; stat -c '%%A %%U %%G %%n' *" % SPOOL, "bob: cat %s/crontabs/alice" % SPOOL,
        "bob: ls %s/crontabs" % SPOOL],
    "crontab: edit": [
        "alice: EDITOR='sleep 1.1; echo \"@daily x\" >' crontab -e", "alice: crontab -l", "alice: EDITOR=true crontab -e",
        "alice: EDITOR=false crontab -e", "alice: VISUAL=false EDITOR=true crontab -e", "alice: EDITOR='kill $$;' crontab -e",
        "alice: EDITOR='sleep 1.1; echo \"@daily y\" >>' crontab -e; crontab -l", "alice: EDITOR='rm' crontab -e",
        "alice: echo n | EDITOR='sleep 1.1; echo bad >' crontab -e", "alice: crontab -l",
        "alice: printf 'x\\nn\\n' | EDITOR='sleep 1.1; echo bad >' crontab -e",
        "alice: ls -d /tmp/crontab.*/crontab | wc -l; rm -rf /tmp/crontab.*"],
    "crontab: edit without a table": [
        Differs("alice: EDITOR=cat crontab -e", HELP)],
    "crontab: allow and deny": [
        "root: echo alice >/etc/cron.deny", "alice: crontab -l", "alice: echo '@daily x' | crontab -", "alice: crontab -e",
        "bob: crontab -l", "root: crontab -u alice -l", "root: echo alice >/etc/cron.allow", "alice: crontab -l", "bob: crontab -l",
        "bob: crontab nonexistent", "root: crontab -l", "root: crontab -u bob -l"],
    "at: add, list, print, remove": [
        "alice: echo date | at noon 31.12.2099", "alice: atq", "alice: at -l", "alice: at -c {1} | grep -v '^[A-Z_]*='",
        "alice: echo date | at -q Z -t 209912312359.30", "alice: atq | sort -n", "alice: atq -q Z", "alice: atq -q c", "alice: atq {1}",
        "alice: atq {1} 999999", "alice: atq -o %F | sort -n", "bob: atq", "root: atq | sort -n", "alice: atrm {1}", "alice: atq", "alice: atrm {1}",
        "alice: at -r {2}", "alice: atq", "alice: echo date | at -f /dev/null -m noon 1.1.2050", "alice: at -d {3} {3}"],
    "at: script": [
        "alice: echo 'echo hi' | env -i A=1 B='a b' C='x\"y' D=\"$(printf 'l1\\nl2')\" E='$HOME;`' TERM=vt SHELL=/bin/sh "
        "PATH=$PATH LOGNAME=alice JOBSCHED_SOCKET=$JOBSCHED_SOCKET JOBSCHED_CRONTAB_SOCKET=$JOBSCHED_CRONTAB_SOCKET "
        "at noon 1.1.2099", "alice: at -c {1} | grep -v '^PATH='",
        "alice: umask 077; mkdir -p 'd i-r'; cd 'd i-r'; printf 'no newline' | at noon 1.1.2099; at -c {2} | tail -n 6",
        "alice: echo x >f; at -f f noon 1.1.2099 </dev/null; at -c {3} | tail -n 3", "alice: echo x | at -M noon 1.1.2099; at -c {4} | sed -n 3p",
        "alice: echo x | at -u bob noon 1.1.2099; at -c {5} | sed -n 3p", "alice: echo x | at -m -u nonesuch noon 1.1.2099"],
    "at: times": [
        "alice: echo x | at now", "alice: echo x | at now + 5 minutes", "alice: echo x | at -v noon 1.1.2099",
        "alice: echo x | at teatime tomorrow", "alice: echo x | at 10:15 next month", "alice: echo x | at 0815 jan 15 2099",
        "alice: echo x | at midnight + 3 weeks", "alice: echo x | at 10am utc 1/2/2099", "alice: echo x | at next friday",
        "alice: echo x | TZ=America/New_York at 4pm + 3 days", "alice: echo x | at noon 1.1.1999", "alice: echo x | at yesterday",
        "alice: echo x | at 25:00", "alice: echo x | at 13pm", "alice: echo x | at noon 31.2.2099", "alice: echo x | at now + 5",
        "alice: echo x | at ''", "alice: echo x | at -t 209901011200", "alice: echo x | at -t 20990101", "alice: echo x | at -t x",
        "alice: echo x | at -t 209901011200 noon", "alice: echo x | at"],
    "at: options": [
        "alice: at -x", "alice: at -q 5 now", "alice: at -q ab now", "alice: at -h", "alice: atq -h", "alice: atrm -h", "alice: atq -x",
        "alice: atrm", "alice: at -c", "alice: at -r", "alice: atrm x", "alice: atrm 999999", "alice: at -c 999999", "alice: atq x",
        "alice: at -f nonexistent noon 1.1.2099 </dev/null", "alice: at -l -r", Differs("alice: at -V", HELP),
        Differs("alice: atq -V", HELP)],
    "at: batch": [
        "alice: echo sleep 1 | batch", "alice: batch now", "alice: echo x | at -q b 1.1.2099", "alice: echo x | at -q B noon 1.1.2099",
        "alice: atq -q B", Differs("alice: echo x | at -b noon 1.1.2099; atq -q b | grep -c 2099", MISSING)],
    "at: another user": [
        "alice: echo x | at noon 1.1.2099", Differs("bob: atrm {1}", OWNER), Differs("bob: at -c {1}", OWNER), "bob: atq", "root: atq",
        "root: at -c {1} | sed -n 1,3p", "root: atrm {1}", "alice: atq"],
    "at: allow and deny": [
        "root: echo alice >/etc/at.deny; chmod 640 /etc/at.deny; chgrp daemon /etc/at.deny", "alice: echo x | at noon", "alice: atq", "alice: atrm 1",
        "alice: echo x | batch", "bob: atq", "root: atq", "root: echo alice >/etc/at.allow", "alice: atq", "bob: atq", "bob: at -V >/dev/null 2>&1",
        "root: rm /etc/at.allow /etc/at.deny", "alice: atq", "root: atq"],
}


class Compared(CronSystem):
    def __init__(self, debs):
        super().__init__()
        self.users["daemon"] = DAEMON_UID
        self.write_users()
        mount("tmpfs", "/var/spool", "mode=0755")
        self.spool, self.etc = SPOOL + "/crontabs", "/etc"
        self.unpack(debs)
        self.reset()
        # Debian's at signals the daemon that this file names.
        self.atd = self.popen(["sh", "-c", "trap '' HUP; sleep 3600"], user=DAEMON_UID)
        write("/run/atd.pid", "%d\n" % self.atd.pid)

    def unpack(self, debs):
        where = os.path.join(self.dir, "debs")
        for name in ("cron", "at"):
            [deb] = glob.glob(os.path.join(debs, name + "_*.deb"))
            subprocess.run(["dpkg", "-x", deb, where], check=True)
        shutil.rmtree(DEBIAN, ignore_errors=True)
        os.makedirs(DEBIAN)
        for name in ("crontab", "at", "batch"):
            shutil.copy(os.path.join(where, "usr/bin", name), DEBIAN)
        for name in ("atq", "atrm"):
            os.symlink("at", os.path.join(DEBIAN, name))
        with open(DEBIAN + "/batch") as f:
            text = f.read()
        write(DEBIAN + "/batch", text.replace("${exec_prefix}/bin/at", DEBIAN + "/at"), 0o755)
        os.chown(DEBIAN + "/crontab", 0, self.groups["crontab"][0])
        os.chmod(DEBIAN + "/crontab", 0o2755)
        os.chown(DEBIAN + "/at", DAEMON_UID, DAEMON_UID)
        os.chmod(DEBIAN + "/at", 0o6755)

    def reset(self):
        """Removes all tables, jobs and lists of users."""
        for path in glob.glob(SPOOL + "/*"):
            shutil.rmtree(path)
        for name in ("cron.allow", "cron.deny", "at.allow", "at.deny"):
            if os.path.exists("/etc/" + name):
                os.unlink("/etc/" + name)
        write("/etc/at.deny", "", 0o644)
        for path, owner, mode in (("crontabs", (0, self.groups["crontab"][0]), 0o1730), ("atjobs", (DAEMON_UID, DAEMON_UID), 0o1770)):
            os.makedirs(os.path.join(SPOOL, path))
            os.chown(os.path.join(SPOOL, path), *owner)
            os.chmod(os.path.join(SPOOL, path), mode)
        write(SPOOL + "/atjobs/.SEQ", "00000\n", 0o600)
        os.chown(SPOOL + "/atjobs/.SEQ", DAEMON_UID, DAEMON_UID)
        if self.engine:
            for job in self.api("root").pages("/v1/jobs?tag=at%3Djob", "jobs"):
                self.api("root").call("DELETE", "/v1/jobs/%d" % job["id"])

    def shell(self, side, line):
        user, command = line.split(": ", 1)
        home = "/root" if user == "root" else self.home(user)
        env = {"PATH": side + ":/usr/bin:/bin", "HOME": home, "USER": user, "LOGNAME": user, "TZ": "Europe/Berlin",
               "JOBSCHED_SOCKET": self.socket, "JOBSCHED_CRONTAB_SOCKET": self.tables, "LC_ALL": "C.UTF-8"}
        return subprocess.run(["setsid", "-w", "sh", "-c", "cd && " + command], user=self.uid(user), group=self.uid(user),
                              extra_groups=self.gids(user), env=env, capture_output=True, text=True, input="", timeout=120, errors="replace")

    def play(self, side, scenario):
        """The normalised results of a scenario: (standard output, standard error, exit status) of each command."""
        jobs, results = [], []

        def number(match):
            return "<job %d>" % (jobs.index(match.group()) + 1) if match.group() in jobs else match.group()

        self.reset()
        for line in scenario:
            for i in range(1, 10):
                line = line.replace("{%d}" % i, jobs[i - 1] if i <= len(jobs) else str(int(jobs[-1]) + i - len(jobs)) if jobs else str(i))
            got = self.shell(side, line)
            jobs += [j for j in re.findall(r"^job (\d+) at ", got.stderr, re.M) if j not in jobs]
            texts = []
            for text in (got.stdout, got.stderr):
                text = re.sub(r"/tmp/crontab\.\w{6}", "/tmp/crontab.XXXXXX", text)
                text = re.sub(r"(?m)^\d+(?=\t)|(?<=^job )\d+|(?<=jobid )\d+|^\d+(?=: Not owner)", number, text)
                texts.append(text)
            results.append((*texts, got.returncode))
        return results


def show(side, result):
    out, err, code = result
    for name, text in (("out", out), ("err", err)):
        for row in text.splitlines()[:12]:
            print("      %-6s %s  %s" % (side, name, row))
    print("      %-6s exit %d" % (side, code))


def compare(s, verbose):
    counts = {"same": 0, "intended": 0, "DIFFERENT": 0}
    for title, scenario in SCENARIOS.items():
        print(title)
        while True:  # both sides must see the same minute
            minute = time.time() // 60
            theirs, ours = s.play(DEBIAN, scenario), s.play(BIN, scenario)
            if minute == time.time() // 60 or not title.startswith("at: times"):
                break
        for line, a, b in zip(scenario, theirs, ours):
            reason = getattr(line, "reason", None)
            verdict = "intended" if a != b and reason else "same" if a == b and not reason else "DIFFERENT"
            counts[verdict] += 1
            print("  %-9s exit %3d  %s%s" % (verdict, b[2], line.replace("\n", "\\n"), "   (%s)" % reason if reason else ""))
            if verbose or verdict == "DIFFERENT":
                show("Debian", a)
                show("ours", b)
    print("%d invocations: %d same, %d intended differences, %d different" % (sum(counts.values()), *counts.values()))
    return counts["DIFFERENT"] == 0


def fetch_debs():
    where = tempfile.mkdtemp(prefix="jobsched-debs.")
    os.chmod(where, 0o755)
    subprocess.run(["apt-get", "-q", "download", "cron", "at"], cwd=where, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return where


def main():
    enter_pid_namespace()
    words = sys.argv[1:]
    verbose = "-v" in words
    given = [w for w in words if w != "-v"]
    debs = given[0] if given else fetch_debs()
    try:
        with Compared(debs) as s:
            s.start()
            s.start_tables()
            good = compare(s, verbose)
    except Skip as e:
        print("skipped: %s" % e)
        good = False
    finally:
        if not given:
            shutil.rmtree(debs)
    sys.exit(not good)


if __name__ == "__main__":
    main()
