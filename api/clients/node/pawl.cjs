// pawl.cjs - leases with fencing tokens, from Node 18 on; this one file, no dependency. It can be import'ed, too.
//
//   const pawl = new Pawl();                 // PAWL_LEASE_URL, PAWL_GATEWAY_URL, or the usual ports of this machine
//   await pawl.with("orders:42", { ttlMs: 30000, waitMs: 10000, holder: "billing-7" }, async (hold) => {
//     await hold.put("orders:42", "packed");  // refused (PawlLost) when somebody else has been granted it since
//   });
//   const session = await pawl.session({ ttlMs: 15000 });               // one keep-alive for many leases
//   const shard = await session.acquire("shard:17");
//   const holds = await pawl.acquireAll(["account:1", "account:2"]);    // all or none
//   for await (const item of pawl.events("orders:42")) { ... }          // what happens to it, as it happens; goes on by itself
//
// Every call ends in one of five ways: it resolves (granted, or done), or it rejects with
//   PawlHeld      certainly not granted: another holds it, or the wait is over
//   PawlLost      this hold is over: stop what it protected
//   PawlNotDone   certainly not done; .retryable says whether the same may help later
//   PawlUnknown   it may have happened, or may yet happen. Never told as one of the others
// A TypeError is a mistake of the caller's: nothing was sent. docs/clients.md says what to do about each.
//
// A hold is certainly ours until its deadline: the moment the answered request was *sent*, plus what was waited, plus what
// the service says is left, on Node's monotonic clock. That clock stands still while the machine sleeps: after a sleep
// remainingMs() says too much, by the length of the sleep, until a renewal or a write is refused.

"use strict";
const { X509Certificate, createPrivateKey, randomBytes } = require("node:crypto");
const fs = require("node:fs");
const http = require("node:http");
const https = require("node:https");
const net = require("node:net");
const { createSecureContext } = require("node:tls");

const ANSWER_BYTES_MAX = 64 << 20;
const SLICE_MS = 20000; // of one request's wait in line, before a proxy ends it; of the place's keeping; of sitting out a restart
const WAIT_MS_MAX = 600000; // docs/contract.md, "Limits": of several leases, of which no place is kept
const LISTEN_MS = 60000; // a stream of events says something every 15 s
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
const LEASE_ID = /^[A-Za-z0-9_-]{22,64}$/;
const SESSION = /^[A-Za-z0-9_-]{16,64}$/;
const FENCING_TOKEN = /^[!-~]{1,1024}$/;
const ACCESS_TOKEN = /^[!-~]{1,4094}$/;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/;
const LEAST = { token: 1, ttl_ms: 1 }; // else 0
const MOST = { token: 999999999999999, ttl_ms: 86400000, expires_in_ms: 86400000, waited_ms: 1e12 };
const HELD = new Set(["lease-held", "wait-timeout"]);
const LOST = new Set(["lease-lost", "hold-over", "session-lost", "stale-token", "lease-expired"]);

// code, message: of the service (api/problems.def), or this client's own ("not-sent", "no-answer", "bad-answer",
// "deadline-passed", "released", "aborted"). status: of HTTP, 0 if there was none. problem: all members of the service's
// answer; holder: who holds it, if told; ended: of a lost hold, how, if told.
class PawlError extends Error {
  constructor(code, detail, status = 0, problem = {}, cause = undefined) {
    super(`${code}: ${detail}`, cause === undefined ? undefined : { cause });
    this.name = this.constructor.name;
    Object.assign(this, { code, detail, status, problem, retryable: problem.retryable === true });
    this.holder = problem.holder ?? null;
    this.ended = problem.ended ?? null;
  }
}
class PawlHeld extends PawlError {}
class PawlLost extends PawlError {}
class PawlNotDone extends PawlError {}
// cause: what was said to a later attempt, if anything was
class PawlUnknown extends PawlError {}

const nowMs = () => performance.now(); // monotonic; Date.now() jumps

// A timer that keeps no program alive.
const timer = (call, ms) => {
  const made = setTimeout(call, Math.min(Math.max(0, ms), 0x7fffffff));
  made.unref();
  return made;
};

// -- one request, sent once

class Service {
  #token;
  #tls = () => ({});

  constructor(url, access) {
    const parts = new URL(url);
    const socket = parts.protocol === "unix:";
    if (!["http:", "https:", "unix:"].includes(parts.protocol) || parts.search || parts.hash || parts.username) {
      throw new TypeError(`not the address of a service: ${url}`);
    }
    this.library = parts.protocol === "https:" ? https : http;
    this.host = socket ? url : parts.hostname.replace(/^\[|\]$/g, "");
    this.to = socket ? { socketPath: url.slice(5), host: "localhost" } : { host: this.host, port: parts.port || undefined };
    // Node 18 would try the first address alone; a second for each, since the last one may have no longer than the others there.
    if (!net.getDefaultAutoSelectFamily?.()) Object.assign(this.to, { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: 1000 });
    this.prefix = socket ? "" : parts.pathname.replace(/\/+$/, "");
    this.#token = access.token;
    if (access.shows && this.library === http && !socket && !access.plaintext && !LOOPBACK.test(this.host)) {
      throw new TypeError(`an access token is sent over https://, a unix socket and loopback alone, not to ${url}: allowPlaintext`);
    }
    if (this.library === https) this.#tls = access.tls();
  }

