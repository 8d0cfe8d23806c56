# SPDX-License-Identifier: Apache-2.0
# A node whose PostgreSQL connections pass through a proxy that can cut or delay them.
import contextlib
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "nemesis")]
from harness import Api, Daemon
from pg import Server
from proxy import Proxy

LEASE = 3


class Front:
    """A PostgreSQL server behind a proxy."""

    def __init__(self, server):
        self.dir = tempfile.mkdtemp(prefix="jobsched-px.")
        self.proxy = Proxy(self.dir, server.dir)
        self.url = "postgresql://jobsched@/postgres?host=" + self.dir
        self.sql = server.sql

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.proxy.close()
        shutil.rmtree(self.dir)


class Behind:
    """A node that reaches its PostgreSQL server through a proxy."""

    def __init__(self, config=""):
        self.server = Server().start()
        self.front = Front(self.server)
        self.proxy = self.front.proxy
        self.d = Daemon("store = %s\nlease = %d\nrun-lease = %d\n%s" % (self.front.url, LEASE, LEASE, config))

    def __enter__(self):
        try:
            self.d.start()
        except BaseException as e:
            self.__exit__(type(e))
            raise
        return self

    def __exit__(self, kind, *rest):
        self.proxy.delay = 0
        self.proxy.open.set()
        with contextlib.ExitStack() as stack:
            stack.callback(self.server.__exit__)
            stack.callback(self.front.__exit__)
            stack.callback(self.d.close, failed=kind is not None)


def timed(d, method, path, body=None):
    """Sends one request on a new connection. Returns status, answer and duration in seconds."""
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
