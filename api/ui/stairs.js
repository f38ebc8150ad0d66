// stairs.js - what happened to one lease, as lanes (who) and stairs (which token), on one axis of the store's time.
import { h, s, fill, clock, count, span, plain } from './dom.js';

export const ENDS = { released: 'released', expired: 'expired', forced: 'forced', session: 'session ended',
  'store-restarted': 'store restarted', returned: 'given back' };
const LANES = 12, LANE = 30, FOLD = 24, STEP = 44, AREA = 236, TOP = 26, AXIS = 28;

// -- the story: holds, refusals and new epochs, out of the items of the history and what a look says of now

const epochOf = item => (item.id || '').split('.')[1];
const order = id => id.split('.').slice(1).map(Number);
export function inOrder(a, b) {
  const x = order(a.id), y = order(b.id);
  return x[0] - y[0] || x[1] - y[1] || x[2] - y[2];
}

export function story(items, look, now) {
  const holds = new Map(), refusals = [], epochs = [], writes = [];
  const hold = (token, seed) => {
    if (!holds.has(token)) holds.set(token, { token, holder: '', start: null, end: null, ...seed });
    return holds.get(token);
  };
  let epoch = null;
  for (const item of items) {
    if (epoch !== null && epochOf(item) !== epoch) epochs.push(item.at_ms);
    epoch = epochOf(item);
    if (item.type === 'granted')
      Object.assign(hold(item.token), { holder: item.holder, start: item.at_ms, ttl: item.ttl_ms, waited: item.waited_ms || 0, mode: item.mode, noted: true });
    else if (item.type === 'refused') refusals.push(item);
    else if (item.type === 'first-write') writes.push(item);
    else if (ENDS[item.type]) {
      const one = hold(item.token, { holder: item.holder });
      Object.assign(one, { end: item.at_ms, how: item.type, reason: item.reason, renewed: item.renewed_at_ms ?? one.renewed, ttl: item.ttl_ms ?? one.ttl });
      // That it has expired is noted when somebody asks for the lease, perhaps long after.
      if (item.lock_delay_ms) Object.assign(one, { end: item.lost_at_ms ?? item.at_ms, delay: item.lock_delay_ms });
      else if (item.type === 'expired' && one.ttl) one.end = Math.min(one.end, (one.renewed ?? one.start ?? Infinity) + one.ttl);
      one.holder ||= item.holder;
    }
  }
  for (const one of look?.holders || []) {
    const it = hold(one.token), seen = look.seen;
    if (it.end !== null) continue; // it ended since the look
    it.start ??= seen - one.held_for_ms;
    Object.assign(it, { holder: one.holder, ttl: one.ttl_ms ?? it.ttl, mode: one.mode, live: true, waited: it.waited || one.waited_ms || 0,
      expires: seen + one.expires_in_ms, renewed: one.renewed_ms_ago === undefined ? undefined : seen - one.renewed_ms_ago, session: one.session });
  }
  const all = [...holds.values()].filter(one => one.start !== null || one.end !== null).sort((a, b) => a.token - b.token);
  for (const one of all) {
    one.start ??= one.renewed ?? one.end;
    // Whose end was not seen, and whom nobody knows any more: until the next one's begin.
    if (one.end === null && !one.live) {
      if (look && look.seen > one.start + 50) one.gone = true;
      else Object.assign(one, { live: true, expires: one.start + (one.ttl || 0) }); // granted since the look
    }
    one.due = one.ttl ? (one.renewed ?? one.start) + one.ttl / 3 : Infinity;
    if (one.live && !(one.due < look?.seen)) one.due = Infinity; // it may have been renewed since the look
  }
  const steps = all.filter(one => one.mode !== 'shared' && !one.permits);
  const isShared = look?.mode === 'shared' || look?.permits > 1 || all.some(one => one.mode === 'shared' || one.mode === 'permits');
  const line = (look?.line || []).map(one => ({ holder: one.holder, mode: one.mode, from: look.seen - one.waits_ms, until: look.seen + one.gives_up_in_ms }));
  const last = all.reduce((latest, one) => Math.max(latest, one.end || 0), 0);
  const delays = all.filter(one => one.delay).map(one => ({ from: one.end, to: one.end + one.delay }));
  if (look?.delayed_for_ms > 0) delays.push({ from: last || look.seen, to: look.seen + look.delayed_for_ms }); // known of without a history, too
  const first = Math.min(...all.map(one => one.start - (one.waited || 0)), ...refusals.map(one => one.at_ms), ...line.map(one => one.from), now);
  return { holds: all, steps: isShared ? [] : steps, isShared, refusals, epochs, writes, line, delays: joined(delays), first };
}

