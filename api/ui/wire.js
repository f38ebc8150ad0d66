// wire.js - requests, streams, the access token, and the store's time.

// -- the access token: in this tab only, sent in a header, never in an address

const KEY = 'pawl-access-token';
let kept = null;
try { kept = sessionStorage.getItem(KEY); } catch { /* no storage: it is typed again */ }

export const accessToken = {
  is: () => kept !== null,
  set(text) {
    kept = text || null;
    try { if (kept) sessionStorage.setItem(KEY, kept); else sessionStorage.removeItem(KEY); } catch { /* as above */ }
  },
};

// -- the store's time. What says now_ms arrives late, never early: the greatest difference of the last minute is
// nearest to the truth. The computer's own clock is asked for nothing.

let samples = [];
function pin(now, rough) {
  if (typeof now !== 'number') return;
  const at = performance.now(), ahead = now - at;
  if (samples.length && (samples[0].rough || Math.abs(ahead - samples[samples.length - 1].ahead) > 3000)) samples = [];
  samples = samples.filter(one => at - one.at < 60000 && one.ahead > ahead);
  samples.push({ ahead, at, rough });
}
export const storeNow = () => samples.length ? samples[0].ahead + performance.now() : null;

// -- requests

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || 'No answer');
    this.status = status;
    this.problem = problem;
    this.code = problem.code || '';
    this.title = problem.title || (status ? 'Refused (' + status + ')' : 'No answer');
    this.detail = problem.detail || '';
  }
}

async function refusal(answer) {
  let problem = {};
  try { problem = await answer.json(); } catch { /* a proxy's, perhaps */ }
  if (typeof problem !== 'object' || problem === null || !String(problem.type).startsWith('/problems/'))
    problem = { title: 'An answer that is not Pawl\u2019s (' + answer.status + ')', detail: 'Something on the way answered in its place.' };
  return new Refused(answer.status, problem);
}

const silent = code => new Refused(0, { code, title: 'No answer', detail: 'The service was not reached, or gave no answer.' });
// What is not another answer when it is asked again. A proxy's answer may be: it says nothing of the service.
export const isFinal = error => error.code !== '' && [400, 401, 403, 404, 501].includes(error.status);

const LOOK_MS = 6000, DEED_MS = 15000;

async function send(path, options, token = kept) {
  try {
    return await fetch('../' + path, { cache: 'no-store', redirect: 'error', ...options, headers: { ...options.headers, ...(token && { Authorization: 'Bearer ' + token }) } });
  } catch {
    throw silent();
  }
}

export async function ask(path, body, method) {
  const wait = AbortSignal.timeout(body === undefined && !method ? LOOK_MS : DEED_MS);
  const answer = await send(path, body === undefined ? { method: method || 'GET', signal: wait }
    : { method: method || 'POST', signal: wait, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });
  if (!answer.ok) throw await refusal(answer);
  try {
    const said = answer.status === 204 ? null : await answer.json();
    if (said) pin(said.now_ms);
    if (!samples.length) pin(Date.parse(answer.headers.get('Date')), true); // until something says it better
    return said;
  } catch {
    throw silent();
  }
}

// -- streams: fetch with a reader, not EventSource, whose errors all look alike and which sends no header

// Hands on {event, data, id} of server-sent events as they come.
function parser(give) {
  let rest = '', event = '', data = [], id;
  return text => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (data.length || event || id) give({ event: event || 'message', data: data.join('\n'), id });
        event = '';
        data = [];
        continue;
      }
      const at = line.indexOf(':'), field = at < 0 ? line : line.slice(0, at), value = line.slice(at + 1).replace(/^ /, '');
      if (field === 'data') data.push(value);
      else if (field === 'event') event = value;
      else if (field === 'id') id = value;
      else if (at === 0) {
        const now = /now_ms: (\d+)/.exec(value);
        if (now) pin(Number(now[1]));
      }
    }
  };
}

// QUIET_MS: a service says something each 15 s at least.
const FIRST_MS = 500, MOST_MS = 8000, MUTE_MS = 3000, QUIET_MS = 40000, DEAF_MS = 4000;

