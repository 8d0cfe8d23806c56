# SPDX-License-Identifier: Apache-2.0
# A node whose PostgreSQL is behind a proxy that cuts, delays and swallows, for tests of a store that is away.
import contextlib
import os
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "nemesis")]
from harness import Api, Daemon
from pg import Server
from proxy import Proxy

LEASE = 3


class Behind:
    """A node whose PostgreSQL is behind a proxy."""

    def __init__(self, config=""):
        self.server = Server().start()
        self.front = tempfile.mkdtemp(prefix="jobsched-px.")
        self.proxy = Proxy(self.front, self.server.dir)
        self.d = Daemon("store = postgresql://jobsched@/postgres?host=%s\nlease = %d\n%s" % (self.front, LEASE, config))

    def __enter__(self):
        self.d.start()
        return self

    def __exit__(self, kind, *rest):
        self.proxy.delay = 0
        self.proxy.open.set()
        with contextlib.ExitStack() as stack:
            stack.callback(os.rmdir, self.front)
            stack.callback(os.unlink, os.path.join(self.front, ".s.PGSQL.5432"))
            stack.callback(self.server.__exit__)
            stack.callback(self.proxy.close)
            stack.callback(self.d.close, failed=kind is not None)


def timed(d, method, path, body=None):
    """The status and answer of one request on a connection of its own, and how long it took."""
    api, began = Api(d.socket), time.monotonic()
    status, answer = api.call(method, path, body)
    api.close()
    return status, answer, time.monotonic() - began


def away(d):
    status, answer, _ = timed(d, "GET", "/v1/status")
    return status == 200 and answer["store"]["away_since"] and answer


def back(d):
    status, answer, _ = timed(d, "GET", "/v1/status")
    return status == 200 and not answer["store"]["away_since"]