// Spans that meet are one.
function joined(spans) {
  const all = [];
  for (const one of spans.sort((a, b) => a.from - b.from)) {
    const last = all[all.length - 1];
    if (last && one.from <= last.to) last.to = Math.max(last.to, one.to);
    else all.push(one);
  }
  return all;
}

export const holderOf = (told, token) => told.holds.find(one => one.token === token)?.holder || '';
export const inForce = (told, at) => told.steps.filter(one => one.start <= at).pop();

// -- small pictures, which the legend and the words share

const MARKS = {
  released: (x, y) => s('circle', { class: 'endmark', cx: x, cy: y, r: 5 }),
  expired: (x, y) => s('path', { class: 'endmark', d: `M${x} ${y - 6}l6 6l-6 6l-6 -6z` }),
  forced: (x, y) => s('path', { class: 'endmark', d: `M${x} ${y - 6}l6.4 11h-12.8z` }),
  session: (x, y) => s('rect', { class: 'endmark', x: x - 5, y: y - 5, width: 10, height: 10 }),
  'store-restarted': (x, y) => s('path', { class: 'endmark', d: `M${x - 5} ${y - 6}h10v4l-3 2l3 2v4h-10v-4l3 -2l-3 -2z` }),
  returned: (x, y) => s('circle', { class: 'endmark', cx: x, cy: y, r: 3 }),
};
function cross(x, y, r, cls = '') {
  const d = `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`;
  return [s('path', { class: 'halo', d }), s('path', { class: 'x ' + cls, d })];
}
const icon = (width, ...kids) => s('svg', { width, height: 16, viewBox: `0 0 ${width} 16`, 'aria-hidden': 'true' }, kids);
export function glyph(type) {
  if (type === 'granted') return icon(22, s('rect', { class: 'hold', x: 0, y: 3, width: 22, height: 10, rx: 2 }));
  if (type === 'refused') return icon(22, cross(11, 8, 5));
  if (type === 'first-write') return icon(22, s('circle', { class: 'write', cx: 11, cy: 8, r: 6 }));
  return MARKS[type] ? icon(22, MARKS[type](11, 8)) : icon(22);
}

