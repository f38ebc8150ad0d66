// overview.js - is it Pawl? what is wrong, since when, what is to be done?
import { h, s, fill, put, card, chip, facts, count, span, clock, zone, name, mono, many, word, leaseLink, table, list, isNone, stateOf, isCounted, countsOf, conditionSays, sayNo } from './dom.js';
import { storeNow } from './wire.js';

const SLOTS = 120, HIGH = 60, WIDE = 720;

const sum = numbers => numbers.reduce((all, n) => all + n, 0);

function band(title, cls) {
  const path = s('path', { class: cls }), most = h('span', { class: 'most' }), figure = h('span'), unit = h('small');
  const svg = s('svg', { role: 'img', viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none' }, path);
  const all = h('div', { class: 'band' }, h('div', null, h('div', { class: 'what' }, title), h('div', { class: 'figure' }, figure, ' ', unit)),
    h('div', { class: 'plot' }, most, svg));
  return { all, show(numbers, said, of, top) {
    const high = Math.max(1, ...numbers), step = WIDE / SLOTS;
    path.setAttribute('d', numbers.map((n, i) => n > 0 ? `M${(i * step).toFixed(1)} ${HIGH}v${-Math.max(1.5, n / high * HIGH).toFixed(1)}h${(step * 0.84).toFixed(2)}V${HIGH}z` : '').join(''));
    put(figure, said);
    put(unit, of);
    put(most, numbers.length ? 'most ' + count(Math.max(0, ...numbers)) + top : '');
    svg.setAttribute('aria-label', `${title}, the last ten minutes: ${said} ${of}`);
  } };
}

// What goes on in spite of it, and what does not, in words for people.
const LOOKS = {
  refused: one => [h('span', { class: 'refused' }, one.code || 'refused'), span(one.for_ms) + ' ago'],
  waiting: one => ['waits ' + span(one.for_ms), 'first in line'],
  delayed: one => ['delayed', 'free in ' + span(one.for_ms)],
  'in-doubt': one => [h('span', { class: 'refused' }, 'in doubt'), 'for ' + span(one.for_ms)],
};

function looks(one) {
  const [what, since] = (LOOKS[one.kind] || (() => [one.kind, span(one.for_ms)]))(one);
  return h('li', null, leaseLink(one.lease, 28), h('span', null, what),
    h('span', { class: 'dim' }, one.holder ? [name(one.holder, 24), ', '] : null, since));
}

export default function overview(place, app) {
  const top = h('div'), when = h('p', { class: 'crumb' }), say = h('p', { class: 'say' }), title = h('h1', { class: 'big' }, 'Overview');
  const tiles = h('div', { class: 'tiles' }), ticks = h('div', { class: 'ticks', 'aria-hidden': 'true' });
  const grants = band('Grants', 'hold'), refused = band('Refused writes', 'refusals'), waiting = band('Waiting', 'past');
  const look = h('ul', { class: 'look' }), store = h('div'), storeChip = h('span');
  const services = table(['Service', 'Name', '-Version', '>last heard', '->up', 'State']);
  let before = '';

  refused.all.querySelector('path').setAttribute('fill', 'var(--refuse)');
  fill(top, title);
  fill(place, top, tiles, h('div', { class: 'cols' },
    h('div', { class: 'stack' },
      card('The last ten minutes', '5 s a bar', null, grants.all, refused.all, waiting.all, h('div', { class: 'band' }, h('span'), ticks)),
      card('Services', 'on this store', null, services.all)),
    h('div', { class: 'stack' }, card('Worth a look', null, null, look), card('Store', null, storeChip, store))));

  function headline(o, past) {
    const bad = o.condition ?? (isNone(o.now_ms) ? { code: 'store-', detail: 'The store has not answered just now.' } : null), now = storeNow() || o.now_ms;
    const key = bad ? 'bad ' + bad.code + bad.detail + bad.remedy : 'well';
    if (key !== before) {
      before = key;
      fill(top, bad ? h('div', { class: 'alert', role: 'alert' }, h('p', { class: 'since' }), h('h1', { class: 'big' }, conditionSays(bad)),
        bad.remedy ? h('p', { class: 'say' }, bad.remedy) : null,
        bad.command ? h('div', { class: 'cmd' }, bad.command) : null) : [when, title, say]);
    }
    if (bad) {
      put(top.querySelector('.since'), (isNone(bad.for_ms) ? '' : 'since ' + (now ? clock(now - bad.for_ms) + ', ' : '') + span(bad.for_ms) + ' ago'));
      return;
    }
    put(title, 'All is well.');
    put(when, (now ? clock(now) + ' ' : '') + zone());
    const services = o.members.length || 1, doubts = countsOf(o).in_doubt;
    const { lease, gateway } = o.services ?? { lease: 1, gateway: 1 };
    const can = lease && gateway ? 'grants and writes are possible' : lease ? 'grants are possible; no gateway is heard, so nothing is written through one'
      : 'writes are possible; no lease service is heard, so nothing is granted';
    put(say, `${many(services, 'service')} on one Redis; ${can}`
      + (doubts ? '. ' + (doubts === 1 ? 'One write has' : count(doubts) + ' writes have') + ' no known end: see Doubt.' : doubts === 0 ? ', nothing is in doubt.' : o.filtered ? '.' : '. What is in doubt is not counted now.')
      + (past > 0 ? ` ${word(past)} ${past === 1 ? 'write was' : 'writes were'} refused in the last ten minutes, as ${past === 1 ? 'it' : 'they'} should be.` : '')
      + (o.filtered ? ' What you may not look at is left out.' : ''));
  }

  const TILES = [['held', 'held', 'leases'], ['waiting', 'waiting', 'leases?state=waiting'], ['delayed', 'delayed', 'leases?state=delayed'],
    ['refused', 'refused in ten minutes'], ['in_doubt', 'in doubt', 'doubt']];
  const figures = TILES.map(([key, what, href]) => {
    const figure = h('b', null, '\u2013'), to = href && (href === 'doubt' || app.kind === 'lease') ? './' + href : null;
    tiles.append(h(to ? 'a' : 'div', { class: 'tile', href: to }, figure, h('span', null, what)));
    return [key, figure];
  });

  function show(o) {
    if (!o) return fill(top, h('h1', null, 'Overview'), app.without?.status === 501 ? sayNo(app.without) : h('p', { class: 'say' }, app.access || app.access === null
      ? 'The service is reached. Its overview is for those who may look at some lease.' : ''));
    const bars = o.bars || {}, counts = countsOf(o), past = bars.refused ? sum(bars.refused) : null;
    headline(o, past);
    for (const [key, figure] of figures) {
      put(figure, count(key === 'refused' ? past : counts[key]));
      if (key === 'in_doubt') figure.className = counts.in_doubt ? 'refused' : '';
    }
    if (!bars.grants) {
      for (const one of [grants, refused, waiting]) one.show([], '\u2013', 'not known', '');
      fill(ticks);
    } else {
      const last = bars.grants.slice(-13, -1);
      grants.show(bars.grants, (sum(last) * 1000 / (last.length * bars.step_ms)).toFixed(1), 'a second', ' in 5 s');
      refused.show(bars.refused, count(past), 'in ten minutes', ' in 5 s');
      waiting.show(bars.waiting, count(counts.waiting ?? bars.waiting[bars.waiting.length - 1]), 'now', '');
      const begin = bars.end_ms - SLOTS * bars.step_ms;
      fill(ticks, [0, 1, 2, 3, 4].map(i => h('span', { class: i % 2 ? 'wide' : null }, clock(begin + i * 120000).slice(0, 5))), h('span', null, 'now'));
    }
    if (o.look?.length && isCounted(o)) list(look, o.look, one => JSON.stringify([one.kind, one.lease, one.holder, one.code, Math.floor(one.for_ms / 1000)]), looks);
    else list(look, [isNone(o.counted_ms_ago) ? 'Counting\u2026' : isCounted(o) ? 'Nothing stands out.' : 'It was not counted lately.'], said => said, said => h('li', { class: 'dim' }, said));
    list(services.body, o.members, one => [one.kind, one.id, one.name, one.ui, one.version, stateOf(one)].join(), one => h('tr', null,
      h('td', null, one.ui ? h('a', { href: one.ui }, 'pawl-' + one.kind) : 'pawl-' + one.kind), h('td', null, mono(one.name || one.id, 24)),
      h('td', { class: 'wide' }, one.version || '\u2013'), h('td', { class: 'n' }), h('td', { class: 'n wide' }),
      h('td', null, chip(...stateOf(one)))),
    (row, one) => {
      put(row.children[3], span(one.heard_ms));
      put(row.children[4], span(one.up_ms));
    });
    const isIll = /^store-/.test(o.condition?.code);
    fill(storeChip, o.store ? chip(isIll ? 'bad' : 'ok', isIll ? o.condition.code : 'admitted') : chip('bad', 'not reached'));
    fill(store, o.store ? facts([['id', mono(o.store.id, 16)], ['epoch', mono(o.store.epoch)],
      isNone(o.store.top_token) ? null : ['greatest token', count(o.store.top_token)],
      o.store.ceiling ? ['floor', count(o.store.ceiling)] : null,
      isNone(o.store.used_bytes) ? null : ['memory', (o.store.used_bytes / 1048576).toFixed(1) + ' MiB' + (o.store.max_bytes ? ' of ' + count(o.store.max_bytes / 1048576) : '')],
      isNone(counts.sessions) ? null : ['sessions', count(counts.sessions)],
      ['counted', isNone(o.counted_ms_ago) ? 'not yet' : span(o.counted_ms_ago) + ' ago']]) : h('p', { class: 'dim' }, 'Nothing is known of it now.'));
  }
  app.on('overview', show);
}
