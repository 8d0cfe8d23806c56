# SPDX-License-Identifier: Apache-2.0
# A container with systemd that runs /payload/guest.py once per boot and writes TAP to /payload/out.
import os
import re
import subprocess

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


def boot_container(root, work, limit):
    """
    Runs the container in its own mount namespace, with a tmpfs overlay on the root file system. Without systemd on the host
    it also gets its own control group: services of two containers in one group would end each other.
    """
    script = """set -e
mount -t tmpfs -o mode=755,size=1g tmpfs "$2/over"
mkdir "$2/over/upper" "$2/over/work" "$2/over/root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/over/upper,workdir=$2/over/work" overlay "$2/over/root"
group() {
    for tree in /sys/fs/cgroup/unified /sys/fs/cgroup/systemd /sys/fs/cgroup; do
        [ ! -e "$tree/cgroup.procs" ] || "$1" "$tree" "$2"
    done
}
enter() {
    mkdir -p "$1/$2" && echo $$ >"$1/$2/cgroup.procs"
}
leave() {
    echo $$ >"$1/cgroup.procs"
    find "$1/$2" -depth -type d -exec rmdir {} + 2>/dev/null || :
}
[ -z "$4" ] || group enter "$5"
rc=133 # systemd-nspawn: the container requests a reboot
while [ $rc = 133 ]; do
    rc=0
    timeout -k 10 "$3" systemd-nspawn --quiet --directory="$2/over/root" --machine="$5" --register=no \\
        $4 --system-call-filter="landlock_create_ruleset landlock_add_rule landlock_restrict_self" --private-network \\
        --bind="$2/payload:/payload" --boot || rc=$?
done
[ -z "$4" ] || group leave "$5"
rmdir "/run/systemd/nspawn/propagate/$5" 2>/dev/null || :
"""
    os.mkdir(os.path.join(work, "over"))
    keep = "" if os.path.isdir("/run/systemd/system") else "--keep-unit"
    with open(os.path.join(work, "console"), "w") as console:
        subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", root, work, str(limit),
                        keep, "jobsched-" + os.urandom(6).hex()], stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                       env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1"))


def relay(work, seconds, name):
    """Prints the output of the guest. Without a plan as the last line, the test has failed."""
    out = os.path.join(work, "payload/out")
    lines = open(out, errors="replace").read().splitlines() if os.path.exists(out) else []
    print("\n".join(lines))
    if lines and lines[-1].startswith("1.."):
        return
    with open(os.path.join(work, "console"), errors="replace") as f:
        for line in f.read().splitlines()[-40:]:
            print("# " + re.sub(r"[^ -~]", "", line))
    done = sum(1 for line in lines if re.match(r"(not )?ok \d", line))
    print("not ok %d - %s\n# the test did not finish within %d s\n1..%d" % (done + 1, name, seconds, done + 1))
