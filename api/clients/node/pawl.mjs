// pawl.mjs - leases with fencing tokens, from Node 18 on; this one file, no dependency.
//
//   const pawl = new Pawl();                 // PAWL_LEASE_URL, PAWL_GATEWAY_URL, or the usual ports of this machine
//   await pawl.with("orders:42", { ttlMs: 30000, waitMs: 10000, holder: "billing-7" }, async (hold) => {
//     await hold.put("orders:42", "packed");  // refused (PawlLost) when somebody else has been granted it since
//   });
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

import { randomBytes } from "node:crypto";
import http from "node:http";
import https from "node:https";

const ANSWER_BYTES_MAX = 64 << 20;
const WAIT_MS_MAX = 600000; // docs/contract.md, "Limits"; a longer wait asks again
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
const LEASE_ID = /^[A-Za-z0-9_-]{22,64}$/;
const FENCING_TOKEN = /^[!-~]{1,1024}$/;
const MOST = { token: 999999999999999, ttl_ms: 86400000, expires_in_ms: 86400000, waited_ms: 1e12 };
const HELD = new Set(["lease-held", "wait-timeout"]);
const LOST = new Set(["lease-lost", "hold-over", "session-lost", "stale-token", "lease-expired"]);

// code, message: of the service (api/problems.def), or this client's own ("not-sent", "no-answer", "bad-answer",
// "deadline-passed", "released", "aborted"). status: of HTTP, 0 if there was none. problem: all members of the service's
// answer; holder: who holds it, if told; ended: of a lost hold, how, if told.
export class PawlError extends Error {
  constructor(code, detail, status = 0, problem = {}, cause = undefined) {
    super(`${code}: ${detail}`, cause === undefined ? undefined : { cause });
    this.name = this.constructor.name;
    Object.assign(this, { code, detail, status, problem, retryable: problem.retryable === true });
    this.holder = problem.holder ?? null;
    this.ended = problem.ended ?? null;
  }
}
export class PawlHeld extends PawlError {}
export class PawlLost extends PawlError {}
export class PawlNotDone extends PawlError {}
// cause: what was said to a later attempt, if anything was
export class PawlUnknown extends PawlError {}

const nowMs = () => performance.now(); // monotonic; Date.now() jumps

// A timer that keeps no program alive.
const timer = (call, ms) => {
  const made = setTimeout(call, Math.min(Math.max(0, ms), 0x7fffffff));
  made.unref();
  return made;
};

// -- one request, sent once

class Service {
  constructor(url) {
    const parts = new URL(url);
    if (!["http:", "https:"].includes(parts.protocol) || parts.search || parts.hash || parts.username) {
      throw new TypeError(`not the address of a service: ${url}`);
    }
    this.library = parts.protocol === "https:" ? https : http;
    this.host = parts.hostname.replace(/^\[|\]$/g, "");
    this.port = parts.port || undefined;
    this.prefix = parts.pathname.replace(/\/+$/, "");
  }

