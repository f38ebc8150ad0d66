"""__init__.py - leases with fencing tokens, from Python 3.9 on; this one file, nothing but the standard library.

    pawl = Pawl()                                    # PAWL_LEASE_URL, PAWL_GATEWAY_URL, or the usual ports of this machine
    with pawl.acquire("orders:42", ttl=30, wait=10, holder="billing-7") as hold:
        hold.put("orders:42", b"packed")             # refused (PawlLost) when somebody else has been granted it since
    with pawl.session(ttl=15) as session:            # one keep-alive for many leases
        shards = [session.acquire(f"shard:{n}") for n in range(100)]
    with pawl.acquire_all(["account:1", "account:2"], wait=5) as (one, two): ...     # all or none
    for item in pawl.events("orders:42"): ...        # what happens to it, as it happens; goes on by itself

Every call ends in one of five ways: it returns (granted, or done), or it raises
    PawlHeld      certainly not granted: another holds it, or the wait is over
    PawlLost      this hold is over: stop what it protected
    PawlNotDone   certainly not done; .retryable says whether the same may help later
    PawlUnknown   it may have happened, or may yet happen. Never told as one of the others
A ValueError is a mistake of the caller's: nothing was sent. docs/clients.md says what to do about each.

Times are seconds. A hold is certainly ours until its deadline: the moment the answered request was *sent*, plus what was
waited, plus what the service says is left, on CLOCK_BOOTTIME, which goes on while the machine sleeps.
"""

import contextlib
import http.client
import io
import json
import math
import os
import pathlib
import random
import re
import secrets
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple, TypeVar, Union

__all__ = ["Pawl", "Hold", "Holds", "Session", "Resource", "PawlError", "PawlHeld", "PawlLost", "PawlNotDone", "PawlUnknown"]

_ANSWER_BYTES_MAX = 64 << 20
_SLICE_MS = 20_000  # of one request's wait in line, before a proxy ends it; of the place's keeping; of sitting out a restart
_WAIT_MS_MAX = 600_000  # docs/contract.md, "Limits": of several leases, of which no place is kept
_LISTEN_S = 60.0  # a stream of events says something every 15 s
_LEAST = {"token": 1, "ttl_ms": 1}  # else 0
_MOST = {"token": 999_999_999_999_999, "ttl_ms": 86_400_000, "expires_in_ms": 86_400_000, "waited_ms": 10**12}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_LEASE_ID = re.compile(r"[A-Za-z0-9_-]{22,64}")
_SESSION = re.compile(r"[A-Za-z0-9_-]{16,64}")
_FENCING_TOKEN = re.compile(r"[!-~]{1,1024}")
_ACCESS_TOKEN = re.compile(r"[!-~]{1,4094}")
_LOOPBACK = re.compile(r"localhost|127(\.[0-9]{1,3}){3}|::1", re.IGNORECASE)
_HELD = {"lease-held", "wait-timeout"}
_LOST = {"lease-lost", "hold-over", "session-lost", "stale-token", "lease-expired"}


T = TypeVar("T")
_Json = Dict[str, Any]
Bytes = Union[bytes, bytearray, memoryview]
OnLost = Callable[[Any, "PawlLost"], object]


class PawlError(Exception):
    """What kept a call from its end. code, detail: of the service (api/problems.def), or this client's own ("not-sent",
    "no-answer", "bad-answer", "deadline-passed", "released", "other-process"). status: of HTTP, 0 if there was none.
    problem: all members of the service's answer."""

    def __init__(self, code: str, detail: str, status: int = 0, problem: Optional[_Json] = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.code, self.detail, self.status, self.problem = code, detail, status, problem or {}
        self.retryable: bool = self.problem.get("retryable") is True

    @property
    def holder(self) -> Optional[str]:
        """Who holds it, if told."""
        return self.problem.get("holder")

    @property
    def ended(self) -> Optional[str]:
        """Of a lost hold, how, if told: "expired", "forced", "session", "store-restarted", "unknown"."""
        return self.problem.get("ended")


class PawlHeld(PawlError):
    """Certainly not granted: another holds it, or the wait is over."""


class PawlLost(PawlError):
    """This hold is over. Stop what it protected, and acquire anew."""


class PawlNotDone(PawlError):
    """Certainly not done."""


class PawlUnknown(PawlError):
    """It may have happened, or may yet happen. __cause__: what was said to a later attempt, if anything was."""


class Resource(NamedTuple):
    """What was read."""
    body: bytes
    etag: Optional[str]
    content_type: Optional[str]


def _now() -> float:
    """Seconds on a clock that goes on while the machine sleeps, where there is one (Linux)."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else float(time.clock_gettime(clock))


# -- one request, sent once


class _Timed(io.RawIOBase):
    """A connected socket that gives up at `end`, however slowly the other side talks: a socket's own timeout begins anew
    with each byte."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self.sock, self.end, self.ended = sock, end, False

    def _left(self) -> None:
        left = self.end - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        self.sock.settimeout(left)

    def sendall(self, data: bytes) -> None:
        self._left()
        self.sock.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._left()
        count = self.sock.recv_into(buffer)
        self.ended = self.ended or count == 0
        return count

    def close(self) -> None:
        """_Service closes it: http.client would do so before the body is read."""


class _Response(http.client.HTTPResponse):
    """http.client takes an interim answer for the last one, unless it is 100."""

    def _read_status(self) -> Tuple[str, int, str]:
        library: Any = super()
        while True:
            told: Tuple[str, int, str] = library._read_status()
            if not 101 < told[1] < 200:
                return told
            http.client.parse_headers(self.fp)


class _Answer:
    def __init__(self, status: int, headers: Any, body: bytes, sent: float) -> None:
        self.status, self.headers, self.body, self.sent, self.received = status, headers, body, sent, _now()

    def problem(self) -> Optional[_Json]:
        """The problem as a dict, or None when it is not one as Pawl tells it: somebody between may have answered."""
        if not self.headers.get("Content-Type", "").startswith("application/problem+json"):
            return None
        told = self.json()
        ours = told is not None and isinstance(told.get("code"), str) and told.get("status") == self.status \
            and told.get("type") == f"/problems/{told['code']}"
        return told if ours else None

    def json(self) -> Optional[_Json]:
        """The object that it is, or None."""
        try:
            told = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return told if isinstance(told, dict) else None


class _Access(NamedTuple):
    """Who asks, and whom it trusts."""
    token: Optional[str]
    token_file: Optional[str]
    cafile: Optional[str]
    certfile: Optional[str]
    keyfile: Optional[str]
    plaintext: bool

    def __repr__(self) -> str:
        return "<pawl access>"

    def headers(self) -> Dict[str, str]:
        """With the access token that there is now."""
        token = self.token or ""
        if self.token_file:
            try:
                with open(self.token_file, encoding="latin-1") as file:
                    token = file.read(4096).rstrip("\r\n")
            except OSError as error:
                raise PawlNotDone("not-sent", f"the access token: {error}; nothing was sent", 0, {"retryable": True}) from error
        if not self.token_file and not token:
            return {}
        if not _ACCESS_TOKEN.fullmatch(token):  # and it is in no message
            raise PawlNotDone("not-sent", "the access token is none; nothing was sent", 0, {"retryable": True})
        return {"Authorization": f"Bearer {token}"}

    def files(self) -> List[bytes]:
        """What authorities, certificate and key are now."""
        return [pathlib.Path(file).read_bytes() for file in (self.cafile, self.certfile, self.keyfile) if file]

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.cafile)
        if self.certfile:
            context.load_cert_chain(self.certfile, self.keyfile, "")  # else OpenSSL asks the terminal, and waits, for that of a locked key
        return context


