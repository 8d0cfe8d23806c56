#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares 'jobctl import crontab --mode cronie' with the parser of cronie on odd and on random tables.

usage: top_builddir=build python3 tests/compat/beside_cronie.py SOURCE     SEED=n, LINES=n (3000) of random lines

SOURCE is the unpacked source of cronie 1.7.2. Its parser is compiled with a main function that prints what it has read. The
program compares accepted lines, time fields, commands up to '%', users, settings and delays.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

JOBCTL = os.path.join(os.path.abspath(os.environ.get("top_builddir", "build")), "jobctl")
FIELDS = ("minute", "hour", "dom", "month", "dow")
DOM_STAR, DOW_STAR, REBOOT, QUIET, MAIL_ON_ERROR = 0x04, 0x08, 0x10, 0x20, 0x40  # flags of an entry, src/structs.h

PRINTER = r"""
#define MAIN_PROGRAM
#include "config.h"
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/globals.h"
#include "src/funcs.h"

void log_it(const char *user, PID_T pid, const char *event, const char *detail, int error)
{
	if (strncmp(event, "bad ", 4) == 0)
		printf("{\"refused\": 1}\n");
}
static void text(const char *s)
{
	putchar('"');
	for (; *s; s++)
		printf(strchr("\"\\", *s) || (unsigned char)*s < ' ' ? "\\u%04x" : "%c", *s);
	putchar('"');
}
static void set(const char *name, bitstr_t *bits, int low, int high)
{
	const char *gap = "";
	printf(", \"%s\": [", name);
	for (int i = low; i <= high; i++)
		if (bit_test(bits, i - low)) {
			printf("%s%d", gap, i);
			gap = ", ";
		}
	putchar(']');
}
static void print(entry *e)
{
	const char *gap = "";
	if (!e)
		return;
	print(e->next);
	printf("{\"user\": ");
	text(e->pwd->pw_name);
	printf(", \"command\": ");
	text(e->cmd);
	printf(", \"flags\": %d, \"delay\": %d", e->flags, e->delay);
	set("minute", e->minute, 0, 59);
	set("hour", e->hour, 0, 23);
	set("dom", e->dom, 1, 31);
	set("month", e->month, 1, 12);
	set("dow", e->dow, 0, 6);
	printf(", \"env\": [");
	for (char **v = e->envp; *v; v++) {
		printf("%s", gap);
		text(*v);
		gap = ", ";
	}
	printf("]}\n");
}
int main(int argc, char **argv)
{
	struct passwd *pw = strcmp(argv[2], "system") ? getpwnam("root") : NULL;
	user *u;
	ProgramName = argv[0];
	RandomScale = 1.0;
	ChangePath = 1;
	srandom((unsigned)atoi(argv[3]));
	u = load_user(open(argv[1], O_RDONLY), pw, "root", argv[1], argv[1]);
	if (u)
		print(u->crontab);
	return 0;
}
"""

# Settings and the lines below them; each text is a table. "\n" is a line break.
SETTINGS = [name + "=" + value + r"\n" + line for name, line in (
    ("CRON_TZ", "0 1 * * * x"), ("RANDOM_DELAY", "0 1 * * * x"), ("MAILTO", "@daily x"), ("A", "* * * * * x"))
    for value in ("", " ", '""', "''", "7", " 7", '" 7"', "+7", "-7", "-0", "007", "1440", "1441", "99999999999999999999", "7x", "x",
                  "Europe/Berlin", '"UTC"', "a # b", '"a', '"a" b', "'a\"", "a b  ")]
SETTINGS += [word + r"\n* * * * * x" for word in (
    "A = b ", '"A"=b', "'A B' = 'c d'", "=b", "A B=c", "export A=b", " A=b", "HOME=/x", "SHELL=/bin/bash", "PATH=/a:/b")]
SETTINGS += [r"CRON_TZ=UTC\n0 1 * * * a\nCRON_TZ=\n0 1 * * * b\nCRON_TZ=Asia/Tokyo\n0 1 * * * c",
             r"RANDOM_DELAY=3\n0 0 * * * a\nRANDOM_DELAY=0\n0 0 * * * b\nRANDOM_DELAY=\n@reboot c"]
LINES = [field + rest for rest in (" * * * * x",) for field in (
    "1,2,3", "1-5/2", "*/7,59", "5/10", "1-5-7", "*5", "60", "*/60", "*/100", "*/0", "0-0/5", "1-2/", ",", "1,", "1,,2", "01", "60-13",
    "1,60-13", "50-100/60", "50-110/60", "30-5", "00000000001", "1.5", "*;", "-1", "--1", "- 1")]