function patterns() {
  const hatch = (id, width, soft, line, thick, opacity) => s('pattern', { id, width, height: width, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    s('rect', { width, height: width, fill: soft }), s('line', { y2: width, stroke: line, 'stroke-width': thick, opacity }));
  return [hatch('below', 7, 'none', 'var(--refuse)', 1, 0.28), hatch('over', 5, 'var(--hold-soft)', 'var(--hold)', 3.4), hatch('overpast', 5, 'var(--sunken)', 'var(--past)', 3),
  s('pattern', { id: 'delay', width: 6, height: 6, patternUnits: 'userSpaceOnUse' }, s('path', { d: 'M0 0L6 6M6 0L0 6', stroke: 'var(--past)', 'stroke-width': 1 }))];
}

export function legend() {
  const one = (picture, text) => h('span', null, picture, text);
  return h('div', { class: 'legend', 'aria-hidden': 'true' },
    one(icon(22, s('rect', { class: 'hold', y: 3, width: 22, height: 10, rx: 2 })), 'holds'),
    one(icon(22, s('rect', { fill: 'url(#over)', y: 3, width: 22, height: 10 })), 'renewal overdue'),
    one(icon(22, s('line', { class: 'waits', x1: 1, x2: 21, y1: 8, y2: 8 })), 'waits'),
    one(glyph('refused'), 'write refused'),
    one(icon(22, s('rect', { class: 'belowbg', width: 22, height: 16 }), s('rect', { class: 'below', width: 22, height: 16 })), 'below the stairs'),
    one(icon(22, s('rect', { fill: 'url(#delay)', width: 22, height: 16, opacity: 0.5 })), 'lock delay'),
    Object.keys(MARKS).slice(0, 5).map(how => one(glyph(how), ENDS[how])));
}

// -- the axis: linear, but for long spans in which nothing happens

function scaleOf(told, from, to, now, left, right) {
  const long = (to - from) / 4, pad = (to - from) / 40, gaps = [];
  const busy = [[Math.min(now, to) - long / 2, to]];
  for (const one of told.holds) busy.push([one.start - (one.waited || 0), one.end ?? (one.gone ? one.start : to)]);
  for (const one of told.refusals) busy.push([one.at_ms, one.at_ms]);
  for (const one of told.line) busy.push([one.from, to]);
  for (const one of told.delays) busy.push([one.from, one.to]);
  busy.sort((a, b) => a[0] - b[0]);
  let at = from;
  for (const [begin, end] of busy) {
    if (begin > to) break;
    if (begin - at > long && at > told.first) gaps.push([at + pad, begin - pad]);
    at = Math.max(at, end);
  }
  const hidden = gaps.reduce((all, [a, b]) => all + b - a, 0);
  const rate = (right - left - FOLD * gaps.length) / (to - from - hidden);
  const x = t => {
    let ms = t - from, px = left;
    for (const [a, b] of gaps) {
      if (t <= a) break;
      ms -= Math.min(t, b) - a;
      px += Math.min(1, (t - a) / (b - a)) * FOLD;
    }
    return px + ms * rate;
  };
  const back = px => { // the time at a place
    let low = from, high = to;
    for (let i = 0; i < 40; i++) if (x((low + high) / 2) < px) low = (low + high) / 2; else high = (low + high) / 2;
    return low;
  };
  return { x, back, rate, gaps };
}

const TICKS = [100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 216e5, 864e5];
const wide = (text, px = 7.3) => text.length * px;

// -- the chart

export class Chart {
  constructor() {
    const rect = () => s('rect', { y: 0, height: 2000 });
    this.all = rect();
    this.past = rect();
    this.ahead = s('g');
    this.glides = s('g');
    this.fixed = s('g');
    this.svg = s('svg', { role: 'img', height: 300, 'aria-label': 'Staircase' },
      s('defs', null, patterns(), s('clipPath', { id: 'plot' }, this.all), s('clipPath', { id: 'before' }, this.past)),
      s('g', { 'clip-path': 'url(#plot)' }, this.ahead), s('g', { 'clip-path': 'url(#before)' }, this.glides), this.fixed);
    this.seen = new Set();
    this.drawnAt = 0;
  }

  // view: from, to, now (null: not in the picture), pill (what stands above it), marked (a token), said.
  draw(told, view) {
    const W = this.svg.clientWidth || 860, narrow = W < 560, past = 48; // px drawn ahead of now, so that it can glide
    const names = this.lanes(told, view);
    const left = narrow ? 6 : Math.min(150, 18 + Math.max(40, ...names.map(one => wide(plain(one, 18))))), right = W - 14;
    const lane = narrow ? LANE + 12 : LANE, lanesEnd = TOP + Math.max(1, names.length) * lane;
    const at = scaleOf(told, view.from, view.to, view.now ?? view.to, left, right), x = at.x;
    const nowX = view.now === null ? right : Math.min(right, x(view.now));
    const later = view.now === null ? view.to : view.now + past / at.rate;
    const y = holder => TOP + names.indexOf(holder) * lane + (narrow ? 26 : 15);
    const out = { ahead: [], glides: [], fixed: [], boxes: [], ends: [], marks: {}, ended: '', overdue: '', x, y, lane, left, right, nowX, later, narrow, W, ...view, at };

    const before = told.steps.filter(one => one.start <= view.from).pop();
    out.levels = told.steps.filter(one => one === before || (one.start > view.from && one.start <= (view.now ?? view.to)));
    const step = Math.min(STEP, AREA / Math.max(1, out.levels.length));
    out.base = told.isShared ? lanesEnd + 8 : lanesEnd + 36 + Math.max(90, (out.levels.length + 0.9) * step);
    out.level = i => out.base - (i + 0.9) * step;
    out.step = step;

    this.axis(told, out);
    this.drawLanes(told, out, names);
    if (!told.isShared) this.drawStairs(told, out);
    this.drawNow(out);
    const height = out.base + AXIS;
    this.svg.setAttribute('height', height);
    this.svg.setAttribute('viewBox', `0 0 ${W} ${height}`);
    for (const [rect, end] of [[this.all, W], [this.past, nowX]]) {
      rect.setAttribute('x', left - 7);
      rect.setAttribute('width', Math.max(0, end - left + 7));
    }
    fill(this.ahead, out.ahead);
    fill(this.glides, out.glides);
    fill(this.fixed, out.fixed);
    this.svg.setAttribute('aria-label', view.said);
    this.rate = at.rate;
    this.drawnAt = view.now;
    this.at = at;
    this.glide(view.now);
  }

  // Between two drawings everything moves together; true: far enough to be drawn anew.
  glide(now) {
    const dx = now === null ? 0 : (now - this.drawnAt) * this.rate, moved = `translate(${-dx.toFixed(2)} 0)`;
    this.ahead.setAttribute('transform', moved);
    this.glides.setAttribute('transform', moved);
    return dx > 40;
  }

  isNew(key) {
    if (this.seen.has(key)) return false;
    this.seen.add(key);
    return this.drawnAt !== 0;
  }

  lanes(told, view) {
    const names = [], add = holder => { if (!names.includes(holder)) names.push(holder); };
    const inside = (from, to) => to >= view.from && from <= view.to;
    for (const one of told.holds) if (inside(one.start - (one.waited || 0), one.end ?? view.to)) add(one.holder);
    for (const one of told.refusals) if (inside(one.at_ms, one.at_ms)) add(one.holder || holderOf(told, one.token));
    for (const one of told.line) add(one.holder);
    this.more = Math.max(0, names.length - LANES);
    return names.filter(one => one).slice(-LANES);
  }

  axis(told, o) {
    const fits = Math.max(2, (o.right - o.left) / 120), spanMs = o.to - o.from - o.at.gaps.reduce((all, [a, b]) => all + b - a, 0);
    const every = TICKS.find(one => spanMs / one <= fits) || 864e5 * Math.ceil(spanMs / fits / 864e5);
    const text = t => every < 1000 ? clock(t, true).slice(3, 10) : every < 60000 ? clock(t) : clock(t).slice(0, 5);
    for (let t = Math.ceil(o.from / every) * every; t <= o.to + every; t += every) {
      if (o.at.gaps.some(([a, b]) => t > a && t < b)) continue;
      o.ahead.push(s('line', { class: 'ln', x1: o.x(t), x2: o.x(t), y1: TOP - 2, y2: o.base }));
      if (o.x(t) > o.left + 26) o.ahead.push(s('text', { class: 's soft', x: o.x(t), y: o.base + 18, 'text-anchor': 'middle' }, text(t)));
    }
    for (const [a, b] of o.at.gaps)
      o.ahead.push(s('rect', { class: 'fold', x: o.x(a), y: TOP - 2, width: FOLD, height: o.base - TOP + 2 }),
        s('text', { class: 's soft', x: o.x(a) + FOLD / 2, y: TOP - 8, 'text-anchor': 'middle' }, '\u22ef ' + span(b - a)));
    o.fixed.push(s('line', { class: 'ln', x1: o.left - 6, x2: o.right, y1: o.base, y2: o.base }));
  }

  drawLanes(told, o, names) {
    const wait = (holder, from, to) => o.y(holder) > 0 && o.x(to) - o.x(from) > 4 && o.glides.push(s('line',
      { class: 'waits', x1: o.x(from) + 2, x2: o.x(to) - 4, y1: o.y(holder), y2: o.y(holder) }));
    for (const holder of names)
      o.fixed.push(s('text', { class: 'mono bold outlined', x: 2, y: o.y(holder) + (o.narrow ? -11 : 4) }, plain(holder, 18)));
    if (this.more) o.fixed.push(s('text', { class: 's soft', x: 2, y: o.y(names[0]) - 18 }, this.more + ' more'));
    for (const one of told.holds) {
      if (!names.includes(one.holder) || one.start > o.to || (one.end ?? o.to) < o.from) continue;
      if (one.waited > 0) wait(one.holder, one.start - one.waited, one.start);
      this.bar(one, o);
    }
    o.glides.push(s('path', { class: 'past', d: o.ended }), s('path', { d: o.overdue, fill: 'url(#overpast)' }), o.ends);
    for (const one of told.line) if (names.includes(one.holder)) wait(one.holder, one.from, o.later);
    for (const one of told.refusals) {
      const holder = one.holder || holderOf(told, one.token), hold = told.holds.find(x => x.token === one.token);
      if (one.at_ms < o.from || !names.includes(holder)) continue;
      if (hold?.end && hold.end < one.at_ms && o.x(one.at_ms) - o.x(hold.end) > 18)
        o.glides.push(s('line', { class: 'late', x1: o.x(hold.end) + 9, x2: o.x(one.at_ms) - 6, y1: o.y(holder), y2: o.y(holder) }));
      o.glides.push(cross(o.x(one.at_ms), o.y(holder), 4));
    }
    for (const { from, to } of told.delays) {
      if (to < o.from || from > o.to) continue;
      const x = o.x(from), seen = Math.max(x, o.left);
      o.ahead.push(s('rect', { x, y: TOP, width: Math.max(2, o.x(to) - x), height: Math.max(1, names.length) * o.lane, fill: 'url(#delay)', opacity: 0.5 }));
      if (to > (o.now ?? to) || o.x(to) - seen > wide('lock delay')) o.ahead.push(s('text', { class: 's soft', x: seen + 4, y: TOP - 6 }, 'lock delay'));
    }
  }

  bar(one, o) {
    const y = o.y(one.holder) - 7, until = one.live ? o.later : one.end ?? one.start, from = o.x(one.start);
    const due = Math.min(until, one.due), cls = one.live ? 'hold' : 'past', width = Math.max(1.5, o.x(due) - from);
    // Ended ones of a lane are one path each, and marks stand 7 px apart: hundreds in a window cost what a few do.
    const box = (x, w) => `M${x.toFixed(1)} ${y}h${w.toFixed(1)}v14h${(-w).toFixed(1)}z`;
    if (one.live) o.glides.push(s('rect', { class: cls, x: from, y, width, height: 14, rx: 2 }));
    else o.ended += box(from, width);
    if (until > due && one.live) o.glides.push(s('rect', { x: o.x(due), y, width: o.x(until) - o.x(due), height: 14, fill: 'url(#over)' }));
    else if (until > due) o.overdue += box(o.x(due), o.x(until) - o.x(due));
    if (one.live && one.expires > o.from) o.ahead.push(s('rect', { class: 'ghost', x: from, y: y + 0.5, width: Math.max(0, o.x(one.expires) - from), height: 13 }));
    if (one.mode === 'shared' || o.levels.length === 0) o.glides.push(s('text', { class: 's mono outlined', x: Math.max(from, o.left) + 5, y: y + 11 }, count(one.token)));
    if (one.end !== null && MARKS[one.how] && one.end >= o.from && !(o.x(one.end) - o.marks[y] < 7)) {
      o.marks[y] = o.x(one.end);
      o.ends.push(MARKS[one.how](o.x(one.end), y + 7));
    }
  }

  drawStairs(told, o) {
    const { levels } = o;
    let steps = '', area = '';
    levels.forEach((one, i) => {
      const from = Math.max(o.x(one.start), o.left - 60), next = levels[i + 1], to = next ? o.x(next.start) : o.x(o.later), y = o.level(i);
      if (next) steps += (i ? `V${y}` : `M${from} ${y}`) + `H${to}`;
      else if (i) steps += `V${y}`;
      area += (i ? '' : `M${from} ${o.base}`) + `V${y}H${to}`;
      if (!next) o.glides.push(s('path', { class: 'stair ' + (one.live ? 'current' : '') + (this.isNew('s' + one.token) ? ' rises' : ''), d: `M${from} ${y}H${to}` }));
      if (one.token === o.marked) o.glides.push(s('path', { class: 'stair marked', d: `M${Math.max(from, o.left)} ${y}H${to}` }));
      this.stepLabel(one, from, to, y, o);
    });
    if (levels.length) {
      area += `V${o.base}z`;
      o.glides.unshift(s('path', { class: 'belowbg', d: area }), s('path', { class: 'below', d: area }));
      if (steps) o.glides.push(s('path', { class: 'stair', d: steps }));
      const begin = Math.max(o.left, o.x(levels[0].start)) + 10;
      if (o.nowX - begin > 220 && o.level(0) < o.base - 30) {
        o.glides.push(s('text', { class: 's code outlined', x: begin, y: o.base - 8 }, 'below the stairs: refused'));
        o.boxes.push([begin, o.base - 20, begin + 140, o.base]);
      }
    }
    for (const t of told.epochs) if (t >= o.from && t <= o.to)
      o.glides.push(s('line', { class: 'epoch', x1: o.x(t), x2: o.x(t), y1: TOP - 2, y2: o.base }),
        s('text', { class: 's outlined', x: o.x(t) - 6, y: TOP - 8, 'text-anchor': 'end' }, 'store restarted, epoch +1'));
    for (const one of told.writes) {
      const i = levels.findIndex(level => level.token === one.token);
      if (i >= 0) o.glides.push(s('circle', { class: 'write', cx: o.x(one.at_ms), cy: o.level(i), r: 6 }));
    }
    this.drawRefusals(told, o);
  }

  stepLabel(one, from, to, y, o) {
    const x = Math.max(from, o.left) + 7, token = count(one.token), room = Math.min(to, o.right) - x + (one.live ? 60 : 0);
    const holder = ' ' + plain(one.holder, 20);
    if (o.step < 12 || room < wide(token)) return;
    const full = room > wide(token + holder);
    o.boxes.push([x, y - 22, x + wide(full ? token + holder : token), y - 6]);
    o.glides.push(s('text', { class: 'mono outlined', x, y: y - 9 }, s('tspan', { class: 'bold' }, token), full ? s('tspan', { class: 'soft' }, holder) : null));
  }

  drawRefusals(told, o) {
    const shown = told.refusals.filter(one => one.at_ms >= o.from && one.at_ms <= o.to);
    for (const one of shown) {
      const at = o.levels.filter(level => level.start <= one.at_ms).length - 1;
      const own = o.levels.filter(level => level.token <= one.token).length - 1;
      const x = o.x(one.at_ms), top = at >= 0 ? o.level(at) : o.base, y = own >= 0 ? o.level(own) : o.base - 6;
      const fresh = this.isNew(one.id) ? 'appears' : '';
      if (top < y - 14) o.glides.push(s('line', { class: 'up', x1: x, x2: x, y1: top + 3, y2: y - 9 }));
      o.glides.push(cross(x, y, 6, fresh));
      const holder = plain(one.holder || holderOf(told, one.token), 16);
      const long = shown.length < 4 && !o.narrow && holder ? `${holder}, token ${count(one.token)}: refused, ${one.reason}` : one.reason;
      for (const text of [long, one.reason]) {
        const half = wide(text, 6.6) / 2, middle = Math.min(Math.max(x, o.left + half), o.nowX - half - 2), box = [middle - half, y + 8, middle + half, y + 24];
        if (y + 24 > o.base + 8 || o.boxes.some(b => box[0] < b[2] && box[2] > b[0] && box[1] < b[3] && box[3] > b[1])) continue;
        o.boxes.push(box);
        o.glides.push(s('text', { class: 'code outlined ' + fresh, x: middle, y: y + 20, 'text-anchor': 'middle' }, text));
        break;
      }
    }
  }

  drawNow(o) {
    if (o.now === null) return;
    const text = o.pill || 'now', half = wide(text, 6.4) / 2 + 7, x = Math.min(o.nowX, o.right + 12 - half);
    o.fixed.push(s('line', { class: 'now', x1: o.nowX, x2: o.nowX, y1: TOP - 6, y2: o.base }),
      s('rect', { class: 'pill', x: x - half, y: 2, width: 2 * half, height: 18, rx: 9 }),
      s('text', { class: 'inpill', x, y: 15, 'text-anchor': 'middle' }, text));
  }
}

// Everything that is known, small, with the window in it; drag moves that.
export function drawStrip(svg, told, from, to, now) {
  const W = svg.clientWidth || 860, begin = Math.min(told.first, from), all = Math.max(1, now - begin), x = t => 3 + (t - begin) / all * (W - 6);
  const steps = told.steps, high = Math.max(1, steps.length);
  let d = '';
  steps.forEach((one, i) => {
    d += `M${x(one.start).toFixed(1)} ${(19 - 15 * (i + 1) / high).toFixed(1)}H${x(Math.min(now, one.end ?? steps[i + 1]?.start ?? now)).toFixed(1)}`;
  });
  fill(svg, s('path', { class: 'mini-stair', d }), told.refusals.map(one => s('path', { class: 'x', 'stroke-width': 1.6, d: `M${x(one.at_ms) - 3} 16l6 6m0 -6l-6 6` })),
    s('rect', { class: 'window', x: Math.max(1, x(from)), y: 1, width: Math.max(4, x(Math.min(to, now)) - Math.max(1, x(from))), height: 22, rx: 4 }));
  svg.setAttribute('viewBox', `0 0 ${W} 24`);
  return px => begin + (px - 3) / (W - 6) * all;
}
