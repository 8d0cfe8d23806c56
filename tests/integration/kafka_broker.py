# SPDX-License-Identifier: Apache-2.0
# One Kafka broker with TLS and SASL/PLAIN, for what librdkafka's mock brokers cannot do. It accepts messages and keeps none.
import socket
import ssl
import struct
import threading

PRODUCE, FETCH, METADATA, SASL_HANDSHAKE, API_VERSIONS, INIT_PRODUCER_ID, SASL_AUTHENTICATE = 0, 1, 3, 17, 18, 22, 36
VERSIONS = {PRODUCE: (3, 3), FETCH: (4, 4), METADATA: (0, 1), SASL_HANDSHAKE: (0, 1), API_VERSIONS: (0, 0), INIT_PRODUCER_ID: (0, 0),
            SASL_AUTHENTICATE: (0, 0)}
UNSUPPORTED_VERSION, SASL_AUTHENTICATION_FAILED = 35, 58


def text(s):
    return struct.pack(">h", len(s)) + s.encode()


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, code):
        (n,) = struct.unpack_from(">" + code, self.data, self.at)
        self.at += struct.calcsize(code)
        return n

    def bytes(self, n):
        self.at += max(n, 0)
        return self.data[self.at - max(n, 0):self.at]

    def text(self):
        return self.bytes(self.number("h")).decode()


class Broker:
    """Listens on 127.0.0.1. 'context': TLS; 'login': (user, password) that it accepts; 'advertised': the address in its metadata."""

    def __init__(self, context=None, login=None, advertised="localhost"):
        self.context, self.login, self.advertised = context, login, advertised
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.produced, self.logins = [], []
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as stream:
                while True:
                    size = struct.unpack(">i", stream.read(4))[0]
                    r = Reader(stream.read(size))
                    api, version, correlation = r.number("h"), r.number("h"), r.number("i")
                    r.text()  # client id
                    answer = struct.pack(">i", correlation) + self.answer(api, version, r)
                    connection.sendall(struct.pack(">i", len(answer)) + answer)
        except (OSError, ssl.SSLError, struct.error):
            return  # the client has left

    def answer(self, api, version, r):
        if api == API_VERSIONS:
            rows = b"".join(struct.pack(">hhh", key, *range_) for key, range_ in VERSIONS.items())
            return struct.pack(">hi", UNSUPPORTED_VERSION if version else 0, len(VERSIONS)) + rows
        if api == SASL_HANDSHAKE:
            return struct.pack(">hi", 0, 1) + text("PLAIN")
        if api == SASL_AUTHENTICATE:
            login = tuple(r.bytes(r.number("i")).decode().split("\0")[1:])
            self.logins.append(login)
            good = login == self.login
            return struct.pack(">h", 0 if good else SASL_AUTHENTICATION_FAILED) + text("" if good else "wrong password") + struct.pack(">i", 0)
        if api == METADATA:
            topics = [r.text() for _ in range(max(r.number("i"), 0))]
            rows = b"".join(struct.pack(">h", 0) + text(t) + struct.pack(">?ihiiiiii", False, 1, 0, 0, 1, 1, 1, 1, 1) for t in topics)
            return (struct.pack(">ii", 1, 1) + text(self.advertised) + struct.pack(">ih", self.port, -1) + struct.pack(">ii", 1, len(topics)) + rows)
        if api == INIT_PRODUCER_ID:
            return struct.pack(">ihqh", 0, 0, 7, 0)
        assert api == PRODUCE, api
        r.text()  # transactional id
        r.number("h"), r.number("i"), r.number("i")
        topic = r.text()
        r.number("i"), r.number("i")
        self.produced.append(r.bytes(r.number("i")))
        return struct.pack(">i", 1) + text(topic) + struct.pack(">iihqqi", 1, 0, 0, len(self.produced) - 1, -1, 0)