LINES += ["* * * * " + field + " x" for field in ("6-7", "7-7", "0-7", "sun-sat", "mon-sun/2", "Mon", "monday", "8", "99-3", "*/2")]
LINES += ["* * * " + field + " * x" for field in ("jan-dec", "JAN,feb", "janu", "0", "feb-0", "12-1", "13-1")]
LINES += ["@" + word for word in ("daily x", "Daily x", "hourly x", "midnight x", "annually x", "yearly x", "monthly x", "weekly x",
                                  "reboot x", "every_minute x", "daily", "dailyx y", "daily  x", "daily\tx")]
LINES += ["* * * * *" + rest for rest in ("", " ", "x", " *x", " ** x", " -n x", " -n", " -nx", " -n -n x", " -x y", " a %b", " a\\%b",
                                          " %x", " x # c", " x\r", "  x  y  ", "\tx")]
LINES += ["1 2 3 4", "bad line", "#c", r"#c\n\n  #d\n* * * * * x", r"1 2 3 4 5 x\nbad\n6 7 8 9 1 y", "\t* * * * * x"]
SYSTEM = ["* * * * * root x", "* * * * * root", "* * * * *", "* * * * *  root  x  y", "-* * * * * root x", "* * * * * * x", "@daily root x",
          "@daily root", "* * * * * root -n x", "* * * * * *root x", "root x", r"RANDOM_DELAY=9\n* * * * * daemon x"]
# Ranges of '~': what jobsched selects must be among what cronie selects with different seeds.
RANDOM = ["~ * * * * x", "5~9 * * * * x", "9~5 * * * * x", "~9 * * * * x", "50~ * * * * x", "5~5 * * * * x", "70~ * * * * x",
          "1~9/2 * * * * x", "~/2 * * * * x", "*~5 * * * * x", "1-5~9 * * * * x", "1~5-9 * * * * x", "0 ~ * * * x", "0 0 ~ * * x",
          "0 0 * jan~mar * x", "0 0 * * mon~fri x", "0 0 * * ~ x", "0 0 * * fri~sun x", "1~~5 * * * * x", "~x * * * * x"]


def build(source, into):
    """Compiles the parser of cronie; log_it() of misc.c is replaced by the one above."""
    tree, program = os.path.join(into, "cronie"), os.path.join(into, "parser")
    shutil.copytree(source, tree)
    with open(os.path.join(tree, "printer.c"), "w") as f:
        f.write(PRINTER)
    script = """set -e
./configure --quiet --without-pam --without-selinux --without-inotify --without-audit
make -s cron-paths.h
flags='-w -DSYSCONFDIR="/etc" -DLOCALSTATEDIR="/var" -I. -Isrc'
for name in entry env user pw_dup; do gcc $flags -c src/$name.c -o $name.o; done
gcc $flags -Dlog_it=log_it_of_cronie -c src/misc.c -o misc.o
gcc $flags printer.c entry.o env.o user.o pw_dup.o misc.o -o "$1"
"""
    subprocess.run(["sh", "-c", script, "sh", program], cwd=tree, check=True, stdout=subprocess.DEVNULL)
    return program


def objects(*words):
    out = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"PATH": "/bin", "HOME": "/"}).stdout
    return [json.loads(line) for line in out.decode("utf-8", "replace").splitlines() if line.startswith("{")]


def by_cronie(parser, path, kind, seed=1):
    found = objects(parser, path, kind, str(seed))
    return [o for o in found if "command" in o], sum(1 for o in found if "refused" in o)  # its line numbers are not exact


def by_jobsched(path, kind):
    found = objects(JOBCTL, "import", "crontab", "--format", "json", "--mode", "cronie", "--table", kind, path)
    return [o for o in found if "command" in o], sum(1 for o in found if "error" in o)


def command(text):
    """A command of cronie up to the first '%'; a backslash protects the next character and disappears before '%'."""
    head = re.match(r"(?:[^\\%]|\\.)*\\?", text, re.S).group(0)
    return head.replace("\\%", "%")


