// app.js - the frame of every page: navigation, who is asked, whether what is seen is live; then the page of this address.
//
// What a page gets, `app`: kind ("lease" or "gateway"), may(verb), overview (the last one), query (of the address), asks(every, look, title) for
// what it shows, pages(clear) of a long list, live, lost, lastNews(), and on(events, call) with
//   overview: it is new         back: what is seen is live again, what was missed is to be asked for
//   lost: it is live no more    over: it may not be seen any more     hidden, seen: the tab
import { h, s, fill, put, clock, count, span, mono, plain, sayNo, countsOf, conditionSays } from './dom.js';
import { ask, accessToken, streamOf, storeNow, isFinal, Refused } from './wire.js';

const PAGES = {
  '': ['Overview', 'overview'], leases: ['Leases', 'leases', 'lease'], lease: [null, 'lease', 'lease'], why: ['Why?', 'why'],
  sessions: ['Sessions', 'sessions', 'lease'], session: [null, 'sessions', 'lease'], doubt: ['Doubt', 'doubt'],
};
const here = location.pathname.slice(location.pathname.lastIndexOf('/') + 1);
const calls = {};

export const app = {
  here, kind: null, version: null, overview: null, begun: false, live: false, lost: false, query: new URLSearchParams(location.search), access: null,
  on(events, call) { for (const event of events.split(' ')) (calls[event] ||= []).push(call); },
  // Without --access, and for who is nobody but may perhaps: the service decides.
  may: verb => !app.access || app.access.may.includes(verb),
  // Where the other kind of service has its pages, if anybody said so.
  peer: kind => app.overview?.members.find(one => one.kind === kind && one.ui)?.ui.replace(/\/?$/, '/'),
};
const tell = (event, what) => (calls[event] || []).forEach(call => call(what));

// -- the frame

const logo = () => s('svg', { viewBox: '0 0 22 22', 'aria-hidden': 'true' },
  s('path', { d: 'M2 19V14.5H8V9H14V3.5H20', fill: 'none', stroke: 'var(--hold)', 'stroke-width': 2.6, 'stroke-linejoin': 'round', 'stroke-linecap': 'round' }),
  s('path', { d: 'M11.6 14.1l4.8 4.8m0-4.8l-4.8 4.8', stroke: 'var(--refuse)', 'stroke-width': 2.4, 'stroke-linecap': 'round' }));

const dot = h('i', { class: 'dot idle' }), state = h('span', null, 'connecting'), who = h('span', { class: 'wide' });
const badge = h('span', { class: 'badge', hidden: true });

function theme() {
  const root = document.documentElement, dark = root.dataset.theme
    ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  try { localStorage.setItem('pawl-theme', root.dataset.theme); } catch { /* until the next page, then */ }
}

function frame() {
  const current = here === 'lease' ? 'leases' : here === 'session' ? 'sessions' : here;
  const links = Object.entries(PAGES).filter(([, [title, , kind]]) => title && (!kind || kind === app.kind));
  fill(document.getElementById('top'),
    h('a', { class: 'brand', href: './' }, logo(), 'Pawl'),
    h('nav', { 'aria-label': 'Pages' }, links.map(([page, [title]]) => h('a',
      { href: './' + page, 'aria-current': page === current ? 'page' : null }, title, page === 'doubt' ? badge : null))),
    h('span', { class: 'grow' }),
    h('span', { class: 'live' }, dot, h('span', { role: 'status' }, state), who),
    h('button', { class: 'quiet wide', 'aria-label': 'Light or dark', onclick: theme }, '\u25d0'));
  put(who, ' \u00b7 pawl-' + app.kind + ' ' + app.version);
}

// -- live or not. What is seen is live while the overview comes, each second, and tells of a store that answers; and while the
// page's own last answer is not older than three times what it waits between two. A page that has none shows the overview.

const MUTE_MS = 3000, BEAT_MS = 2000, SOON_MS = 500, FIRST_MS = 1000, MOST_MS = 8000;
const strip = document.getElementById('strip');
const own = { at: null, news: null, every: 0, error: null, again: null };
let lostAt = null, newsAt = null, tryAt = 0, down = null, stream = null, mutes = 0, poller = null, beating = false, stripKey = '', store = null, heardAt = null, seenAt = -Infinity;
app.lastNews = () => (own.again ? own.news : newsAt);
app.again = () => own.again?.();
app.streams = () => poller === null;