  // The whole answer; PawlNotDone while nothing has left, PawlUnknown after that. A connection of its own for each request,
  // so that nothing is sent twice behind our back; no proxy, no redirect. signal: gives up.
  send(method, path, headers, body, limitMs, signal) {
    return new Promise((resolve, reject) => {
      let connected = false;
      let done = false;
      const agent = new this.library.Agent({ keepAlive: false });
      const length = body === undefined ? {} : { "Content-Length": Buffer.byteLength(body) };
      const sent = nowMs();
      const request = this.library.request({
        method, host: this.host, port: this.port, path: this.prefix + path, agent,
        headers: { ...headers, ...length, Connection: "close" },
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
      request.on("socket", (socket) => socket.once("connect", () => { connected = true; }));
      request.on("upgrade", (_, socket) => { socket.destroy(); fail("not an answer"); });
      request.on("response", (response) => {
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
  if (status === 503 || (status >= 400 && status < 500) || code === "upstream-unavailable") throw new PawlNotDone(...said);
  throw new PawlUnknown(...said); // 504, 500, and what we do not know
}

function foreign(answer, why = "not as Pawl answers; it may have happened") {
  return new PawlUnknown("bad-answer", `status ${answer.status}, ${why}`, answer.status);
}

// { grant, deadline }
function granted(answer, name, leaseId) {
  const grant = parsed(answer) ?? {};
  const within = ([key, most]) => Number.isSafeInteger(grant[key]) && grant[key] >= 0 && grant[key] <= most;
  if (!Object.entries(MOST).every(within) || typeof grant.fencing_token !== "string" ||
      !FENCING_TOKEN.test(grant.fencing_token) || grant.lease !== name || grant.lease_id !== leaseId) {
    throw new PawlUnknown("bad-answer", "the answer is not a grant of this lease; it may have happened", answer.status);
  }
  const waited = Math.min(grant.waited_ms, answer.received - answer.sent);
  return { grant, deadline: answer.sent + waited + grant.expires_in_ms };
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
  if (!NAME.test(parts[0]) || parts.some((part) => ["", ".", ".."].includes(part))) {
    throw new TypeError(`not the key of a resource: ${key}`);
  }
  return "/v1/resources/" + parts.map((part) => encodeURIComponent(part).replace(/%3A/g, ":")).join("/");
}

const present = (headers) => Object.fromEntries(Object.entries(headers).filter(([, value]) => value != null));

// Keeps the doubt of an earlier attempt: from then on a refusal is no proof that nothing was done, for the earlier request may
// be done after the later one was refused. lossIsCertain: a PawlLost speaks of the hold, which is over whatever an earlier
// attempt did.
async function settle(attempt, attempts, { doubt = null, lossIsCertain = true } = {}) {
  let last = null;
  for (let number = 0; number < attempts; number++) {
    if (number > 0) {
      const pause = 100 * 2 ** (number - 1) * (0.5 + Math.random() / 2);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof PawlError)) throw error;
      last = error;
      if (error.code === "aborted" || error instanceof PawlHeld) break;
      if (error instanceof PawlUnknown) {
        doubt = error;
      } else if (error instanceof PawlLost) {
        if (lossIsCertain) throw error;
        break;
      } else if (!error.retryable) {
        break;
      }
    }
  }
  if (doubt !== null && !(last instanceof PawlUnknown)) {
    throw new PawlUnknown(doubt.code, `${doubt.detail}; asked again: ${last.message}`, doubt.status, doubt.problem, last);
  }
  throw last;
}

// -- Pawl

// timeoutMs: of one attempt, without its wait in line; attempts: at most, of what is safe to repeat.
export class Pawl {
  #lease;
  #gateway;

  constructor({ leaseUrl, gatewayUrl, timeoutMs = 5000, attempts = 3 } = {}) {
    this.#lease = new Service(leaseUrl || process.env.PAWL_LEASE_URL || "http://127.0.0.1:8700");
    this.#gateway = new Service(gatewayUrl || process.env.PAWL_GATEWAY_URL || "http://127.0.0.1:8701");
    this.timeoutMs = timeoutMs;
    this.attempts = Math.max(1, attempts);
  }

  // A Hold, which renews itself from now on (unless renew is false). waitMs: in line, first come, first served; Infinity:
  // until it is granted. permits: a counting semaphore, instead of mode. onLost(hold, error) is called once, if it is lost
  // before it is released. signal: gives the wait up ("aborted"). leaseId: to propose; without one a random one is made, and
  // so a lost answer is asked for again. When it is not known at the end whether it was granted, that random lease_id is
  // released, once, and PawlUnknown is said all the same.
  async acquire(name, { ttlMs = 30000, waitMs = 0, holder, mode = "exclusive", permits, lockDelayMs = 0, meta, leaseId,
    onLost, renew = true, signal } = {}) {
    checkName(name);
    if (leaseId !== undefined && !LEASE_ID.test(leaseId)) throw new TypeError("leaseId: 22 to 64 of A-Z a-z 0-9 _ -");
    if (waitMs !== Infinity) checkMs(waitMs, "waitMs", 0, Number.MAX_SAFE_INTEGER);
    const ask = present({
      ttl_ms: checkMs(ttlMs, "ttlMs", 100, 86400000), lease_id: leaseId ?? randomBytes(24).toString("base64url"), holder,
      lock_delay_ms: checkMs(lockDelayMs, "lockDelayMs", 0, 600000) || null, meta, permits, mode: permits ? null : mode,
    });
    let got;
    try {
      got = await this.#acquire(name, ask, waitMs, signal);
    } catch (error) {
      if (error instanceof PawlUnknown && leaseId === undefined) await this._giveBack(name, ask.lease_id);
      throw error;
    }
    const hold = new Hold(this, name, got, onLost, renew);
    if (hold.lost !== null) {
      await this._giveBack(name, ask.lease_id);
      throw hold.lost;
    }
    return hold;
  }

  async #acquire(name, ask, waitMs, signal) {
    const end = nowMs() + waitMs;
    const attempt = async () => {
      const wait = Math.round(Math.min(Math.max(0, end - nowMs()), WAIT_MS_MAX));
      const answer = await this.#lease.send("POST", `/v1/leases/${name}`, { "Content-Type": "application/json" },
        JSON.stringify({ ...ask, wait_ms: wait }), wait + this.timeoutMs, signal);
      return granted(judge(answer, [200, 201]), name, ask.lease_id);
    };
    let doubt = null;
    for (;;) {
      try {
        return await settle(attempt, this.attempts, { doubt });
      } catch (error) {
        const said = error instanceof PawlUnknown ? error.cause : error;
        if (!(said instanceof PawlHeld) || said.code !== "wait-timeout" || nowMs() >= end) throw error;
        if (error instanceof PawlUnknown) doubt = error;
      }
    }
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
    }, "Idempotency-Key" in given ? this.attempts : 1, { lossIsCertain: false });
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

// A lease that is held. Lost stays lost: once the deadline has passed here, no late answer brings it back. signal: an
// AbortSignal that is aborted with the loss; for fetch() and the like. Parts of a program that call each other may enter() it
// again: the last release() releases the lease.
export class Hold {
  #pawl;
  #leaseId;
  #deadline;
  #ttlMs;
  #onLost;
  #count = 1;
  #released = false;
  #lost = null;
  #abort = new AbortController();
  #timers = {};
  #renewing = Promise.resolve();

  constructor(pawl, name, { grant, deadline }, onLost, renew) {
    Object.assign(this, { name, token: grant.token, fencingToken: grant.fencing_token, epoch: grant.epoch,
      mode: grant.mode, holder: grant.holder, releaseProblem: null });
    this.#pawl = pawl;
    this.#leaseId = grant.lease_id;
    this.#onLost = onLost;
    this.#told(grant, deadline);
    if (renew && this.lost === null) this.#renewIn(deadline - grant.expires_in_ms + this.#pause() - nowMs());
  }

  #told(grant, deadline) {
    this.#deadline = deadline;
    this.#ttlMs = grant.ttl_ms;
    this.#watch();
  }

  #watch() {
    clearTimeout(this.#timers.deadline);
    this.#timers.deadline = timer(() => { if (this.lost === null && !this.#released) this.#watch(); },
      this.#deadline - nowMs() + 1);
  }

  #pause() {
    return this.#ttlMs / 3 * (0.8 + Math.random() / 5);
  }

  #lose(error) {
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

  get signal() {
    return this.#abort.signal;
  }

  // The PawlLost when it is lost, else null.
  get lost() {
    if (this.#lost === null && !this.#released && nowMs() >= this.#deadline) {
      this.#lose(new PawlLost("deadline-passed", `${this.name} could not be renewed in time: it may be another's now`));
    }
    return this.#lost;
  }

  // How long it is certainly held yet, by the clock read in this very call; 0 when it is lost, released or past its deadline,
  // and from then on always 0.
  remainingMs() {
    return this.#released || this.lost !== null ? 0 : Math.max(0, this.#deadline - nowMs());
  }

  // Throws PawlLost when it is over.
  check() {
    if (this.#released) throw new PawlLost("released", `${this.name} has been released here`);
    if (this.lost !== null) throw this.#lost;
  }

  // -- renewing

  #renewIn(ms) {
    clearTimeout(this.#timers.renew);
    this.#timers.renew = timer(() => this.#keep(), ms);
  }

  async #keep() {
    if (this.#released || this.lost !== null) return;
    try {
      await this.#renewOnce(undefined);
      this.#renewIn(this.#deadline - this.#ttlMs + this.#pause() - nowMs());
    } catch (error) {
      if (this.#released || this.lost !== null) return;
      const left = this.#deadline - nowMs();
      this.#renewIn(Math.max(10, Math.min(this.#ttlMs / 10, left / 4) * (0.5 + Math.random() / 2)));
    }
  }

  // One at a time: of two ttls the one that was told last must be the one that counts.
  #renewOnce(ttlMs) {
    const mine = this.#renewing.then(() => this.#renewAlone(ttlMs));
    this.#renewing = mine.catch(() => {});
    return mine;
  }

  async #renewAlone(ttlMs) {
    this.check();
    const begun = nowMs();
    const limitMs = Math.max(10, Math.min(this.#pawl.timeoutMs, this.#deadline - begun));
    let got;
    try {
      got = await this.#pawl._renew(this.name, this.#leaseId, this.fencingToken, ttlMs, limitMs);
      if (got.grant.token !== this.token) {
        throw new PawlUnknown("bad-answer", "the answer is not about this hold; it may have happened");
      }
    } catch (error) {
      if (error instanceof PawlLost) this.#lose(error);
      if (error instanceof PawlUnknown && ttlMs !== undefined) { // if it was done, and shorter, the end has come nearer
        this.#deadline = Math.min(this.#deadline, begun + ttlMs);
        if (!this.#released && this.#lost === null) this.#watch();
      }
      throw error;
    }
    this.check();
    this.#told(got.grant, got.deadline);
  }

  // Now, longer or shorter; without ttlMs as before.
  async renew(ttlMs) {
    if (ttlMs !== undefined) checkMs(ttlMs, "ttlMs", 100, 86400000);
    await settle(() => this.#renewOnce(ttlMs), this.#pawl.attempts);
    if (this.#timers.renew !== undefined) this.#renewIn(this.#pause());
  }

  // -- entering and leaving

  // Once more; PawlLost when it is over.
  enter() {
    this.check();
    this.#count += 1;
    return this;
  }

  // Leaves once; the last one releases the lease. Again, after that, it does nothing. PawlLost: it was over before, perhaps
  // while you worked. PawlNotDone, PawlUnknown: the hold ends by its ttl at the latest.
  async release() {
    if (this.#released) return;
    this.#count -= 1;
    if (this.#count > 0) return;
    const { lost } = this;
    this.#released = true;
    this.#stop();
    if (lost !== null) {
      await this.#pawl._giveBack(this.name, this.#leaseId);
      throw lost;
    }
    await this.#pawl._release(this.name, this.#leaseId, this.fencingToken);
  }

  // -- resources, with this hold's token

  async #fenced(call) {
    this.check();
    try {
      return await call();
    } catch (error) {
      if (error instanceof PawlLost) this.#lose(error);
      if (error instanceof PawlUnknown && error.cause instanceof PawlLost) this.#lose(error.cause);
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