  // The whole answer; PawlNotDone while nothing has left, PawlUnknown after that. A connection of its own for each request,
  // so that nothing is sent twice behind our back; no proxy, no redirect. signal: gives up. streamed: of a 200 the body is left
  // to be read, and close() ends it.
  send(method, path, headers, body, limitMs, signal, streamed = false) {
    return new Promise((resolve, reject) => {
      let connected = false;
      let done = false;
      const agent = new this.library.Agent({ keepAlive: false });
      const length = body === undefined ? {} : { "Content-Length": Buffer.byteLength(body) };
      const access = this.#token(); // throws: a rejection
      const sent = nowMs();
      const request = this.library.request({
        method, ...this.to, ...this.#tls(), path: this.prefix + path, agent,
        headers: { ...headers, ...access, ...length, Connection: "close" },
      });
      const end = (call, value) => {
        if (done) return;
        done = true;
        clearTimeout(limit);
        signal?.removeEventListener("abort", give);
        request.destroy();
        agent.destroy();
        call(value);
      };
      const fail = (why, code = "no-answer") => end(reject, connected
        ? new PawlUnknown(code, `${this.host}: ${why}; it may have happened`)
        : new PawlNotDone(code === "aborted" ? code : "not-sent", `${this.host}: ${why}; nothing was sent`, 0,
          { retryable: code !== "aborted" }));
      const give = () => fail("given up", "aborted");
      const limit = setTimeout(() => fail("no whole answer in time"), limitMs);
      signal?.addEventListener("abort", give);
      request.on("error", (error) => fail(error.message || error.code)); // also of what is destroyed before it has begun
      if (signal?.aborted) { give(); return; }
      const ready = this.library === https ? "secureConnect" : "connect"; // nothing leaves before
      request.on("socket", (socket) => socket.once(ready, () => { connected = true; }));
      request.on("upgrade", (_, socket) => { socket.destroy(); fail("not an answer"); });
      request.on("response", (response) => {
        if (streamed && response.statusCode === 200) {
          done = true;
          clearTimeout(limit);
          signal?.removeEventListener("abort", give);
          request.setTimeout(LISTEN_MS, () => request.destroy());
          resolve({ status: 200, headers: response.headers, response, close: () => { request.destroy(); agent.destroy(); } });
          return;
        }
        const pieces = [];
        let size = 0;
        response.on("data", (piece) => {
          pieces.push(piece);
          size += piece.length;
          if (size > ANSWER_BYTES_MAX) fail("the answer is too long");
        });
        response.on("error", (error) => fail(error.message));
        response.on("aborted", () => fail("the answer is cut off"));
        response.on("end", () => {
          const told = response.headers;
          const empty = [204, 304].includes(response.statusCode);
          if (!response.complete || (!empty && told["content-length"] === undefined && !told["transfer-encoding"])) {
            fail("the answer is cut off");
            return;
          }
          end(resolve, { status: response.statusCode, headers: told, body: Buffer.concat(pieces), sent, received: nowMs() });
        });
      });
      request.end(body);
    });
  }
}

// Who asks, and whom it trusts. token(): the header with the access token that there is now.
function accessOf({ accessToken, accessTokenFile, ca, cert, key, allowPlaintext = false }) {
  const { env } = process;
  const file = accessTokenFile || (accessToken ? undefined : env.PAWL_ACCESS_TOKEN_FILE);
  const given = accessToken || env.PAWL_ACCESS_TOKEN;
  const read = (from) => (from ? fs.readFileSync(from, "latin1") : undefined);
  const fail = (why) => { throw new PawlNotDone("not-sent", `the access token ${why}; nothing was sent`, 0, { retryable: true }); };
  const token = () => {
    let now = given;
    try {
      if (file) now = fs.readFileSync(file, "latin1").replace(/[\r\n]+$/, "");
    } catch (error) {
      fail(`cannot be read: ${error.message}`);
    }
    if (!file && !now) return {};
    if (!ACCESS_TOKEN.test(now)) fail("is none"); // and it is in no message
    return { Authorization: `Bearer ${now}` };
  };
  const files = () => ({ ca: read(ca || env.PAWL_CACERT), cert: read(cert || env.PAWL_CERT), key: read(key || env.PAWL_CERT_KEY) });
  // Throws when it cannot be used. createSecureContext() takes an empty file for none, and authorities that are none for no authority.
  const usable = (now) => {
    createSecureContext(present(now));
    for (const [name, text] of Object.entries(present(now))) name === "key" ? createPrivateKey(text) : new X509Certificate(text);
  };
  // By what the files have now; while that cannot be used (one is new, another is not yet), by what they had before.
  const tls = () => {
    let made;
    try {
      made = files();
      usable(made);
    } catch (error) {
      throw new TypeError(`ca, cert and key cannot be used: ${error.message}`);
    }
    return () => {
      try {
        const now = files();
        if (Object.keys(now).some((one) => now[one] !== made[one])) {
          usable(now);
          made = now;
        }
      } catch { /* later */ }
      return present(made);
    };
  };
  return { token, tls, shows: Boolean(file || given), plaintext: allowPlaintext };
}