function heard(overview) {
  const first = !app.begun, wasAway = storeIsAway();
  down = null;
  if (overview) {
    if (overview.store && overview.store.id !== (store ??= overview.store.id)) return location.reload(); // what is seen is of another store
    app.overview = overview;
    put(who, ' \u00b7 pawl-' + app.kind + ' ' + app.version + (overview.service?.name ? ' \u00b7 ' + plain(overview.service.name, 24) : ''));
    const doubts = countsOf(overview).in_doubt || 0;
    badge.hidden = doubts === 0;
    put(badge, count(doubts));
    badge.setAttribute('aria-label', count(doubts) + ' in doubt');
  }
  app.begun = true;
  heardAt = performance.now();
  if (!storeIsAway()) newsAt = storeNow();
  judge();
  if (wasAway && !storeIsAway()) app.again();
  if (overview || first) tell('overview', overview);
}

function lost(error, again) {
  tryAt = performance.now() + again;
  down = error;
  judge();
}

// While nothing is granted because it is full, or unsafe, all can still be read, and given back.
const storeIsAway = () => (app.overview?.condition ? /^store-(?!full|unsafe)/.test(app.overview.condition.code) : app.overview?.now_ms === null);

function whatIsWrong() {
  const since = app.lastNews() ? ' since ' + clock(app.lastNews()) : '', service = 'pawl-' + app.kind, no = (error, told) => (error.status
    ? { word: 'no answer', told: `${told}${since}: ${plain(error.title, 80)}.` }
    : { word: 'no connection', told: `No connection to ${service}${since}.`, more: 'Holds go on without this page.' });
  if (down) return no(down, `${service} does not say how it is`);
  if (storeIsAway()) return { word: 'no store', ...(here === '' || !app.overview.condition ? { told: 'The store cannot be used.' } : { told: conditionSays(app.overview.condition), more: app.overview.condition.remedy }) };
  if (own.error) return no(own.error, 'No answer for this page');
  const at = performance.now(), isOld = (then, most) => then !== null && at - then > most;
  const mute = at - seenAt > SOON_MS && (isOld(own.at, Math.max(3 * own.every, MUTE_MS)) || isOld(heardAt, 3 * BEAT_MS));
  return mute ? { word: 'no answer', told: `No answer for this page${since}.` } : null;
}

function judge() {
  const wrong = whatIsWrong(), before = lostAt;
  if (!wrong) lostAt = null; else lostAt ??= performance.now();
  app.live = app.begun && !wrong;
  app.lost = wrong !== null;
  dot.className = wrong ? 'dot off' : app.begun ? 'dot' : 'dot idle';
  if (wrong || app.begun) put(state, wrong ? wrong.word : poller ? 'live, each 2 s' : 'live');
  document.documentElement.classList.toggle('lost', app.lost);
  stripSays(wrong);
  if (wrong && before === null) tell('lost');
  if (!wrong && before !== null) tell('back');
}

// Made anew only when it says something else: an alert says itself once, and the focus stays on its button.
function stripSays(wrong) {
  const version = app.overview?.service?.version || app.version, other = version === app.version ? '' : version;
  const key = wrong ? wrong.word + lostAt + (down || own.error)?.status : other;
  if (key !== stripKey) fill(strip, wrong ? h('div', null, h('b', { class: 'told' }, wrong.told), wrong.more ? h('span', null, wrong.more) : null,
    app.lastNews() ? h('span', null, 'What is seen is as of ' + clock(app.lastNews()) + '.') : null, h('span', { class: 'again dim', 'aria-live': 'off' }), h('button', { onclick: now }, 'Try now'))
    : other ? h('div', null, h('b', null, 'This page is of ' + app.version + ', the service of ' + plain(other) + '.'), h('button', { onclick: () => location.reload() }, 'Reload')) : null);
  stripKey = key;
  if (!wrong) return;
  const since = span(Math.max(1000, Math.floor((performance.now() - lostAt) / 1000) * 1000)).replace(/\.0 s/, ' s'), left = Math.ceil((tryAt - performance.now()) / 1000);
  put(strip.querySelector('.again'), 'For ' + since + '; ' + (left > 0 ? 'trying again in ' + left + ' s.' : 'trying\u2026'));
}
setInterval(() => { if (app.kind && !document.hidden) judge(); }, 500);

