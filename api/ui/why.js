// why.js - why was it refused? A fencing token, or the instance of a problem, in the body of a POST and nowhere else.
import { h, s, fill, card, chip, facts, count, clock, name, mono, leaseLink, plain, sayNo, many, isNone } from './dom.js';
import { ask, storeNow } from './wire.js';
import { Chart, story, inOrder } from './stairs.js';

const TO_DO = {
  'stale-token': 'Stop that work; acquire anew, and begin again from what is there now.',
  'lease-expired': 'Stop that work; acquire anew. If it happens often, renew earlier or ask for a longer ttl.',
  'unissued-token': 'This store never granted it: is it another store\u2019s, or from before one was lost?',
  'bad-signature': 'No key of this service made it. Compare the key files; send the token exactly as the grant gave it.',
  'wrong-store': 'It is of another store: acquire it from the lease service of this one.',
  'wrong-mode': 'A shared hold does not write: acquire it as exclusive.',
  'malformed-token': 'It is not the canonical text: send it exactly as the grant gave it.',
};

export default function why(place, app) {
  const field = h('textarea', { required: true, spellcheck: 'false', autocomplete: 'off' }), named = h('input', { class: 'mono', autocomplete: 'off', spellcheck: 'false' });
  const go = h('button', null, 'Explain'), answer = h('div', { 'aria-live': 'polite' });

  fill(place, h('h1', null, 'Why was it refused?'),
    h('p', { class: 'say' }, 'Paste a ', h('code', null, 'Fencing-Token'), ', or the ', h('code', null, 'instance'), ' of a problem.'),
    h('section', { class: 'card asks' }, h('form', { onsubmit: explain },
      h('label', null, 'Token or instance', field),
      h('div', { class: 'access' }, h('label', null, 'Lease, beside an instance', named), go, h('span', { class: 'dim' }, 'It is sent in the body, and kept neither here nor in the address.')))),
    answer);

  async function explain(event) {
    event.preventDefault();
    const text = field.value.trim().replace(/^Fencing-Token:\s*/i, ''), isInstance = /^urn:uuid:|^[0-9a-f-]{36}$/.test(text);
    go.disabled = true;
    try {
      const asks = isInstance ? { instance: text.replace(/^(?!urn:)/, 'urn:uuid:'), ...(named.value.trim() ? { lease: named.value.trim() } : {}) } : { fencing_token: text };
      const said = await ask('v1/tokens/inspect', asks);
      const lease = said.lease && app.kind === 'lease' ? said.lease : null;
      const [past, look] = lease ? await Promise.all([ask(`v1/leases/${encodeURIComponent(lease)}/history`).catch(() => null), ask('v1/leases/' + encodeURIComponent(lease)).catch(() => null)]) : [];
      const [open, lost] = !isInstance && said.lease && app.kind === 'gateway' ? await Promise.all([`v1/intents/${encodeURIComponent(said.lease)}?limit=1000`, 'v1/gateways/doubt'].map(path => ask(path).catch(() => null))) : [];
      show(said, isInstance, past?.items || [], look, open ? doubts(open, lost, said.token) : null);
    } catch (error) {
      fill(answer, sayNo(error));
    }
    go.disabled = false;
  }

  // What the fence lets through waits, when it is ordered, for the writes of older tokens, and for what gateways may have sent
  // before a loss; null: not all was seen.
  function doubts(open, lost, token) {
    const older = open.items.filter(one => one.token < token || one.state === 'unknown' || one.state === 'dead').length;
    return older || (!open.next_cursor && !open.filtered && lost?.gateways.length === 0) ? older : null;
  }

  function show(said, isInstance, items, look, before = null) {
    if (isInstance && !said.found) return fill(answer, h('p', { class: 'say' }, h('b', null, 'Nothing is kept of it. '),
      'Of a lease the last 16 refusals are kept, for as long as the lease is remembered. With the lease\u2019s name beside it it is surely looked for.'));
    const code = isInstance ? said.code : said.verdict.ok ? 'accepted' : said.verdict.code, ok = !isInstance && said.verdict.ok;
    const hold = said.hold_state, now = said.now_ms ?? storeNow();
    const verdict = card('Verdict', null, chip(ok && before > 0 ? '' : ok ? 'ok' : 'bad', code), h('p', null, isInstance
      ? ['A write with token ', h('b', null, count(said.token)), ' of ', leaseLink(said.lease), ` was refused at ${clock(said.at_ms, true)}.`]
      : ok ? ['Token ', h('b', null, count(said.token)), ' of ', mono(said.lease), ' is genuine, and a write with it would pass now', before === 0 ? '; nothing is in doubt.' : before > 0
        ? [h('b', null, `, but ${many(before, 'write')} of it ${before === 1 ? 'is' : 'are'} open`), ': while one is in doubt an ordered one is told 503 ', h('code', null, 'in-doubt'), '. See ', h('a', { href: './doubt' }, 'Doubt'), '.'] : app.kind === 'gateway' ? [', if nothing is in doubt: see ', h('a', { href: './doubt' }, 'Doubt'), '.'] : ', if nothing is in doubt.']
        : [said.token ? ['Token ', h('b', null, count(said.token)), said.lease ? [' of ', mono(said.lease)] : null, said.signature === 'good' ? ' is genuine. ' : '. '] : null, plain(said.verdict.detail || said.verdict.code, 600)]),
    facts([said.signature ? ['signature', said.signature + (said.kid ? ', key ' : ''), said.kid ? mono(said.kid) : null] : null,
      said.store ? ['store', said.store] : null, said.epoch ? ['epoch', mono(said.epoch)] : null, said.mode ? ['mode', said.mode] : null,
      hold ? ['its hold', name(hold.holder), hold.granted_at_ms ? `, since ${clock(hold.granted_at_ms)}` : ''] : null,
      hold?.ended ? ['ended', plain(hold.ended), hold.ended_at_ms ? ' at ' + clock(hold.ended_at_ms) : ''] : null,
      typeof said.grants_since === 'number' ? ['granted since', many(said.grants_since, 'time')] : null,
      isNone(said.current_token) ? null : ['current token', count(said.current_token)],
      said.holder ? ['holder', name(said.holder)] : null, said.identity ? ['identity', name(said.identity)] : null, said.gateway ? ['gateway', mono(said.gateway)] : null, said.resource ? ['resource', mono(said.resource, 64)] : null,
      isInstance ? null : ['a write now', h('span', { class: ok ? null : 'refused' }, ok && before !== 0 ? 'accepted by the fence' : code)]]),
    ok ? null : h('p', { class: 'dim' }, 'What to do: ', TO_DO[code] || 'see ', TO_DO[code] ? null : h('a', { href: '../problems/' + encodeURIComponent(code) }, plain(code)), TO_DO[code] ? '' : '.'));
    const stairs = items.length ? h('div', { class: 'chart' }) : null;
    fill(answer, h('div', { class: 'cols' }, stairs ? card('Where it lies on the stairs', null, h('a', { href: './lease?name=' + encodeURIComponent(said.lease) }, plain(said.lease, 40) + ' \u2192'), stairs) : h('div'), verdict));
    if (!stairs) return;
    if (look) look.seen = look.now_ms ?? now;
    const told = story(items.sort(inOrder), look, now), chart = new Chart(), mine = told.holds.find(one => one.token === said.token);
    stairs.append(chart.svg);
    const from = Math.max(told.first, (mine?.start ?? now - 600000) - 2000), all = Math.max(5000, now - from);
    chart.draw(told, { from: from - all * 0.03, to: now + all * 0.1, now, marked: said.token, said: `Staircase of ${plain(said.lease)}; the step of token ${said.token} is marked: ${code}` });
  }
}
