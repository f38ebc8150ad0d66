"""Access tokens, and the file of --access that knows them."""

import hashlib
import json
import os
import signal

from .jwt import b64


def new_token(stem=None):
    """stem: of one that is the same each time."""
    text = "pawl_" + (stem.ljust(43, "A") if stem else b64(os.urandom(32)))
    return f"{text}_{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def sha256(token):
    """As the file has it."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def identities(tokens):
    """Of the file, for {identity: its access token}."""
    return {name: {"access_tokens": [sha256(token)]} for name, token in tokens.items()}


def write_private(path, document):
    """A document, or a text that may be none, for its owner alone."""
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    path.chmod(0o600)


def reloaded(daemon):
    """What it says of its access file, when it has read it again."""
    begin = len(daemon.lines)
    daemon.send(signal.SIGHUP)
    return daemon.line(lambda line: "access-loaded" in line or "access-refused" in line, "that the file was read", begin)