def differences(theirs, ours):
    if ours.get("reboot") or theirs["flags"] & REBOOT:
        if bool(ours.get("reboot")) != bool(theirs["flags"] & REBOOT):
            yield "reboot"
    else:
        for name in FIELDS:
            if theirs[name] != ours[name]:
                yield "%s: %s, %s" % (name, theirs[name], ours[name])
        nickname = ours.get("schedule", "").startswith("@")
        if not nickname and [bool(theirs["flags"] & f) for f in (DOM_STAR, DOW_STAR)] != [ours["dom_star"], ours["dow_star"]]:
            yield "stars"
    if command(theirs["command"]) != ours["command"]:
        yield "command: %r, %r" % (theirs["command"], ours["command"])
    if theirs["delay"] != ours.get("random_delay", 0):
        yield "delay: %d, %s" % (theirs["delay"], ours.get("random_delay"))
    if ours["user"] not in (None, theirs["user"]):
        yield "user"
    settings = dict(word.split("=", 1) for word in theirs["env"])
    for name in {"SHELL", "HOME", "PATH", "LOGNAME", "USER"} - set(ours["env"]):
        settings.pop(name, None)
    if settings != ours["env"]:
        yield "settings: %s, %s" % (settings, ours["env"])


class Judge:
    def __init__(self, parser, place):
        self.parser, self.path = parser, os.path.join(place, "table")
        self.lines = self.accepted = self.differ = 0

    def write(self, text):
        with open(self.path, "w", newline="") as f:
            f.write(text)

    def wrong(self, text, reason):
        self.differ += 1
        print("differs: %r: %s" % (text, reason))

    def table(self, text, kind="user"):
        self.write(text)
        theirs, refused = by_cronie(self.parser, self.path, kind)
        ours, errors = by_jobsched(self.path, kind)
        self.lines += text.count("\n")
        self.accepted += len(ours)
        if len(theirs) != len(ours) or refused != errors:
            self.wrong(text, "cronie: %d entries, %d refused; jobsched: %d, %d" % (len(theirs), refused, len(ours), errors))
            return
        for reason in [r for pair in zip(theirs, ours) for r in differences(*pair)]:
            self.wrong(text, reason)

    def random_range(self, text):
        self.write(text)
        ours, _ = by_jobsched(self.path, "user")
        theirs = [by_cronie(self.parser, self.path, "user", seed)[0] for seed in range(1, 400)]
        self.lines += 1
        self.accepted += len(ours)
        if {len(t) for t in theirs} != {len(ours)}:
            self.wrong(text, "cronie: %s entries; jobsched: %d" % ({len(t) for t in theirs}, len(ours)))
        elif ours and any(ours[0][name] not in [t[0][name] for t in theirs] for name in FIELDS):
            self.wrong(text, "cronie does not select this value")


def random_line(dice):
    names = ((), (), (), ("jan", "Feb", "DEC", "0", "13"), ("sun", "mon", "Tue", "SAT", "0", "7", "8"))

    def number(i):
        odd = ("", "x", "60", "99", "007", "-1", "1x") if dice.random() < 0.1 else names[i]
        return dice.choice(odd) if odd else str(dice.randint((0, 0, 1)[i], (59, 23, 31)[i]))

    def item(i):
        kind = dice.random()
        if kind < 0.4:
            return "*" if kind < 0.3 else "*/" + dice.choice(("1", "2", "5", "0", "70", "x", ""))
        text = number(i)
        if kind > 0.7:
            end = number(i)
            # cronie after 1.7.2 and jobsched end a range of weekdays on Sunday
            text += "-" + ("sat" if i == 4 and end in ("0", "sun") else end)
        return text + ("/" + dice.choice(("2", "3", "0", "100", "")) if kind > 0.9 else "")

    fields = [",".join(item(i) for _ in range(dice.choice((1, 1, 1, 1, 2, 3)))) for i in range(5)]
    if dice.random() < 0.05:
        fields[dice.randrange(5)] += dice.choice((";", "/2", "#", "*", "~x", ".5"))
    if dice.random() < 0.05:
        fields.pop(dice.randrange(5))
    return dice.choice((" ", "  ", "\t")).join(fields) + " x\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    seed = os.environ.get("SEED") or str(random.randrange(1 << 32))
    dice, place = random.Random(seed), tempfile.mkdtemp(prefix="jobsched-cronie.")
    print("# SEED=" + seed)
    try:
        judge = Judge(build(sys.argv[1], place), place)
        for text in SETTINGS + LINES:
            judge.table(text.replace("\\n", "\n") + "\n")
        for text in SYSTEM:
            judge.table(text.replace("\\n", "\n") + "\n", "system")
        for text in RANDOM:
            judge.random_range(text + "\n")
        for _ in range(int(os.environ.get("LINES", 3000)) // 10):
            judge.table("".join(random_line(dice) for _ in range(10)))
        print("%d lines, %d entries in both, %d different" % (judge.lines, judge.accepted, judge.differ))
        sys.exit(judge.differ > 0)
    finally:
        shutil.rmtree(place)


main()
