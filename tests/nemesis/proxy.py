# SPDX-License-Identifier: Apache-2.0
# A proxy between nodes and PostgreSQL on Unix sockets that can hold, delay or cut the traffic.
import contextlib
import os
import selectors
import shutil
import socket
import tempfile
import threading
import time

CHUNK = 65536
COMMIT = b"COMMIT\0"  # end of a simple query
CLAIMS = b"\0runs_claim\0", b"\0runs_claim_all\0"  # names of prepared statements


class Proxy:
    """Listens in directory 'front' and forwards everything to the server in directory 'back'."""

    def __init__(self, front, back):
        self.back = os.path.join(back, ".s.PGSQL.5432")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(front, ".s.PGSQL.5432"))
        self.listener.listen(64)
        self.delay = 0.0          # seconds before each packet is passed on
        # a function that decides for each COMMIT where the connection ends: "before", "after", after a number of bytes of the
        # COMMIT and its answer, or not at all (None)
        self.cut_commits = None
        self.after_claim = None   # called after the COMMIT of a claim was forwarded, before its answer is
        self.claims = set()       # clients inside a claim
        self.down = False         # new connections are refused
        self.open = threading.Event()  # cleared: nothing passes, connections stay open
        self.open.set()
        self.pairs = set()
        self.mute = set()         # connections through which nothing passes any more
        self.closed = False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = socket.socket(socket.AF_UNIX)
        try:
            self.open.wait()
            if self.down:
                raise ConnectionRefusedError
            server.connect(self.back)
        except OSError:
            client.close()
            return
        pair = (client, server)
        self.pairs.add(pair)
        with contextlib.suppress(OSError), selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while self.pass_on(ready, client):
                pass
        self.pairs.discard(pair)
        self.mute.discard(client)
        self.claims.discard(client)
        for s in pair:
            s.close()

    def pass_on(self, ready, client):
        for key, _ in ready.select(0.5):
            self.open.wait()
            data = key.fileobj.recv(CHUNK)
            if not data:
                return False
            if client in self.mute:
                continue
            if self.delay:
                time.sleep(self.delay)
            self.open.wait()
            where = self.cut_commits and key.fileobj is client and COMMIT in data and self.cut_commits()
            if where == "before":
                return False
            if type(where) is int:
                return self.cut_at(where, data, client, key.data)
            key.data.sendall(data)
            if key.fileobj is client:
                self.note_claim(client, data)
            if where == "after":  # the server executes it, the client gets no answer
                key.data.recv(CHUNK)
                return False
        return True

    def cut_at(self, where, data, client, server):
        server.sendall(data[:where])
        if where >= len(data):  # the server executes it, the client gets a part of the answer
            client.sendall(server.recv(CHUNK)[:where - len(data)])
        return False

    def note_claim(self, client, data):
        if any(name in data for name in CLAIMS):
            self.claims.add(client)
        if COMMIT in data and client in self.claims:
            self.claims.discard(client)
            if self.after_claim:
                self.after_claim()

    def cut(self):
        """Ends every connection at once."""
        for pair in list(self.pairs):
            for s in pair:
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)

    def swallow(self):
        """Blocks the existing connections silently; new ones work."""
        self.mute.update(client for client, _ in list(self.pairs))

    def close(self):
        self.closed = True
        self.open.set()
        self.listener.close()
        self.cut()


class DelayedServer:
    """A server whose packets are delayed in both directions, by so many seconds."""

    def __init__(self, server, delay):
        self.front = tempfile.mkdtemp(prefix="jobsched-far.")
        os.chmod(self.front, 0o755)
        self.proxy = Proxy(self.front, server.dir)
        self.proxy.delay = delay
        self.url = "postgresql://jobsched@/postgres?host=" + self.front
        self.sql = server.sql

    def close(self):
        self.proxy.close()
        shutil.rmtree(self.front, ignore_errors=True)
