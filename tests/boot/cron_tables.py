# SPDX-License-Identifier: Apache-2.0
# The crontabs of the machine in cron.py, the programs that their lines run, and the minutes at which each line is due.

# Each line runs the recorder with its own number; the tables are like those of real machines.
SYSTEM = r"""SHELL=/bin/sh
PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin
MAILTO=root

# m h dom mon dow user	command
*  *	* * *	root    cd / && rec 1
*/2  *	* * *	root	test -x /nonexistent || ( cd / && rec 2 )
* * * * * alice rec 3 >/dev/null
0-59/3 * * * * root   rec 4
* * * * * root [ -x /usr/local/bin/rec ] && if [ -d /run/systemd/system ]; then rec 5; fi
"""
DROP_IN = r"""# a package
MAILTO=""
NAME="a value with blanks  "
* * * * * root /usr/local/bin/rec 6 "$NAME"
*/5 * * * * bob /usr/local/bin/rec 7 two words
59 23 31 12 * root /usr/local/bin/rec 8
"""
SECOND = r"""MAILTO=ops@example.org,second@example.org
* * * * *  bob  /usr/local/bin/rec 9 2>&1
* * * * *	alice	/usr/local/bin/rec 10; exit 3
"""
ALICE = r"""# edited by hand
PATH=/usr/bin:/bin:/usr/local/bin
HOME=/tmp
* * * * * rec 11
* * * * * rec 12 \% and a percent
*/2 * * * * rec 13 %first line%second line
@hourly rec 14
* * * * * umask 077; rec 15
1-59/2 * * * mon-sun rec 16
@reboot rec boot
"""
BOB = r"""MAILTO=bob
LANG=C
* * * * * /usr/local/bin/rec 17 $HOME $LOGNAME $SHELL
* * * jan-dec * /usr/local/bin/rec 18 | cat
*/10 * * * * /usr/local/bin/rec 19
* * * * 0-7 /usr/local/bin/rec 20 >&2
"""
# "at" is when the kernel made the process, without the time that Python needs to start.
RECORDER = """#!/usr/bin/python3
import json, os, sys, time
ticks = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]) + 1  # rounded down by the kernel
# Time that passes between the two readings can only make the start appear later, not in the minute before.
boot = min(-time.clock_gettime(time.CLOCK_BOOTTIME) + time.time() for _ in range(5))
at = boot + ticks / os.sysconf("SC_CLK_TCK")
m = os.umask(0); os.umask(m)
record = {"line": sys.argv[1], "args": sys.argv[2:], "at": at, "env": dict(os.environ), "cwd": os.getcwd(), "umask": m,
          "uid": os.getuid(), "groups": sorted(os.getgroups()), "stdin": sys.stdin.read()}
name = "/var/log/records/%s.%d.%d" % (sys.argv[1], time.time_ns(), os.getpid())
open(name + ".new", "w").write(json.dumps(record))
os.rename(name + ".new", name)
print("line", sys.argv[1])
"""
MAILER = """#!/bin/sh
f=$(mktemp /var/log/mails/XXXXXXXX)
{ echo "args: $*"; echo "user: $(id -un)"; cat; } >"$f"
mv "$f" "$f.mail"
"""

# The lines that are not due in every minute; the argument is the local time.
DUE = {
    "2": lambda t: t.tm_min % 2 == 0,
    "4": lambda t: t.tm_min % 3 == 0,
    "7": lambda t: t.tm_min % 5 == 0,
    "8": lambda t: (t.tm_mon, t.tm_mday, t.tm_hour, t.tm_min) == (12, 31, 23, 59),
    "13": lambda t: t.tm_min % 2 == 0,
    "14": lambda t: t.tm_min == 0,
    "16": lambda t: False,  # Sunday is 0, so the range runs backwards and cron never starts the line
    "19": lambda t: t.tm_min % 10 == 0,
}
LINES = [str(n) for n in range(1, 21)]  # besides them alice's table has an @reboot line, "boot"
