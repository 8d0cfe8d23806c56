# SPDX-License-Identifier: Apache-2.0
# Certificates for tests, made by openssl(1).
import os
import subprocess

from harness import need_program


def openssl(*words, **more):
    need_program("openssl")
    return subprocess.run(["openssl", *words], check=True, capture_output=True, **more).stdout


def make_certificates(d, names=("server", "client")):
    """A CA and certificates for localhost, of the server and of a client, in d.dir/pki."""
    pki = os.path.join(d.dir, "pki")
    os.makedirs(pki, exist_ok=True)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    if not os.path.exists(pki + "/ca.pem"):
        openssl("req", "-x509", *key, "-keyout", pki + "/ca.key", "-out", pki + "/ca.pem", "-subj", "/CN=test-ca", "-days", "30")
    with open(pki + "/ext", "w") as f:
        f.write("subjectAltName=DNS:localhost\n")
    for name in names:
        openssl("req", *key, "-keyout", pki + "/%s.key.new" % name, "-out", pki + "/csr", "-subj", "/CN=" + name)
        openssl("x509", "-req", "-in", pki + "/csr", "-CA", pki + "/ca.pem", "-CAkey", pki + "/ca.key", "-CAcreateserial",
                "-out", pki + "/%s.pem.new" % name, "-days", "30", "-extfile", pki + "/ext")
        for ending in ("key", "pem"):
            os.rename(pki + "/%s.%s.new" % (name, ending), pki + "/%s.%s" % (name, ending))
    return pki
