"""Keys and JWTs (RFC 7519), made by openssl without a line of the product."""

import base64
import json
import subprocess
import time


def b64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def openssl(*arguments, data=b""):
    return subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=True).stdout


class Key:
    """A private key of openssl's, and its public half as a JWK."""

    def __init__(self, folder, alg, kid, *how):
        self.alg, self.kid, self.file = alg, kid, folder / f"{kid}.pem"
        openssl("genpkey", "-out", str(self.file), *how)
        self.public = openssl("pkey", "-in", str(self.file), "-pubout", "-outform", "DER")

    def jwk(self):
        der = self.public
        if self.alg == "RS256":
            text = openssl("rsa", "-in", str(self.file), "-noout", "-modulus").decode().strip().partition("=")[2]
            return {"kty": "RSA", "kid": self.kid, "n": b64(bytes.fromhex(text)), "e": "AQAB"}
        if self.alg == "ES256":
            return {"kty": "EC", "crv": "P-256", "kid": self.kid, "x": b64(der[-64:-32]), "y": b64(der[-32:])}
        return {"kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": b64(der[-32:])}

    def sign(self, data):
        if self.alg == "EdDSA":
            text = self.file.parent / "to-sign"
            text.write_bytes(data)
            return openssl("pkeyutl", "-sign", "-inkey", str(self.file), "-rawin", "-in", str(text))
        signature = openssl("dgst", "-sha256", "-sign", str(self.file), data=data)
        return signature if self.alg == "RS256" else raw_of(signature)


def raw_of(der):
    """r and s of 32 bytes each, from DER."""
    at, numbers = 2, []
    for _ in range(2):
        length = der[at + 1]
        numbers.append(int.from_bytes(der[at + 2:at + 2 + length], "big").to_bytes(32, "big"))
        at += 2 + length
    return b"".join(numbers)


def jwt(key, head=None, **body):
    """A JWT of the issuer k8s; a member that is None is left out."""
    now = int(time.time())
    claims = {"iss": "https://k8s.example", "aud": "pawl", "sub": "system:worker", "iat": now, "exp": now + 600, **body}
    text = ".".join(b64(json.dumps({name: value for name, value in part.items() if value is not None}).encode())
                    for part in ({"alg": key.alg, "kid": key.kid, **(head or {})}, claims))
    return f"{text}.{b64(key.sign(text.encode()))}"