function now() {
  stream?.now();
  if (poller) beat();
  app.again();
}

// What a page shows it asks for again and again, one at a time, each every() ms, and more and more rarely while it is not
// answered. title: what stands above the answer that says that it will never be.
app.asks = (every, look, title) => {
  let timer = 0, busy = false, more = false, waits = 0;
  own.again = async () => {
    clearTimeout(timer);
    more = busy;
    if (busy || document.hidden) return;
    busy = true;
    own.every = every();
    try {
      await look();
      Object.assign(own, { at: performance.now(), news: storeNow(), error: null });
      waits = 0;
    } catch (error) {
      if (isFinal(error)) return over(error, title);
      own.error = error;
      if (!(error instanceof Refused)) { // JSON, but without what Pawl says
        reportError(error);
        own.error = new Refused(200, { title: 'An answer that is not Pawl\u2019s' });
      }
      waits = Math.min(Math.max(2 * waits, FIRST_MS), MOST_MS);
      tryAt = performance.now() + waits;
    } finally {
      busy = false;
    }
    timer = setTimeout(own.again, waits || (more ? 0 : every()));
    judge();
  };
  app.on('back', own.again);
  own.again();
};

// A long list page by page. The cursor is in the address; "Next 100" and the browser's Back turn the page inside of the document: a
// document for each takes ten times as long, and is 1 MiB for the browser to collect. clear(): the rows go.
app.pages = clear => {
  let search = location.search;
  const next = h('a', { class: 'btn', hidden: true, onclick: event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // into a tab or window of its own
    event.preventDefault();
    history.pushState(null, '', next.href);
    turn();
  } }, 'Next 100');
  function turn() {
    if (location.search === search) return; // only the place within it is another
    if (!own.again) return location.reload(); // the page before could not be shown
    search = location.search;
    app.query = new URLSearchParams(search);
    next.hidden = true;
    clear();
    document.getElementById('main').focus();
    scrollTo(0, 0);
    app.again();
  }
  addEventListener('popstate', turn);
  return { next, go(address) {
    next.hidden = !address;
    if (address) next.href = address;
  } };
};

// It was allowed, and is no more: nothing of it stays. Who is asked anew is told so.
function over(error, title) {
  if (error.status === 401 && own.at !== null) return location.reload();
  calls.back = (calls.back || []).filter(call => call !== own.again);
  Object.assign(own, { at: null, error: null, again: null });
  document.querySelectorAll('dialog').forEach(one => one.close());
  tell('over');
  fill(document.getElementById('page'), title, sayNo(error));
  judge();
}

// Where there is no overview for this caller, or nothing streams through, each 2 s. Who is not known is not refused each time: that is logged.
let overviewless = false;
async function beat() {
  if (beating) return;
  beating = true;
  try {
    heard(overviewless ? (await ask(app.access ? 'v1/access' : 'version'), null) : await ask('v1/overview'));
  } catch (error) {
    if (!denied(error)) lost(error, BEAT_MS);
  }
  beating = false;
}
function poll() {
  if (poller) return;
  poller = setInterval(beat, BEAT_MS);
  beat();
}
function pollNoMore() {
  clearInterval(poller);
  poller = null;
}

// An access token that was taken out, or may no longer look: all that is shown goes, and who is asked is told.
function denied(error) {
  const wasAllowed = error.status === 401 ? app.overview || app.access : error.status === 403 && app.overview;
  if (wasAllowed) location.reload();
  if (wasAllowed || app.overview || !isFinal(error)) return Boolean(wasAllowed);
  overviewless = true;
  app.without = error;
  stream?.close();
  stream = null;
  poll();
  heard(null);
  return true;
}

