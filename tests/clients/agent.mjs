// agent.mjs - does with pawl.mjs what it is told, for tests/clients/scenarios.py.

import { writeSync } from "node:fs";
import readline from "node:readline";

import { Pawl, PawlError, PawlHeld, PawlLost, PawlNotDone } from "../../api/clients/node/pawl.mjs";

const holds = {};
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function say(kind, told) {
  writeSync(1, [kind, ...Object.entries(told).map(([key, value]) => `${key}=${value}`)].join("\t") + "\n");
}

function failed(error) {
  if (error instanceof TypeError) return { outcome: "mistake", code: error.message };
  if (!(error instanceof PawlError)) throw error;
  const outcome = error instanceof PawlHeld ? "held" : error instanceof PawlLost ? "lost"
    : error instanceof PawlNotDone ? "not-done" : "unknown";
  return { outcome, code: error.code, retryable: Number(error.retryable), holder: error.holder ?? "", ended: error.ended ?? "" };
}

const ODD = { nothing: undefined, number: 5, buffer: new ArrayBuffer(3) };
const number = (text) => (text === undefined ? undefined : Number(text));

const tells = (given) => (_, error) => say("!", { hold: given.hold, code: error.code });

async function acquire(pawl, verb, given) {
  const options = {
    ttlMs: number(given.ttl_ms), waitMs: given.wait_ms === "forever" ? Infinity : number(given.wait_ms),
    holder: given.holder, mode: given.mode, leaseId: given.lease_id,
    signal: given.aborted ? AbortSignal.abort() : given.cancel_ms && AbortSignal.timeout(Number(given.cancel_ms)),
    onLost: tells(given),
  };
  if (verb === "acquire_all") {
    const all = await pawl.acquireAll(given.names.split(" "), options);
    holds[given.hold] = { release: async () => { for (const one of all) await one.release(); } };
    return { tokens: all.map((one) => one.token).join(" ") };
  }
  const hold = holds[given.hold] = await (holds[given.session] ?? pawl).acquire(given.name, options);
  return { token: hold.token, fencing: hold.fencingToken, remaining_ms: Math.floor(hold.remainingMs()) };
}

async function listen(pawl, given) {
  try {
    for await (const item of pawl.events(given.name, { since: given.since })) say("!", { hold: given.hold, code: item.type });
  } catch (error) {
    say("!", { hold: given.hold, code: failed(error).code });
  }
}

async function inside(pawl, given) {
  try {
    await pawl.with(given.name, { ttlMs: number(given.ttl_ms) }, async (hold) => {
      hold.enter();
      await hold.release();
      say("=", { outcome: "ok", still: Number(hold.remainingMs() > 0) });
      await lines.next();
      if (given.body === "badly") throw new RangeError("body");
    });
  } catch (error) {
    if (error instanceof RangeError) return { raised: "body" };
    throw error;
  }
  return { raised: "nothing" };
}

async function act(pawl, verb, given) {
  const hold = holds[given.hold];
  switch (verb) {
  case "acquire": case "acquire_all": return acquire(pawl, verb, given);
  case "session": holds[given.hold] = await pawl.session({ ttlMs: number(given.ttl_ms), onLost: tells(given) }); return {};
  case "events": listen(pawl, given); return {};
  case "inside": return inside(pawl, given);
  case "remaining": return { remaining_ms: Math.floor(hold.remainingMs()) };
  case "renew":
    await hold.renew(number(given.ttl_ms));
    return { remaining_ms: Math.floor(hold.remainingMs()) };
  case "enter": hold.enter(); return {};
  case "check": hold.check(); return {};
  case "release": await hold.release(); return {};
  case "put": return { etag: await hold.put(given.key.replace("NO-UTF-8", "\ud800"), given.odd === undefined ? given.body : ODD[given.odd], { idempotencyKey: given.idempotency_key }) };
  case "get": return { body: (await hold.get(given.key)).body.toString() };
  case "delete": await hold.delete(given.key); return {};
  default: throw new Error(verb);
  }
}

const config = { leaseUrl: process.argv[2], gatewayUrl: process.argv[3], timeoutMs: Number(process.argv[4]),
  allowPlaintext: process.env.ALLOW_PLAINTEXT !== undefined };
let pawl;
for (let line = await lines.next(); !line.done; line = await lines.next()) {
  const [verb, ...pairs] = line.value.split("\t");
  const given = Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
  try {
    pawl ??= new Pawl(config);
    say("=", { outcome: "ok", ...await act(pawl, verb, given) });
  } catch (error) {
    say("=", failed(error));
  }
}
process.exit(0); // it may listen
