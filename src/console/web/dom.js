// Building the page. Strings only ever become text nodes: what a log, a name or a server says is never read as HTML.

// Characters that draw nothing, or that turn the text around them about, shown by their numbers: a line that looks
// harmless is harmless. Colours of terminals are dropped.
const COLOURS = /\x1b\[[0-9;]*m/g;
const UNSEEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

export function visible(text) {
  return text.replace(COLOURS, '')
      .replace(UNSEEN, (c) => `\u27e8${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}\u27e9`);
}

// el('a', {href: '#/', onclick: f}, 'text', child...): an element. An attribute that is null or false is left out.
export function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === '') continue;
    element.append(child instanceof Node ? child : visible(String(child)));
  }
  return element;
}

// The head of a table: {Name: class}. Roles are said, because tables of phones are laid out as something else.
export function tableHead(columns) {
  return el('thead', {role: 'rowgroup'}, el('tr', {role: 'row'}, Object.entries(columns).map(([name, kind]) =>
      el('th', {role: 'columnheader', scope: 'col', class: kind || null}, name))));
}

// Changes the DOM only if it has to: a page that is refreshed each second keeps its selection and its focus.
export function setText(element, text) {
  const shown = visible(String(text));
  if (element.textContent !== shown) element.textContent = shown;
}

export function setChildren(element, children) {
  const wanted = children.filter(Boolean);
  if (wanted.length === element.children.length && wanted.every((child, i) => child === element.children[i])) return;
  element.replaceChildren(...wanted);
}

export function setClass(element, text) {
  if (element.className !== text) element.className = text;
}

// For those who listen instead of look.
export function announce(text) {
  setText(document.getElementById('announce'), text);
}

// Asks before something that cannot be undone. The safe answer has the focus; Escape is it too.
export function confirm({title, text, yes}) {
  const dialog = document.getElementById('confirm');
  setText(document.getElementById('confirm-title'), title);
  setText(document.getElementById('confirm-text'), text);
  setText(document.getElementById('confirm-yes'), yes);
  dialog.returnValue = 'no';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), {once: true});
  });
}

// A state in a coloured frame. The word says it; the colour only helps.
const TONES = {
  planned: 'dim', starting: 'warn', waiting: 'warn', placed: 'warn', arrived: 'warn', stopping: 'warn',
  running: 'live', done: 'good', stopped: 'dim', interrupted: 'dim', failed: 'bad', missing: 'bad', lost: 'bad',
};
export function setState(pill, state, text = state) {
  setText(pill, text);
  setClass(pill, `pill ${TONES[state] ?? 'dim'}`);
}
export const isBad = (state) => TONES[state] === 'bad';
export const isOver = (state) => ['done', 'failed', 'missing', 'interrupted', 'lost'].includes(state);