function parsed(answer) {
  try {
    const told = JSON.parse(answer.body.toString("utf8"));
    return told !== null && typeof told === "object" && !Array.isArray(told) ? told : null;
  } catch {
    return null;
  }
}

// The answer when it is done, else the rejection that it means. done: what Pawl says then. A problem counts only as Pawl tells
// it: somebody between, who does not know what became of the request, may have answered.
function judge(answer, done) {
  const { status } = answer;
  if (done.includes(status)) return answer;
  const problem = (answer.headers["content-type"] ?? "").startsWith("application/problem+json") ? parsed(answer) : null;
  if (problem === null || typeof problem.code !== "string" || problem.type !== `/problems/${problem.code}` ||
      problem.status !== status) {
    throw new PawlUnknown("bad-answer", `status ${status}, not as Pawl answers; it may have happened`, status);
  }
  const { code } = problem;
  const said = [code, String(problem.detail ?? code), status, problem];
  if (HELD.has(code)) throw new PawlHeld(...said);
  if (LOST.has(code)) throw new PawlLost(...said);
  if (status === 501 || status === 503 || (status >= 400 && status < 500) || code === "upstream-unavailable") throw new PawlNotDone(...said);
  throw new PawlUnknown(...said); // 504, 500, and what we do not know
}

function foreign(answer, why = "not as Pawl answers; it may have happened") {
  return new PawlUnknown("bad-answer", `status ${answer.status}, ${why}`, answer.status);
}

// When what was answered ends, at the earliest: the store's clock is cut to milliseconds.
function deadlineOf(answer, told) {
  return answer.sent + Math.min(told.waited_ms ?? 0, answer.received - answer.sent) + told.expires_in_ms - 1;
}

// { told, deadline }
function granted(answer, name, leaseId, grant = parsed(answer) ?? {}) {
  const within = ([key, most]) => Number.isSafeInteger(grant[key]) && grant[key] >= (LEAST[key] ?? 0) && grant[key] <= most;
  if (!Object.entries(MOST).every(within) || typeof grant.fencing_token !== "string" ||
      !FENCING_TOKEN.test(grant.fencing_token) || grant.lease !== name || grant.lease_id !== leaseId) {
    throw new PawlUnknown("bad-answer", "the answer is not a grant of this lease; it may have happened", answer.status);
  }
  return { told: grant, deadline: deadlineOf(answer, grant) };
}

// Of a session; the same.
function alive(answer, id) {
  const told = parsed(answer) ?? {};
  const within = (key) => Number.isSafeInteger(told[key]) && told[key] >= 0 && told[key] <= MOST[key];
  if (!["ttl_ms", "expires_in_ms"].every(within) || !SESSION.test(told.session) || told.session !== (id ?? told.session) ||
      !(id === undefined ? LEASE_ID.test(told.session_secret) : Array.isArray(told.lost))) {
    throw foreign(answer, "not about this session; it may have happened");
  }
  return { told, deadline: deadlineOf(answer, told) };
}

function checkName(name) {
  if (typeof name !== "string" || !NAME.test(name)) throw new TypeError(`not the name of a lease: ${name}`);
}

function checkMs(value, what, least, most) {
  if (!Number.isSafeInteger(value) || value < least || value > most) {
    throw new TypeError(`${what} must be an integer from ${least} to ${most}, not ${value}`);
  }
  return value;
}

function resourcePath(key) {
  const parts = String(key).split("/");
  if (!NAME.test(parts[0]) || parts.some((part) => ["", ".", ".."].includes(part) || /\p{Surrogate}/u.test(part))) {
    throw new TypeError(`not the key of a resource: ${key}`);
  }
  return "/v1/resources/" + parts.map((part) => encodeURIComponent(part).replace(/%3A/g, ":")).join("/");
}

const present = (headers) => Object.fromEntries(Object.entries(headers).filter(([, value]) => value != null));

const pause = (tried) => new Promise((resolve) => {
  setTimeout(resolve, 100 * 2 ** Math.min(tried - 1, 3) * (0.5 + Math.random() / 2));
});

// How it ended: once something may have happened, a refusal is no proof that nothing was done, for the earlier request may be
// done after the later one was refused.
function inDoubt(doubt, last) {
  return doubt === null || last instanceof PawlUnknown ? last
    : new PawlUnknown(doubt.code, `${doubt.detail}; asked again: ${last.message}`, doubt.status, doubt.problem, last);
}

