// deed.js - what an operator does with a word of its own: who loses what, what goes wrong if the word is wrong, a reason,
// and the name typed. Bound to what was seen: when that has changed meanwhile nothing is done.
import { h, fill, plain, name } from './dom.js';
import { app } from './app.js';

const spoken = h('div', { class: 'card', role: 'status', hidden: true });

// asks: {title, loses, wrong (nodes), name, label, action, reason: true|false, choices: nodes, send({reason}) -> what was done}
export function deed(asks) {
  const reason = asks.reason ? h('input', { maxlength: 256, required: true, autocomplete: 'off' }) : null;
  const typed = h('input', { class: 'mono', autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'to-type' });
  const told = h('p', { class: 'refused', role: 'alert' }), go = h('button', { class: 'solid', disabled: true }, asks.action);
  const judge = () => { go.disabled = typed.value !== asks.name || (reason && !reason.value.trim()) || !app.live; };
  const dialog = h('dialog', { 'aria-labelledby': 'deed' }, h('form', { method: 'dialog', oninput: judge, onsubmit: event => {
    event.preventDefault();
    judge();
    if (!go.disabled) act();
  } },
  h('h2', { id: 'deed' }, asks.title), h('p', null, asks.loses), h('p', { class: 'dim' }, asks.wrong), asks.choices,
  reason ? h('label', null, 'Reason, kept ' + (asks.kept || 'in the history'), reason) : null,
  h('label', null, asks.label, h('span', { class: 'mono dim', id: 'to-type' }, plain(asks.name, 4096)), typed), told,
  h('div', { class: 'end' }, h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'), go)));

  async function act() {
    go.disabled = true;
    try {
      const done = await asks.send({ reason: reason?.value.trim() });
      dialog.close();
      say(done);
    } catch (error) {
      // Of a proxy's answer, too, whatever it is; and "it is not there" may be said to a browser that has sent it twice.
      const unknown = !error.code || [404, 500, 504].includes(error.status);
      fill(told, (error.done || '') + (unknown ? 'It may have been done: look before you go on. ' : error.done ? '' : 'Nothing was done: ')
        + (error.code === 'token-moved-on' ? (asks.moved ? asks.moved(error.problem) : 'another holds it now.') : error.detail || error.title));
      judge();
    }
  }
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  (reason || typed).focus();
  return dialog;
}

export function say(...told) {
  spoken.hidden = false;
  fill(spoken, h('p', { class: 'bar' }, h('span', null, told)));
  document.getElementById('page').prepend(spoken);
}

// A button that is for who may, and only while what is seen is live. It is found in the page, so that one whose row is gone
// is nobody's.
const judge = (button, verb = button.dataset.needs) => { button.disabled = !app.live || !app.may(verb); };
app.on('overview lost back', () => document.querySelectorAll('[data-needs]').forEach(button => judge(button)));
export function deedButton(verb, text, cls, open) {
  const button = h('button', { class: cls, onclick: open, 'data-needs': verb }, text);
  if (!app.may(verb)) button.title = 'needs ' + verb;
  judge(button);
  return button;
}
export const whose = holder => h('b', null, name(holder));
