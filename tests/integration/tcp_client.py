# SPDX-License-Identifier: Apache-2.0
"""A client of the API over TCP that sends exactly what a test wants to send."""
import contextlib
import json
import re
import socket
import ssl

from harness import CONTRACT, wait_until


class Answer:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0].startswith("HTTP/") else 0
        self.headers = [tuple(line.split(": ", 1)) for line in lines[1:] if ": " in line]

    def header(self, name):
        return next((v for k, v in self.headers if k.lower() == name.lower()), None)

    def json(self):
        return json.loads(self.body)


class Client:
    """Each request uses its own connection."""

    def __init__(self, port, token=None, tls=None, host="127.0.0.1"):
        self.port, self.token, self.tls, self.host = port, token, tls, host

    def connect(self, timeout=20):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout)
        return self.tls.wrap_socket(sock, server_hostname="localhost") if self.tls else sock

    def raw(self, data, timeout=20):
        """Sends bytes and returns all bytes of the answer."""
        with contextlib.closing(self.connect(timeout)) as sock:
            with contextlib.suppress(OSError):
                sock.sendall(data)
            got = b""
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                while True:
                    piece = sock.recv(65536)
                    if not piece:
                        break
                    got += piece
            return got

    def call(self, method, path, body=None, headers=(), token=True):
        """'headers' are added to the usual ones, or replace them."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        send = {"Host": "%s:%d" % (self.host, self.port), "Connection": "close"}
        if body is not None:
            send["Content-Type"] = "application/json"
        if body is not None or method not in ("GET", "HEAD"):
            send["Content-Length"] = str(len(data))
        if self.token and token:
            send["Authorization"] = "Bearer " + self.token
        send.update(headers)
        head = "%s %s HTTP/1.1\r\n" % (method, path) + "".join("%s: %s\r\n" % i for i in send.items() if i[1] is not None)
        answer = Answer(self.raw(head.encode() + b"\r\n" + data))
        if answer.status and answer.header("Content-Type") == "application/json" and answer.body and "%" not in path and \
                method != "HEAD":
            with contextlib.suppress(KeyError):
                CONTRACT.answer(method, path, answer.status, answer.json())
        return answer

    def stream(self, path, headers=()):
        """Opens a stream of server-sent events."""
        return Stream(self, path, headers)


class Stream:
    def __init__(self, client, path, headers):
        self.sock = client.connect()
        self.data = b""
        send = {"Host": "127.0.0.1:%d" % client.port, "Authorization": "Bearer %s" % client.token,
                "Accept": "text/event-stream", **dict(headers)}
        self.sock.sendall(("GET %s HTTP/1.1\r\n" % path + "".join("%s: %s\r\n" % i for i in send.items()) + "\r\n").encode())

    def messages(self):
        """The complete messages that have arrived: (number, event, data, id)."""
        body = self.data.partition(b"\r\n\r\n")[2].decode()
        return [(int(i), e, json.loads(d), i + rest)
                for i, rest, e, d in re.findall(r"id: (\d+)(-\d+|)\nevent: (\S+)\ndata: ([^\n]*)\n\n", body)]

    def wait(self, event, seconds=20):
        """Reads until a message of this event has arrived, and returns it."""
        self.sock.settimeout(0.2)

        def arrived():
            with contextlib.suppress(TimeoutError):
                self.data += self.sock.recv(65536)
            return [m for m in self.messages() if m[1] == event]
        return wait_until("the event '%s'" % event, seconds, arrived)[-1]

    def close(self):
        self.sock.close()


def port_of(daemon):
    """The port of the first TCP listener, from the log."""
    return int(re.search(r"listening on https?://127\.0\.0\.1:(\d+)", daemon.said()).group(1))