class _Tls:
    def __init__(self, access: _Access) -> None:
        self.access = access
        try:
            self.made = access.files(), access.context()
        except OSError as error:
            raise ValueError(f"cafile, certfile and keyfile cannot be used: {error}") from error

    def now(self) -> ssl.SSLContext:
        """By what the files have now; while that cannot be used (one is new, another is not yet), by what they had before."""
        with contextlib.suppress(OSError):
            files = self.access.files()
            if files != self.made[0]:
                self.made = files, self.access.context()
        return self.made[1]


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str, limit: float) -> None:
        super().__init__("localhost", timeout=limit)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class _Service:
    """A base URL. Each request has a connection of its own, so that nothing is sent twice behind our back; no proxy, no
    redirect, nothing from the environment."""

    def __init__(self, url: str, access: _Access) -> None:
        parts = urllib.parse.urlsplit(url)
        is_unix, is_tls = url.startswith("unix:/"), parts.scheme == "https"
        if not is_unix and (parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment
                            or parts.username):
            raise ValueError(f"not the address of a service: {url!r}")
        self.access, self.host, self.prefix = access, parts.hostname or url, "" if is_unix else parts.path.rstrip("/")
        if (access.token or access.token_file) and not (is_unix or is_tls or access.plaintext or _LOOPBACK.fullmatch(self.host)):
            raise ValueError(f"an access token is sent over https://, a unix socket and loopback alone, not to {url!r}: allow_plaintext")
        self.path, self.port, self.is_unix, self.tls = parts.path, parts.port, is_unix, _Tls(access) if is_tls else None
        self.stood: object = None  # the address that was connected to last

    def line(self, limit: float) -> http.client.HTTPConnection:
        if self.is_unix:
            return _Unix(self.path, limit)
        if self.tls is not None:
            return http.client.HTTPSConnection(self.host, self.port, timeout=limit, context=self.tls.now())
        return http.client.HTTPConnection(self.host, self.port, timeout=limit)

    def dial(self, address: Tuple[str, int], end: float) -> socket.socket:
        """To the first of its addresses that takes a connection, the one of last time before the others. Each has its share of
        the time: one may swallow everything."""
        found = sorted(socket.getaddrinfo(*address, type=socket.SOCK_STREAM), key=lambda one: bool(one[4] != self.stood))
        for more, (family, kind, protocol, _, at) in zip(reversed(range(len(found))), found):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(max(0.001, (end - time.monotonic()) / (more + 1)))
                sock.connect(at)
                sock.settimeout(max(0.001, end - time.monotonic()))
                self.stood = at
                return sock
            except BaseException as error:
                sock.close()
                if not more or not isinstance(error, OSError):
                    raise
        raise OSError("it has no address")

    def send(self, method: str, path: str, headers: Dict[str, str], body: Optional[bytes], limit: float) -> _Answer:
        """The whole answer. Raises PawlNotDone while nothing has left, PawlUnknown after that."""
        with self.open(method, path, headers, body, limit) as (response, _, sent):
            return _Answer(response.status, response.headers, _body(response, method), sent)

    @contextlib.contextmanager
    def open(self, method: str, path: str, headers: Dict[str, str], body: Optional[bytes], limit: float
             ) -> Iterator[Tuple[http.client.HTTPResponse, _Timed, float]]:
        """The same, with its body yet to be read: the answer, its socket, and when the request was sent."""
        end = time.monotonic() + limit
        line: Any = self.line(limit)
        line.response_class = _Response
        line._create_connection = lambda address, *_: self.dial(address, end)
        headers = {**headers, **self.access.headers(), "Connection": "close"}
        sock = None
        try:
            try:
                line.connect()
            except OSError as error:
                raise PawlNotDone("not-sent", f"{self.host}: {error}; nothing was sent", 0, {"retryable": True}) from error
            sock = line.sock
            line.sock = timed = _Timed(sock, end)
            sent = _now()
            try:
                line.request(method, self.prefix + path, body, headers)
                try:
                    response = line.getresponse()
                    if timed.ended:  # http.client takes headers that are cut off for whole ones
                        raise http.client.HTTPException("the answer is cut off")
                    yield response, timed, sent
                except ValueError as error:  # http.client's, of numbers that are none; ours are told of what was not sent
                    raise http.client.HTTPException("the answer is not HTTP") from error
            except (OSError, http.client.HTTPException) as error:
                raise PawlUnknown("no-answer", f"{self.host}: {error or type(error).__name__}; it may have happened"
                                  ) from error
        finally:
            line.close()
            if sock is not None:
                sock.close()


