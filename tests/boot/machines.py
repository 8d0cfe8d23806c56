# SPDX-License-Identifier: Apache-2.0
# Containers with systemd on one bridge, which can be rebooted, killed like in a power failure, and isolated. Each writes to
# a tmpfs overlay on its root file system. Mounts and network are in namespaces that end with this process.
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

NET = "10.78.0"
NETWORK = """[Match]
Name=host0
[Network]
Address=%s/24
LinkLocalAddressing=no
IPv6AcceptRA=no
"""


def alone():
    """Starts this program again in its own mount and network namespaces, and creates the bridge there."""
    if os.environ.get("JOBSCHED_BOOT_ALONE") != "1":
        os.environ["JOBSCHED_BOOT_ALONE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--net", "--propagation", "private", sys.executable, *sys.argv])
    for words in (("link", "set", "lo", "up"), ("link", "add", "br0", "type", "bridge"), ("link", "set", "br0", "up")):
        subprocess.run(["ip", *words], check=True)


def wait_until(what, seconds, condition, pause=0.1):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("timeout after %g s: %s" % (seconds, what))
        time.sleep(pause)


class Machine:
    """A container. 'hosts' has the names and addresses of all machines. It is off until boot()."""

    def __init__(self, work, name, root, hosts, payload):
        self.name, self.payload, self.address = name, payload, hosts[name]
        self.id = "%s-%s" % (name, os.urandom(4).hex())
        self.top = os.path.join(work, name)
        self.root = os.path.join(self.top, "root")
        self.console = os.path.join(work, "console." + name)
        self.process = self.thread = None
        os.mkdir(self.top)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,size=1g", "tmpfs", self.top], check=True)
        for part in ("upper", "work", "root"):
            os.mkdir(os.path.join(self.top, part))
        subprocess.run(["mount", "-t", "overlay", "-o", "lowerdir=%s,upperdir=%s/upper,workdir=%s/work" % (root, self.top, self.top),
                        "overlay", self.root], check=True)
        self.write("/etc/hostname", name + "\n")
        self.write("/etc/machine-id", os.urandom(16).hex() + "\n")
        self.write("/etc/hosts", "127.0.0.1 localhost\n" + "".join("%s %s %s.example\n" % (a, n, n) for n, a in hosts.items()))
        self.write("/etc/systemd/network/10-host0.network", NETWORK % self.address)
        subprocess.run(["systemctl", "--quiet", "--root=" + self.root, "enable", "systemd-networkd"], check=True, capture_output=True)

    def path(self, path):
        return self.root + path

    def write(self, path, text):
        os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
        with open(self.path(path), "w") as f:
            f.write(text)

    def group(self):
        """Moves the process to its own control group, for hosts without systemd."""
        for tree in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup"):
            if os.path.exists(tree + "/cgroup.procs"):
                os.makedirs(os.path.join(tree, self.id), exist_ok=True)
                with open(os.path.join(tree, self.id, "cgroup.procs"), "w") as f:
                    f.write("0")

    def start(self):
        managed = os.path.isdir("/run/systemd/system")
        with open(self.console, "a") as console:
            self.process = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "--directory=" + self.root, "--machine=" + self.id, "--register=no",
                 *([] if managed else ["--keep-unit"]), "--network-bridge=br0", "--bind=" + self.payload + ":/payload",
                 "--system-call-filter=landlock_create_ruleset landlock_add_rule landlock_restrict_self", "--boot"],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, preexec_fn=None if managed else self.group,
                env=dict(os.environ, SYSTEMD_NSPAWN_UNIFIED_HIERARCHY="1"))

    def watch(self):
        while self.process.wait() == 133:  # systemd-nspawn: the container requests a reboot
            self.start()

    def boot(self):
        self.start()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def leader(self):
        """The host pid of process 1 of the container, or 0."""
        pid = self.process.pid if self.process and self.process.poll() is None else 0
        try:
            with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
                children = f.read().split()
            return next((int(c) for c in children if os.readlink("/proc/%s/ns/pid" % c) != os.readlink("/proc/self/ns/pid")
                         and open("/proc/%s/comm" % c).read() == "systemd\n"), 0)
        except OSError:
            return 0

    def sh(self, text, user="root", check=True, stdin="", timeout=120):
        """Runs a shell command in the container as a user."""
        leader = wait_until(self.name + " has started", 60, self.leader)
        done = subprocess.run(["nsenter", "-t", str(leader), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "setsid", "-w", "env", "-i",
                               "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
                               "runuser", "-u", user, "--", "bash", "-c", "cd; " + text],
                              input=stdin, capture_output=True, text=True, timeout=timeout)
        if check and done.returncode:
            raise AssertionError("%s: '%s' exits %d: %s%s" % (self.name, text, done.returncode, done.stdout, done.stderr))
        return done

    def wait_up(self, seconds=120):
        wait_until(self.name + " is up", seconds,
                   lambda: self.leader() and self.sh("systemctl is-system-running", check=False).stdout.strip() in ("running", "degraded"))

    def cut_power(self):
        self.thread, thread = None, self.thread
        leader = self.leader()
        if leader:
            os.kill(leader, signal.SIGKILL)
        self.process.wait()
        thread.join()

    def cut_off(self, how="silent", on=True):
        """Isolates the machine. silent: the bridge drops its packets. cable: the link is down."""
        port = re.sub(r"[^A-Za-z0-9-]", "", "vb-" + self.id)[:15]
        if how == "silent":
            subprocess.run(["bridge", "link", "set", "dev", port, "state", "0" if on else "3"], check=True)
        else:
            subprocess.run(["ip", "link", "set", port, "down" if on else "up"], check=True)

    def gone(self):
        if self.thread:
            self.cut_power()
        for tree in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup"):
            for path, _, _ in os.walk(os.path.join(tree, self.id), topdown=False):
                try:
                    os.rmdir(path)
                except OSError:
                    pass
        for path in (self.root, self.top):
            subprocess.run(["umount", "-l", path])


class Machines:
    """All machines, switched off. 'images' has the root file systems by the name of the machine."""

    def __init__(self, images, payload):
        self.work = tempfile.mkdtemp(prefix="jobsched-machines.")
        os.chmod(self.work, 0o755)
        hosts = {name: "%s.%d" % (NET, i + 2) for i, name in enumerate(images)}
        self.all = {name: Machine(self.work, name, root, hosts, payload) for name, root in images.items()}

    def __getitem__(self, name):
        return self.all[name]

    def gone(self):
        for machine in self.all.values():
            machine.gone()
