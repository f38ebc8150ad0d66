// sessions.js - all sessions, or one (./session?id=): what it holds, what it has lost, and its end by an operator's word.
import { h, fill, put, list, card, facts, count, span, name, mono, leaseLink, plain, table, many } from './dom.js';
import { ask } from './wire.js';
import { deed, deedButton, whose } from './deed.js';

function endDeed(one, leases, done) {
  deed({
    title: ['End the session of ', name(one.holder)], name: one.session, label: 'Type the id of the session', action: 'End it', reason: true, kept: 'in the log',
    loses: [whose(one.holder), ' loses ', h('b', null, many(leases, 'lease')), ' at once; its next renewal and its next writes are refused. Who stands in line is granted.'],
    wrong: [name(one.holder), ' is not told and may be in the middle of its work: what it does without a checked write goes on, beside the next holder. No lock delay applies.'],
    async send({ reason }) {
      const said = await ask(`v1/sessions/${encodeURIComponent(one.session)}/end`, { reason });
      done();
      return ['The session of ', whose(one.holder), ' has ended, and with it ', many(said.leases, 'hold'), '.'];
    },
  });
}

function single(place, app, id) {
  let seen = null, at = 0;
  const facts_ = h('div'), leases = h('ul', { class: 'look' }), lost = h('ul', { class: 'look' }), sentence = h('p', { class: 'say' }), title = h('h1', null, 'Session ', mono(id, 40));
  const end = deedButton('operate', 'End it\u2026', 'danger', () => endDeed(seen, seen.leases.length, app.again));
  const left = h('strong');
  end.hidden = true;
  fill(place, h('p', { class: 'crumb' }, h('a', { href: './sessions' }, 'Sessions')), h('div', { class: 'head' }, title, h('span', { class: 'grow' }), end), sentence,
    h('div', { class: 'cols' }, h('div', { class: 'stack' }, card('Holds', null, null, leases), card('Lost', 'a hold was taken from it', null, lost)),
      card('Session', null, null, h('div', { class: 'count' }, left, h('span', { class: 'dim' }, 'until it ends')), facts_)));
  async function look() {
    try {
      seen = await ask('v1/sessions/' + encodeURIComponent(id));
      at = performance.now();
      end.hidden = false;
      fill(sentence, h('b', null, name(seen.holder), ` holds ${many(seen.leases.length, 'lease')} through it.`), seen.lost.length ? ` ${many(seen.lost.length, 'lease was', 'leases were')} taken from it.` : '');
      fill(facts_, facts([['holder', name(seen.holder)], seen.identity ? ['identity', name(seen.identity)] : null, ['ttl', span(seen.ttl_ms)], ['open for', span(seen.open_for_ms)], ['meta', mono(JSON.stringify(seen.meta), 400)]]));
      for (const [place_, names, none] of [[leases, seen.leases, 'It holds nothing.'], [lost, seen.lost, 'Nothing was taken from it.']])
        list(place_, names.length ? names : [''], one => one, one => h('li', null, one ? leaseLink(one) : h('span', { class: 'dim' }, none)));
    } catch (error) {
      if (error.status !== 410) throw error;
      end.hidden = true;
      fill(sentence, h('b', null, 'It is over'), error.problem.ended === 'expired' ? ' (expired).' : '.'); // its end by an operator is told as released
      fill(leases, h('li', { class: 'dim' }, 'It holds nothing any more.'));
      put(left, '\u2013');
      seen = null;
    }
  }
  return [look, () => { if (seen && app.live) put(left, span(Math.max(0, seen.expires_in_ms - (performance.now() - at)))); }];
}

function every(place, app) {
  const rows = table(['Session', 'Holder', '>ttl', '>ends in', '>open for', '>Leases', '>Deed']), say = h('p', { class: 'say' });
  const pages = app.pages(() => list(rows.body, [], one => one.session)), foot = h('div', { class: 'foot', hidden: true }, h('span', { class: 'grow' }), pages.next);
  fill(place, h('h1', null, 'Sessions'), say, h('section', { class: 'card' }, rows.all, foot));
  async function look() {
    const of = app.query, cursor = of.get('cursor'), said = await ask('v1/sessions?limit=100' + (cursor ? '&cursor=' + encodeURIComponent(cursor) : '')), at = performance.now();
    if (of !== app.query) return;
    fill(say, said.items.length ? h('b', null, many(said.items.length, 'session') + (said.next_cursor ? ' on this page.' : '.')) : [h('b', null, said.next_cursor ? 'No session is on this page.' : said.filtered ? 'No session that you may see is open.' : 'No session is open.'), ' A session keeps many leases alive with one renewal.'],
      said.filtered ? ' Those of others are left out.' : '');
    pages.go(said.next_cursor && './sessions?cursor=' + encodeURIComponent(said.next_cursor));
    foot.hidden = !said.next_cursor;
    list(rows.body, said.items, one => one.session, one => {
      const row = h('tr', null, h('td', null, h('a', { class: 'mono', href: './session?id=' + encodeURIComponent(one.session) }, plain(one.session, 20))), h('td', null, name(one.holder, 40)),
        h('td', { class: 'n' }, span(one.ttl_ms)), h('td', { class: 'n' }), h('td', { class: 'n dim' }), h('td', { class: 'n' }),
        h('td', { class: 'n' }, deedButton('operate', 'End\u2026', 'danger', () => endDeed(row.it, row.it.leases, app.again))));
      return row;
    }, (row, one) => {
      Object.assign(row, { it: one, at });
      put(row.children[4], span(one.open_for_ms));
      put(row.children[5], count(one.leases));
    });
  }
  return [look, () => { if (app.live) for (const row of rows.body.children) put(row.children[3], span(Math.max(0, row.it.expires_in_ms - (performance.now() - row.at)))); }];
}

export default function sessions(place, app) {
  const id = app.query.get('id'), [look, tick] = app.here === 'session' ? single(place, app, id || '') : every(place, app);
  app.asks(() => 2000, look, h('h1', null, id ? 'Session' : 'Sessions'));
  setInterval(tick, 250);
}
