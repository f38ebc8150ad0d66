// doubt.js - writes that were sent on and of which nobody knows the end, and gateways that may have sent such ones. What an
// operator says here the services believe.
import { h, fill, put, list, card, chip, count, span, name, mono, plain, table, many, stateOf, countsOf, isNone } from './dom.js';
import { ask, storeNow } from './wire.js';
import { deed, deedButton, whose } from './deed.js';

const STATES = { unknown: 'bad', dead: 'bad', sending: '', queued: 'free' }, PAGES = 20, SHOWN = 200;

// What is to be looked for at the upstream: of an intent that is sticky, several writes.
function requestsOf(one) {
  const named = [one.request, ...one.requests || []].filter(id => /^\d+$/.test(id)).map(id => `${one.gateway}-${one.incarnation}-${id}`);
  const more = one.sticky && one.requests.length !== named.length;
  return (named.length ? (named.length > 1 || more ? 'at the upstream their Pawl-Request-Ids are ' : 'at the upstream its Pawl-Request-Id is ') + named.join(', ') : '')
    + (more ? (named.length ? ', and more: ' : '') + 'any write of this token through this gateway' : '');
}

function resolve(one, force, done) {
  const wish = h('p', { class: 'dim' }, `Token ${count(one.token)}, through ${one.gateway}; ${requestsOf(one)}.`), writes = one.sticky ? 'these writes are' : 'this write is';
  deed({
    title: ['Close a write of ', name(one.lease)], name: one.lease, label: 'Type the name of the lease', action: force ? 'Cut it off and close it' : 'Close it', choices: wish,
    loses: [force ? 'Its gateway closes the connection, and then ' : '', 'newer ordered writes of ', h('b', null, name(one.lease)), ' go on at once. You say: ', h('b', null, `I have looked at the upstream, and ${writes} over.`)],
    wrong: `If ${one.sticky ? 'one of them' : 'that write'} is still on its way it lands after newer ones, and nothing notices.`,
    async send() {
      const said = await ask(`v1/intents/${encodeURIComponent(one.lease)}/resolve?id=${one.id}${force ? '&force=true' : ''}`, undefined, 'POST');
      done();
      return said.resolved ? ['The write of ', whose(one.lease), ' is closed.'] : ['It is still being sent: its gateway has not answered yet. Ask again.'];
    },
  });
}

function dead(one, settled, done) {
  deed({
    title: settled ? ['Nothing of ', name(one.gateway), ' is on its way'] : [name(one.gateway), ' is dead'], name: one.gateway, label: 'Type the id of the gateway', action: settled ? 'It is settled' : 'It is dead',
    loses: settled ? ['The ordered writes of all leases wait no longer for what this process may have sent.']
      : ['What this process had queued is taken out, and what it was sending is then ', h('b', null, 'dead'), ': to be closed one by one, or by its grace.'],
    wrong: settled ? 'If something of it is still on its way it lands after newer writes, and nothing notices.'
      : 'If it lives, only cut off, it may still be sending: a write of it can then land after newer ones.',
    async send() {
      const query = new URLSearchParams(settled ? { settled: true } : {});
      if (one.incarnation) query.set('incarnation', one.incarnation);
      const said = await ask(`v1/gateways/${encodeURIComponent(one.gateway)}/dead${query.size ? '?' + query : ''}`, undefined, 'POST');
      done();
      return [whose(one.gateway), `: ${many(said.intents, 'write')} to close, ${many(said.in_doubt, 'process', 'processes')} in doubt.`];
    },
  });
}