// Attempts until the end is known. lossIsCertain: a PawlLost speaks of the hold, which is over whatever an earlier attempt did.
async function settle(attempt, attempts, lossIsCertain = true) {
  let doubt = null;
  let last = null;
  for (let number = 0; number < attempts; number++) {
    if (number > 0) await pause(number);
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof PawlError)) throw error;
      last = error;
      if (error instanceof PawlLost && lossIsCertain) throw error;
      if (error instanceof PawlUnknown) doubt = error;
      else if (!(error instanceof PawlNotDone && error.retryable)) break;
    }
  }
  throw inDoubt(doubt, last);
}

// -- Pawl

// An address may also be unix:/path. timeoutMs: of one attempt, without its wait in line; attempts: at most, of what is safe to
// repeat. accessToken, or the file where it stands, which is read for each request; without either PAWL_ACCESS_TOKEN_FILE or
// PAWL_ACCESS_TOKEN. ca, cert, key: files, of https; else PAWL_CACERT, PAWL_CERT, PAWL_CERT_KEY. allowPlaintext: the access token
// goes over http:// to other machines, too.
class Pawl {
  #lease;
  #gateway;

  constructor({ leaseUrl, gatewayUrl, timeoutMs = 5000, attempts = 3, ...access } = {}) {
    const known = accessOf(access);
    this.#lease = new Service(leaseUrl || process.env.PAWL_LEASE_URL || "http://127.0.0.1:8700", known);
    this.#gateway = new Service(gatewayUrl || process.env.PAWL_GATEWAY_URL || "http://127.0.0.1:8701", known);
    this.timeoutMs = timeoutMs;
    this.attempts = Math.max(1, attempts);
  }

