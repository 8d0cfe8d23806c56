# SPDX-License-Identifier: Apache-2.0
# A FUSE file system of a user that never answers a lookup. A process that resolves a path below it blocks in the kernel.
#
#     with Silent(s, "alice") as where:        # below her home; s is a System
#         s.add("alice", command=["true"], cwd=where + "/x")
import ctypes
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Skip
from system import libc

MS_NOSUID, MS_NODEV = 2, 4
LOOKUP, FORGET, GETATTR, INIT, ACCESS, INTERRUPT, BATCH_FORGET = 1, 2, 3, 26, 34, 36, 42


def serve(fd):
    """Answers the requests of a mount, but no LOOKUP."""
    while True:
        try:
            request = os.read(fd, 1 << 20)
        except OSError:
            return
        _, op, unique, node, uid, gid, _, _ = struct.unpack("<IIQQIIII", request[:40])

        def reply(body=b"", error=0):
            os.write(fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)
        if op == INIT:
            ahead = struct.unpack("<IIII", request[40:56])[2]
            reply(struct.pack("<IIIIHHIIHHI", 7, 31, ahead, 0, 0, 0, 1 << 16, 1, 0, 0, 0) + b"\0" * 28)
        elif op == GETATTR:
            reply(struct.pack("<QII", 1, 0, 0) + struct.pack("<QQQQQQIIIIIIIIII", node, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755, 2, uid, gid,
                                                             0, 4096, 0))
        elif op == ACCESS:
            reply()
        elif op not in (LOOKUP, FORGET, INTERRUPT, BATCH_FORGET):
            reply(error=-38)


class Silent:
    def __init__(self, s, user):
        self.uid, self.where = s.uid(user), os.path.join(s.home(user), "silent")

    def __enter__(self):
        os.makedirs(self.where, exist_ok=True)
        os.chown(self.where, self.uid, self.uid)
        try:
            fd = os.open("/dev/fuse", os.O_RDWR)
        except OSError as e:
            raise Skip("no FUSE here: %s" % e.strerror) from None
        options = b"fd=%d,rootmode=40000,user_id=%d,group_id=%d" % (fd, self.uid, self.uid)
        if libc.mount(b"fuse", self.where.encode(), b"fuse", MS_NOSUID | MS_NODEV, options) != 0:
            os.close(fd)
            raise Skip("cannot mount FUSE: " + os.strerror(ctypes.get_errno()))
        self.server = os.fork()
        if self.server == 0:
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            os.setresuid(self.uid, self.uid, self.uid)
            serve(fd)
            os._exit(0)
        os.close(fd)
        return self.where

    def __exit__(self, *_):
        os.kill(self.server, 9)
        os.waitpid(self.server, 0)
        libc.umount2(self.where.encode(), 2)  # MNT_DETACH
