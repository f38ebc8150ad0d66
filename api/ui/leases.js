// leases.js - who holds what: a page of a hundred, asked for again every two seconds. Rows keep their place while somebody
// points at the table or is in it.
import { h, fill, put, list, chip, count, span, name, leaseLink, table, copy, countsOf } from './dom.js';
import { ask } from './wire.js';

// NAMED: of a lease with more holders only so many are in a list.
const ASK_MS = 2000, LOW_MS = 5000, NAMED = 16;
const holdersOf = one => (one.holders.length < NAMED ? count(one.holders.length) : NAMED + ' or more');

export default function leases(place, app) {
  const q = app.query, state = q.get('state') || 'held';
  const body = table(['Lease', 'State', '>Token', 'Holder', '>Ends in', '>Held for', '>In line', '>Refused'], 'leases'), shown = h('span', { class: 'sub' });
  const fresh = h('button', { hidden: true, onclick: () => { show(waiting, true); } }), pages = app.pages(clear);
  const pause = h('button', { 'aria-pressed': 'false', onclick: stop }, '\u275a\u275a Pause');
  const link = h('button', { class: 'wide', onclick: () => copy(link, location.href) }, 'Copy link');
  const sums = h('span', { class: 'dim' }), say = h('div');
  let ticks = 0, paused = 0, waiting = null, rows = new Map(), seen = 0;

  const with_ = more => './leases?' + new URLSearchParams([...Object.entries({ prefix: q.get('prefix'), holder: q.get('holder'), state, ...more }).filter(([, value]) => value)]);
  const field = (id, label, hint) => h('label', null, label, h('input', { name: id, value: q.get(id) || '', placeholder: hint, autocomplete: 'off', spellcheck: 'false', class: id === 'prefix' ? 'mono' : null }));
  const states = ['held', 'waiting', 'delayed'].map(one => h('a', { href: with_({ state: one }), 'aria-current': one === state ? 'true' : null }, one));

  fill(place, h('div', { class: 'head' }, h('h1', null, 'Leases'), sums, h('span', { class: 'grow' }), pause, link),
    h('form', { class: 'filters', action: './leases', method: 'get', onformdata: event => [...event.formData].forEach(([key, value]) => value || event.formData.delete(key)) },
      field('prefix', 'Name begins with', 'orders:'), field('holder', 'Holder', 'any'),
      state === 'held' ? null : h('input', { type: 'hidden', name: 'state', value: state }), h('button', null, 'Filter'),
      h('span', { class: 'seg', role: 'group', 'aria-label': 'State' }, states)),
    say, h('section', { class: 'card' }, body.all, h('div', { class: 'foot' }, shown, h('span', { class: 'grow' }), fresh, pages.next)));

  const cell = cls => h('td', { class: cls });
  function make(one) {
    const bar = h('i'), mini = h('span', { class: 'mini', 'aria-hidden': 'true' }, bar), left = h('span');
    const row = h('tr', null, h('td', null, leaseLink(one.lease, 40)), cell(), cell('n mono'), cell(), h('td', { class: 'n' }, left, mini), cell('n dim'), cell('n'), cell('n'));
    Object.assign(row, { bar, mini, left });
    return row;
  }
  function stateOf(one) {
    if (one.state === 'delayed') return chip('free', 'delayed');
    if (one.mode === 'shared') return chip('', 'shared, ' + holdersOf(one));
    if (one.permits > 1 || one.mode === 'permits') return chip('', one.permits ? `${holdersOf(one)} of ${count(one.permits)} held` : 'permits');
    return one.state;
  }
  function update(row, one) {
    const first = one.holders[0], key = JSON.stringify([one.state, one.token, one.holders.length, one.waiting, one.refused]);
    row.it = one;
    row.at = seen;
    if (row.key !== key) {
      const [, what, token, holder, , , line, refused] = row.children;
      fill(what, stateOf(one));
      put(token, count(one.token));
      fill(holder, first ? [name(first.holder, 40), one.holders.length > 1 ? ' and ' + (one.holders.length < NAMED ? one.holders.length - 1 : NAMED - 1 + ' or') + ' more' : ''] : 'nobody');
      put(line, one.waiting ? count(one.waiting) : '\u2013');
      fill(refused, one.refused ? h('span', { class: 'refused' }, '\u2715 ' + count(one.refused)) : one.refused === 0 ? '\u2013' : '');
      if (row.key) {
        row.classList.add('new');
        setTimeout(() => row.classList.remove('new'), 2000);
      }
      row.key = key;
    }
    row.classList.remove('over');
    row.mini.hidden = !first;
  }

  // Rows of which nothing is known any more stay, greyed, while somebody is at the table: over, or only on another page now.
  function leave(row) {
    row.classList.add('over');
    fill(row.children[1], chip('free', 'not listed'));
    row.children[3].textContent = row.children[5].textContent = row.left.textContent = '';
    row.mini.hidden = true;
    row.key = '';
  }
  const isUsed = () => body.all.matches(':hover') || body.body.contains(document.activeElement);
  function show(said, anyway) {
    const items = said.items;
    const used = isUsed() && !anyway && rows.size > 0, known = new Map(items.map(one => [one.lease, one]));
    let shownItems = items;
    if (used) {
      shownItems = [...rows.values()].map(row => known.get(row.it.lease) || { ...row.it, over: true });
      waiting = said;
      const added = items.filter(one => !rows.has(one.lease)).length;
      fresh.hidden = added === 0;
      put(fresh, `${count(added)} new: show`);
    } else fresh.hidden = true;
    list(body.body, shownItems, one => one.lease, make, (row, one) => { if (one.over) leave(row); else update(row, one); });
    rows = body.body.keyed;
    put(shown, `${count(shownItems.length)} shown, in the service\u2019s own order${said.filtered ? '; what you may not look at is left out' : ''}`);
    const of = [q.get('prefix') || q.get('holder') ? 'was asked for' : '', said.filtered ? 'you may look at' : ''].filter(one => one).join(' and ');
    fill(say, items.length ? null : h('p', { class: 'say' }, h('b', null, said.next_cursor ? 'Nothing is on this page' : state === 'held' ? 'Nothing is held' : state === 'waiting' ? 'Nobody waits' : 'Nothing is delayed'),
      of ? ` of what ${of}.` : ['. ', h('code', null, 'pawl acquire orders:42'), ' takes a lease.']));
    count_();
  }

  async function look() {
    const of = app.query, query = new URLSearchParams({ limit: 100 });
    for (const key of ['prefix', 'holder', 'state', 'cursor']) if (of.get(key)) query.set(key, of.get(key));
    const said = await ask('v1/leases?' + query);
    if (paused || of !== app.query) return;
    seen = performance.now();
    show(said);
    pages.go(said.next_cursor && with_({ cursor: said.next_cursor }));
  }
  function clear() {
    if (paused) stop();
    fresh.hidden = true;
    put(shown, '');
    list(body.body, [], one => one.lease);
    rows = body.body.keyed;
  }
  function stop() {
    paused = paused ? 0 : performance.now();
    pause.setAttribute('aria-pressed', paused > 0);
    put(pause, paused ? '\u25b6 Live' : '\u275a\u275a Pause');
    app.again();
  }

  // Once a second; what shows tenths of a second, four times.
  function count_(fine) {
    const at = paused || (app.live ? performance.now() : seen);
    for (const row of rows.values()) {
      if (row.classList.contains('over')) continue;
      const first = row.it.holders[0], ago = at - row.at;
      if (fine && !(first?.expires_in_ms - ago < 10500)) continue;
      if (!first) {
        put(row.left, '');
        put(row.children[5], row.it.delayed_for_ms ? 'free in ' + span(Math.max(0, row.it.delayed_for_ms - ago)) : '');
        continue;
      }
      const left = Math.min(...row.it.holders.map(one => one.expires_in_ms)) - ago;
      put(row.left, left > 0 ? span(left) : 'due');
      if (first.ttl_ms) {
        row.bar.style.width = Math.max(0, Math.min(100, left / first.ttl_ms * 100)).toFixed(0) + '%';
        row.mini.classList.toggle('low', left < Math.min(LOW_MS, first.ttl_ms / 3));
      } else row.mini.hidden = true;
      put(row.children[5], span(Math.floor((first.held_for_ms + ago) / 1000) * 1000));
    }
  }

  app.on('overview', o => {
    const counts = countsOf(o);
    put(sums, ['held', 'waiting', 'delayed'].filter(one => typeof counts[one] === 'number').map(one => count(counts[one]) + ' ' + one).join(' \u00b7 '));
  });
  app.asks(() => ASK_MS, look, h('h1', null, 'Leases'));
  setInterval(() => { if (app.live) count_(++ticks % 4 !== 0); }, 250);
}