  // A Hold, which renews itself from now on (unless renew is false). waitMs: in line, first come, first served; Infinity:
  // until it is granted; connections that break and restarts of the services do not cost the place in it. permits: a counting
  // semaphore, instead of mode. onLost(hold, error) is called once, if it is lost before it is released. signal: gives the
  // wait up ("aborted"). leaseId: to propose; without one a random one is made, and so a lost answer is asked for again. When
  // it is not known at the end whether it was granted, that random lease_id is released, once, and PawlUnknown is said all the
  // same.
  async acquire(name, options = {}) {
    checkName(name);
    return (await this.#acquire(`/v1/leases/${name}`, [name], {}, options))[0];
  }

  // All or none: the Holds in the order of names, each to be renewed and released by itself. No place in line outlives its
  // connection.
  async acquireAll(names, options = {}) {
    names.forEach(checkName);
    return this.#acquire("/v1/leases", [...names], { names }, options);
  }

  async #acquire(path, names, several, { ttlMs = 30000, waitMs = 0, holder, mode = "exclusive", permits, lockDelayMs = 0, meta,
    leaseId, onLost, renew = true, signal, session }) {
    if (leaseId !== undefined && !LEASE_ID.test(leaseId)) throw new TypeError("leaseId: 22 to 64 of A-Z a-z 0-9 _ -");
    if (waitMs !== Infinity) checkMs(waitMs, "waitMs", 0, Number.MAX_SAFE_INTEGER);
    const ask = present({
      ttl_ms: checkMs(ttlMs, "ttlMs", 100, 86400000), lease_id: leaseId ?? randomBytes(24).toString("base64url"), holder,
      lock_delay_ms: checkMs(lockDelayMs, "lockDelayMs", 0, 600000) || null, meta, permits, mode: permits ? null : mode,
      session: session?.id, ...several,
    });
    const headers = { "Content-Type": "application/json", ...session?._secret() };
    let got;
    try {
      got = await this.#obtain(path, ask, headers, waitMs, signal);
    } catch (error) {
      const unclear = error instanceof PawlUnknown || (error.code === "aborted" && waitMs > 0);
      if (unclear && leaseId === undefined) await this.#forget(path, ask, headers, names, waitMs > 0);
      throw error;
    }
    const holds = got.map((one) => new Hold(this, one, onLost, renew, session));
    const late = holds.find((hold) => hold.lost !== null);
    if (late !== undefined) {
      // What the caller has proposed another of its processes may hold by now.
      if (leaseId === undefined) await Promise.allSettled(holds.map((hold) => hold.release()));
      for (const hold of holds) hold._drop();
      throw late.lost;
    }
    return holds;
  }

  // The grants. Waits in slices, and keeps the place in line between them; while nobody of Pawl's answers, as long as the place
  // is kept.
  async #obtain(path, ask, headers, waitMs, signal) {
    const end = nowMs() + waitMs;
    const most = ask.names ? WAIT_MS_MAX : SLICE_MS;
    let doubt = null;
    let asked = false; // in line: what gives the place back may yet be granted the lease
    let tried = 0;
    for (let heard = nowMs(); ;) {
      const left = Math.round(end - nowMs());
      const body = waitMs === 0 ? ask : { ...ask, wait_ms: Math.max(1, Math.min(left, most)),
        ...(left > 0 && !ask.names && { keep_place_ms: SLICE_MS }) };
      const begun = nowMs();
      try {
        return await this.#grants(path, body, headers, signal);
      } catch (error) {
        if (!(error instanceof PawlError) || error instanceof PawlLost) throw error;
        if (error.code === "aborted") {
          throw inDoubt(doubt ?? (asked ? new PawlUnknown("aborted", "given up in line") : null), error);
        }
        asked ||= waitMs > 0 && error.code !== "not-sent";
        if (error instanceof PawlHeld) {
          if (error.code !== "wait-timeout" || (left <= most && !error.problem.place_kept_ms)) throw inDoubt(doubt, error);
          tried = 0;
          heard = nowMs();
          continue;
        }
        const ours = doubt !== null && error.code === "superseded"; // by our own request, late
        if (error instanceof PawlUnknown) doubt = error;
        else if (!error.retryable && !ours) throw inDoubt(doubt, error);
        if (error.code !== "not-sent" && nowMs() - begun >= 1000 && nowMs() - begun <= body.wait_ms) { // we stood in line until now
          tried = 0;
          heard = nowMs();
        }
        tried += 1;
        if (tried >= this.attempts && (left <= 0 || nowMs() - heard > SLICE_MS)) throw inDoubt(doubt, error);
      }
      await pause(tried);
    }
  }

  async #grants(path, body, headers, signal) {
    const names = body.names ?? [path.slice(path.lastIndexOf("/") + 1)];
    const answer = judge(await this.#lease.send("POST", path, headers, JSON.stringify(body),
      (body.wait_ms ?? 0) + this.timeoutMs, signal), [200, 201]);
    const told = body.names ? parsed(answer)?.grants : [parsed(answer) ?? {}];
    if (!Array.isArray(told) || told.length !== names.length) throw foreign(answer, "not a grant of these leases");
    return told.map((grant, at) => granted(answer, names[at], body.lease_id, grant ?? {}));
  }

  // Gives the place in line back, by a request that takes it and keeps it no more, and what may be held.
  async #forget(path, ask, headers, names, waited) {
    if (waited) await this.#grants(path, { ...ask, wait_ms: 1 }, headers).catch(() => {});
    await Promise.all(names.map((name) => this._giveBack(name, ask.lease_id)));
  }

  // Acquires, calls body(hold), and releases, however body ends. A loss is told, unless body has thrown; what else kept the
  // release is hold.releaseProblem.
  async with(name, options, body) {
    const hold = await this.acquire(name, options);
    let result;
    try {
      result = await body(hold);
    } catch (error) {
      await hold.release().catch((problem) => { hold.releaseProblem = problem; });
      throw error;
    }
    await hold.release().catch((problem) => {
      hold.releaseProblem = problem;
      if (problem instanceof PawlLost) throw problem;
    });
    return result;
  }

  // Who holds it; see GET /v1/leases/{name} in api/openapi.yaml.
  async look(name) {
    checkName(name);
    return settle(async () => {
      const answer = judge(await this.#lease.send("GET", `/v1/leases/${name}`, {}, undefined, this.timeoutMs), [200]);
      const told = parsed(answer);
      if (told?.lease !== name || typeof told.state !== "string") throw foreign(answer, "not about this lease");
      return told;
    }, this.attempts);
  }

  // Opens a Session, which keeps itself alive. Asked for once: one whose answer was lost holds nothing, and ends by its ttl.
  // onLost(session, error) is called once, if it is lost before it is released.
  async session({ ttlMs = 30000, holder, meta, onLost } = {}) {
    const body = JSON.stringify(present({ ttl_ms: checkMs(ttlMs, "ttlMs", 100, 86400000), holder, meta }));
    const answer = await this.#lease.send("POST", "/v1/sessions", { "Content-Type": "application/json" }, body, this.timeoutMs);
    return new Session(this, alive(judge(answer, [201])), onLost);
  }

  async _session(method, id, secret, limitMs = this.timeoutMs) {
    const answer = judge(await this.#lease.send(method, `/v1/sessions/${id}`, secret, undefined, limitMs),
      [method === "PUT" ? 200 : 204]);
    return method === "PUT" ? alive(answer, id) : null;
  }

  // What happens to this lease, or to all, as it happens: the items of the history, without an end. After a break it goes on
  // behind the last one; what cannot be made up for is told as { type: "missed" }. Throws what kept the first connection, a
  // refusal of the service's that stays one, and what signal says. A convenience, never the safety: the fence is.
  async *events(name, { since = "", signal } = {}) {
    if (name !== undefined) checkName(name);
    const path = "/v1/events" + (name === undefined ? "" : `?lease=${name}`);
    let last = since;
    for (let listens = false; ;) {
      let stream;
      try {
        const headers = { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
        stream = await this.#lease.send("GET", path, headers, undefined, this.timeoutMs, signal, true);
        if (!stream.response) judge(stream, []);
        signal?.addEventListener("abort", stream.close);
        if (listens && !last) yield { type: "missed" };
        listens = true;
        for await (const [id, item] of serverSent(stream.response, last)) {
          last = id;
          if (item !== null) yield item;
        }
      } catch (error) {
        if (error.code === "cursor-expired") {
          last = "";
          listens = true;
        } else if (error instanceof PawlError && (!listens ||
            (error.status >= 400 && error.status < 500 && error.code !== "bad-answer" && !error.retryable))) {
          throw error; // a refusal of Pawl's own
        }
      } finally {
        stream?.close?.();
        if (stream) signal?.removeEventListener("abort", stream.close);
      }
      if (signal?.aborted) throw new PawlNotDone("aborted", "given up");
      await pause(3);
    }
  }

  async _renew(name, leaseId, fencingToken, ttlMs, limitMs) {
    const body = ttlMs === undefined ? undefined : JSON.stringify({ ttl_ms: ttlMs });
    const headers = present({ "Lease-Id": leaseId, "Fencing-Token": fencingToken,
      "Content-Type": body === undefined ? null : "application/json" });
    const answer = await this.#lease.send("PUT", `/v1/leases/${name}`, headers, body, limitMs);
    return granted(judge(answer, [200]), name, leaseId);
  }

  // The key makes a repeated release count once, however often it was entered.
  async _release(name, leaseId, fencingToken, attempts = this.attempts) {
    const headers = present({ "Lease-Id": leaseId, "Fencing-Token": fencingToken,
      "Idempotency-Key": randomBytes(16).toString("base64url") });
    await settle(async () => {
      const answer = judge(
        await this.#lease.send("DELETE", `/v1/leases/${name}`, headers, undefined, this.timeoutMs), [200, 204]);
      if (answer.status === 200 && !(parsed(answer)?.holds >= 1)) throw foreign(answer);
    }, attempts);
  }

  async _giveBack(name, leaseId) {
    await this._release(name, leaseId, null, 1).catch(() => {}); // it ends by its ttl
  }

  // -- resources, through the gateway

  // Writes; the etag of the new version. Sent once, unless it has an idempotencyKey: a second copy of a write may arrive
  // late, and undo what came after the first.
  async put(key, body, fencingToken, { contentType, ifMatch, ifNoneMatch, idempotencyKey } = {}) {
    const answer = await this.#write("PUT", key, { "Fencing-Token": fencingToken, "Content-Type": contentType,
      "If-Match": ifMatch, "If-None-Match": ifNoneMatch, "Idempotency-Key": idempotencyKey }, body);
    return answer.headers.etag ?? null;
  }

  // Removes; PawlNotDone, "not-found", when there is none. Sent once, unless it has an idempotencyKey.
  async delete(key, fencingToken, { ifMatch, idempotencyKey } = {}) {
    await this.#write("DELETE", key, { "Fencing-Token": fencingToken, "If-Match": ifMatch,
      "Idempotency-Key": idempotencyKey });
  }

  async #write(method, key, headers, body) {
    const path = resourcePath(key);
    const given = present(headers);
    if (method === "PUT" && typeof body !== "string" && !(body instanceof Uint8Array)) {
      throw new TypeError("the body must be a string, a Buffer or a Uint8Array");
    }
    return settle(async () => {
      const answer = judge(await this.#gateway.send(method, path, given, body, this.timeoutMs),
        method === "PUT" ? [201, 204] : [204]);
      const told = answer.headers; // has what the gateway always says of a write that was done
      if (!told["fencing-status"]?.startsWith("pawl;") || (method === "PUT" && !told.etag)) throw foreign(answer);
      return answer;
    }, "Idempotency-Key" in given ? this.attempts : 1, false);
  }

  // { body, etag, contentType }. With a fencingToken the read is fenced: after it no older write lands.
  async get(key, fencingToken) {
    const path = resourcePath(key);
    const answer = await settle(async () => {
      const got = judge(await this.#gateway.send("GET", path, present({ "Fencing-Token": fencingToken }), undefined,
        this.timeoutMs), [200]);
      if (!got.headers.etag || !got.headers["fencing-mark"]) throw foreign(got, "not as a gateway of Pawl's answers");
      return got;
    }, this.attempts);
    return { body: answer.body, etag: answer.headers.etag ?? null, contentType: answer.headers["content-type"] ?? null };
  }
}

