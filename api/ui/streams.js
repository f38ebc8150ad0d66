// streams.js - a SharedWorker with the streams of all tabs that have the same access token: the overview, and the events of
// the lease that they look at; of all, when it is more than one. A browser has six connections for an address.
import { Stream } from './wire.js';

const EVENTS = 'v1/events', GONE_MS = 8000, wishes = new Set(), streams = new Map();
const wants = (one, lease) => !lease || new URLSearchParams(one.path.split('?')[1]).get('lease') === lease;

// The one stream of this kind is what those who are here need.
function settle({ kind, token, key }) {
  const before = streams.get(key);
  const mine = [...wishes].filter(one => one.key === key), alike = mine.every(one => one.path === mine[0].path);
  const path = alike ? mine[0]?.path : kind;
  if (before?.path === path) return before;
  before?.close();
  streams.delete(key);
  if (!mine.length) return null;
  const tell = (lease, ...said) => wishes.forEach(one => one.key === key && wants(one, lease) && one.port.postMessage([one.n, ...said]));
  const on = {
    beats: kind !== EVENTS,
    open: () => tell(null, ...stream.said = ['open']),
    // Of all leases a service knows only what it has heard itself: what was missed stands in the history of each.
    gap: () => alike && tell(null, 'gap'),
    down: (error, again) => tell(null, ...stream.said = ['down', [error.status, error.problem], again]),
    item(event, said) {
      if (kind !== EVENTS) stream.news = ['item', event, said];
      if (kind !== EVENTS || said.lease) tell(said.lease, 'item', event, said);
    },
  };
  const stream = new Stream(path, on, alike ? mine[0].last : undefined, token);
  streams.set(key, stream);
  return null;
}

function leave(one) {
  wishes.delete(one);
  settle(one);
}

self.onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    const old = [...wishes].find(one => one.port === port && one.n === data.n);
    if (data.close) {
      if (old) leave(old);
    } else if (old && data.now) streams.get(old.key)?.now();
    else if (old) old.at = performance.now();
    else {
      const kind = data.path.split('?')[0], one = { ...data, port, kind, key: JSON.stringify([kind, data.token]), at: performance.now() };
      wishes.add(one);
      const there = settle(one);
      if (there?.said) port.postMessage([one.n, ...there.said]); // how it stands: it may say no more for long
      if (there?.news && there.said[0] === 'open') port.postMessage([one.n, ...there.news]);
    }
  };
};
// A tab that has crashed says nothing, and its port does not close; the others repeat what they wish each second.
setInterval(() => wishes.forEach(one => { if (performance.now() - one.at > GONE_MS) leave(one); }), 1000);