def _body(response: http.client.HTTPResponse, method: str) -> bytes:
    if method == "HEAD" or response.status in (204, 304):
        return b""
    length = response.getheader("Content-Length")
    if length is None and not response.chunked:
        raise http.client.HTTPException("an answer without a length")
    body = response.read(_ANSWER_BYTES_MAX + 1)
    if len(body) > _ANSWER_BYTES_MAX or not response.chunked and len(body) != int(length or -1):
        raise http.client.HTTPException("the answer is cut off, or too long")
    return body


def _judge(answer: _Answer, done: Tuple[int, ...]) -> _Answer:
    """The answer when it is done, else the exception that it means."""
    if answer.status in done:
        return answer
    problem = answer.problem()
    if problem is None:
        raise PawlUnknown("bad-answer", f"status {answer.status}, not as Pawl answers; it may have happened", answer.status)
    code, said = problem["code"], str(problem.get("detail") or problem["code"])
    if code in _HELD:
        raise PawlHeld(code, said, answer.status, problem)
    if code in _LOST:
        raise PawlLost(code, said, answer.status, problem)
    if answer.status in (501, 503) or 400 <= answer.status < 500 or code == "upstream-unavailable":
        raise PawlNotDone(code, said, answer.status, problem)
    raise PawlUnknown(code, said, answer.status, problem)  # 504, 500, and what we do not know


def _is_written(method: str, answer: _Answer) -> bool:
    """Whether it has what the gateway always says of a write that was done."""
    told = answer.headers
    return told.get("Fencing-Status", "").startswith("pawl;") and (method != "PUT" or bool(told.get("ETag")))


def _json(answer: _Answer) -> _Json:
    told = answer.json()
    if told is None:
        raise PawlUnknown("bad-answer", "the answer is not JSON; it may have happened", answer.status)
    return told


def _deadline(answer: _Answer, told: _Json) -> float:
    """When what was answered ends, at the earliest: the store's clock is cut to milliseconds."""
    waited: float = min(told.get("waited_ms", 0) / 1000, answer.received - answer.sent)
    return answer.sent + waited + float(told["expires_in_ms"] - 1) / 1000


def _granted(answer: _Answer, grant: _Json, name: str, lease_id: str) -> Tuple[_Json, float]:
    """(grant, deadline)."""
    numbers = all(type(grant.get(key)) is int and _LEAST.get(key, 0) <= grant[key] <= most for key, most in _MOST.items())
    fencing = grant.get("fencing_token")
    if not numbers or not isinstance(fencing, str) or not _FENCING_TOKEN.fullmatch(fencing) \
            or grant.get("lease") != name or grant.get("lease_id") != lease_id:
        raise PawlUnknown("bad-answer", "the answer is not a grant of this lease; it may have happened", answer.status)
    return grant, _deadline(answer, grant)


# -- Pawl


def _path(key: str) -> str:
    parts = key.split("/")
    if not _NAME.fullmatch(parts[0]) or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"not the key of a resource: {key!r}")
    return "/v1/resources/" + urllib.parse.quote(key, safe="/:")


def _lease_path(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"not the name of a lease: {name!r}")
    return f"/v1/leases/{name}"


def _ms(seconds: float, what: str, least: int, most: int) -> int:
    value = round(seconds * 1000) if math.isfinite(seconds) else -1
    if not least <= value <= most:
        raise ValueError(f"{what} must be {least / 1000:g} to {most / 1000:g} s, not {seconds!r}")
    return value


def _pause(tried: int) -> None:
    threading.Event().wait(0.1 * 2 ** min(tried - 1, 3) * random.uniform(0.5, 1.0))


def _in_doubt(doubt: Optional[PawlUnknown], last: PawlError) -> PawlError:
    """How it ended: once something may have happened, a refusal is no proof that nothing was done, for the earlier request
    may be done after the later one was refused."""
    if doubt is not None and last is not doubt:
        unknown = PawlUnknown(doubt.code, f"{doubt.detail}; asked again: {last}", doubt.status, doubt.problem)
        unknown.__cause__ = last
        return unknown
    return last


