// lease.js - one lease: who holds it, who waits, what was refused and why; the staircase, live.
import { h, s, fill, put, list, card, chip, facts, count, span, clock, name, mono, many, word, plain, table, copy } from './dom.js';
import { ask, streamOf, storeNow } from './wire.js';
import { Chart, story, inOrder, glyph, legend, drawStrip, holderOf, inForce, ENDS } from './stairs.js';
import { deed, deedButton, whose } from './deed.js';

const KEPT = 500, TIME_MAX = 8.64e15, SHOWN = 40, DRAW_MS = 100, WORDS_MS = 250, LOOK_MS = 2000, OFTEN_MS = 500, RECENT_MS = 600000;
const WINDOWS = [[10000, '10 s'], [60000, '1 min'], [600000, '10 min'], [3600000, '1 h'], [0, 'all']];
const AHEAD = 0.14;
const still = matchMedia('(prefers-reduced-motion: reduce)');

const REASONS = {
  'stale-token': item => item.current_token ? `token ${count(item.current_token)} is the greater one` : 'a greater token was granted',
  'lease-expired': () => 'its hold was over', 'unissued-token': () => 'no such token was ever granted',
  'wrong-mode': () => 'a shared hold does not write', 'bad-signature': () => 'no key of ours signed it',
};
function why(item, told) {
  const hold = told.holds.find(one => one.token === item.token);
  if (item.type === 'refused') return [h('code', null, item.reason), REASONS[item.reason] ? ': ' + REASONS[item.reason](item) : '', item.resource ? [', ', mono(item.resource, 32)] : ''];
  if (item.type === 'granted') return item.waited_ms > 0 ? `after ${span(item.waited_ms)} in line` : item.waited_ms === 0 ? 'at once' : '';
  if (item.type === 'forced') return item.reason ? ['\u201c', name(item.reason, 120), '\u201d', item.identity ? [' \u2013 ', name(item.identity)] : ''] : 'by an operator';
  if (item.type === 'expired') return hold?.renewed || hold?.noted ? `not renewed for ${span(hold.end - (hold.renewed ?? hold.start))}` : '';
  if (item.type === 'store-restarted') return 'the store was not proven complete';
  if (item.type === 'session') return 'its session was over';
  return item.reason ? name(item.reason, 120) : '';
}
const WHAT = { granted: 'granted', refused: 'refused', 'first-write': 'first write let through', ...ENDS };

// -- one sentence that answers

export function sentence(told, look, now, historyOff) {
  const recent = told.refusals.filter(one => one.at_ms > now - RECENT_MS), latest = recent[recent.length - 1];
  if (latest) {
    const who = latest.holder || holderOf(told, latest.token), hold = told.holds.find(one => one.token === latest.token), by = inForce(told, latest.at_ms);
    const end = hold?.end ? `${who ? ' ' + plain(who, 24) + '\u2019s' : ' Its'} hold ${hold.how === 'expired' ? 'had run out' : hold.how === 'store-restarted' ? 'ended when the store restarted' : 'had ended (' + ENDS[hold.how] + ')'} at ${clock(hold.end)}` : '';
    const overdue = hold?.how === 'expired' && hold.due < hold.end ? `; its renewal was overdue for ${span(hold.end - hold.due)}.` : end ? '.' : '';
    if (recent.length === 1)
      return [h('b', null, who ? [name(who), '\u2019s write'] : 'A write', ` at ${clock(latest.at_ms)} was refused`),
        by && by.token > latest.token ? [', because ', name(by.holder), ` ${by.live ? 'has held' : 'had'} the lease since ${clock(by.start)} with the greater token.`] : `: ${latest.reason}.`, end + overdue];
    return [h('b', null, `${word(recent.length)} writes were refused in the last ten minutes.`), ' The latest: ',
      who ? name(who) : 'a write', ` at ${clock(latest.at_ms)} with token ${count(latest.token)} (${latest.reason}).`, end + overdue];
  }
  if (look?.state === 'delayed') return [h('b', null, 'Nobody may have it yet.'), ' The last hold was not given back; the lock delay ends in ' + span(look.delayed_for_ms) + '.'];
  if (look?.state === 'held') {
    const first = look.holders[0], others = look.holders.length - 1, isNoted = told.holds.some(one => one.token === first.token && one.noted);
    return [h('b', null, name(first.holder), others > 0 ? ` and ${many(others, 'other')} hold it` : ' holds it'),
      `${others > 0 ? ', the first' : ''} since ${clock(look.seen - first.held_for_ms)}${!isNoted ? '.' : first.held_for_ms < RECENT_MS ? '; nothing was refused since.' : '; nothing was refused in the last ten minutes.'}`, look.waiting ? ` ${many(look.waiting, 'waits', 'wait')} in line.` : ''];
  }
  const last = told.holds[told.holds.length - 1];
  return [h('b', null, 'Free.'), historyOff ? '' : last ? [' The last to hold it was ', name(last.holder), last.end ? `, until ${clock(last.end)}.` : '.'] : ' No hold of it is remembered.'];
}