// One stream that comes back by itself. on: item(event, data), open(), gap() when what was missed is not known any
// more, down(error, again_ms), and beats: true for one that says something each second.
export class Stream {
  constructor(path, on, last, token = kept) {
    Object.assign(this, { path, on, last, token, waits: FIRST_MS, closed: false });
    this.run();
  }
  close() {
    this.closed = true;
    this.abort?.abort();
    this.wake?.();
  }
  now() {
    this.waits = FIRST_MS;
    this.wake?.();
  }
  async run() {
    while (!this.closed) {
      let why;
      try {
        await this.once();
      } catch (error) {
        why = error;
      }
      clearInterval(this.watch);
      if (this.closed) return;
      if (why instanceof Refused && why.status === 410 && this.last) {
        this.last = undefined;
        this.on.gap?.();
        continue;
      }
      const again = this.waits * (0.75 + Math.random() / 2);
      this.waits = Math.min(this.waits * 2, MOST_MS);
      this.on.down?.(why instanceof Refused && !this.isMute ? why : silent(this.isMute ? 'mute' : ''), again);
      await new Promise(done => { this.wake = done; setTimeout(done, again); });
    }
  }
  async once() {
    this.abort = new AbortController();
    this.isMute = false;
    let heard = performance.now();
    this.watch = setInterval(() => {
      if (performance.now() - heard > (this.on.beats ? MUTE_MS : QUIET_MS)) {
        this.isMute = true;
        this.abort.abort();
      }
    }, 500);
    const headers = { Accept: 'text/event-stream' };
    if (this.last) headers['Last-Event-ID'] = this.last;
    const answer = await send(this.path, { signal: this.abort.signal, headers }, this.token);
    if (!answer.ok) throw await refusal(answer);
    if (!/^text\/event-stream/.test(answer.headers.get('Content-Type'))) throw new Refused(406, { title: 'It does not stream' });
    const feed = parser(({ event, data, id }) => {
      if (id) this.last = id;
      let said;
      try { said = JSON.parse(data); } catch { return; }
      pin(said.now_ms);
      this.on.item(event, said);
    });
    const reader = answer.body.getReader(), text = new TextDecoder();
    this.on.open?.();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw silent();
      heard = performance.now();
      this.waits = FIRST_MS;
      feed(text.decode(value, { stream: true }));
    }
  }
}

// -- the streams of all tabs are those of one worker (streams.js). Where a browser has no such, or when it is silent, each
// tab has its own.

const shared = new Map();
let worker = null, number = 0;

function alone() {
  worker = null;
  for (const one of shared.values()) one.alone();
}

class Shared {
  constructor(path, on, last) {
    Object.assign(this, { path, on, heard: last, n: ++number, closed: false, at: performance.now(), until: performance.now() + DEAF_MS });
    shared.set(this.n, this);
    this.wish();
    this.watch = setInterval(() => this.beat(), 1000);
  }
  get last() {
    return this.own?.last ?? this.heard;
  }
  wish(more) {
    worker.postMessage({ n: this.n, path: this.path, last: this.heard, token: kept, ...more });
  }
  beat() {
    const at = performance.now();
    if (at - this.at > DEAF_MS) this.until = at + DEAF_MS; // it was this tab that slept
    this.at = at;
    const left = this.on.beats ? this.until - at : DEAF_MS;
    if (left < 0) this.on.down(silent(), DEAF_MS + left);
    if (left < -DEAF_MS) alone(); else this.wish();
  }
  hear(call, said) {
    this.until = performance.now() + DEAF_MS + (call === 'down' ? said[1] : 0);
    if (call === 'item') {
      pin(said[1].now_ms);
      this.heard = said[1].id || this.heard;
    } else if (call === 'down') said[0] = new Refused(...said[0]);
    this.on[call]?.(...said);
  }
  leave() {
    clearInterval(this.watch);
    shared.delete(this.n);
  }
  alone() {
    this.leave();
    this.own = new Stream(this.path, this.on, this.heard);
  }
  close() {
    this.leave();
    this.closed = true;
    if (this.own) this.own.close(); else this.wish({ close: true });
  }
  now() {
    if (this.own) this.own.now(); else this.wish({ now: true });
  }
}

try {
  const it = new SharedWorker(new URL('./streams.js', import.meta.url), { type: 'module', name: 'pawl' });
  it.onerror = alone;
  it.port.onmessage = ({ data: [n, call, ...said] }) => shared.get(n)?.hear(call, said);
  worker = it.port;
} catch { /* no such; or this is the worker itself */ }

export const streamOf = (path, on, last) => new (worker ? Shared : Stream)(path, on, last);