// [id of the last event, the event or null] of server-sent events, until the stream ends.
async function* serverSent(response, last) {
  let [rest, coming, data] = ["", last, ""];
  for await (const piece of response.setEncoding("utf8")) {
    const lines = (rest + piece).split(/\r?\n/);
    rest = lines.pop();
    if (rest.length + data.length > ANSWER_BYTES_MAX) return;
    for (const line of lines) {
      if (line.startsWith("id: ")) coming = line.slice(4);
      if (line.startsWith("data: ")) data += line.slice(6);
      if (line !== "") continue;
      last = coming || last;
      yield [last, data === "" ? null : JSON.parse(data)];
      data = "";
    }
  }
}

// What is ours until its deadline, and renews itself. Lost stays lost: once the deadline has passed here, no late answer brings
// it back. signal: an AbortSignal that is aborted with the loss; for fetch() and the like.
class Kept {
  #pawl;
  #deadline;
  #ttlMs;
  #leastMs = Infinity; // the shortest ttl of a renewal that may still be on its way
  #onLost;
  #session;
  #count = 1;
  #released = false;
  #lost = null;
  #abort = new AbortController();
  #timers = {};
  #renewing = Promise.resolve();

  constructor(pawl, name, { told, deadline }, onLost, session) {
    this.name = name;
    this.#pawl = pawl;
    this.#onLost = onLost;
    this.#session = session;
    this.#told(told, deadline);
  }

