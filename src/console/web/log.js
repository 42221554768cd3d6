// The part of a run's page that shows logs: of all nodes together or of one, live, filtered while one types, searched
// from end to end on demand.

import {get, getRange, withToken} from './api.js';
import {announce, el, setText} from './dom.js';
import {count} from './format.js';
import {cut, LogTails, logUrl, merge} from './log_tail.js';
import {LogView, mark} from './log_view.js';

const TAIL_BYTES = 256 * 1024;  // of one log; of all together somewhat more
const PLACE_BYTES = 64 * 1024;  // on each side of a match
const MATCHES_MAX = 200;
const NAMED_MAX = 100;          // tasks in an address; more are "all", which is without the launcher
const PENDING_MAX = 2000;       // events that come while the ends of files are read

export class LogPane {
  selection = 'all';
  #tasks = [];
  #finished = false;
  #pending = null;
  #batch = [];
  #placed = null;  // what is shown instead of the live end
  #reading = null;

  // onselect(): another log is wanted; the owner of the stream opens another one and calls join().
  constructor(run, onselect) {
    this.run = run;
    this.onselect = onselect;
    this.tails = new LogTails(run);
    this.view = new LogView(() => this.#describe());
    this.select = el('select', {id: 'log-of', onchange: () => this.choose(this.select.value)});
    this.search = el('input', {type: 'search', id: 'log-search', placeholder: 'filter; Enter searches all of it',
      oninput: () => this.#filter(), onkeydown: (event) => this.#searchKey(event)});
    this.follow = el('button', {'aria-pressed': 'true', onclick: () => this.#resume()});
    this.status = el('span', {class: 'dim log-status'});
    this.raw = el('a', {class: 'button', download: true, href: '#', onclick: () => this.#aim()}, 'Download');
    this.matches = el('div', {class: 'matches', hidden: true, tabindex: '-1', role: 'region', 'aria-label': 'Matches'});
    this.element = el('section', {class: 'logs', 'aria-labelledby': 'log-title'},
        el('div', {class: 'bar'}, el('h2', {id: 'log-title'}, 'Log'),
            el('label', {for: 'log-of', class: 'spoken'}, 'Log of '), this.select,
            el('label', {for: 'log-search', class: 'spoken'}, 'Search the log'), this.search, this.follow, this.raw,
            this.status),
        this.matches, el('div', {class: 'card flush'}, this.view.element));
  }

  // Who has a log, and whether it will grow no more.
  update(tasks, finished) {
    this.#finished = finished;
    const names = ['all', ...tasks, 'launcher'];
    if (this.select.options.length && tasks.join() === this.#tasks.join()) return;
    const grown = this.#tasks.length > 0;
    this.#tasks = tasks;
    this.select.replaceChildren(...names.map((name) => el('option', {value: name}, spoken(name))));
    this.select.value = this.selection;
    if (grown && this.selection === 'all') this.onselect();
  }

  // The tasks whose lines a stream is asked for.
  get wanted() {
    const all = [...this.#tasks, 'launcher'];
    return this.selection !== 'all' ? this.selection : all.length <= NAMED_MAX ? all.join() : 'all';
  }

  choose(selection) {
    this.selection = this.select.value = selection;
    this.element.classList.toggle('one', selection !== 'all');
    this.view.lines.setAttribute('aria-label', `Log of ${spoken(selection)}`);
    this.raw.hidden = selection === 'all';
    this.#placed = null;
    this.#batch.length = 0;
    this.#hideMatches();
    this.tails.forget();
    this.view.clear();
    this.onselect();
  }

  // The stream is open: what was written before it comes from the files, and then what it has told meanwhile.
  async join() {
    this.#reading?.abort();
    const reading = this.#reading = new AbortController();
    this.#pending = [];
    const tasks = this.selection === 'all' ? [...this.#tasks, 'launcher'] : [this.selection];
    const size = tasks.length === 1 ? TAIL_BYTES : Math.max(4096, Math.floor(2 * TAIL_BYTES / tasks.length));
    const found = new Map();
    await inTurn(tasks, 4, async (task) => {
      try {
        found.set(task, await this.tails.read(task, size, this.#finished, reading.signal));
      } catch {}  // the connection is gone, or another log is wanted: it will be read again
    });
    if (this.#reading !== reading) return;
    for (const [task, {end}] of found) this.tails.take(task, end);
    this.#show(found);
    const pending = this.#pending;
    this.#pending = null;
    for (const event of pending) this.take(event);
  }

  // An event of the stream.
  take(event) {
    if (this.#pending) {
      if (this.#pending.length < PENDING_MAX) this.#pending.push(event);
      return;
    }
    const lines = this.tails.unseen(event);
    if (!lines.length) return;
    // Events of several tasks come together, and are put in order of time together.
    if (!this.#batch.length) queueMicrotask(() => this.#show(this.#batch.splice(0)));
    this.#batch.push([event.task, {lines}]);
  }

  #show(logs) {
    if (!this.#placed) for (const {task, text} of merge(logs)) this.view.add(task, [text]);
  }

  #filter() {
    this.view.filter(this.search.value);
    if (!this.search.value) this.#hideMatches();
  }

  #searchKey(event) {
    if (event.key === 'Escape') this.search.value = '', this.#filter();
    if (event.key !== 'Enter' || !this.search.value) return;
    event.preventDefault();
    this.#searchAll(this.search.value);
  }

  // Through the files from their first byte, on the server: what the page holds is only their end.
  async #searchAll(text) {
    const tasks = this.selection === 'all' ? [...this.#tasks, 'launcher'] : [this.selection];
    const found = new Map(), missed = [];
    let more = false;
    this.matches.hidden = false;
    this.matches.replaceChildren(el('p', {class: 'dim'}, `Searching the log of ${spoken(this.selection)} …`));
    await inTurn(tasks, 4, async (task) => {
      try {
        const reply = await get(`${logUrl(this.run, task)}?search=${encodeURIComponent(text)}&max=${MATCHES_MAX}`);
        found.set(task, reply.matches);
        more ||= reply.more;
      } catch (error) {
        if (error.status !== 404) missed.push(`${task}: ${error.message}`);
      }
    });
    const items = tasks.flatMap((task) => (found.get(task) ?? []).map((match) => this.#match(task, match, text)));
    const have = items.length === 1 ? 'line has' : 'lines have';
    const title = `${count(items.length)}${more ? ' and more' : ''} ${have} “${text}”` +
        (missed.length ? `; not searched: ${missed.join(', ')}` : '');
    this.matches.replaceChildren(
        el('div', {class: 'bar'}, el('p', {}, title),
            el('button', {class: 'right', onclick: () => this.#hideMatches()}, 'Close')),
        el('ol', {}, items.slice(0, 5 * MATCHES_MAX)));
    announce(title);
  }

  #match(task, {offset, line}, text) {
    const words = el('span', {class: 'text'});
    mark(words, el('i', {}, line.slice(0, 400)).textContent, text.toLowerCase());
    return el('li', {},
        el('button', {onclick: () => this.#goTo(task, offset)}, el('span', {class: 'task'}, task), words));
  }

  #hideMatches() {
    this.matches.hidden = true;
    this.matches.replaceChildren();
  }

  // Shows a log around one of its bytes, in place of its live end.
  async #goTo(task, offset) {
    const begin = Math.max(0, offset - PLACE_BYTES);
    const piece = await getRange(logUrl(this.run, task), `bytes=${begin}-${offset + PLACE_BYTES}`);
    const {lines, offsets} = cut(piece, false, false);
    this.#placed = {task, offset};
    this.search.value = '';
    this.view.filter('');
    this.view.clear();
    this.view.add(task, lines);
    this.view.select(Math.max(0, offsets.findLastIndex((at) => at <= offset)));
    this.view.lines.focus();
  }

  #resume() {
    if (this.#placed) this.choose(this.selection);
    else this.view.follow(!this.view.follows);
  }

  #aim() {
    this.raw.href = withToken(logUrl(this.run, this.selection));
    this.raw.download = `${this.run}-${this.selection}.log`;
  }

  #describe() {
    const {buffer, follows, unseen} = this.view;
    this.follow.setAttribute('aria-pressed', String(follows && !this.#placed));
    setText(this.follow, this.#placed ? 'Back to the end' : follows ? 'Following' :
        `Follow${unseen ? ` (${count(unseen)} new)` : ''}`);
    const total = count(buffer.total);
    setText(this.status, this.#placed ? `${this.#placed.task}, around byte ${count(this.#placed.offset)}` :
        buffer.needle ? `${count(buffer.length)} of the last ${total} lines` : `${total} lines`);
  }

  close() {
    this.#reading?.abort();
    this.view.close();
  }
}

const spoken = (selection) => (selection === 'all' ? 'all nodes' : selection);

// work(item) of all items, `width` at a time.
async function inTurn(items, width, work) {
  const waiting = [...items];
  await Promise.all(Array.from({length: width}, async () => {
    while (waiting.length) await work(waiting.shift());
  }));
}