function listen() {
  if (overviewless) return poll();
  stream = streamOf('v1/overview', {
    beats: true,
    item(event, said) {
      if (event !== 'overview') return;
      if (said.now_ms && storeNow() - said.now_ms > MUTE_MS) { // the way is too slow for all of it: what comes is older and older
        stream.close();
        stream = null;
        return poll();
      }
      mutes = 0;
      pollNoMore();
      heard(said);
    },
    // What comes through only when it is whole, or may not stream, is asked for beside it.
    down(error, again) {
      if (error.status === 406 || error.status === 429 || (error.code === 'mute' && (++mutes >= 3 || !app.begun))) poll();
      if (!denied(error) && !poller) lost(error, again);
    },
  });
}
// A tab that nobody sees asks for nothing; when it is seen again it is as after a lost connection.
document.addEventListener('visibilitychange', () => {
  stream?.close();
  stream = null;
  pollNoMore();
  tell(document.hidden ? 'hidden' : 'seen');
  if (document.hidden || !app.kind) return;
  seenAt = performance.now();
  listen();
  tell('back');
});

// One that the browser has kept whole, and shows again after Back, has the access token of then, and what that saw.
addEventListener('pageshow', event => { if (event.persisted) location.reload(); });

// -- the access token

function accessField(why) {
  const told = { none: 'This service asks who you are.', unknown: 'The access token is not in the access file.',
    malformed: 'That is no access token.', expired: 'It has expired.' }[why] || 'It was refused: ' + plain(why) + '.';
  // What is no text of a header would not even leave, as if the service were away, and nothing could take it out again.
  const field = h('input', { type: 'password', autocomplete: 'off', required: true, spellcheck: 'false', pattern: '\\s*[!-~]+\\s*', title: 'letters, digits and signs of ASCII, without a blank' });
  return h('section', { class: 'card', id: 'access' }, h('div', { class: 'bar' }, h('h2', null, 'Access token'), h('span', { class: 'sub' }, told)),
    h('form', { class: 'access', onsubmit: event => {
      event.preventDefault();
      accessToken.set(field.value.trim());
      location.reload();
    } }, h('label', null, 'Kept in this tab until it is closed; never in an address', field),
    h('button', null, 'Use it'),
    accessToken.is() ? h('button', { type: 'button', onclick: forget }, 'Forget it') : null));
}
function forget() {
  accessToken.set(null);
  location.reload();
}

// -- begin

async function begin() {
  const main = document.getElementById('main'), [, file, kind] = PAGES[here];
  const page = import('./' + file + '.js');
  let field = null;
  const [version, access] = await Promise.all([ask('version'), ask('v1/access').catch(error => error)]);
  app.kind = version.name.replace('pawl-', '');
  app.version = version.version;
  if (access instanceof Refused && !isFinal(access)) throw access;
  if (access.status === 401) field = accessField(access.problem.why);
  else if (access.may) {
    app.access = access;
    field = h('p', { class: 'crumb' }, 'You are ', mono(access.identity), access.may.length ? ', and may ' + access.may.join(', ') + '. ' : '. No rule lets this identity do anything here. ',
      accessToken.is() ? h('button', { class: 'quiet', onclick: forget }, 'Forget the access token') : null);
  }
  frame();
  document.title = (PAGES[here][0] || 'Lease') + ' \u00b7 Pawl';
  fill(main, field, h('div', { id: 'page' }));
  const place = document.getElementById('page');
  if (!document.hidden) listen();
  if (kind && kind !== app.kind) return elsewhere(place, kind);
  (await page).default(place, app);
}

function elsewhere(place, kind) {
  const link = h('p', { class: 'say' });
  const say = () => fill(link, 'This is pawl-' + app.kind + '. ' + (app.peer(kind) ? 'The page is at ' : 'The page is the lease service\u2019s, under /ui/.'),
    app.peer(kind) ? h('a', { href: new URL(here + location.search, app.peer(kind)).href }, plain(app.peer(kind))) : null);
  fill(place, h('h1', null, PAGES[here][0] || 'Lease'), link);
  say();
  app.on('overview', say);
}

function beginAgain() {
  begin().catch(error => {
    fill(document.getElementById('main'), h('h1', null, error.status ? error.title : 'No connection'), h('p', { class: 'say' }, error.detail || String(error)),
      h('button', { onclick: () => location.reload() }, 'Try now'));
    setTimeout(beginAgain, 2000);
  });
}
beginAgain();
