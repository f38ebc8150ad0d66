// dom.js - elements, and how numbers, times and other people's texts are shown.

const SVG = 'http://www.w3.org/2000/svg';

export const isNone = value => value === null || value === undefined;
const there = kids => kids.flat(9).filter(kid => !isNone(kid) && kid !== false);

function build(element, props, kids) {
  for (const [name, value] of Object.entries(props || {})) {
    if (isNone(value) || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...there(kids));
  return element;
}

// Texts are always text: nothing here ever parses markup.
export const h = (tag, props, ...kids) => build(document.createElement(tag), props, kids);
export const s = (tag, props, ...kids) => build(document.createElementNS(SVG, tag), props, kids);

export function fill(parent, ...kids) {
  parent.replaceChildren(...there(kids));
  return parent;
}

export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Children by key: what stays keeps its element, and with it focus and selection.
export function list(parent, items, key, make, update) {
  const old = parent.keyed || new Map(), rows = new Map(), stays = new Set(items.map(key));
  for (const [k, row] of old) if (!stays.has(k)) row.remove(); // first, so that those behind them need not move
  let at = parent.firstChild;
  for (const item of items) {
    const k = key(item);
    let row = old.get(k);
    if (!row) row = make(item);
    if (update) update(row, item);
    rows.set(k, row);
    if (row === at) at = at.nextSibling;
    else parent.insertBefore(row, at);
  }
  parent.keyed = rows;
}

// -- other people's texts

// Controls, what turns the direction, blanks without a width, fillers that look like nothing, tags.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\u{e0000}-\u{e0fff}]/gu;
const code = c => '\u27e8U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0') + '\u27e9';
// By what is seen as one character: half a family of emoji is another one.
const characters = text => [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)].map(x => x.segment);

export function plain(text, most = 48) {
  let shown = String(text);
  const parts = shown.length > most ? characters(shown) : [];
  if (parts.length > most) {
    const half = most / 2 - 1 | 0;
    shown = parts.slice(0, half).join('') + '\u2026' + parts.slice(-half).join('');
  }
  return shown.replace(UNSEEN, code);
}

export function name(text, most = 48) {
  const shown = plain(text, most), whole = plain(text, 4096);
  return h('bdi', { title: whole === shown ? null : whole }, ...shown.split(/(\u27e8U\+[0-9A-F]+\u27e9)/)
    .map(part => part.startsWith('\u27e8U+') ? h('span', { class: 'dim' }, part) : part));
}

export const mono = (text, most) => h('code', null, name(text, most));

// -- numbers and times

export const count = n => isNone(n) ? '\u2013' : String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, '\u202f');

export function span(ms) {
  if (isNone(ms)) return '\u2013';
  const sec = ms / 1000;
  if (sec < 0.05) return '0 s';
  if (sec < 10) return sec.toFixed(1) + ' s';
  if (sec < 60) return Math.floor(sec) + ' s';
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  const at = units.findIndex(([, size]) => sec >= size), [unit, size] = units[at];
  const [next, small] = units[at + 1], rest = Math.floor(sec % size / small);
  return Math.floor(sec / size) + ' ' + unit + (rest ? ' ' + rest + ' ' + next : '');
}

const two = n => String(n).padStart(2, '0');
export function clock(ms, fine = false) {
  const d = new Date(ms);
  return two(d.getHours()) + ':' + two(d.getMinutes()) + ':' + two(d.getSeconds())
    + (fine ? '.' + String(d.getMilliseconds()).padStart(3, '0') : '');
}
export function zone() {
  const m = -new Date().getTimezoneOffset();
  return 'UTC' + (m === 0 ? '' : (m < 0 ? '\u2212' : '+') + Math.floor(Math.abs(m) / 60) + (m % 60 ? ':' + two(Math.abs(m) % 60) : ''));
}

const WORDS = ['No', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine', 'Ten'];
export const word = n => WORDS[n] || count(n);
export const many = (n, one, more) => count(n) + ' ' + (n === 1 ? one : more || one + 's');

// -- pieces that pages share

export const chip = (kind, ...kids) => h('span', { class: 'chip ' + kind }, ...kids);
export const card = (title, sub, tools, ...kids) => h('section', { class: 'card' },
  h('div', { class: 'bar' }, h('h2', null, title), sub ? h('span', { class: 'sub' }, sub) : null, h('span', { class: 'grow' }), tools), ...kids);
export const facts = rows => h('dl', null, rows.filter(row => row).map(([what, ...value]) =>
  [h('dt', null, what), h('dd', null, ...value)]));
// Of a member of the store: how it is shown, and in a word.
export const stateOf = one => (one.state === 'in' ? one.heard_ms > 10000 ? ['bad', 'not heard'] : ['ok', 'serving']
  : [one.state === 'out' ? 'free' : 'bad', (one.state || '').replace('-', ' ')]);
// What is told who may not see the detail.
const CONDITIONS = [['draining', 'The service is stopping.'], ['store-connecting', 'Redis is not reached.'], ['store-auth', 'Redis does not take the password.'],
  ['store-loading', 'Redis is still loading its data.'], ['store-busy', 'Redis is busy with a script.'], ['store-refuse', 'Redis refuses what the service asks.'],
  ['store-unsafe', 'Redis might lose what it is told.'], ['store-not-ours', 'This Redis has another store.'], ['store-not-admitted', 'The store waits for lease services.'],
  ['store-not-kept', 'Too few nodes of Redis have a copy.'], ['store-behind', 'This Redis may lack what was answered.'],
  ['store-electing', 'No node of Redis is elected yet.'], ['store-full', 'Redis is full.'], ['store-', 'The store cannot be used.'], ['access-missing', 'The service has no access file.'], ['state-dir', 'The state directory cannot be written.'],
  ['member-silent', 'A service is not heard.'], ['member-condition', 'Something is the matter with a service.'], ['in-doubt', 'Writes have no known end.'], ['routes-differ', 'The gateways have different routes.'], ['marks-lost', 'The marks of a store are lost.'],
  ['access-refused', 'The new access file is refused.'], ['tls-not-reloaded', 'The new TLS files are refused.'], ['functions-not-loaded', 'Redis has not loaded the functions.'],
  ['node-away', 'A node of Redis is away.']];
export const conditionSays = one => one.detail || CONDITIONS.find(([code]) => one.code.startsWith(code))?.[1] || one.code;
// Counts are found by a walk through the store: an old one says nothing of now.
export const isCounted = overview => typeof overview?.counted_ms_ago === 'number' && overview.counted_ms_ago <= 15000;
export const countsOf = overview => (isCounted(overview) && overview.counts) || {};
export const leaseLink = (lease, most) => h('a', { href: './lease?name=' + encodeURIComponent(lease), class: 'mono' }, name(lease, most));
export const sayNo = error => h('p', { class: 'say' }, h('b', null, error.title + '. '), error.detail);

export function table(heads, cls) {
  const body = h('tbody');
  const all = h('div', { class: 'scroll' }, h('table', { class: cls }, h('thead', null, h('tr', null, heads.map(head =>
    h('th', { class: (head.includes('>') ? 'n ' : '') + (head.startsWith('-') ? 'wide' : ''), scope: 'col' }, head.replace(/^-?>?/, ''))))), body));
  return { all, body };
}

export function copy(button, text) {
  const before = button.textContent;
  const done = navigator.clipboard ? navigator.clipboard.writeText(text) : Promise.reject();
  done.then(() => 'Copied', () => 'It is in the address').then(told => {
    button.textContent = told;
    setTimeout(() => { button.textContent = before; }, 1600);
  });
}