  _begin() {
    if (this.lost === null) this.#renewNext();
  }

  #told(told, deadline) {
    this.#deadline = Math.min(deadline, deadline - told.expires_in_ms + this.#leastMs);
    this.#ttlMs = Math.min(told.ttl_ms, this.#leastMs);
    this.#watch();
  }

  // Of what lives as long as its session, the session's.
  _end() {
    return Math.max(this.#deadline, this.#session?._end() ?? 0);
  }

  #watch() {
    clearTimeout(this.#timers.deadline);
    this.#timers.deadline = timer(() => { if (this.lost === null && !this.#released) this.#watch(); }, this._end() - nowMs() + 1);
  }

  _lose(error) {
    if (this.#lost !== null || this.#released) return;
    this.#lost = error;
    this.#stop();
    // Not from inside of whoever looked.
    setImmediate(() => {
      this.#abort.abort(error);
      this.#onLost?.(this, error);
    });
  }

  #stop() {
    clearTimeout(this.#timers.deadline);
    clearTimeout(this.#timers.renew);
  }

  // Aborted by the clock read in this very call: after a pause no timer may have run yet.
  get signal() {
    if (this.lost !== null) this.#abort.abort(this.#lost);
    return this.#abort.signal;
  }

  get released() {
    return this.#released || Boolean(this.#session?.released);
  }

  // The PawlLost when it is lost, else null.
  get lost() {
    if (this.#lost === null && !this.released) {
      if (this.#session?.lost) {
        this._lose(this.#session.lost);
      } else if (nowMs() >= this._end()) {
        this._lose(new PawlLost("deadline-passed", `${this.name} could not be renewed in time: it may be another's now`));
      }
    }
    return this.#lost;
  }

  // How long it is certainly held yet, by the clock read in this very call; 0 when it is lost, released or past its deadline,
  // and from then on always 0.
  remainingMs() {
    return this.released || this.lost !== null ? 0 : Math.max(0, this._end() - nowMs());
  }

  // Throws PawlLost when it is over.
  check() {
    if (this.released) throw new PawlLost("released", `${this.name} has been released here`);
    if (this.lost !== null) throw this.#lost;
  }

  // -- renewing

  #renewIn(ms) {
    clearTimeout(this.#timers.renew);
    this.#timers.renew = timer(() => this.#keep(), ms);
  }

  // A third of the ttl after its begin, a little earlier at random.
  #renewNext() {
    this.#renewIn(this.#deadline - this.#ttlMs + this.#ttlMs / 3 * (0.8 + Math.random() / 5) - nowMs());
  }

  async #keep() {
    if (this.#released || this.lost !== null) return;
    try {
      await this._renewOnce(undefined);
      this.#renewNext();
    } catch (error) {
      if (this.#released || this.lost !== null) return;
      const left = this.#deadline - nowMs();
      this.#renewIn(Math.max(10, Math.min(this.#ttlMs / 10, left / 4) * (0.5 + Math.random() / 2)));
    }
  }

  // One at a time: of two ttls the one that was told last must be the one that counts.
  _renewOnce(ttlMs) {
    const mine = this.#renewing.then(() => this.#renewAlone(ttlMs));
    this.#renewing = mine.catch(() => {});
    return mine;
  }

  async #renewAlone(ttlMs) {
    this.check();
    const begun = nowMs();
    const before = this.#deadline;
    if (begun + ttlMs < before) { // if it is done, the end is nearer from now on
      this.#deadline = begun + ttlMs;
      this.#watch();
      if (this.#timers.renew !== undefined) this.#renewIn(ttlMs / 3);
    }
    const limitMs = Math.max(10, Math.min(this.#pawl.timeoutMs, this.#ttlMs / 3, this._end() - begun)); // leaves time for another
    let got;
    try {
      got = await this._ask(ttlMs, limitMs);
    } catch (error) {
      if (error instanceof PawlLost) this._lose(error);
      if (error instanceof PawlUnknown) {
        this.#leastMs = Math.min(this.#leastMs, ttlMs ?? Infinity);
      } else if (!this.#released && this.#lost === null) {
        this.#deadline = before;
        this.#watch();
      }
      throw error;
    }
    this.check();
    this.#told(got.told, got.deadline);
    return got.told;
  }

  // Now, longer or shorter; without ttlMs as before. What is in a session lives as long as that, and is only asked for.
  async renew(ttlMs) {
    if (ttlMs !== undefined) checkMs(ttlMs, "ttlMs", 100, 86400000);
    await settle(() => this._renewOnce(this.#session ? undefined : ttlMs), this.#pawl.attempts);
    if (this.#timers.renew !== undefined) this.#renewNext();
  }

  // -- entering and leaving

  // Once more; PawlLost when it is over. Parts of a program that call each other may do so: the last release() releases it.
  enter() {
    this.check();
    this.#count += 1;
    return this;
  }

  // Leaves once; the last one releases it. Again, after that, it does nothing. PawlLost: it was over before, perhaps while you
  // worked. PawlNotDone, PawlUnknown: it ends by its ttl at the latest.
  async release() {
    if (this.released) return;
    this.#count -= 1;
    if (this.#count > 0) return;
    const { lost } = this;
    this._drop();
    if (lost !== null) {
      await this._letGo(1).catch(() => {}); // it ends by its ttl
      throw lost;
    }
    await this._letGo(this.#pawl.attempts);
  }

  _drop() {
    this.#released = true;
    this.#stop();
  }
}

// A lease that is held.
class Hold extends Kept {
  #pawl;
  #leaseId;
  #session;

  constructor(pawl, got, onLost, renew, session) {
    super(pawl, got.told.lease, got, onLost, session);
    const grant = got.told;
    Object.assign(this, { token: grant.token, fencingToken: grant.fencing_token, epoch: grant.epoch, mode: grant.mode,
      holder: grant.holder, releaseProblem: null });
    this.#pawl = pawl;
    this.#leaseId = grant.lease_id;
    this.#session = session;
    session?._holds.add(this);
    if (renew && session === undefined) this._begin();
  }

  async _ask(ttlMs, limitMs) {
    const got = await this.#pawl._renew(this.name, this.#leaseId, this.fencingToken, ttlMs, limitMs);
    if (got.told.token !== this.token) {
      throw new PawlUnknown("bad-answer", "the answer is not about this hold; it may have happened");
    }
    return got;
  }

  _letGo(attempts) {
    return this.#pawl._release(this.name, this.#leaseId, this.fencingToken, attempts);
  }

  _drop() {
    super._drop();
    this.#session?._holds.delete(this);
  }

  // -- resources, with this hold's token

  async #fenced(call) {
    this.check();
    try {
      return await call();
    } catch (error) {
      if (error instanceof PawlLost) this._lose(error);
      if (error instanceof PawlUnknown && error.cause instanceof PawlLost) this._lose(error.cause);
      throw error;
    }
  }

  // As those of Pawl, with this hold's token.
  put(key, body, options) {
    return this.#fenced(() => this.#pawl.put(key, body, this.fencingToken, options));
  }

  get(key) {
    return this.#fenced(() => this.#pawl.get(key, this.fencingToken));
  }

  delete(key, options) {
    return this.#fenced(() => this.#pawl.delete(key, this.fencingToken, options));
  }
}

// One keep-alive for many leases: what is acquired with it lives as long as it does; release() releases all.
class Session extends Kept {
  #pawl;
  #secret;
  _holds = new Set();

  constructor(pawl, got, onLost) {
    super(pawl, `session ${got.told.session}`, got, onLost);
    this.id = got.told.session;
    this.#pawl = pawl;
    this.#secret = got.told.session_secret;
    this._begin();
  }

  _secret() {
    return { "Session-Secret": this.#secret };
  }

  // As those of Pawl; ttlMs does not count.
  async acquire(name, options = {}) {
    this.check();
    return this.#pawl.acquire(name, { ...options, session: this });
  }

  async acquireAll(names, options = {}) {
    this.check();
    return this.#pawl.acquireAll(names, { ...options, session: this });
  }

  _ask(_ttlMs, limitMs) {
    return this.#pawl._session("PUT", this.id, this._secret(), limitMs);
  }

  async _renewOnce() {
    const told = await super._renewOnce(undefined);
    // Which of our holds of that name it was, and whether it was acquired anew meanwhile, a renewal of its own tells.
    for (const hold of this._holds) if (told.lost.includes(hold.name)) hold._renewOnce(undefined).catch(() => {});
  }

  _lose(error) {
    super._lose(error);
    for (const hold of this._holds) hold._lose(error);
  }

  _letGo(attempts) {
    return settle(() => this.#pawl._session("DELETE", this.id, this._secret()), attempts);
  }
}

module.exports = { Pawl, Hold, Session, PawlError, PawlHeld, PawlLost, PawlNotDone, PawlUnknown };
