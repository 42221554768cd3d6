// Shows a LogBuffer of any length with as many elements as fit on the screen. However fast lines come, the DOM changes
// once per frame.

import {el, setClass, setText, visible} from './dom.js';
import {LogBuffer} from './log_buffer.js';

const BEYOND = 4;  // rows above and below what is seen
const BAD = /\b(error|fatal|fail(ed|ure)?|panic|exception|traceback|killed)\b|^\S+ E /i;
const WARNING = /\bwarn(ing)?\b|^\S+ W /i;

export class LogView {
  buffer = new LogBuffer();
  follows = true;
  #rows = [];
  #selected = null;
  #unseen = 0;
  #frame = 0;
  #height = 20;
  #set = 0;  // where it was scrolled to, by itself

  // onchange: it follows, or no longer does, or has more that was not seen.
  constructor(onchange) {
    this.onchange = onchange;
    this.space = el('div', {class: 'space'});
    this.pool = el('div', {class: 'pool'});
    this.lines = el('div', {class: 'lines', role: 'log', 'aria-live': 'off', 'aria-label': 'Log', tabindex: '0'},
        this.space, this.pool);
    // Arrow keys go from line to line; this says the line, and shows all of it.
    this.detail = el('p', {class: 'detail', role: 'status', hidden: true});
    this.element = el('div', {class: 'log'}, this.lines, this.detail);
    this.lines.addEventListener('scroll', () => this.#scrolled());
    this.lines.addEventListener('keydown', (event) => this.#key(event));
    this.lines.addEventListener('click', (event) => {
      const row = event.target.closest('.line');
      if (row && getSelection().isCollapsed) this.select(Number(row.dataset.at));
    });
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.lines);
  }

  get unseen() {
    return this.#unseen;
  }

  add(task, texts) {
    const before = this.buffer.length;
    this.buffer.add(task, texts);
    if (!this.follows) this.#unseen += Math.max(0, this.buffer.length - before);
    this.draw();
  }

  clear() {
    this.buffer.clear();
    this.#close();
    this.follow(true);
  }

  filter(text) {
    this.buffer.filter(text);
    this.#close();
    this.follow(true);
  }

  follow(on) {
    this.follows = on;
    if (on) this.#unseen = 0;
    this.draw();
    this.onchange();
  }

  // The i-th of the lines that are shown: marked, in view, and in full below.
  select(i) {
    const line = this.buffer.at(i);
    if (!line) return;
    this.#selected = line;
    this.follow(false);
    this.#draw();  // now: one can only scroll to what has its place
    const top = i * this.#height, view = this.lines;
    view.scrollTop = Math.max(top + this.#height - view.clientHeight, Math.min(top, view.scrollTop));
    this.detail.hidden = false;
    setText(this.detail, `${line.task}: ${line.text}`);
  }

  #close() {
    this.#selected = null;
    this.detail.hidden = true;
  }

  #index() {
    for (let i = 0; this.#selected && i < this.buffer.length; ++i) if (this.buffer.at(i) === this.#selected) return i;
    return null;
  }

  #key(event) {
    const last = this.buffer.length - 1;
    const top = Math.ceil(this.lines.scrollTop / this.#height);
    const bottom = Math.min(last, top + Math.floor(this.lines.clientHeight / this.#height) - 1);
    const at = this.#index();
    if (event.key === 'ArrowUp') this.select(Math.max(0, at === null ? bottom : at - 1));
    else if (event.key === 'ArrowDown') this.select(Math.min(last, at === null ? top : at + 1));
    else if (event.key === 'End') this.#close(), this.follow(true);
    else if (event.key === 'Escape') this.#close();
    else return;
    event.preventDefault();
  }

  #scrolled() {
    const {scrollTop, clientHeight, scrollHeight} = this.lines;
    const atEnd = scrollTop + clientHeight >= scrollHeight - this.#height / 2;
    // Who scrolls up wants to read. A pane that is resized moves too, and means nothing by it.
    if (this.follows ? !atEnd && scrollTop < this.#set : atEnd && !this.#selected) this.follow(atEnd);
    else this.draw();
  }

  draw() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#draw();
      this.#frame = 0;
      this.onchange();
    });
  }

  #draw() {
    const view = this.lines, length = this.buffer.length;
    if (this.#rows.length) this.#height = this.#rows[0].element.getBoundingClientRect().height || this.#height;
    const dropped = this.buffer.takeDropped();
    const top = this.follows ? Infinity : Math.max(0, view.scrollTop - dropped * this.#height);
    const height = `${length * this.#height}px`;
    if (this.space.style.height !== height) this.space.style.height = height;
    const end = Math.max(0, length * this.#height - view.clientHeight);
    if (this.follows || dropped) {
      view.scrollTop = Math.min(top, end + this.#height);
      this.#set = view.scrollTop;
    }
    const first = Math.max(0, Math.floor(Math.min(top, end) / this.#height) - BEYOND);
    const wanted = Math.min(length - first, Math.ceil(view.clientHeight / this.#height) + 2 * BEYOND);
    while (this.#rows.length < wanted) this.#rows.push(this.#makeRow());
    this.pool.style.transform = `translateY(${first * this.#height}px)`;
    this.#rows.forEach((row, i) => {
      row.element.hidden = i >= wanted;
      if (i < wanted) this.#fill(row, this.buffer.at(first + i), first + i);
    });
  }

  #makeRow() {
    const row = {task: el('span', {class: 'task'}), text: el('span', {class: 'text'}), line: null, needle: ''};
    row.element = el('div', {class: 'line'}, row.task, row.text);
    this.pool.append(row.element);
    return row;
  }

  #fill(row, line, at) {
    row.element.dataset.at = at;
    const level = BAD.test(line.text) ? ' bad' : WARNING.test(line.text) ? ' warn' : '';
    setClass(row.element, `line${level}${line === this.#selected ? ' selected' : ''}`);
    if (row.line === line && row.needle === this.buffer.needle) return;
    [row.line, row.needle] = [line, this.buffer.needle];
    setText(row.task, line.task);
    mark(row.text, visible(line.text), this.buffer.needle);
  }

  close() {
    this.resized.disconnect();
    cancelAnimationFrame(this.#frame);
  }
}

// `text`, with what was searched for marked.
export function mark(element, text, needle) {
  const lower = needle ? text.toLowerCase() : '';
  // Few letters have a lower case of another length; then places are not the same, and nothing is marked.
  if (!needle || lower.length !== text.length || !lower.includes(needle)) {
    element.textContent = text;
    return;
  }
  const parts = [];
  let from = 0;
  for (let at = lower.indexOf(needle); at >= 0; at = lower.indexOf(needle, from)) {
    parts.push(text.slice(from, at), el('mark', {}, text.slice(at, at + needle.length)));
    from = at + needle.length;
  }
  element.replaceChildren(...parts, text.slice(from));
}
