# SPDX-License-Identifier: Apache-2.0
# A web server on the loopback interface.
import http.server
import threading


class Web:
    """Web(do_GET=function) calls function(request) for each GET. The address is in self.url. Ends with its 'with' block."""

    def __init__(self, **methods):
        handler = type("Handler", (http.server.BaseHTTPRequestHandler,), dict(methods, log_message=lambda *_: None))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # the client may have left
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.server.server_port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