export default function doubt(place, app) {
  const title = h('h1', null, 'Doubt'), mark = h('span'), say = h('p', { class: 'say' });
  fill(place, h('div', { class: 'head' }, title, mark), say);
  if (app.kind !== 'gateway') {
    const show = () => {
      const peers = (app.overview?.members || []).filter(one => one.kind === 'gateway' && one.ui), n = app.lost ? null : countsOf(app.overview).in_doubt;
      // Of what gateways may have sent before a loss the count says nothing; what is the matter does.
      fill(say, h('b', null, n === 0 && app.overview.condition === null ? 'Nothing is in doubt. ' : n > 0 ? many(n, 'write has', 'writes have') + ' no known end. ' : ''), 'Writes are resolved at a gateway: ',
        peers.length ? peers.map(one => [h('a', { href: new URL('doubt', one.ui.replace(/\/?$/, '/')).href }, name(one.name || one.id)), ' ']) : ['its ', h('code', null, '/ui/doubt'), ', or ', h('code', null, 'pawl resolve'), ' in a terminal.']);
    };
    app.on('overview lost back', show);
    return show();
  }
  const open = table(['Lease', 'State', 'Gateway', '>token', '>since', 'Probe', '>Deed']), gateways = table(['Gateway', 'Process', '>last heard', 'State', '>Deed']);
  fill(place, place.firstChild, say, h('div', { class: 'stack' }, card('Open writes', 'oldest first', null, open.all), card('Gateways', null, null, gateways.all)));

  const shown = h('p', { class: 'dim', hidden: true });
  open.all.after(shown);
  // Of who is not heard nobody learns how its writes end.
  // To who may not know which members there are, no id of theirs is one of a gateway.
  const isKnown = () => app.overview?.members.length > 0 && !isNone(app.overview.service.id);
  const gatewaysOf = () => (isKnown() ? app.overview.members.filter(one => one.kind === 'gateway') : []);
  const memberOf = id => gatewaysOf().find(one => one.id === id);
  const isSilent = id => isKnown() && (!memberOf(id) || stateOf(memberOf(id))[1] !== 'serving');
  const inDoubt = one => one.state === 'unknown' || one.state === 'dead' || (one.state === 'sending' && isSilent(one.gateway));

  function closing(one, done) {
    if (one.state === 'queued') return h('span', { class: 'dim' }, 'waits for its turn');
    if (one.state === 'sending') return isSilent(one.gateway) ? h('span', { class: 'dim' }, 'say first that it is dead') : deedButton('resolve', 'Cut off\u2026', 'danger', () => resolve(one, true, done));
    return deedButton('resolve', 'Resolve\u2026', null, () => resolve(one, false, done));
  }

  // All of them: what is in doubt may stand on the last page. Beyond 20,000 it is said that there are more.
  async function intents() {
    const items = [];
    let cursor = null, pages = 0, filtered = false;
    do {
      const said = await ask('v1/intents?limit=1000' + (cursor ? '&cursor=' + encodeURIComponent(cursor) : ''));
      items.push(...said.items);
      filtered ||= said.filtered;
      cursor = said.next_cursor;
    } while (cursor && ++pages < PAGES);
    return [items, cursor, filtered];
  }

  async function look() {
    const [[all, more, filtered], said] = await Promise.all([intents(), ask('v1/gateways/doubt').catch(error => (error.status === 403 || error.status === 401 ? null : Promise.reject(error)))]);
    all.sort((a, b) => inDoubt(b) - inDoubt(a) || a.at_ms - b.at_ms);
    const items = all.slice(0, SHOWN), unknown = all.filter(inDoubt).length, procs = said?.gateways || [];
    const unseen = (filtered ? ' Leases that you may not resolve are left out.' : '') + (said ? '' : ' Which gateways live, and what they may have sent before a loss, is for who may observe.');
    const silent = all.some(one => one.state === 'sending' && isSilent(one.gateway));
    const now = storeNow();
    fill(mark, unknown || procs.length ? chip('bad', unknown ? many(unknown, 'write') + ' with no known end' : many(procs.length, 'gateway') + ' in doubt') : more || unseen ? chip('', 'not all is seen') : chip('ok', 'nothing'));
    fill(say, unknown ? ['Sent to an upstream, and nobody knows whether they were done. Until one is closed, newer ordered writes to the same lease are told 503 ', h('code', null, 'in-doubt'), '. ', h('b', null, 'Look at the upstream first; then say here what you saw.'),
      silent ? ' Of some the gateway is silent: start it again, or say that it is dead.' : '']
      : procs.length ? [h('b', null, 'The store has lost what these may have sent.'), ' Ordered writes of all leases wait until each has told, or you say that nothing of it is on its way.']
        : more ? `More than ${count(all.length)} writes are open; of these nothing is in doubt.` : [h('b', null, unseen ? 'Of what you may see nothing is in doubt.' : 'Nothing is in doubt.'), items.length ? ' What is listed is under way, and its gateway will tell how it ends.' : '']);
    say.append(unseen);
    list(open.body, items, one => one.lease + one.id + one.state + inDoubt(one), one => h('tr', null, h('td', null, app.peer('lease') ? h('a', { class: 'mono', href: new URL('lease?name=' + encodeURIComponent(one.lease), app.peer('lease')).href }, name(one.lease, 40)) : mono(one.lease, 40)),
      h('td', null, one.state === 'sending' && inDoubt(one) ? chip('bad', 'in doubt: its gateway is silent') : chip(STATES[one.state] ?? 'free', one.state)), h('td', null, mono(one.gateway, 16)), h('td', { class: 'n' }, count(one.token)), h('td', { class: 'n' }), h('td'), h('td', { class: 'n' }, closing(one, app.again))),
    (row, one) => {
      put(row.children[4], now ? span(Math.max(0, now - one.at_ms)) : '\u2013');
      put(row.children[5], one.probe ? plain(one.probe.said, 80) : one.state === 'unknown' || one.state === 'dead' ? 'not probed' : '\u2013');
    });
    if (!items.length) list(open.body, [0], () => 'none', () => h('tr', null, h('td', { colspan: 7, class: 'dim' }, 'No write is open.')));
    shown.hidden = all.length === items.length;
    put(shown, `The first ${count(items.length)} of ${more ? 'more than ' : ''}${count(all.length)}.`);
    const members = gatewaysOf().map(one => ({ gateway: one.id, label: one.name || one.id, heard: one.heard_ms, state: stateOf(one) }));
    // One that the store has forgotten, and that had something under way.
    const gone = isKnown() ? [...new Set(all.map(one => one.gateway))].filter(id => !memberOf(id)).map(gateway => ({ gateway, label: gateway, state: ['bad', 'not heard'] })) : [];
    const rows = [...members, ...gone, ...procs.map(one => ({ ...one, label: one.gateway, doubt: one.state }))];
    list(gateways.body, rows, one => one.gateway + (one.incarnation || '') + (one.doubt || one.state), one => h('tr', null, h('td', null, mono(one.label, 24)), h('td', null, one.incarnation ? mono(one.incarnation, 24) : mono(one.gateway, 24)), h('td', { class: 'n' }),
      h('td', null, one.doubt ? chip('bad', 'in doubt, ' + one.doubt) : chip(...one.state)),
      h('td', { class: 'n' }, one.doubt === 'dead' ? deedButton('operate', 'Settled\u2026', 'danger', () => dead(one, true, app.again)) : one.doubt || one.state[1] !== 'serving' ? deedButton('operate', 'It is dead\u2026', 'danger', () => dead(one, false, app.again)) : null)),
    (row, one) => put(row.children[2], span(one.heard ?? null)));
  }
  app.asks(() => 1000, look, title);
}