class Pawl:
    """The two services; an address may also be unix:/path. Safe for use by several threads. timeout: of one attempt, without
    its wait in line; attempts: at most, of what is safe to repeat. access_token, or the file where it stands, which is read
    for each request; without either PAWL_ACCESS_TOKEN_FILE or PAWL_ACCESS_TOKEN. cafile, certfile, keyfile: of https, else
    PAWL_CACERT, PAWL_CERT, PAWL_CERT_KEY. allow_plaintext: the access token goes over http:// to other machines, too."""

    def __init__(self, lease_url: Optional[str] = None, gateway_url: Optional[str] = None, timeout: float = 5.0,
                 attempts: int = 3, access_token: Optional[str] = None, access_token_file: Optional[str] = None,
                 cafile: Optional[str] = None, certfile: Optional[str] = None, keyfile: Optional[str] = None,
                 allow_plaintext: bool = False) -> None:
        self.timeout, self.attempts = timeout, max(1, attempts)
        usual = os.environ.get
        if not access_token and not access_token_file:
            access_token, access_token_file = usual("PAWL_ACCESS_TOKEN"), usual("PAWL_ACCESS_TOKEN_FILE")
        access = _Access(access_token, access_token_file, cafile or usual("PAWL_CACERT") or None,
                         certfile or usual("PAWL_CERT") or None, keyfile or usual("PAWL_CERT_KEY") or None, allow_plaintext)
        self._lease = _Service(lease_url or usual("PAWL_LEASE_URL") or "http://127.0.0.1:8700", access)
        self._gateway = _Service(gateway_url or usual("PAWL_GATEWAY_URL") or "http://127.0.0.1:8701", access)

    # -- leases

    def acquire(self, name: str, ttl: float = 30.0, wait: Optional[float] = 0.0, holder: Optional[str] = None,
                mode: str = "exclusive", permits: Optional[int] = None, lock_delay: float = 0.0,
                meta: Optional[_Json] = None, lease_id: Optional[str] = None, on_lost: Optional[OnLost] = None,
                renew: bool = True, session: Optional["Session"] = None) -> "Hold":
        """A Hold, which renews itself from now on (unless renew=False). wait: in line, first come, first served; None:
        until it is granted; connections that break and restarts of the services do not cost the place in it. permits: a
        counting semaphore, instead of mode. on_lost(hold, error) is called once, from a thread of its own, if it is lost
        before it is released. lease_id: to propose; without one a random one is made, and so a lost answer is asked for
        again. When it is not known at the end whether it was granted, that random lease_id is released, once, and
        PawlUnknown is raised all the same."""
        return self._acquire(_lease_path(name), [name], None, ttl, wait, holder, mode, permits, lock_delay, meta, lease_id,
                             on_lost, renew, session)[0]

    def acquire_all(self, names: Iterable[str], ttl: float = 30.0, wait: Optional[float] = 0.0,
                    holder: Optional[str] = None, mode: str = "exclusive", permits: Optional[int] = None,
                    lock_delay: float = 0.0, meta: Optional[_Json] = None, lease_id: Optional[str] = None,
                    on_lost: Optional[OnLost] = None, renew: bool = True, session: Optional["Session"] = None) -> "Holds":
        """All or none, in the order of names; otherwise as acquire(). No place in line outlives its connection."""
        wanted = list(names)
        for name in wanted:
            _lease_path(name)
        return Holds(self._acquire("/v1/leases", wanted, {"names": wanted}, ttl, wait, holder, mode, permits, lock_delay,
                                   meta, lease_id, on_lost, renew, session))

    def _acquire(self, path: str, names: List[str], several: Optional[_Json], ttl: float, wait: Optional[float],
                 holder: Optional[str], mode: str, permits: Optional[int], lock_delay: float, meta: Optional[_Json],
                 lease_id: Optional[str], on_lost: Optional["OnLost"], renew: bool, session: Optional["Session"]
                 ) -> List["Hold"]:
        if lease_id is not None and not _LEASE_ID.fullmatch(lease_id):
            raise ValueError("lease_id: 22 to 64 of A-Z a-z 0-9 _ -")
        if on_lost is not None and not renew and session is None:
            raise ValueError("on_lost is called by the thread that renews: not with renew=False")
        ask: _Json = {"ttl_ms": _ms(ttl, "ttl", 100, 86_400_000), "lease_id": lease_id or secrets.token_urlsafe(24)}
        if lock_delay:
            ask["lock_delay_ms"] = _ms(lock_delay, "lock_delay", 0, 600_000)
        given = {"holder": holder, "permits": permits, "mode": None if permits else mode, "meta": meta, **(several or {}),
                 "session": session and session.id}
        ask.update({key: value for key, value in given.items() if value is not None})
        headers = {"Content-Type": "application/json", **({} if session is None else session._secret)}
        waits_ms = None if wait is None else _ms(wait, "wait", 0, 10**12)
        holds: List[Hold] = []
        try:
            grants = self._obtain(path, ask, headers, waits_ms)
            holds += [Hold(self, grant, deadline, on_lost, session) for grant, deadline in grants]
            for hold in holds:
                if hold.lost is not None:
                    raise hold.lost
            for hold in holds if renew and session is None else []:
                hold._begin()
        except BaseException as error:
            # Also a KeyboardInterrupt while we wait: then it may have been granted in that moment. Or no thread can be had,
            # and it would end unseen; a grant that came too late is given back, too. Never what the caller has proposed:
            # another of its processes may hold it by now.
            unclear = isinstance(error, PawlUnknown) or not isinstance(error, (PawlError, ValueError))
            if lease_id is None and (unclear or holds):
                self._forget(path, ask, headers, wait != 0 and not holds,
                             [(hold.name, hold.fencing_token) for hold in holds] or [(name, None) for name in names])
            for hold in holds:
                hold._drop()
            raise
        return holds

    def _obtain(self, path: str, ask: _Json, headers: Dict[str, str], wait_ms: Optional[int]) -> List[Tuple[_Json, float]]:
        """The grants, each with its deadline. Waits in slices, and keeps the place in line between them; while nobody of
        Pawl's answers, as long as the place is kept."""
        end = None if wait_ms is None else time.monotonic() + wait_ms / 1000
        most = _WAIT_MS_MAX if "names" in ask else _SLICE_MS
        doubt: Optional[PawlUnknown] = None
        last: PawlError
        tried, heard = 0, time.monotonic()
        while True:
            left = most if end is None else round((end - time.monotonic()) * 1000)
            body = ask if wait_ms == 0 else {**ask, "wait_ms": max(1, min(left, most))}
            if left > 0 and "names" not in ask:
                body["keep_place_ms"] = _SLICE_MS
            begun = time.monotonic()
            try:
                return self._grants(path, body, headers)
            except PawlUnknown as error:
                doubt = last = error
            except PawlHeld as error:
                if error.code != "wait-timeout" or left <= most and not error.problem.get("place_kept_ms"):
                    raise _in_doubt(doubt, error)
                tried, heard = 0, time.monotonic()
                continue
            except PawlNotDone as error:
                last = error
                ours = doubt is not None and error.code == "superseded"  # by our own request, late
                if not error.retryable and not ours:
                    raise _in_doubt(doubt, error)
            if last.code != "not-sent" and 1 <= time.monotonic() - begun <= body.get("wait_ms", 0) / 1000:
                tried, heard = 0, time.monotonic()  # we stood in line until now
            tried += 1
            if tried >= self.attempts and (left <= 0 or time.monotonic() - heard > _SLICE_MS / 1000):
                raise _in_doubt(doubt, last)
            _pause(tried)

    def _grants(self, path: str, body: _Json, headers: Dict[str, str]) -> List[Tuple[_Json, float]]:
        limit = body.get("wait_ms", 0) / 1000 + self.timeout
        answer = _judge(self._lease.send("POST", path, headers, json.dumps(body).encode(), limit), (200, 201))
        told, names = _json(answer), body.get("names") or [path.rsplit("/", 1)[1]]
        grants = told.get("grants") if "names" in body else [told]
        if not isinstance(grants, list) or len(grants) != len(names) or not all(isinstance(one, dict) for one in grants):
            raise PawlUnknown("bad-answer", "the answer does not grant these leases; it may have happened", answer.status)
        return [_granted(answer, grant, name, body["lease_id"]) for grant, name in zip(grants, names)]

    def _forget(self, path: str, ask: _Json, headers: Dict[str, str], waited: bool, held: List[Tuple[str, Optional[str]]]
                ) -> None:
        """Gives the place in line back, by a request that takes it and keeps it no more, and what may be held: names, each with
        its fencing token if that is known. Of many no longer than of one: what remains ends by its ttl."""
        if waited:
            with contextlib.suppress(PawlError):
                self._grants(path, {**ask, "wait_ms": 1}, headers)
        end = time.monotonic() + self.timeout
        for name, fencing_token in held:
            limit = end - time.monotonic()
            if limit <= 0:
                break
            with contextlib.suppress(PawlError):
                self._release(name, ask["lease_id"], fencing_token, False, limit)

    def _settle(self, attempt: Callable[[], T], repeats: bool, loss_is_certain: bool = True) -> T:
        """Calls attempt() until its end is known. loss_is_certain: a PawlLost speaks of the hold, which is over whatever an
        earlier attempt did."""
        doubt: Optional[PawlUnknown] = None
        last: PawlError
        for number in range(self.attempts if repeats else 1):
            if number:
                _pause(number)
            try:
                return attempt()
            except PawlUnknown as error:
                doubt = last = error
            except PawlNotDone as error:
                last = error
                if not error.retryable:
                    break
            except PawlHeld as error:
                last = error
                break
            except PawlLost as error:
                last = error
                if loss_is_certain:
                    raise
                break
        raise _in_doubt(doubt, last)

    def _renew(self, name: str, lease_id: str, fencing_token: str, ttl_ms: Optional[int], limit: float
               ) -> Tuple[_Json, float]:
        body = None if ttl_ms is None else json.dumps({"ttl_ms": ttl_ms}).encode()
        headers = {"Lease-Id": lease_id, "Fencing-Token": fencing_token}
        if body is not None:
            headers["Content-Type"] = "application/json"
        answer = _judge(self._lease.send("PUT", f"/v1/leases/{name}", headers, body, limit), (200,))
        return _granted(answer, _json(answer), name, lease_id)

    def _release(self, name: str, lease_id: str, fencing_token: Optional[str], repeats: bool,
                 limit: Optional[float] = None) -> None:
        """The key makes a repeated release count once, however often it was entered."""
        headers = {"Lease-Id": lease_id, "Idempotency-Key": secrets.token_urlsafe(16)}
        if fencing_token:
            headers["Fencing-Token"] = fencing_token

        def attempt() -> None:
            answer = _judge(self._lease.send("DELETE", f"/v1/leases/{name}", headers, None, limit or self.timeout),
                            (200, 204))
            holds = _json(answer).get("holds") if answer.status == 200 else 0
            if type(holds) is not int or (answer.status == 200 and holds < 1):
                raise PawlUnknown("bad-answer", "the answer is not one to a release; it may have happened", answer.status)
        self._settle(attempt, repeats)

    def look(self, name: str) -> _Json:
        """Who holds it, as a dict; see GET /v1/leases/{name} in api/openapi.yaml."""
        path = _lease_path(name)

        def attempt() -> _Json:
            told = _json(_judge(self._lease.send("GET", path, {}, None, self.timeout), (200,)))
            if told.get("lease") != name or not isinstance(told.get("state"), str):
                raise PawlUnknown("bad-answer", "the answer is not about this lease")
            return told
        return self._settle(attempt, True)

    def session(self, ttl: float = 30.0, holder: Optional[str] = None, meta: Optional[_Json] = None,
                on_lost: Optional[OnLost] = None) -> "Session":
        """Opens a Session, which keeps itself alive. Asked for once: one whose answer was lost holds nothing, and ends by its
        ttl. on_lost(session, error) is called once, if it is lost before it is released."""
        given = {"ttl_ms": _ms(ttl, "ttl", 100, 86_400_000), "holder": holder, "meta": meta}
        body = json.dumps({key: value for key, value in given.items() if value is not None}).encode()
        answer = _judge(self._lease.send("POST", "/v1/sessions", {"Content-Type": "application/json"}, body, self.timeout), (201,))
        told = _session_told(answer, None)
        if not isinstance(told.get("session_secret"), str) or not _LEASE_ID.fullmatch(told["session_secret"]):
            raise PawlUnknown("bad-answer", "the answer opens no session; it may have happened", answer.status)
        session = Session(self, told, _deadline(answer, told), on_lost)
        session._begin()
        return session

    def events(self, name: Optional[str] = None, since: Optional[str] = None) -> Iterator[_Json]:
        """What happens to this lease, or to all, as it happens: the items of the history, without an end. After a break it
        goes on behind the last one; what cannot be made up for is told as {"type": "missed"}. Raises what kept the first
        connection, and a refusal of the service's that stays one. A convenience, never the safety: the fence is."""
        last, listens = since or "", False
        path = "/v1/events" + ("" if name is None else "?lease=" + _lease_path(name).rsplit("/", 1)[1])
        while True:
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
            try:
                with self._lease.open("GET", path, headers, None, self.timeout) as (response, timed, sent):
                    if response.status != 200:
                        _judge(_Answer(response.status, response.headers, _body(response, "GET"), sent), ())
                    if listens and not last:
                        yield {"type": "missed"}
                    listens = True
                    for last, data in _sse(response, timed, last):
                        if data:
                            yield data
            except PawlError as error:
                if error.code == "cursor-expired":
                    last, listens = "", True
                elif not listens or 400 <= error.status < 500 and error.code != "bad-answer" and not error.retryable:
                    raise  # a refusal of Pawl's own
            _pause(3)

    # -- resources, through the gateway

    def put(self, key: str, body: Bytes, fencing_token: str, content_type: Optional[str] = None,
            if_match: Optional[str] = None, if_none_match: Optional[str] = None, idempotency_key: Optional[str] = None) -> str:
        """Writes; the etag of the new version. Sent once, unless it has an idempotency_key: a second copy of a write may
        arrive late, and undo what came after the first."""
        headers = {"Fencing-Token": fencing_token, "Content-Type": content_type, "If-Match": if_match,
                   "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key}
        return str(self._write("PUT", key, headers, body).headers.get("ETag"))

    def delete(self, key: str, fencing_token: str, if_match: Optional[str] = None, idempotency_key: Optional[str] = None
               ) -> None:
        """Removes; PawlNotDone, "not-found", when there is none. Sent once, unless it has an idempotency_key."""
        self._write("DELETE", key, {"Fencing-Token": fencing_token, "If-Match": if_match, "Idempotency-Key": idempotency_key},
                    None)

    def _write(self, method: str, key: str, headers: Dict[str, Optional[str]], body: Optional[Bytes]) -> _Answer:
        given = {name: value for name, value in headers.items() if value is not None}
        path = _path(key)
        if method == "PUT" and not isinstance(body, (bytes, bytearray, memoryview)):
            raise ValueError(f"the body must be bytes, not {type(body).__name__}")

        def attempt() -> _Answer:
            done = (201, 204) if method == "PUT" else (204,)
            answer = _judge(self._gateway.send(method, path, given, body, self.timeout), done)
            if not _is_written(method, answer):
                raise PawlUnknown("bad-answer", "not as a gateway of Pawl's answers; it may have happened", answer.status)
            return answer
        return self._settle(attempt, "Idempotency-Key" in given, loss_is_certain=False)

    def get(self, key: str, fencing_token: Optional[str] = None) -> Resource:
        """A Resource. With a fencing_token the read is fenced: after it no older write lands."""
        headers = {"Fencing-Token": fencing_token} if fencing_token else {}
        path = _path(key)

        def attempt() -> _Answer:
            answer = _judge(self._gateway.send("GET", path, headers, None, self.timeout), (200,))
            if not answer.headers.get("ETag") or not answer.headers.get("Fencing-Mark"):
                raise PawlUnknown("bad-answer", "not as a gateway of Pawl's answers", answer.status)
            return answer
        answer = self._settle(attempt, True)
        return Resource(answer.body, answer.headers.get("ETag"), answer.headers.get("Content-Type"))


def _session_told(answer: _Answer, session: Optional[str]) -> _Json:
    told = _json(answer)
    numbers = all(type(told.get(key)) is int and 0 <= told[key] <= _MOST[key] for key in ("ttl_ms", "expires_in_ms"))
    lost = told.get("lost", [])
    if not numbers or not _SESSION.fullmatch(str(told.get("session"))) \
            or session is not None and told["session"] != session or not isinstance(lost, list):
        raise PawlUnknown("bad-answer", "the answer is not about this session; it may have happened", answer.status)
    return told


def _sse(response: http.client.HTTPResponse, timed: _Timed, last: str) -> Iterator[Tuple[str, Optional[_Json]]]:
    """(id of the last event, the event or None) of server-sent events, until the connection breaks."""
    coming, data = last, ""
    while True:
        timed.end = time.monotonic() + _LISTEN_S
        line = response.readline(_ANSWER_BYTES_MAX)
        if not line.endswith(b"\n"):
            return
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        field, _, value = text.partition(": ")
        if field == "id":
            coming = value
        elif field == "data":
            data += value
        elif text == "":  # half an event has not been seen
            told = json.loads(data) if data else None
            last = coming or last
            yield last, told if isinstance(told, dict) else None
            data = ""


class _Kept:
    """What is ours until its deadline, and is renewed by a thread of its own. Lost stays lost: once the deadline has passed
    here, no late answer brings it back. After a fork it is the parent's: in the child remaining() is 0 and nothing is renewed
    or released."""

    def __init__(self, pawl: Pawl, name: str, told: _Json, deadline: float, on_lost: Optional[OnLost],
                 session: Optional["Session"] = None) -> None:
        self.name = name
        self.release_problem: Optional[PawlError] = None  # why leaving a `with` could not release; it then ends by its ttl
        self._pawl, self._on_lost, self._session, self._pid = pawl, on_lost, session, os.getpid()
        self._changed = threading.Condition(threading.RLock())
        # One at a time: of two ttls the one that was told last must be the one that counts. But a signal handler may interrupt
        # its own thread's, and renew: of these two the sooner end counts.
        self._renewing, self._renewals = threading.RLock(), 0
        self._count, self._fresh, self._released = 1, True, False
        self._lost: Optional[PawlLost] = None
        self._least = math.inf  # the shortest ttl of a renewal that may still be on its way
        self._told(told, deadline)

    def _told(self, told: _Json, deadline: float) -> None:
        begun: float = deadline - told["expires_in_ms"] / 1000
        self._deadline, self._ttl = min(deadline, begun + self._least), min(told["ttl_ms"] / 1000, self._least)
        self._renew_at = begun + self._ttl / 3 * random.uniform(0.8, 1.0)

    # -- is it still ours

    def _end(self) -> float:
        """Of what lives as long as its session, the session's."""
        return self._deadline if self._session is None else max(self._deadline, self._session._deadline)

    def _see(self) -> Optional[PawlLost]:
        """Looks at the clock, with the lock held. The loss, or None."""
        session = self._session
        lost = session._see() if session is not None else None
        if lost is not None:
            self._lose(lost)
        elif session is not None and session._released:
            self._released = True
        if self._lost is None and not self._released and _now() >= self._end():
            self._lose(PawlLost("deadline-passed", f"{self.name} could not be renewed in time: it may be another's now"))
        return self._lost

    def _lose(self, error: PawlLost) -> None:
        with self._changed:
            if self._lost is None and not self._released:
                self._lost = error
                self._changed.notify_all()
                if self._session is not None and self._on_lost is not None:  # it has no thread of its own
                    threading.Thread(target=self._on_lost, args=(self, error), daemon=True).start()

    @property
    def lost(self) -> Optional[PawlError]:
        """The PawlLost when it is lost, else None. In a forked child it is."""
        if self._pid != os.getpid():
            return PawlLost("other-process", f"{self.name} is held by the process that acquired it")
        with self._changed:
            return self._see()

    def remaining(self) -> float:
        """How many seconds it is certainly held yet, by the clock read in this very call; 0 when it is lost, released or
        past its deadline, and from then on always 0."""
        if self._pid != os.getpid():
            return 0.0
        with self._changed:
            return 0.0 if self._see() or self._released else max(0.0, self._end() - _now())

    def _check_process(self) -> None:
        """Before every lock: a thread of the parent's may have had it when the child was forked."""
        if self._pid != os.getpid():
            raise PawlNotDone("other-process", f"{self.name} is held by the process that acquired it")

    def check(self) -> None:
        """Raises PawlLost when it is over."""
        self._check_process()
        with self._changed:
            lost = self._see()
            if self._released:
                raise PawlLost("released", f"{self.name} has been released here")
            if lost is not None:
                raise lost

    # -- renewing

    def _begin(self) -> None:
        threading.Thread(target=self._keep, name=f"pawl {self.name}", daemon=True).start()

    def _keep(self) -> None:
        while self._wait_to_renew():
            try:
                self._renew_once(None)
            except PawlLost:
                pass  # it is marked
            except Exception:  # pylint: disable=broad-except  # whatever it is, the loss must be told in time
                with self._changed:
                    left = max(0.0, self._deadline - _now())
                    self._renew_at = _now() + max(0.01, min(self._ttl / 10, left / 4) * random.uniform(0.5, 1.0))
        if self._lost is not None:  # also when it was released since
            self._tell_loss(self._lost)

    def _tell_loss(self, error: PawlLost) -> None:
        if self._on_lost is not None:
            self._on_lost(self, error)

    def _wait_to_renew(self) -> bool:
        """True when it is time, False when it is over."""
        with self._changed:
            while not self._released and not self._see():
                pause = min(self._renew_at, self._deadline) - _now()
                if pause <= 0:
                    return True
                self._changed.wait(min(pause, 1.0))  # its clock may stand still while ours goes on
            return False

    def _renew_once(self, ttl_ms: Optional[int]) -> None:
        with self._renewing:
            self._renew_alone(ttl_ms)

    def _renew_alone(self, ttl_ms: Optional[int]) -> None:
        with self._changed:
            self.check()
            self._renewals += 1
            begun, before, which = _now(), self._deadline, self._renewals
            if ttl_ms is not None and begun + ttl_ms / 1000 < before:  # if it is done, the end is nearer from now on
                self._deadline, self._renew_at = begun + ttl_ms / 1000, begun + ttl_ms / 3000
                self._changed.notify_all()
            limit = min(self._pawl.timeout, self._ttl / 3, self._end() - begun)  # one that hangs leaves time for another
        try:
            told, deadline = self._ask(ttl_ms, max(0.01, limit))
        except PawlLost as error:
            self._lose(error)
            raise
        except BaseException as error:  # also an interrupt
            with self._changed:
                if isinstance(error, PawlNotDone) and which == self._renewals:
                    self._deadline = before
                elif ttl_ms is not None:
                    self._least = min(self._least, ttl_ms / 1000)
            raise
        with self._changed:
            self.check()
            if which == self._renewals:
                self._told(told, deadline)
            else:
                self._deadline = min(self._deadline, deadline)
            self._changed.notify_all()

    def _ask(self, ttl_ms: Optional[int], limit: float) -> Tuple[_Json, float]:
        raise NotImplementedError

    def _let_go(self) -> None:
        raise NotImplementedError

    # -- entering and leaving

    def release(self) -> None:
        """Leaves once; the last one releases. Again, after that, it does nothing. PawlLost: it was over before, perhaps
        while you worked. PawlNotDone, PawlUnknown: it ends by its ttl at the latest."""
        self._check_process()
        with self._changed:
            lost = self._see()  # by which it may have been released with its session
            if self._released:
                return
            self._count -= 1
            if self._count > 0:
                return
            self._drop()
        if lost is not None:
            with contextlib.suppress(PawlError):  # it ends by its ttl
                self._let_go()
            raise lost
        self._let_go()

    def _drop(self) -> None:
        with self._changed:
            self._released = True
            self._changed.notify_all()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """A loss is raised, unless something else is on its way already; what else kept the release is release_problem."""
        if self._pid != os.getpid():
            return
        try:
            self.release()
        except PawlLost as problem:
            self.release_problem = problem
            if kind is None:
                raise
        except PawlError as problem:
            self.release_problem = problem


class Hold(_Kept):
    """A lease that is held. Use it in a `with`: leaving it releases. It may be entered again (`with hold:`) by parts of a
    program that call each other: the last one that leaves releases. Safe for use by several threads, which it does not
    tell apart."""

    def __init__(self, pawl: Pawl, grant: _Json, deadline: float, on_lost: Optional[OnLost], session: Optional["Session"]
                 ) -> None:
        self.token, self.fencing_token = int(grant["token"]), str(grant["fencing_token"])
        self.epoch, self.mode, self.holder = grant.get("epoch"), grant.get("mode"), grant.get("holder")
        self._lease_id = grant["lease_id"]
        super().__init__(pawl, grant["lease"], grant, deadline, on_lost, session)
        if session is not None:
            session._holds.add(self)

    def __repr__(self) -> str:
        return f"<pawl.Hold {self.name} token={self.token}>"

    def _ask(self, ttl_ms: Optional[int], limit: float) -> Tuple[_Json, float]:
        grant, deadline = self._pawl._renew(self.name, self._lease_id, self.fencing_token, ttl_ms, limit)
        if grant["token"] != self.token:
            raise PawlUnknown("bad-answer", "the answer is not about this hold; it may have happened")
        return grant, deadline

    def renew(self, ttl: Optional[float] = None) -> None:
        """Now, longer or shorter; without ttl as before. What is in a session lives as long as that, and is only asked for."""
        self._check_process()
        ttl_ms = None if ttl is None or self._session is not None else _ms(ttl, "ttl", 100, 86_400_000)
        self._pawl._settle(lambda: self._renew_once(ttl_ms), True)

    def enter(self) -> "Hold":
        """Once more; PawlLost when it is over."""
        self._check_process()
        with self._changed:
            self.check()
            self._count += 1
        return self

    def __enter__(self) -> "Hold":
        if self._fresh:
            self._fresh = False
            self.check()
            return self
        return self.enter()

    def _let_go(self) -> None:
        self._pawl._release(self.name, self._lease_id, self.fencing_token, repeats=self._lost is None)

    def _drop(self) -> None:
        super()._drop()
        if self._session is not None:
            self._session._holds.discard(self)

    # -- resources, with this hold's token

    def _fenced(self, call: Callable[..., T], *args: Any, **more: Any) -> T:
        self.check()
        try:
            return call(*args, fencing_token=self.fencing_token, **more)
        except PawlLost as error:
            self._lose(error)
            raise
        except PawlUnknown as error:
            if isinstance(error.__cause__, PawlLost):
                self._lose(error.__cause__)
            raise

    def put(self, key: str, body: Bytes, **more: Optional[str]) -> str:
        """As Pawl.put()."""
        return self._fenced(self._pawl.put, key, body, **more)

    def get(self, key: str) -> Resource:
        """As Pawl.get(), fenced."""
        return self._fenced(self._pawl.get, key)

    def delete(self, key: str, **more: Optional[str]) -> None:
        """As Pawl.delete()."""
        self._fenced(self._pawl.delete, key, **more)


class Holds(List[Hold]):
    """Of several leases, in the order of their names. Leaving its `with` releases each."""

    def release(self) -> None:
        """All of them; then the first loss is raised, or what else kept one of them."""
        problems: List[PawlError] = []
        for hold in self:
            try:
                hold.release()
            except PawlError as error:
                hold.release_problem = error
                problems.append(error)
            except BaseException:  # an interrupt: nobody is left to release the rest, which ends by its ttl
                for rest in self:
                    rest._drop()
                raise
        for problem in sorted(problems, key=lambda one: not isinstance(one, PawlLost)):
            raise problem

    def __enter__(self) -> "Holds":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """As of a Hold."""
        try:
            self.release()
        except PawlLost:
            if kind is None:
                raise
        except PawlError:
            pass  # each has its release_problem


def _look_at(holds: List[Hold]) -> None:
    for hold in holds:
        with contextlib.suppress(PawlError):
            hold._renew_once(None)


class Session(_Kept):
    """One keep-alive for many leases: what is acquired with it lives as long as it does. Leaving its `with` releases all."""

    def __init__(self, pawl: Pawl, told: _Json, deadline: float, on_lost: Optional[OnLost]) -> None:
        self.id = str(told["session"])
        self._secret = {"Session-Secret": told["session_secret"]}
        self._holds: Set[Hold] = set()
        super().__init__(pawl, f"session {self.id}", told, deadline, on_lost)

    def acquire(self, name: str, **more: Any) -> Hold:
        """As Pawl.acquire(); its ttl does not count."""
        self.check()
        return self._pawl.acquire(name, session=self, **more)

    def acquire_all(self, names: Iterable[str], **more: Any) -> Holds:
        """As Pawl.acquire_all()."""
        self.check()
        return self._pawl.acquire_all(names, session=self, **more)

    def __enter__(self) -> "Session":
        return self

    def _ask(self, ttl_ms: Optional[int], limit: float) -> Tuple[_Json, float]:
        answer = _judge(self._pawl._lease.send("PUT", f"/v1/sessions/{self.id}", self._secret, None, limit), (200,))
        told = _session_told(answer, self.id)
        self._lost_names = set(map(str, told["lost"]))
        return told, _deadline(answer, told)

    def _renew_once(self, ttl_ms: Optional[int]) -> None:
        super()._renew_once(ttl_ms)
        # Which of our holds of that name it was, and whether it was acquired anew meanwhile, a renewal of its own tells.
        doubtful = [hold for hold in list(self._holds) if hold.name in self._lost_names]
        if doubtful:
            threading.Thread(target=_look_at, args=(doubtful,), daemon=True).start()

    def _tell_loss(self, error: PawlLost) -> None:
        for hold in list(self._holds):
            hold.lost  # pylint: disable=pointless-statement  # looks, and tells
        super()._tell_loss(error)

    def _let_go(self) -> None:
        self._pawl._settle(lambda: _judge(self._pawl._lease.send(
            "DELETE", f"/v1/sessions/{self.id}", self._secret, None, self._pawl.timeout), (204,)), True)
