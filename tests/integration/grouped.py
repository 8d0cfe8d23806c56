# SPDX-License-Identifier: Apache-2.0
# System mode with control groups: each test has its own subtree of the cgroup2 file system.
import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Skip, wait_until
from system import System


def mounted():
    for place in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        if os.access(place + "/cgroup.procs", os.W_OK) and os.path.exists(place + "/cgroup.controllers"):
            return place
    raise Skip("no writable cgroup2 file system")


class Grouped(System):
    def __init__(self, *args, **more):
        # A random name, because process numbers are not unique: each test runs in its own PID namespace.
        self.place = "%s/jobsched-test.%s" % (mounted(), os.urandom(8).hex())
        super().__init__(*args, **more)

    def spawner_command(self):
        return [*super().spawner_command(), "--cgroup", self.place]

    def control_groups(self):
        """The paths of all control groups below the subtree."""
        return [os.path.join(at, name) for at, names, _ in os.walk(self.place) for name in names]

    def close(self, failed=False):
        try:
            super().close(failed)
        finally:
            with contextlib.suppress(OSError), open(self.place + "/cgroup.kill", "w") as f:
                f.write("1")
            for _ in range(100):
                left = [g for g in sorted(self.control_groups(), key=len, reverse=True) if not remove(g)]
                if not left:
                    break
                time.sleep(0.05)
            remove(self.place)

    def file(self, user, name, seconds=60):
        """Waits until a job has written a line to a file in the user's home, and returns the content."""
        path = os.path.join(self.home(user), name)

        def there():
            with contextlib.suppress(FileNotFoundError), open(path) as f:
                text = f.read()
                return text.endswith("\n") and text
        return wait_until("a job of %s writes %s" % (user, name), seconds, there).strip()


def remove(group):
    with contextlib.suppress(FileNotFoundError):
        try:
            os.rmdir(group)
        except OSError:
            return False
    return True


def runs(pid):
    """True if the process exists and is not a zombie."""
    try:
        with open("/proc/%s/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid):
    text = subprocess.run(["cat", "/proc/%d/task/%d/children" % (pid, pid)], capture_output=True, text=True).stdout
    return [int(word) for word in text.split()]
