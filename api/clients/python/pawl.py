"""pawl.py - leases with fencing tokens, from Python 3.9 on; this one file, nothing but the standard library.

    pawl = Pawl()                                    # PAWL_LEASE_URL, PAWL_GATEWAY_URL, or the usual ports of this machine
    with pawl.acquire("orders:42", ttl=30, wait=10, holder="billing-7") as hold:
        hold.put("orders:42", b"packed")             # refused (PawlLost) when somebody else has been granted it since

Every call ends in one of five ways: it returns (granted, or done), or it raises
    PawlHeld      certainly not granted: another holds it, or the wait is over
    PawlLost      this hold is over: stop what it protected
    PawlNotDone   certainly not done; .retryable says whether the same may help later
    PawlUnknown   it may have happened, or may yet happen. Never told as one of the others
A ValueError is a mistake of the caller's: nothing was sent. docs/clients.md says what to do about each.

Times are seconds. A hold is certainly ours until its deadline: the moment the answered request was *sent*, plus what was
waited, plus what the service says is left, on CLOCK_BOOTTIME, which goes on while the machine sleeps.
"""

import http.client
import io
import json
import math
import os
import random
import re
import secrets
import socket
import threading
import time
import urllib.parse

__all__ = ["Pawl", "Hold", "Resource", "PawlError", "PawlHeld", "PawlLost", "PawlNotDone", "PawlUnknown"]

_ANSWER_BYTES_MAX = 64 << 20
_WAIT_MS_MAX = 600_000  # docs/contract.md, "Limits"; a longer wait asks again
_MOST = {"token": 999_999_999_999_999, "ttl_ms": 86_400_000, "expires_in_ms": 86_400_000, "waited_ms": 10**12}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_LEASE_ID = re.compile(r"[A-Za-z0-9_-]{22,64}")
_FENCING_TOKEN = re.compile(r"[!-~]{1,1024}")
_HELD = {"lease-held", "wait-timeout"}
_LOST = {"lease-lost", "hold-over", "session-lost", "stale-token", "lease-expired"}


class PawlError(Exception):
    """What kept a call from its end. code, detail: of the service (api/problems.def), or this client's own ("not-sent",
    "no-answer", "bad-answer", "deadline-passed", "released", "other-process"). status: of HTTP, 0 if there was none.
    problem: all members of the service's answer."""

    def __init__(self, code, detail, status=0, problem=None):
        super().__init__(f"{code}: {detail}")
        self.code, self.detail, self.status, self.problem = code, detail, status, problem or {}
        self.retryable = self.problem.get("retryable") is True

    @property
    def holder(self):
        """Who holds it, if told."""
        return self.problem.get("holder")

    @property
    def ended(self):
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


class Resource:
    """What was read: body (bytes), etag, content_type."""

    def __init__(self, body, etag, content_type):
        self.body, self.etag, self.content_type = body, etag, content_type