// -- the page

export default function lease(place, app) {
  const lease = app.query.get('name') || '';
  const items = new Map();
  let look = null, told = story([], null, 0), view = { span: null, fixed: null }, dirty = true, wordsDirty = true, historyOff = false, missed = '';
  let drawn = 0, worded = 0, lookAt = 0, isOpen = false, isDue = true, all = false, by = 'pawl', announced = 0;
  const from = Number(app.query.get('from')), to = Number(app.query.get('to'));
  if (from > 0 && to > from && to <= TIME_MAX) view.fixed = { from, to, at: to };
  document.title = plain(lease) + ' \u00b7 Pawl';

  // -- what is on it
  const head = h('div', { class: 'head' }), states = h('span', { class: 'head' }), line = h('p', { class: 'say' });
  const polite = h('p', { class: 'unseen', role: 'status' }), sub = h('span', { class: 'sub wide' }, 'each grant is a step; whatever lies below is refused');
  const chart = new Chart(), box = h('div', { class: 'chart', tabindex: 0, role: 'group', 'aria-label': 'Staircase. Plus and minus: window; arrows: move; 0: now; p: pause.', onkeydown: key }, chart.svg);
  const strip = s('svg', { height: 24, 'aria-hidden': 'true' }), stripBox = h('div', { class: 'strip' }, strip);
  const segments = WINDOWS.map(([ms, text]) => h('button', { type: 'button', onclick: () => choose(ms) }, text));
  const pause = h('button', { 'aria-pressed': 'false', onclick: () => (view.fixed ? live() : stop()) }, '\u275a\u275a Pause');
  const link = h('button', { class: 'wide', onclick: () => copyLink() }, 'Copy link');
  const words = table(['When', 'What', '>Token', 'Who', 'Why', 'Request'], 'words'), more = h('button', { onclick: () => { all = true; wordsDirty = true; } });
  const foot = h('div', { class: 'foot', hidden: true }, more);
  const holder = h('div'), queue = h('div'), queueCount = h('span', { class: 'sub' }), commands = h('div', { class: 'cmd', tabindex: 0, role: 'group', 'aria-label': 'Commands' });
  const hands = ['pawl', 'curl'].map(what => h('button', { type: 'button', 'aria-pressed': String(what === by), onclick: () => { by = what; hand(); } }, what));
  const force = deedButton('force-release', 'Force-release\u2026', 'danger', forceRelease);
  const left = h('strong'), leftOf = h('span', { class: 'dim' }), leftBar = h('i');
  const prefix = lease.slice(0, lease.lastIndexOf(':') + 1);

  fill(head, h('h1', { class: 'mono' }, name(lease, 80)), states, h('span', { class: 'grow' }), force);
  fill(place, h('p', { class: 'crumb' }, h('a', { href: './leases' }, 'Leases'), prefix ? [' / ', h('a', { href: './leases?prefix=' + encodeURIComponent(prefix) }, plain(prefix))] : null),
    head, line, h('div', { class: 'cols' }, h('div', { class: 'stack' },
      card('Staircase', null, h('span', { class: 'tools' }, h('span', { class: 'seg', role: 'group', 'aria-label': 'Window' }, segments), pause, link), box, stripBox, legend(), polite),
      card('The same in words', 'newest first', null, words.all, foot)),
    h('div', { class: 'stack' }, card('Holder', null, null, holder), card('In line', null, queueCount, queue),
      card('The same by hand', null, h('span', { class: 'seg', role: 'group', 'aria-label': 'Commands of' }, hands), commands))));
  box.closest('.card').querySelector('h2').after(sub);

  // -- what is known, and asking for it
  const now = () => (app.lost ? app.lastNews() : null) ?? storeNow();

  function learn(item) {
    if (items.has(item.id)) return;
    items.set(item.id, item);
    dirty = wordsDirty = true;
    if (item.type === 'refused' && drawn && performance.now() - announced > 5000) {
      announced = performance.now();
      put(polite, `${clock(item.at_ms)}: a write with token ${count(item.token)} was refused, ${item.reason}.`);
    }
  }

  function trim() {
    if (items.size <= KEPT) return;
    [...items.values()].sort(inOrder).slice(0, items.size - KEPT).forEach(item => items.delete(item.id));
  }

  // The history as well while nothing streams, or when something may have been missed.
  async function ask_() {
    lookAt = performance.now();
    const [said] = await Promise.all([ask('v1/leases/' + encodeURIComponent(lease)), isOpen && app.streams() && !isDue ? null : refreshHistory()]);
    look = said;
    look.seen = look.now_ms ?? storeNow() ?? lastAt();
    dirty = true;
    side();
  }
  // A hold is overdue after a third of its ttl: as often it is to be known whether it was renewed.
  const every = () => Math.max(OFTEN_MS, Math.min(LOOK_MS, ...(look?.holders || []).map(one => (one.ttl_ms || Infinity) / 3)));

  const gap = () => { missed = `Events between ${clock(app.lastNews() ?? lastAt())} and ${clock(storeNow() ?? lastAt())} are not known.`; };
  // What was known last of either list is still in the history, or something between is not.
  const newest = () => [true, false].map(one => [...items.values()].filter(item => !item.dropped && (item.type === 'refused') === one).sort(inOrder).pop());

  async function refreshHistory() {
    const known = newest().filter(one => one), before = [...items.values()];
    isDue = true;
    try {
      const said = await ask(`v1/leases/${encodeURIComponent(lease)}/history`);
      said.items.forEach(learn);
      if (!known.every(one => said.items.some(item => item.id === one.id))) gap();
      for (const item of before) item.dropped = !said.items.some(one => one.id === item.id); // what it has dropped proves nothing next time
      historyOff = false;
    } catch (error) {
      if (!['history-off', 'not-in-quorum-mode'].includes(error.code)) throw error;
      historyOff = true;
    }
    isDue = false;
    dirty = wordsDirty = true;
  }
  const lastAt = () => [...items.values()].reduce((last, one) => Math.max(last, one.at_ms), 0);

  let stream = null, soon = 0;
  function listen() {
    const last = stream?.last;
    stream?.close();
    stream = streamOf('v1/events?lease=' + encodeURIComponent(lease), {
      open() {
        isOpen = isDue = true;
        app.again();
      },
      down() { isOpen = false; },
      gap,
      item(event, said) {
        if (event === 'line') {
          if (!look) return;
          Object.assign(look, { line: said.line, waiting: said.waiting, lineSeen: storeNow() });
          dirty = true;
          side();
        } else if (said.id) {
          learn(said);
          clearTimeout(soon); // its holder and its line, when all that came with it is here
          soon = setTimeout(app.again, Math.max(20, 250 - (performance.now() - lookAt)));
        }
      },
    }, last);
  }

  // -- the window
  const spanOf = () => view.span ??= guess();
  function guess() { // the last few grants, as they are when the page is opened
    const far = Math.max(5000, ...told.holds.slice(-4).slice(0, 1).map(one => now() - one.start + (one.waited || 0)));
    return WINDOWS.find(([ms]) => ms && far <= ms * (1 - AHEAD))?.[0] ?? 0;
  }
  function bounds() {
    if (view.fixed) return view.fixed;
    const at = now(), ms = spanOf() || Math.max(10000, (at - told.first) * 1.04 / (1 - AHEAD));
    return { from: at - ms * (1 - AHEAD), to: at + ms * AHEAD, at };
  }
  function choose(ms) {
    view.span = ms;
    if (view.fixed && ms) {
      const end = view.fixed.to;
      view.fixed = { ...view.fixed, from: end - ms, to: end };
    } else view.fixed = null;
    dirty = true;
  }
  function stop(moved) {
    view.fixed = { ...bounds(), ...moved };
    view.fixed.at ??= now();
    dirty = true;
  }
  function live() {
    view.fixed = null;
    dirty = true;
  }
  function move(ms) {
    const { from, to } = bounds();
    stop({ from: from + ms, to: to + ms });
  }
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { from, to } = bounds(), at = WINDOWS.findIndex(([ms]) => ms === spanOf());
    const act = { '+': () => choose(WINDOWS[Math.max(0, at - 1)][0]), '-': () => choose(WINDOWS[Math.min(WINDOWS.length - 1, at + 1)][0]),
      ArrowLeft: () => move((from - to) / 5), ArrowRight: () => move((to - from) / 5), 0: live, p: () => (view.fixed ? live() : stop()) }[event.key === '=' ? '+' : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
  function copyLink() {
    const { from, to } = bounds();
    const url = new URL('./lease', location.href);
    url.search = new URLSearchParams({ name: lease, from: Math.round(from), to: Math.round(Math.min(to, now())) });
    history.replaceState(null, '', url);
    copy(link, url.href);
  }
  let place0 = null, timeOf = null;
  const drag = event => {
    const middle = timeOf(event.clientX - strip.getBoundingClientRect().left), { from, to } = bounds();
    stop({ from: middle - (to - from) / 2, to: middle + (to - from) / 2 });
  };
  stripBox.addEventListener('pointerdown', event => { place0 = event.pointerId; stripBox.setPointerCapture(place0); drag(event); });
  stripBox.addEventListener('pointermove', event => { if (place0 !== null) drag(event); });
  stripBox.addEventListener('pointerup', () => { place0 = null; });

  // -- drawing
  function draw() {
    const sorted = [...items.values()].sort(inOrder), at = now();
    if (at === null) return;
    told = story(sorted, look, at);
    const b = bounds(), inside = at >= b.from && at <= b.to, newer = view.fixed ? sorted.filter(one => one.at_ms > b.at).length : 0;
    fill(line, app.lost ? h('b', null, `As of ${clock(at)}. `) : null, sentence(told, look, at, historyOff), missed ? ' ' + missed : '');
    chart.draw(told, { ...b, now: inside ? at : null, pill: app.lost ? 'last news ' + clock(at) : 'now', said: 'Staircase of ' + plain(lease) + ': ' + line.textContent });
    timeOf = drawStrip(strip, told, b.from, b.to, at);
    put(sub, historyOff ? 'the store notes no history: only what is held now is seen' : view.fixed ? `Paused at ${clock(b.at)}${newer ? ', ' + count(newer) + ' newer' : ''}` : told.isShared ? 'several tokens are good at once: each has its bar' : 'each grant is a step; whatever lies below is refused');
    pause.setAttribute('aria-pressed', String(view.fixed !== null));
    put(pause, view.fixed ? '\u25b6 Live' : '\u275a\u275a Pause');
    segments.forEach((one, i) => one.setAttribute('aria-pressed', String(WINDOWS[i][0] === spanOf())));
  }

  function tell() {
    trim();
    const sorted = [...items.values()].sort((a, b) => inOrder(b, a)), shown = all ? sorted : sorted.slice(0, SHOWN);
    const of = token => told.holds.find(one => one.token === token), known = (it = {}) => [it.holder, it.noted, it.end]; // a row says what is known of its hold
    list(words.body, shown, one => [one.id, ...known(of(one.token))].join(), one => h('tr', null,
      h('td', { class: 'mono' }, clock(one.at_ms, true)),
      h('td', null, h('span', { class: 'k' }, glyph(one.type)), h('span', { class: one.type === 'refused' ? 'refused' : null }, WHAT[one.type] || plain(one.type))),
      h('td', { class: 'n mono' }, count(one.token)), h('td', null, name(one.holder || holderOf(told, one.token), 32)), h('td', null, why(one, told), one.lock_delay_ms ? '; lock delay ' + span(one.lock_delay_ms) : ''),
      h('td', { class: 'mono dim small' }, one.instance || '')));
    if (!sorted.length) list(words.body, [0], () => 'none', () => h('tr', null, h('td', { colspan: 6, class: 'dim' }, 'Nothing has happened to it that is still remembered.')));
    foot.hidden = shown.length === sorted.length;
    put(more, `Show ${count(sorted.length - shown.length)} older`);
  }

  let sideKey = '';
  function side() {
    const first = look.holders[0], several = look.holders.length > 1;
    fill(states, look.state === 'held' ? chip('', h('span', null, 'held by ', several ? look.holders.length : name(first.holder, 24))) : chip('free', look.state),
      h('span', { class: 'dim' }, 'token ', h('b', { class: 'mono' }, count(look.token)), look.mode ? ' \u00b7 ' + look.mode : '', look.waiting ? ` \u00b7 ${count(look.waiting)} in line` : ''));
    force.hidden = look.state !== 'held';
    const key = JSON.stringify([look.state, look.token, look.holders.map(one => [one.token, one.holds, one.session])]) + by;
    if (key !== sideKey || several) {
      sideKey = key;
      if (several) {
        const held = table(['Holder', '>Token', '>ends in']);
        fill(held.body, look.holders.slice(0, 100).map(one => h('tr', null, h('td', null, name(one.holder, 24)), h('td', { class: 'n mono' }, count(one.token)), h('td', { class: 'n' }, span(one.expires_in_ms)))));
        fill(holder, held.all);
      } else if (first) {
        fill(holder, h('div', { class: 'count' }, left, leftOf), h('div', { class: 'left', 'aria-hidden': 'true' }, leftBar),
          facts([['holder', name(first.holder)], first.identity ? ['identity', name(first.identity)] : null, ['token', mono(count(first.token))], ['since', h('span', { class: 'since' })],
            first.renewed_ms_ago !== undefined ? ['last renewed', h('span', { class: 'renewed' })] : null,
            first.waited_ms !== undefined ? ['waited', span(first.waited_ms)] : null, first.holds > 1 ? ['entered', first.holds + ' times'] : null,
            ['session', first.session ? h('a', { class: 'mono', href: './session?id=' + encodeURIComponent(first.session) }, plain(first.session, 14)) : '\u2013'],
            ['meta', mono(JSON.stringify(first.meta), 400)], ['epoch', mono(look.epoch)]]));
      } else fill(holder, h('p', { class: 'dim' }, look.state === 'delayed' ? 'Nobody, until the lock delay is over.' : 'Nobody.'));
      hand();
    }
    const inLine = look.line || [];
    put(queueCount, count(look.waiting));
    if (!look.waiting) fill(queue, h('p', { class: 'dim' }, 'Nobody waits.'));
    else if (inLine.length) {
      const seen = look.lineSeen ?? look.seen, t = queue.table ||= table(['#', 'Who', '>waits', '>gives up in']);
      if (t.all.parentNode !== queue) fill(queue, t.all);
      list(t.body, inLine.map((one, i) => ({ ...one, i })), one => one.i + one.holder, () => h('tr', null, h('td'), h('td'), h('td', { class: 'n' }), h('td', { class: 'n dim' })), (row, one) => {
        const [n, who, waits, gives] = row.children;
        put(n, String(one.i + 1));
        if (!who.firstChild) who.append(name(one.holder, 20), one.mode === 'shared' ? ' (shared)' : '');
        waits.ms = seen - one.waits_ms;
        gives.ms = seen + one.gives_up_in_ms;
      });
    } else fill(queue, h('p', { class: 'dim' }, many(look.waiting, 'waits', 'wait') + '.'));
  }

  function hand() { // nothing before the service knows this name: a link may say anything
    const at = new URL('..', location.href).href.replaceAll("'", '%27'), path = `${at}v1/leases/${encodeURIComponent(lease)}`, token = look?.token || 0;
    const auth = app.access ? ' -H "Authorization: Bearer $PAWL_ACCESS_TOKEN"' : '';
    put(commands, !look ? '' : by === 'pawl' ? `export PAWL_LEASE_URL='${at}'\npawl get ${lease}\npawl history ${lease}\npawl watch ${lease}` + (token ? `\npawl force-release ${lease} \\\n  --expect-token ${token}` : '')
      : `curl${auth} '${path}'\ncurl${auth} '${path}/history'\ncurl -N${auth} \\\n  '${at}v1/events?lease=${lease}'`);
    hands.forEach(one => one.setAttribute('aria-pressed', String(one.textContent === by)));
  }

  function countdown(at) {
    const first = look?.holders.length === 1 ? look.holders[0] : null;
    if (first && holder.contains(left)) {
      const ms = look.seen + first.expires_in_ms - at, ttl = first.ttl_ms || first.expires_in_ms;
      put(left, ms > 0 ? span(ms) : 'due');
      put(leftOf, ms <= 0 ? 'it is about to end' : app.lost ? 'left if it was not renewed' : 'until the hold ends');
      leftBar.style.width = Math.max(0, Math.min(100, ms / ttl * 100)).toFixed(1) + '%';
      const since = holder.querySelector('.since'), renewed = holder.querySelector('.renewed');
      if (since) put(since, span(at - look.seen + first.held_for_ms));
      if (renewed) put(renewed, app.lost ? 'before ' + clock(at) : span(at - look.seen + first.renewed_ms_ago) + ' ago');
    }
    for (const cell of queue.querySelectorAll('td.n')) if (cell.ms) put(cell, span(Math.max(0, cell.classList.contains('dim') ? cell.ms - at : at - cell.ms)));
  }

  let raf = 0, beat = 0, cost = 0;
  function frame(t) {
    raf = requestAnimationFrame(frame);
    const at = now();
    if (at === null || (!look && !items.size)) return;
    const moves = !app.lost && !view.fixed;
    if (moves && !dirty) dirty = still.matches || chart.drawnAt === null ? t - drawn > 1000 : chart.glide(at);
    if (dirty && t - drawn > Math.max(DRAW_MS, 10 * cost)) {
      draw();
      cost = performance.now() - t;
      drawn = t;
      dirty = false;
    }
    if (wordsDirty && !dirty && t - worded > WORDS_MS) {
      tell();
      worded = t;
      wordsDirty = false;
    }
    if (t - beat > 100) {
      countdown(at);
      beat = t;
    }
  }

  // -- deeds
  // Each hold that was seen is named: who has come since keeps its own.
  function forceRelease() {
    const seen = look.holders, one = seen[0], next = look.line?.[0], several = seen.length > 1;
    const path = 'v1/leases/' + encodeURIComponent(lease);
    deed({
      title: ['Force-release ', name(lease)], name: lease, label: 'Type the name of the lease', action: 'Force-release', reason: true,
      loses: several ? [h('b', null, `${seen.length} holders`), ' lose their holds at once; their next renewals are refused: ', seen.slice(0, 5).map((who, i) => [i ? ', ' : '', whose(who.holder), ` (${count(who.token)})`]), seen.length > 5 ? ' and others.' : '.']
        : [whose(one.holder), ' loses the hold with token ', h('b', { class: 'mono' }, count(one.token)), ' at once; its next renewal and its next write are refused. ',
          next ? [whose(next.holder), ', first in line, is granted.'] : 'Then it is free.'],
      wrong: [several ? 'They are' : [name(one.holder), ' is'], ' not told and may be in the middle of its work: what it does without a checked write goes on, beside the next holder. ',
        several ? 'Who holds only since this was shown keeps its hold (' : 'If somebody else holds by the time this arrives, nothing is done (', h('code', null, 'expect_token'), ').'],
      moved(problem) {
        const holder = problem.holder || look.holders[0]?.holder;
        return holder ? `${plain(holder)} holds it now.` : 'nobody holds it any more.';
      },
      async send({ reason }) {
        let ended = 0, moved = null;
        try {
          for (const { token } of seen) {
            try {
              await ask(`${path}/force-release`, { reason, expect_token: token });
              ended++;
            } catch (error) {
              if (error.code !== 'token-moved-on') throw error;
              // A browser sends again what a connection has ended under: it may be refused for what it has done itself.
              const past = await ask(`${path}/history`).catch(() => { error.code = ''; throw error; });
              if (past.items.some(item => item.type === 'forced' && item.token === token)) ended++; else moved = error;
            }
          }
          if (!ended) throw moved;
        } catch (error) {
          error.done = ended ? `Of ${seen.length} holds ${ended} ${ended === 1 ? 'has' : 'have'} ended. ` : '';
          if (error.code === 'token-moved-on') { look = { ...await ask(path), seen: storeNow() }; side(); }
          throw error;
        }
        app.again();
        return several ? `${ended === seen.length ? 'Their' : ended + ' of ' + seen.length} holds have ended${ended < seen.length ? '; the others had ended before.' : '.'}` : [whose(one.holder), '\u2019s hold has ended.'];
      },
    });
  }

  if (!lease) return fill(place, h('h1', null, 'Lease'), h('p', { class: 'say' }, 'Which one? Go by ', h('a', { href: './leases' }, 'Leases'), '.'));
  const rest = () => {
    cancelAnimationFrame(raf);
    stream?.close();
    isOpen = false;
  };
  app.on('lost', () => { dirty = true; });
  app.on('back', () => { dirty = true; if (stream?.closed) listen(); else stream?.now(); });
  app.on('hidden over', rest);
  app.on('seen', () => { raf = requestAnimationFrame(frame); });
  addEventListener('resize', () => { dirty = true; });
  force.hidden = true;
  app.asks(every, ask_, h('h1', { class: 'mono' }, name(lease, 80)));
  listen();
  raf = requestAnimationFrame(frame);
}
