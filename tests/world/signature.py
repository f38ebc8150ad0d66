"""The fencing token header, written and read without a line of the product: what a stranger makes of the contract."""

import base64
import hashlib
import hmac
import os
import re

HEADER = re.compile(
    r'(?P<signed>(?P<token>[1-9][0-9]{0,14});lease="(?P<lease>[A-Za-z0-9][A-Za-z0-9._:-]{0,127})"'
    r';store="(?P<store>[A-Za-z0-9_-]{24})";mode=(?P<mode>exclusive|shared|permits);epoch=(?P<epoch>[1-9][0-9]{0,14})'
    r';hold="(?P<hold>[A-Za-z0-9_-]{12,16})";kid="(?P<kid>[A-Za-z0-9._-]{1,32})");sig=:(?P<sig>[A-Za-z0-9+/]{43}=):')


class Keys:
    """A key file: [(kid, bytes)], the first signs; and the store whose tokens are signed by it."""

    def __init__(self, *kids):
        self.store = "Zk3v9a1BQ2x8Zk3v9a1BQ2x8"  # as in the READMEs; World sets its own
        self.keys = [(kid, os.urandom(32)) for kid in kids or ("k1",)]

    def text(self):
        return "".join(f"{kid}:{base64.b64encode(key).decode()}\n" for kid, key in self.keys)

    def write(self, path):
        with open(path + ".new", "w", encoding="ascii") as file:
            os.chmod(path + ".new", 0o600)
            file.write(self.text())
        os.replace(path + ".new", path)

    def mac(self, kid, text):
        return base64.b64encode(hmac.new(dict(self.keys)[kid], text.encode(), hashlib.sha256).digest()).decode()

    def verifies(self, header):
        read = read_token(header)
        return hmac.compare_digest(self.mac(read["kid"], read["signed"]), read["sig"])


def read_token(header):
    match = HEADER.fullmatch(header)
    if match is None:
        raise AssertionError(f"not a fencing token: {header}")
    return match.groupdict()


def signed_token(keys, lease, token, epoch, hold="AAAAAAAAAAAA", mode="exclusive", kid=None, store=None):
    """A token that nobody granted, with a good signature."""
    kid = kid or keys.keys[0][0]
    text = f'{token};lease="{lease}";store="{store or keys.store}";mode={mode};epoch={epoch};hold="{hold}";kid="{kid}"'
    return f"{text};sig=:{keys.mac(kid, text)}:"