def _now():
    """Seconds on a clock that goes on while the machine sleeps, where there is one (Linux)."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


# -- one request, sent once


class _Timed:
    """A connected socket that gives up at `end`, however slowly the other side talks: a socket's own timeout begins anew
    with each byte."""

    def __init__(self, sock, end):
        self.sock, self.end, self.ended = sock, end, False

    def _left(self):
        left = self.end - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        self.sock.settimeout(left)

    def sendall(self, data):
        self._left()
        self.sock.sendall(data)

    def makefile(self, _mode):
        return io.BufferedReader(_Reader(self))

    def recv_into(self, buffer):
        self._left()
        count = self.sock.recv_into(buffer)
        self.ended = self.ended or count == 0
        return count

    def close(self):
        """_Service closes it: http.client would do so before the body is read."""


class _Reader(io.RawIOBase):
    def __init__(self, timed):
        super().__init__()
        self.timed = timed

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.timed.recv_into(buffer)


class _Answer:
    def __init__(self, status, headers, body, sent):
        self.status, self.headers, self.body, self.sent, self.received = status, headers, body, sent, _now()

    def problem(self):
        """The problem as a dict, or None when it is not one as Pawl tells it: somebody between may have answered."""
        if not self.headers.get("Content-Type", "").startswith("application/problem+json"):
            return None
        told = self.json()
        ours = told is not None and isinstance(told.get("code"), str) and told.get("status") == self.status \
            and told.get("type") == f"/problems/{told['code']}"
        return told if ours else None

    def json(self):
        """The object that it is, or None."""
        try:
            told = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return told if isinstance(told, dict) else None


class _Service:
    """A base URL. Each request has a connection of its own, so that nothing is sent twice behind our back; no proxy, no
    redirect, nothing from the environment."""

    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
            raise ValueError(f"not the address of a service: {url!r}")
        self.kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.host, self.port, self.prefix = parts.hostname, parts.port, parts.path.rstrip("/")

    def send(self, method, path, headers, body, limit):
        """The whole answer. Raises PawlNotDone while nothing has left, PawlUnknown after that."""
        end = time.monotonic() + limit
        line = self.kind(self.host, self.port, timeout=limit)
        sock = None
        try:
            try:
                line.connect()
            except OSError as error:
                raise _not_sent(f"{self.host}: {error}") from error
            sock = line.sock
            line.sock = timed = _Timed(sock, end)
            sent = _now()
            try:
                line.request(method, self.prefix + path, body, {**headers, "Connection": "close"})
                return _answer(line, timed, method, sent)
            except (OSError, http.client.HTTPException) as error:
                raise PawlUnknown("no-answer", f"{self.host}: {error or type(error).__name__}; it may have happened"
                                  ) from error
        finally:
            line.close()
            if sock is not None:
                sock.close()


def _not_sent(why):
    return PawlNotDone("not-sent", f"{why}; nothing was sent", 0, {"retryable": True})


def _answer(line, timed, method, sent):
    try:
        response = line.getresponse()
        if timed.ended:  # http.client takes headers that are cut off for whole ones
            raise http.client.HTTPException("the answer is cut off")
        return _Answer(response.status, response.headers, _body(response, method), sent)
    except ValueError as error:  # http.client's, of numbers that are none; ours are told of what was not sent
        raise http.client.HTTPException("the answer is not HTTP") from error


def _body(response, method):
    if method == "HEAD" or response.status in (204, 304):
        return b""
    length = response.getheader("Content-Length")
    if length is None and not response.chunked:
        raise http.client.HTTPException("an answer without a length")
    body = response.read(_ANSWER_BYTES_MAX + 1)
    if len(body) > _ANSWER_BYTES_MAX or not response.chunked and len(body) != int(length):
        raise http.client.HTTPException("the answer is cut off, or too long")
    return body


def _judge(answer, done=(200, 201, 204)):
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
    if answer.status == 503 or 400 <= answer.status < 500 or code == "upstream-unavailable":
        raise PawlNotDone(code, said, answer.status, problem)
    raise PawlUnknown(code, said, answer.status, problem)  # 504, 500, and what we do not know


def _is_written(method, answer):
    """Whether it has what the gateway always says of a write that was done."""
    told = answer.headers
    return told.get("Fencing-Status", "").startswith("pawl;") and (method != "PUT" or bool(told.get("ETag")))


def _json(answer):
    told = answer.json()
    if told is None:
        raise PawlUnknown("bad-answer", "the answer is not JSON; it may have happened", answer.status)
    return told


# -- Pawl


def _path(key):
    parts = key.split("/")
    if not _NAME.fullmatch(parts[0]) or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"not the key of a resource: {key!r}")
    return "/v1/resources/" + urllib.parse.quote(key, safe="/:")


def _ms(seconds, what, least, most):
    value = round(seconds * 1000) if math.isfinite(seconds) else -1
    if not least <= value <= most:
        raise ValueError(f"{what} must be {least / 1000:g} to {most / 1000:g} s, not {seconds!r}")
    return value


class Pawl:
    """The two services. Safe for use by several threads. timeout: of one attempt, without its wait in line; attempts: at
    most, of what is safe to repeat."""

    def __init__(self, lease_url=None, gateway_url=None, timeout=5.0, attempts=3):
        self.timeout, self.attempts = timeout, max(1, attempts)
        self._lease = _Service(lease_url or os.environ.get("PAWL_LEASE_URL") or "http://127.0.0.1:8700")
        self._gateway = _Service(gateway_url or os.environ.get("PAWL_GATEWAY_URL") or "http://127.0.0.1:8701")

    def acquire(self, name, ttl=30.0, wait=0.0, holder=None, mode="exclusive", permits=None, lock_delay=0.0, meta=None,
                lease_id=None, on_lost=None, renew=True):
        """A Hold, which renews itself from now on (unless renew=False). wait: in line, first come, first served; None:
        until it is granted. permits: a counting semaphore, instead of mode. on_lost(hold, error) is called once, from the
        hold's own thread, if it is lost before it is released. lease_id: to propose; without one a random one is made,
        and so a lost answer is asked for again. When it is not known at the end whether it was granted, that random
        lease_id is released, once, and PawlUnknown is raised all the same."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"not the name of a lease: {name!r}")
        if lease_id is not None and not _LEASE_ID.fullmatch(lease_id):
            raise ValueError("lease_id: 22 to 64 of A-Z a-z 0-9 _ -")
        if on_lost is not None and not renew:
            raise ValueError("on_lost is called by the thread that renews: not with renew=False")
        ask = {"ttl_ms": _ms(ttl, "ttl", 100, 86_400_000), "lease_id": lease_id or secrets.token_urlsafe(24)}
        if lock_delay:
            ask["lock_delay_ms"] = _ms(lock_delay, "lock_delay", 0, 600_000)
        given = {"holder": holder, "permits": permits, "mode": None if permits else mode, "meta": meta}
        ask.update({key: value for key, value in given.items() if value is not None})
        try:
            grant, deadline = self._acquire(name, ask, wait)
        except BaseException as error:
            # Also a KeyboardInterrupt while we wait: then it may have been granted in that moment.
            unclear = isinstance(error, PawlUnknown) or not isinstance(error, (PawlError, ValueError))
            if unclear and lease_id is None:
                self._give_back(name, ask["lease_id"])
            raise
        hold = Hold(self, name, grant, deadline, on_lost)
        if hold.lost is not None:
            self._give_back(name, ask["lease_id"])
            raise hold.lost
        if renew:
            try:
                hold._begin()
            except BaseException:  # no thread can be had: it would end unseen
                self._give_back(name, ask["lease_id"])
                raise
        return hold

    def _acquire(self, name, ask, wait):
        end = None if wait is None else time.monotonic() + _ms(wait, "wait", 0, 10**12) / 1000
        body = dict(ask)

        def attempt():
            left = _WAIT_MS_MAX if end is None else max(0, round((end - time.monotonic()) * 1000))
            body["wait_ms"] = min(left, _WAIT_MS_MAX)
            answer = self._lease.send("POST", f"/v1/leases/{name}", {"Content-Type": "application/json"},
                                      json.dumps(body).encode(), body["wait_ms"] / 1000 + self.timeout)
            return self._granted(_judge(answer, (200, 201)), name, ask["lease_id"])

        doubt = None
        while True:
            try:
                return self._settle(attempt, True, doubt)
            except PawlHeld as error:
                more = end is None or time.monotonic() < end
                if error.code != "wait-timeout" or not more:
                    raise
            except PawlUnknown as error:
                more = end is None or time.monotonic() < end
                if not isinstance(error.__cause__, PawlHeld) or error.__cause__.code != "wait-timeout" or not more:
                    raise
                doubt = error

    @staticmethod
    def _granted(answer, name, lease_id):
        """(grant, deadline)."""
        grant = _json(answer)
        numbers = all(type(grant.get(key)) is int and 0 <= grant[key] <= most for key, most in _MOST.items())
        fencing = grant.get("fencing_token")
        if not numbers or not isinstance(fencing, str) or not _FENCING_TOKEN.fullmatch(fencing) \
                or grant.get("lease") != name or grant.get("lease_id") != lease_id:
            raise PawlUnknown("bad-answer", "the answer is not a grant of this lease; it may have happened", answer.status)
        waited = min(grant["waited_ms"] / 1000, answer.received - answer.sent)
        return grant, answer.sent + waited + grant["expires_in_ms"] / 1000

    def _settle(self, attempt, repeats, doubt=None, loss_is_certain=True):
        """Calls attempt() until its end is known. doubt: what may have happened already; from then on a refusal is no
        proof that nothing was done, for the earlier request may be done after the later one was refused.
        loss_is_certain: a PawlLost speaks of the hold, which is over whatever an earlier attempt did."""
        for number in range(self.attempts if repeats else 1):
            if number:
                threading.Event().wait(0.1 * 2 ** (number - 1) * random.uniform(0.5, 1.0))
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
        if doubt is not None and last is not doubt:
            raise PawlUnknown(doubt.code, f"{doubt.detail}; asked again: {last}", doubt.status, doubt.problem) from last
        raise last

    def _renew(self, name, lease_id, fencing_token, ttl_ms, limit):
        body = None if ttl_ms is None else json.dumps({"ttl_ms": ttl_ms}).encode()
        headers = {"Lease-Id": lease_id, "Fencing-Token": fencing_token}
        if body is not None:
            headers["Content-Type"] = "application/json"
        answer = self._lease.send("PUT", f"/v1/leases/{name}", headers, body, limit)
        return self._granted(_judge(answer, (200,)), name, lease_id)

    def _release(self, name, lease_id, fencing_token=None, repeats=True):
        """How many holds remain. The key makes a repeated release count once, however often it was entered."""
        headers = {"Lease-Id": lease_id, "Idempotency-Key": secrets.token_urlsafe(16)}
        if fencing_token:
            headers["Fencing-Token"] = fencing_token
        answer = self._settle(lambda: self._released(_judge(
            self._lease.send("DELETE", f"/v1/leases/{name}", headers, None, self.timeout), (200, 204))), repeats)
        return _json(answer)["holds"] if answer.status == 200 else 0

    @staticmethod
    def _released(answer):
        holds = _json(answer).get("holds") if answer.status == 200 else 0
        if type(holds) is not int or (answer.status == 200 and holds < 1):
            raise PawlUnknown("bad-answer", "the answer is not one to a release; it may have happened", answer.status)
        return answer

    def _give_back(self, name, lease_id):
        try:
            self._release(name, lease_id, repeats=False)
        except PawlError:
            pass  # it ends by its ttl

    def look(self, name):
        """Who holds it, as a dict; see GET /v1/leases/{name} in api/openapi.yaml."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"not the name of a lease: {name!r}")

        def attempt():
            told = _json(_judge(self._lease.send("GET", f"/v1/leases/{name}", {}, None, self.timeout), (200,)))
            if told.get("lease") != name or not isinstance(told.get("state"), str):
                raise PawlUnknown("bad-answer", "the answer is not about this lease")
            return told
        return self._settle(attempt, True)

    # -- resources, through the gateway

    def put(self, key, body, fencing_token, content_type=None, if_match=None, if_none_match=None, idempotency_key=None):
        """Writes; the etag of the new version. Sent once, unless it has an idempotency_key: a second copy of a write may
        arrive late, and undo what came after the first."""
        headers = {"Fencing-Token": fencing_token, "Content-Type": content_type, "If-Match": if_match,
                   "If-None-Match": if_none_match, "Idempotency-Key": idempotency_key}
        return self._write("PUT", key, headers, body).headers.get("ETag")

    def delete(self, key, fencing_token, if_match=None, idempotency_key=None):
        """Removes; PawlNotDone, "not-found", when there is none. Sent once, unless it has an idempotency_key."""
        self._write("DELETE", key, {"Fencing-Token": fencing_token, "If-Match": if_match, "Idempotency-Key": idempotency_key},
                    None)

    def _write(self, method, key, headers, body):
        given = {name: value for name, value in headers.items() if value is not None}
        path = _path(key)
        if method == "PUT" and not isinstance(body, (bytes, bytearray, memoryview)):
            raise ValueError(f"the body must be bytes, not {type(body).__name__}")

        def attempt():
            done = (201, 204) if method == "PUT" else (204,)
            answer = _judge(self._gateway.send(method, path, given, body, self.timeout), done)
            if not _is_written(method, answer):
                raise PawlUnknown("bad-answer", "not as a gateway of Pawl's answers; it may have happened", answer.status)
            return answer
        return self._settle(attempt, "Idempotency-Key" in given, loss_is_certain=False)

    def get(self, key, fencing_token=None):
        """A Resource. With a fencing_token the read is fenced: after it no older write lands."""
        headers = {"Fencing-Token": fencing_token} if fencing_token else {}
        path = _path(key)

        def attempt():
            answer = _judge(self._gateway.send("GET", path, headers, None, self.timeout), (200,))
            if not answer.headers.get("ETag") or not answer.headers.get("Fencing-Mark"):
                raise PawlUnknown("bad-answer", "not as a gateway of Pawl's answers", answer.status)
            return answer
        answer = self._settle(attempt, True)
        return Resource(answer.body, answer.headers.get("ETag"), answer.headers.get("Content-Type"))


class Hold:
    """A lease that is held. Use it in a `with`: leaving it releases. It may be entered again (`with hold:`) by parts of a
    program that call each other: the last one that leaves releases. Safe for use by several threads, which it does not
    tell apart.

    Lost stays lost: once the deadline has passed here, no late answer brings it back. After a fork the hold is the
    parent's: in the child remaining() is 0 and nothing is renewed or released."""

    def __init__(self, pawl, name, grant, deadline, on_lost):
        self.name, self.token, self.fencing_token = name, grant["token"], grant["fencing_token"]
        self.epoch, self.mode, self.holder = grant.get("epoch"), grant.get("mode"), grant.get("holder")
        self.release_problem = None  # why leaving a `with` could not release; the hold then ends by its ttl
        self._pawl, self._lease_id, self._on_lost, self._pid = pawl, grant["lease_id"], on_lost, os.getpid()
        self._changed = threading.Condition(threading.RLock())
        self._renewing = threading.Lock()  # one at a time: of two ttls the one that was told last must be the one that counts
        self._deadline, self._ttl = deadline, grant["ttl_ms"] / 1000
        self._count, self._fresh, self._released, self._lost = 1, True, False, None
        self._renew_at = deadline - grant["expires_in_ms"] / 1000 + self._pause()

    def __repr__(self):
        return f"<pawl.Hold {self.name} token={self.token}>"

    def _pause(self):
        return self._ttl / 3 * random.uniform(0.8, 1.0)

    # -- is it still ours

    def _see(self):
        """Looks at the clock, with the lock held. The loss, or None."""
        if self._lost is None and not self._released and _now() >= self._deadline:
            self._lose(PawlLost("deadline-passed", f"{self.name} could not be renewed in time: it may be another's now"))
        return self._lost

    def _lose(self, error):
        with self._changed:
            if self._lost is None and not self._released:
                self._lost = error
                self._changed.notify_all()

    @property
    def lost(self):
        """The PawlLost when it is lost, else None. In a forked child it is."""
        if self._pid != os.getpid():
            return PawlLost("other-process", f"{self.name} is held by the process that acquired it")
        with self._changed:
            return self._see()

    def remaining(self):
        """How many seconds it is certainly held yet, by the clock read in this very call; 0 when it is lost, released or
        past its deadline, and from then on always 0."""
        if self._pid != os.getpid():
            return 0.0
        with self._changed:
            return 0.0 if self._released or self._see() else max(0.0, self._deadline - _now())

    def _check_process(self):
        """Before every lock: a thread of the parent's may have had it when the child was forked."""
        if self._pid != os.getpid():
            raise PawlNotDone("other-process", f"{self.name} is held by the process that acquired it")

    def check(self):
        """Raises PawlLost when it is over."""
        self._check_process()
        with self._changed:
            if self._released:
                raise PawlLost("released", f"{self.name} has been released here")
            if self._see():
                raise self._lost

    # -- renewing

    def _begin(self):
        threading.Thread(target=self._keep, name=f"pawl {self.name}", daemon=True).start()

    def _keep(self):
        while self._wait_to_renew():
            try:
                self._renew_once(None)
            except PawlLost:
                pass  # it is marked
            except Exception:  # pylint: disable=broad-except  # whatever it is, the loss must be told in time
                with self._changed:
                    left = max(0.0, self._deadline - _now())
                    self._renew_at = _now() + max(0.01, min(self._ttl / 10, left / 4) * random.uniform(0.5, 1.0))
        if self._lost is not None and not self._released and self._on_lost is not None:
            self._on_lost(self, self._lost)

    def _wait_to_renew(self):
        """True when it is time, False when it is over."""
        with self._changed:
            while not self._released and not self._see():
                pause = min(self._renew_at, self._deadline) - _now()
                if pause <= 0:
                    return True
                self._changed.wait(min(pause, 1.0))  # its clock may stand still while ours goes on
            return False

    def _renew_once(self, ttl_ms):
        with self._renewing:
            self._renew_alone(ttl_ms)

    def _renew_alone(self, ttl_ms):
        with self._changed:
            self.check()
            begun, limit = _now(), min(self._pawl.timeout, self._deadline - _now())
        try:
            grant, deadline = self._pawl._renew(self.name, self._lease_id, self.fencing_token, ttl_ms, max(0.01, limit))
            if grant["token"] != self.token:
                raise PawlUnknown("bad-answer", "the answer is not about this hold; it may have happened")
        except PawlLost as error:
            self._lose(error)
            raise
        except PawlUnknown:
            if ttl_ms is not None:  # if it was done, and shorter, the end has come nearer
                with self._changed:
                    self._deadline = min(self._deadline, begun + ttl_ms / 1000)
            raise
        with self._changed:
            self.check()
            self._deadline, self._ttl = deadline, grant["ttl_ms"] / 1000
            self._renew_at = deadline - grant["expires_in_ms"] / 1000 + self._pause()
            self._changed.notify_all()

    def renew(self, ttl=None):
        """Now, longer or shorter; without ttl as before."""
        self._check_process()
        ttl_ms = None if ttl is None else _ms(ttl, "ttl", 100, 86_400_000)
        self._pawl._settle(lambda: self._renew_once(ttl_ms), True)

    # -- entering and leaving

    def enter(self):
        """Once more; PawlLost when it is over."""
        self._check_process()
        with self._changed:
            self.check()
            self._count += 1
        return self

    def release(self):
        """Leaves once; the last one releases the lease. Again, after that, it does nothing. PawlLost: it was over before,
        perhaps while you worked. PawlNotDone, PawlUnknown: the hold ends by its ttl at the latest."""
        self._check_process()
        with self._changed:
            if self._released:
                return
            self._count -= 1
            if self._count > 0:
                return
            lost = self._see()
            self._released = True
            self._changed.notify_all()
        if lost is not None:
            self._pawl._give_back(self.name, self._lease_id)
            raise lost
        self._pawl._release(self.name, self._lease_id, self.fencing_token)

    def __enter__(self):
        if self._fresh:
            self._fresh = False
            self.check()
            return self
        return self.enter()

    def __exit__(self, kind, error, trace):
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

    # -- resources, with this hold's token

    def _fenced(self, call, *args, **more):
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

    def put(self, key, body, **more):
        """As Pawl.put()."""
        return self._fenced(self._pawl.put, key, body, **more)

    def get(self, key):
        """As Pawl.get(), fenced."""
        return self._fenced(self._pawl.get, key)

    def delete(self, key, **more):
        """As Pawl.delete()."""
        return self._fenced(self._pawl.delete, key, **more)
