"""Holds an answer against api/openapi.yaml: path, method, status, headers, body. What is not written there is wrong."""

import json
import pathlib
import re
import urllib.parse

from .schema import Schemas

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "build/gen/openapi.json"  # read in a hundredth of the time of the YAML
# What HTTP itself adds to an answer. Every other header must be listed.
TRANSPORT_HEADERS = {"date", "content-length", "content-type", "connection"}
PROBLEM = "application/problem+json"


class Wrong(AssertionError):
    """The answer is not what the description says."""


def _pattern(path, parameters):
    """Of a path template: a parameter with x-slashes may hold several segments."""
    slashes = {one["name"] for one in parameters if one.get("x-slashes")}

    def part(match):
        return "(.+)" if match.group(1) in slashes else "([^/]+)"
    return re.compile("".join(part(m) if (m := re.match(r"\{(\w+)\}$", piece)) else re.escape(piece)
                              for piece in re.split(r"(\{\w+\})", path)))


class Contract:
    def __init__(self):
        self.document = json.loads(DOCUMENT.read_text(encoding="ascii"))
        self.schemas = Schemas(self.document)
        self.paths = []
        for template, item in self.document["paths"].items():
            parameters = [self._at(one) for one in item.get("parameters", [])]
            tags = {tag for one in item.values() if isinstance(one, dict) for tag in one.get("tags", [])}
            self.paths.append((_pattern(template, parameters), template, item, tags))
        self.seen = set()
        self.forwards = False  # the gateways have routes: what is not listed may be the upstream's answer

    def _at(self, node):
        while isinstance(node, dict) and "$ref" in node:
            node = self.schemas.at(node["$ref"])
        return node

    # -- which operation is it

    def _operation(self, service, method, path):
        """(name, operation) for this request at this service."""
        for pattern, template, item, tags in self.paths:
            if not pattern.fullmatch(path) or not tags & {service, "health"}:
                continue
            operation = item.get(method.lower()) if method.isupper() else None  # methods are case-sensitive
            if operation is None and item.get("x-other-methods") == "as-get":
                operation = item["get"]
            if operation is None:
                return f"{template} (method not listed)", self.document["x-other-methods"]
            return f"{method} {template}", operation
        if self.forwards and service == "gateway":
            return "forwarded", self.document["x-forwarded"]
        return "elsewhere", self.document["x-elsewhere"]

    def allowed(self, service, path):
        """The methods that Allow must list for this path."""
        for pattern, _, item, _ in self.paths:
            if pattern.fullmatch(path):
                return {key.upper() for key, one in item.items()
                        if isinstance(one, dict) and {service, "health"} & set(one.get("tags", []))}
        return set()

    # -- the answer

    def hold(self, service, method, target, request_headers, answer, before_routing=False):
        """Raises Wrong. target: as sent; request_headers: list of (name, value); answer: status, headers, body.
        before_routing: the request may have been refused before it could be routed, with any body or none."""
        path = target.partition("?")[0]
        name, operation = self._operation(service, method, path)
        where = f"{service}: {method} {target[:200]} -> {answer.status}"
        status = str(answer.status)
        if name == "forwarded" and not self._is_ours(answer):
            self._hold_upstreams(where, request_headers, answer)
            return
        if before_routing and status in self.document["x-before-routing"] and answer.header("Content-Type") != PROBLEM:
            self._closes(where, answer)
            return
        if status not in operation["responses"]:
            raise Wrong(f"{where}: this status is not listed for {name}; body {answer.body[:300]!r}")
        response = self._at(operation["responses"][status])
        body = self._hold_body(where, method, response, answer)
        self._hold_headers(where, response, request_headers, answer, body)
        if answer.status in (204, 405) and answer.header("Allow") is not None:
            self._hold_allow(where, service, path, answer)
        self.seen.add((name, status))

    @staticmethod
    def _is_ours(answer):
        """Whether the gateway itself says this, and not the upstream through it."""
        accepted = "verdict=accepted" in (answer.header("Fencing-Status") or "")
        return (answer.header("Content-Type") or "").partition(";")[0].strip() == PROBLEM and not accepted

    def _hold_upstreams(self, where, request_headers, answer):
        """Whatever the upstream says; the verdict is the gateway's, and comes with what was checked only."""
        verdict = answer.header("Fencing-Status")
        if (verdict is not None) != any(name.lower() == "fencing-token" for name, _ in request_headers):
            raise Wrong(f"{where}: Fencing-Status is {verdict!r}; headers {answer.headers}")
        if verdict is not None:
            self._hold_schema(f"{where}: header Fencing-Status", self.document["components"]["schemas"]["fencing-status"], verdict)

    @staticmethod
    def _closes(where, answer):
        if (answer.header("Connection") or "").lower() != "close":
            raise Wrong(f"{where}: an answer from before the routing must close the connection; "
                        f"headers {answer.headers}, body {answer.body[:200]!r}")

    def _hold_body(self, where, method, response, answer):
        """The problem, if the body is one."""
        content = response.get("content")
        media = (answer.header("Content-Type") or "").partition(";")[0].strip()
        if answer.body and method == "HEAD":
            raise Wrong(f"{where}: an answer to HEAD has a body")
        if content is None:
            if answer.body or media:
                raise Wrong(f"{where}: no body is listed, got {media!r} {answer.body[:300]!r}")
            return None
        if "*/*" in content:
            return None
        if media not in content:
            raise Wrong(f"{where}: type {media!r} is not listed, only {list(content)}; body {answer.body[:300]!r}")
        if method == "HEAD":
            return None
        if media != "application/json" and not media.endswith("+json"):
            return None
        body = strict_json(where, answer.body)
        self._hold_schema(where, content[media]["schema"], body)
        if media == PROBLEM and body["status"] != answer.status:
            raise Wrong(f"{where}: the problem says status {body['status']}")
        return body if media == PROBLEM else None

    def _hold_schema(self, where, schema, value):
        # A problem is compared with the schema of its code, so that what is told is what is wrong: of two, with either.
        kinds = schema.get("anyOf", []) if isinstance(value, dict) else []
        own = [one for one in kinds if one["$ref"].rpartition(".")[2] == value.get("code")]
        wrong = self.schemas.wrong(own[0] if len(own) == 1 else schema, value)
        if wrong is not None:
            among = f"none of {[one['$ref'].rpartition('/')[2] for one in kinds]}: " if kinds and not own else ""
            raise Wrong(f"{where}: {among}{wrong} in {json.dumps(value)[:600]}")

    def _hold_headers(self, where, response, request_headers, answer, problem):
        listed = response["headers"]
        known = {name.lower() for name in listed} | TRANSPORT_HEADERS
        for name, _ in answer.headers:
            if name.lower() not in known:
                raise Wrong(f"{where}: the header {name} is not listed")
        sent = {name.lower() for name, _ in request_headers}
        for name, entry in listed.items():
            header = self._at(entry)
            values = [value for one, value in answer.headers if one.lower() == name.lower()]
            if len(values) > 1:
                raise Wrong(f"{where}: the header {name} came {len(values)} times")
            wanted = self._header_wanted(header, sent, problem, answer)
            if wanted is True and not values:
                raise Wrong(f"{where}: the header {name} is missing; code {problem and problem['code']}")
            if wanted is False and values:
                raise Wrong(f"{where}: the header {name} should not be here: {values[0]}")
            if values:
                self._hold_schema(f"{where}: header {name}", header["schema"], values[0])

    @staticmethod
    def _header_wanted(header, sent, problem, answer):
        """True: it must be there. False: it must not. None: it may."""
        conditions = []
        if "x-with-codes" in header:
            if problem is None and answer.status >= 400:
                return None  # an answer to HEAD does not show its code
            conditions.append(problem is not None and problem["code"] in header["x-with-codes"])
        if "x-with-request-header" in header:
            conditions.append(header["x-with-request-header"].lower() in sent)
        return all(conditions) if conditions else header.get("required") or None

    def _hold_allow(self, where, service, path, answer):
        listed = set(answer.header("Allow").split(", "))
        if listed != self.allowed(service, path):
            raise Wrong(f"{where}: Allow is {sorted(listed)}, listed are {sorted(self.allowed(service, path))}")


def strict_json(where, text):
    """As the strictest reader would: UTF-8, no member twice, no NaN."""
    def members(pairs):
        if len({name for name, _ in pairs}) != len(pairs):
            raise Wrong(f"{where}: a member comes twice: {text[:300]!r}")
        return dict(pairs)

    def constant(name):
        raise Wrong(f"{where}: {name} is not JSON")
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=members, parse_constant=constant)
    except ValueError as error:
        raise Wrong(f"{where}: not JSON ({error}): {text[:300]!r}") from error


def quoted(key):
    """A resource key or name as path text."""
    return urllib.parse.quote(key, safe="/:!$&'()*+,;=@~-._")
