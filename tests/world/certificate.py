"""A certificate that is its own authority, and its key."""

import os
import subprocess


def certificate(folder, name, subject, usage="serverAuth"):
    """The two files, in folder. subject: "DNS:localhost,IP:127.0.0.1"."""
    pem, key = (os.path.join(folder, f"{name}.{kind}") for kind in ("pem", "key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    f"/CN=pawl test {name}", "-addext", f"subjectAltName={subject}", "-addext", f"extendedKeyUsage={usage}", "-keyout", key,
                    "-out", pem], check=True, capture_output=True)
    return pem, key
