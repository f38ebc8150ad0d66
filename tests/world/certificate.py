"""Certificates, their keys and authorities, and lists of the revoked, made by openssl."""

import os
import subprocess
import time


def certificate(folder, name, subject, usage="serverAuth"):
    """One that is its own authority: the two files, in folder. subject: "DNS:localhost,IP:127.0.0.1"."""
    pem, key = (os.path.join(folder, f"{name}.{kind}") for kind in ("pem", "key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    f"/CN=pawl test {name}", "-addext", f"subjectAltName={subject}", "-addext", f"extendedKeyUsage={usage}", "-keyout", key,
                    "-out", pem], check=True, capture_output=True)
    return pem, key


class Certificates:
    """Those of some authorities, in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def openssl(self, *words):
        done = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}")
        return done.stdout

    def write(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text)

    def authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out",
                     f"{name}.pem", "-days", "2", "-subj", f"/CN={name}")

    def rsa(self, name, p, q, e):
        """NAME.key.new, for certified()."""
        d = pow(e, -1, (p - 1) * (q - 1))
        parts = enumerate((0, p * q, e, d, p, q, d % (p - 1), d % (q - 1), pow(q, -1, p)))
        self.write("rsa.conf", "asn1 = SEQUENCE:key\n[key]\n" + "".join(f"n{i} = INTEGER:{n:#x}\n" for i, n in parts))
        self.openssl("asn1parse", "-genconf", "rsa.conf", "-noout", "-out", "rsa.der")
        self.openssl("rsa", "-inform", "DER", "-in", "rsa.der", "-out", f"{name}.key.new")

    def certified(self, name, by, extensions, days=2, makes=("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout")):
        """NAME.pem and NAME.key."""
        self.write(f"{name}.ext", extensions)
        self.openssl("req", "-new", *makes, f"{name}.key.new", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-CAcreateserial", "-days", str(days),
                     "-extfile", f"{name}.ext", "-out", f"{name}.pem.new")
        for kind in ("key", "pem"):
            os.rename(self.path(f"{name}.{kind}.new"), self.path(f"{name}.{kind}"))
        os.chmod(self.path(f"{name}.key"), 0o600)

    def _ca(self, by, *words):
        self.write("ca.conf", "[ca]\ndefault_ca = its\n[its]\ndatabase = issued\nrand_serial = yes\npolicy = any\n[any]\ncommonName = supplied\n")
        self.openssl("ca", "-config", "ca.conf", "-cert", f"{by}.pem", "-keyfile", f"{by}.key", "-md", "sha256", *words)

    def ends_at(self, name, by, ends):
        """NAME.pem anew, good until then (seconds since 1970)."""
        self.write("issued", "")
        self._ca(by, "-in", f"{name}.csr", "-out", f"{name}.pem", "-extfile", f"{name}.ext", "-enddate",
                 time.strftime("%Y%m%d%H%M%SZ", time.gmtime(ends)), "-outdir", self.folder, "-notext", "-batch")

    def revoke(self, by, *names):
        """BY.crl: of its certificates these are revoked."""
        serials = [self.openssl("x509", "-in", f"{name}.pem", "-noout", "-serial").strip().partition("=")[2] for name in names]
        self.write("issued", "".join(f"R\t490101000000Z\t260101000000Z\t{serial}\tunknown\t/CN=x\n" for serial in serials))
        self._ca(by, "-gencrl", "-crldays", "2", "-out", f"{by}.crl")
