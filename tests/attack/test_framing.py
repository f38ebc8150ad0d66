#!/usr/bin/python3
"""One request is one request: a table of ways to frame it wrongly, and mutations of right ones, each with another behind it.

What is ambiguous is refused and the connection closed, so that nothing behind it is ever done; what is taken reaches the
upstream exactly as a strict reading of RFC 9112 has it, and what comes behind it is the next request."""

import os
import random
import tempfile
import urllib.parse

from world import World, check, check_equal, main, test
from world.upstream import Upstream, route, routes_file

FOLDER = tempfile.mkdtemp(dir=os.environ["TMPDIR"])
UPSTREAM = Upstream()
WORLD = World(gateway_flags=["--routes", routes_file(FOLDER, [route(UPSTREAM, "/o/{id}/**", "o:{id}")])])
TOKEN = WORLD.acquire("o:1")["fencing_token"]
MARKER = b"GET /o/1/marker HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
MARKED = ("GET", "/o/1/marker", b"")
TARGET = "/o/1/x"
FIELDS = f"Host: localhost\r\nFencing-Token: {TOKEN}\r\n"
MUTATIONS, SEED = 1500, 9112


def put(rest, line=f"PUT {TARGET} HTTP/1.1", fields=FIELDS):
    return f"{line}\r\n{fields}{rest}"


def chunked(body, fields=""):
    return put(f"Transfer-Encoding: chunked\r\n{fields}\r\n{body}")


