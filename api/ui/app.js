// app.js - the frame of every page: navigation, who is asked, whether what is seen is live; then the page of this address.
//
// What a page gets, `app`: kind ("lease" or "gateway"), may(verb), overview (the last one), on(event, call) with
//   overview: it is new     back: there is a connection again, what was missed is to be asked for
//   lost: there is none     poll: nothing streams here, look again
import { h, s, fill, put, list, chip, clock, count, span, name, plain } from './dom.js';
import { ask, accessToken, streamOf, storeNow } from './wire.js';

const PAGES = {
  '': ['Overview', 'overview'], leases: ['Leases', 'leases', 'lease'], lease: [null, 'lease', 'lease'], why: ['Why?', 'why'],
  sessions: ['Sessions', 'sessions', 'lease'], session: [null, 'sessions', 'lease'], doubt: ['Doubt', 'doubt'],
};
const here = location.pathname.slice(location.pathname.lastIndexOf('/') + 1);
const calls = {};

export const app = {
  here, kind: null, version: null, overview: null, live: false, query: new URLSearchParams(location.search), access: null,
  on(event, call) { (calls[event] ||= []).push(call); },
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

// -- the connection: the overview comes each second; when nothing came for 3 s there is none

const strip = document.getElementById('strip');
let lostAt = null, newsAt = null, tryAt = 0, stream = null, mutes = 0, poller = null;
app.lastNews = () => newsAt;

function heard(overview) {
  const back = lostAt !== null, first = !app.live && !back;
  if (overview) {
    if (overview.service && overview.service.version !== app.version)
      fill(strip, h('div', null, h('b', null, 'This page is of ' + app.version + ', the service of ' + plain(overview.service.version) + '.'),
        h('button', { onclick: () => location.reload() }, 'Reload')));
    app.overview = overview;
    put(who, ' \u00b7 pawl-' + app.kind + ' ' + app.version + (overview.service?.name ? ' \u00b7 ' + plain(overview.service.name, 24) : ''));
    const doubts = overview.counts?.in_doubt || 0;
    badge.hidden = doubts === 0;
    put(badge, count(doubts));
    badge.setAttribute('aria-label', count(doubts) + ' in doubt');
  }
  newsAt = storeNow();
  app.live = true;
  dot.className = 'dot';
  put(state, poller ? 'live, each 2 s' : 'live');
  if (back) {
    lostAt = null;
    fill(strip);
    document.documentElement.classList.remove('lost');
    tell('back');
  }
  if (overview) tell('overview', overview);
  else if (first) tell('overview', null);
}

function lost(error, again) {
  tryAt = performance.now() + again;
  if (lostAt === null) {
    lostAt = performance.now();
    app.live = false;
    dot.className = 'dot off';
    document.documentElement.classList.add('lost');
    tell('lost');
  }
  lostSays();
}

function lostSays() {
  if (lostAt === null) return;
  const since = span(Math.max(1000, Math.floor((performance.now() - lostAt) / 1000) * 1000)).replace(/\.0 s/, ' s');
  put(state, 'no connection');
  const told = 'No connection to pawl-' + app.kind + (newsAt ? ' since ' + clock(newsAt) : '') + '.';
  if (!strip.querySelector('.told')) // the alert says itself once, and not each second
    fill(strip, h('div', null, h('b', { class: 'told' }, told), h('span', null, 'Holds go on without this page.'),
      h('span', { class: 'again dim', 'aria-live': 'off' }), h('button', { onclick: now }, 'Try now')));
  const left = Math.ceil((tryAt - performance.now()) / 1000);
  put(strip.querySelector('.again'), 'For ' + since + '; ' + (left > 0 ? 'trying again in ' + left + ' s.' : 'trying\u2026'));
}
setInterval(lostSays, 1000);

function now() {
  stream?.now();
  if (!stream) beat();
}

// Where there is no overview for this caller, or nothing streams through, each 2 s.
let overviewless = false;
async function beat() {
  try {
    heard(overviewless ? (await ask('version'), null) : await ask('v1/overview'));
    tell('poll');
  } catch (error) {
    if (error.status === 0 || error.status >= 500) lost(error, 2000);
    else { overviewless = true; heard(null); }
  }
}
function poll() {
  stream?.close();
  stream = null;
  poller ||= setInterval(beat, 2000);
  beat();
}

function listen() {
  stream = streamOf('v1/overview', {
    beats: true,
    item: (event, said) => { mutes = 0; if (event === 'overview') heard(said); },
    down: (error, again) => {
      if (error.status === 401 || error.status === 403 || error.status === 404 || error.status === 406) {
        overviewless = error.status !== 406;
        poll();
      } else if (error.status === 0 && ++mutes >= 3 && app.live) {
        poll();
      } else {
        lost(error, again);
      }
    },
  });
}
// A tab that nobody sees asks for nothing; when it is seen again it is as after a lost connection.
document.addEventListener('visibilitychange', () => {
  stream?.close();
  clearInterval(poller);
  const polls = poller;
  stream = poller = null;
  tell(document.hidden ? 'hidden' : 'seen');
  if (document.hidden) return;
  if (polls) poll(); else listen();
  tell('back');
});

// -- the access token

function accessField(why) {
  const told = { none: 'This service asks who you are.', unknown: 'The access token is not in the access file.',
    malformed: 'That is no access token.', expired: 'It has expired.' }[why] || 'It was refused: ' + plain(why) + '.';
  const field = h('input', { type: 'password', autocomplete: 'off', required: true, spellcheck: 'false' });
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
  if (access.status === 401) field = accessField(access.problem.why);
  else if (access.may) {
    app.access = access;
    field = h('p', { class: 'crumb' }, 'You are ', name(access.identity), ', and may ' + access.may.join(', ') + '. ',
      accessToken.is() ? h('button', { class: 'quiet', onclick: forget }, 'Forget the access token') : null);
  }
  frame();
  document.title = (PAGES[here][0] || 'Lease') + ' \u00b7 Pawl';
  fill(main, field, h('div', { id: 'page' }));
  const place = document.getElementById('page');
  if (kind && kind !== app.kind) return elsewhere(place, kind);
  if (!document.hidden) listen();
  (await page).default(place, app);
}

function elsewhere(place, kind) {
  const link = h('p', { class: 'say' });
  const say = () => fill(link, 'This is pawl-' + app.kind + '. ' + (app.peer(kind) ? 'The page is at ' : 'The page is the lease service\u2019s, under /ui/.'),
    app.peer(kind) ? h('a', { href: new URL(here + location.search, app.peer(kind)).href }, plain(app.peer(kind))) : null);
  fill(place, h('h1', null, PAGES[here][0] || 'Lease'), link);
  say();
  app.on('overview', say);
  listen();
}

function beginAgain() {
  begin().catch(error => {
    fill(document.getElementById('main'), h('h1', null, 'No connection'), h('p', { class: 'say' }, error.detail || String(error)),
      h('button', { onclick: () => location.reload() }, 'Try now'));
    setTimeout(beginAgain, 2000);
  });
}
beginAgain();