LENGTH = "Content-Length: 3\r\n"
GOOD = [  # (request, what the upstream gets)
    (put(LENGTH + "\r\nabc"), ("PUT", TARGET, b"abc")),
    (put("Content-Length:3\r\n\r\nabc"), ("PUT", TARGET, b"abc")),
    (put("cONTENT-lENGTH: \t 003\r\n\r\nabc"), ("PUT", TARGET, b"abc")),
    (put("Content-Length: 0\r\n\r\n"), ("PUT", TARGET, b"")),
    (put("\r\n"), ("PUT", TARGET, b"")),
    ("\r\n" + put(LENGTH + "\r\nabc"), ("PUT", TARGET, b"abc")),
    (chunked("3\r\nabc\r\n0\r\n\r\n"), ("PUT", TARGET, b"abc")),
    (chunked("A\r\n0123456789\r\n0\r\n\r\n"), ("PUT", TARGET, b"0123456789")),
    (chunked("1\r\na\r\n2\r\nbc\r\n000\r\n\r\n"), ("PUT", TARGET, b"abc")),
    (chunked("3;a;b=c;d=\"e f\"\r\nabc\r\n0;x\r\n\r\n"), ("PUT", TARGET, b"abc")),
    (chunked("3\r\nabc\r\n0\r\nExpires: never\r\nX-Y:\r\n\r\n"), ("PUT", TARGET, b"abc")),
    (put("Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), ("PUT", TARGET, b"abc")),
    (put(LENGTH + "X-Empty:\r\nX-Latin: \xe4\xff\r\nX-Tab: a\tb\r\n\r\nabc"), ("PUT", TARGET, b"abc")),
    (put(LENGTH + "\r\nabc", line=f"PUT http://localhost{TARGET} HTTP/1.1"), ("PUT", TARGET, b"abc")),
    (put(LENGTH + "\r\nabc", line=f"PUT {TARGET}?a=b&c=%20 HTTP/1.1"), ("PUT", f"{TARGET}?a=b&c=%20", b"abc")),
    (put(LENGTH + "\r\nabc", line=f"M-SEARCH {TARGET} HTTP/1.1"), ("M-SEARCH", TARGET, b"abc")),
    (put(LENGTH + "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\r\nabc"), ("PUT", TARGET, b"abc")),
]
BAD_HEADS = [
    # two readings of the length
    LENGTH + LENGTH, "Content-Length: 3, 3\r\n", "Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length: +3\r\n", "Content-Length: -3\r\n",
    "Content-Length: 0x3\r\n", "Content-Length: 3 0\r\n", "Content-Length: \r\n", "Content-Length: 3.0\r\n", "Content-Length: 99999999999999999999\r\n",
    "Content-Length: 3 \r\n", "Content-Length: 3\t\r\n", "Content-Length: 3\x00\n", "X: a\x00\n", "Content-Length: 3;\r\n", "Content-Length: \xb3\r\n", "Content-Length : 3\r\n", "Content-Length\t: 3\r\n", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "Transfer-Encoding: identity\r\n", "Transfer-Encoding: gzip, chunked\r\n",
    "Transfer-Encoding: chunked, chunked\r\n", "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: \"chunked\"\r\n", "Transfer-Encoding: chunked;q=1\r\n", "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: \x0bchunked\r\n",
    "Transfer-Encoding: chunked \r\n", "Transfer-Encoding: chunked\t\r\n", "Transfer-Encoding:\r\n chunked\r\n", "Transfer-Encoding : chunked\r\n", "Transfer-Encoding: chunked\x00\r\n", "Transfer-Encoding:\r\n",
    # lines that end otherwise, fields that are none
    "X: a\n\r\n", "X: a\nContent-Length: 3\r\n", "X: a\rContent-Length: 3\r\n", "X: a\x00b\r\n", "X: a\r\n b\r\n", "X: a\r\n\tContent-Length: 3\r\n", "\x00X: a\r\n",
    " X: a\r\n", "X\r\n", ": a\r\n", "X Y: a\r\n", "X(: a\r\n", "X\xe4: a\r\n", "X: a\x7f\r\n", "X: a\x01\r\n", "X\n: a\r\n",
    "Host: localhost\r\n", "Host: other\r\n", "hOST : localhost\r\n",
]
BAD_LINES = [
    f"PUT  {TARGET} HTTP/1.1", f"PUT\t{TARGET} HTTP/1.1", f"PUT {TARGET}  HTTP/1.1", f"PUT {TARGET} HTTP/1.1 ", f" PUT {TARGET} HTTP/1.1", f"PUT {TARGET}",
    f"PUT {TARGET} HTTP/1.2", f"PUT {TARGET} HTTP/2.0", f"PUT {TARGET} HTTP/0.9", f"PUT {TARGET} http/1.1", f"PUT {TARGET} HTTP/1.10", f"PUT {TARGET} HTTP/01.1",
    f"PUT {TARGET} ICE/1.0", f"PUT {TARGET} HTTP/1.1\x00", f"PUT {TARGET}\x00 HTTP/1.1", f"P\x00UT {TARGET} HTTP/1.1", f"PU(T {TARGET} HTTP/1.1",
    f"PUT {TARGET} a HTTP/1.1", f"PUT {TARGET}#a HTTP/1.1", f"PUT {TARGET}%zz HTTP/1.1", f"PUT {TARGET}\xe4 HTTP/1.1", f"PUT {TARGET}\r HTTP/1.1",
    f"PUT http://other{TARGET} HTTP/1.1", f"PUT http://localhost:80{TARGET} HTTP/1.1", f"PUT https://localhost{TARGET} HTTP/1.1",
    "PUT o/1/x HTTP/1.1", "PUT * HTTP/1.1", "CONNECT localhost:80 HTTP/1.1", f"PUT {TARGET} HTTP/1.1\n", f"{'P' * 33} {TARGET} HTTP/1.1",
]
BAD_CHUNKS = [
    "3\nabc\r\n0\r\n\r\n", "3 \r\nabc\r\n0\r\n\r\n", "3\r\nabc\n0\r\n\r\n", "3\r\nabc\r\n0\n\r\n", "3\r\nabc\r\n0\r\n\n", "3;a\nabc\r\n0\r\n\r\n", "3\rabc\r\n0\r\n\r\n", "3\r\nabc\r0\r\n\r\n",
    "3\r\nabcd\r\n0\r\n\r\n", "3\r\nab\r\n0\r\n\r\n", "3\r\nabc0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", "+3\r\nabc\r\n0\r\n\r\n", "-3\r\nabc\r\n0\r\n\r\n", " 3\r\nabc\r\n0\r\n\r\n",
    "g\r\nabc\r\n0\r\n\r\n", "\r\nabc\r\n0\r\n\r\n", "ffffffffffffffffff\r\nabc\r\n0\r\n\r\n", "10000000000000003\r\nabc\r\n0\r\n\r\n", "3 3\r\nabc\r\n0\r\n\r\n",
    "3;a\x00\r\nabc\r\n0\r\n\r\n", "3;a=\"\n\"\r\nabc\r\n0\r\n\r\n", "3;a\rb\r\nabc\r\n0\r\n\r\n", "3\x00\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n0\r\nX: y\n\r\n",
    "3\r\nabc\r\n0\r\nX : y\r\n\r\n", "3\r\nabc\r\n0\r\n X: y\r\n\r\n", "3\r\nabc\r\n0\r\nX: \x00\r\n\r\n", "3\r\nabc\r\n0\r\nX\r\n\r\n", "3\r\nabc\r\n0\r\n: y\r\n\r\n",
    "3\r\nabc\r\n0\r\n\rX", "3\r\n\r\nabc\r\n0\r\n\r\n",
    "3\r\nabc\r\n0\n\n", "3\r\nabc\r\n0;a\n\r\n", "3\r\nabc\r\n0\r\nX: y\r\n\n", "3\r\nabc\r\n0\r\nX: y\nZ: w\r\n\r\n", "3\r\nabc\r\n0\r\nX\n: y\r\n\r\n",
    "3\nabc\n0\n\n", "\n3\r\nabc\r\n0\r\n\r\n", "3\n\nabc\r\n0\r\n\r\n", "3\r\nabc\n\r\n0\r\n\r\n", "3\r\nabc\nX0\r\n\r\n",
]
BAD = [put(f"{head}\r\n") for head in BAD_HEADS] + [put(LENGTH + "\r\nabc", line=line) for line in BAD_LINES] + [chunked(body) for body in BAD_CHUNKS]
BAD += ["\n" + put(LENGTH + "\r\nabc"), "\n\n" + put(LENGTH + "\r\nabc"), "\r\n\r\n" + put(LENGTH + "\r\nabc"), put("\r\n", fields=f"Fencing-Token: {TOKEN}\r\n"), put("\n", fields=FIELDS.replace("\r\n", "\n")), put(LENGTH + "\r\nabc", fields=FIELDS.replace("Host: localhost", "Host: a b")),
        put(LENGTH + "\r\nabc", fields=FIELDS.replace("Host: localhost", "Host: a/b")), put(LENGTH + "\r\nabc", line=f"PUT {TARGET} HTTP/1.1\n{FIELDS}".rstrip("\r\n"), fields="")]


def sent(data, pieces=1):
    """Everything that is answered to it, up to the end of the connection."""
    raw = WORLD.raw(WORLD.gateway_daemon)
    size = max(1, -(-len(data) // pieces))
    for at in range(0, len(data), size):
        if not raw.send(data[at:at + size]):
            break
    try:
        raw.end_sending()
    except OSError:
        pass  # closed already
    answered = raw.rest()
    raw.close()
    return answered


def seen(count):
    return [(one.method, one.target, one.body) for one in UPSTREAM.requests[count:]]


@test
def what_is_right_arrives_once_and_what_is_behind_it_too():
    for text, wanted in GOOD:
        for pieces in (1, 2, len(text)):
            count = len(UPSTREAM.requests)
            answered = sent(text.encode("latin-1") + MARKER, pieces)
            check_equal(seen(count), [wanted, MARKED], f"{text!r} in {pieces}: {answered[:300]}")


@test
def what_is_ambiguous_is_refused_and_nothing_behind_it_is_done():
    for text in BAD:
        for pieces in (1, 2):
            count = len(UPSTREAM.requests)
            answered = sent(text.encode("latin-1") + MARKER, pieces)
            check_equal(seen(count), [], f"{text!r}: {answered[:300]}")
            check(answered == b"" or answered[:10] in (b"HTTP/1.1 4", b"HTTP/1.1 5"), f"{text!r}: {answered[:300]}")
            check(answered.count(b"\r\nHTTP/1.1 2") == 0, f"{text!r}: {answered[:600]}")


# -- mutations, and what they mean to a strict reader

NAME = frozenset(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")


class Wrong(Exception):
    pass


def need(condition):
    if not condition:
        raise Wrong


def line_of(data, at):
    end = data.find(b"\r\n", at)
    need(end >= 0 and b"\n" not in data[at:end] and b"\r" not in data[at:end] and b"\0" not in data[at:end])
    return data[at:end], end + 2


def fields_of(data, at):
    fields = []
    while True:
        line, at = line_of(data, at)
        if not line:
            return fields, at
        name, colon, value = line.partition(b":")
        need(colon and name and NAME.issuperset(name) and not any(byte < 32 and byte != 9 or byte == 127 for byte in value))
        fields.append((name.lower(), value.strip(b" \t")))


def chunks_of(data, at):
    body = b""
    while True:
        line, at = line_of(data, at)
        size = line.partition(b";")[0].rstrip(b" \t")
        need(size and all(digit in b"0123456789abcdefABCDEF" for digit in size))
        length = int(size, 16)
        if length == 0:
            return body, fields_of(data, at)[1]
        need(len(data) >= at + length + 2 and data[at + length:at + length + 2] == b"\r\n")
        body, at = body + data[at:at + length], at + length + 2


def strict(data):
    """The requests in it, up to the first that is not one."""
    requests, at = [], 0
    try:
        while True:
            at += 2 * (data[at:at + 2] == b"\r\n")  # one empty line
            line, at = line_of(data, at)
            need(line.count(b" ") == 2)
            method, target, version = line.split(b" ")
            need(method and NAME.issuperset(method) and version in (b"HTTP/1.1", b"HTTP/1.0"))
            fields, at = fields_of(data, at)
            lengths = [value for name, value in fields if name == b"content-length"]
            codings = [value.lower() for name, value in fields if name == b"transfer-encoding"]
            hosts = [value for name, value in fields if name == b"host"]
            need(len(lengths) + len(codings) <= 1 and codings in ([], [b"chunked"]) and all(value.isdigit() for value in lengths))
            need(len(hosts) == 1 or (not hosts and version == b"HTTP/1.0"))
            if target[:7].lower() == b"http://":
                host, slash, path = target[7:].partition(b"/")
                need(hosts and host.lower() == hosts[0].lower())
                target = slash + path
            if codings:
                body, at = chunks_of(data, at)
            else:
                length = int(lengths[0]) if lengths else 0
                need(len(data) >= at + length)
                body, at = data[at:at + length], at + length
            requests.append((method.decode("latin-1"), target.decode("latin-1"), body))
    except Wrong:
        return requests


def mutated(dice, data):
    data = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        at, kind = dice.randrange(len(data)), dice.randrange(5)
        if kind == 0:
            data[at] = dice.choice(b"\r\n\0\t :;,0=\x0b\x7f\x80/%#")
        elif kind == 1:
            data[at:at] = dice.choice((b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b";", b",", b"0", b"\x0b", b"\r\n ", b"Content-Length: 3\r\n",
                                       b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", MARKER))
        elif kind == 2:
            del data[at:at + dice.choice((1, 1, 2, 8))]
        elif kind == 3:
            data[at:at] = data[at:at + dice.randrange(1, 24)]
        else:
            data[at] ^= 1 << dice.randrange(8)
        if not data:
            break
    return bytes(data)


def comes_in(got, read):
    """Whether these requests are among those, in their order; a path is sent on in its canonical spelling."""
    left = iter([(method, urllib.parse.unquote_to_bytes(target), body) for method, target, body in read])
    return all(any(one == (method, urllib.parse.unquote_to_bytes(target), body) for one in left) for method, target, body in got)


@test
def of_a_mutated_request_the_upstream_gets_what_a_strict_reader_reads_or_nothing():
    dice, accepted = random.Random(SEED), 0
    for number in range(MUTATIONS):
        text = mutated(dice, dice.choice(GOOD)[0].encode("latin-1")) + MARKER
        count = len(UPSTREAM.requests)
        answered = sent(text, dice.choice((1, 1, 1, 2, 5)))
        got = seen(count)
        # What is no write of this lease, or not at this address, is not sent on, and read in order all the same.
        check(comes_in(got, strict(text)), f"{number}: {text!r} became {got}, not {strict(text)}: {answered[:300]}")
        accepted += len(got) > 0
    check(accepted > MUTATIONS // 20, f"only {accepted} were taken at all")
    check_equal(UPSTREAM.wrong, [])


main(WORLD.close)
