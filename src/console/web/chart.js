// A line chart on a canvas: axes, lines, and a cursor that all charts of a page share. Colours come from the style
// sheet, so that it follows light and dark. It can be read without being seen: its name says what it shows, arrow keys
// move the cursor, and what stands there is spoken.

import {announce, el, setChildren, setText} from './dom.js';
import {clock} from './format.js';

const LEFT = 36, RIGHT = 6, TOP = 6, BOTTOM = 18;  // of the canvas, around the plot, at least; CSS pixels
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 604800];
const COLOURS = 6;
const DARK = matchMedia('(prefers-color-scheme: dark)');

// The time that the pointer is at, or null: for all charts of a page.
export class Cursor {
  time = null;
  #watchers = new Set();
  watch(watcher) {
    this.#watchers.add(watcher);
  }
  move(time) {
    if (time === this.time) return;
    this.time = time;
    for (const watcher of this.#watchers) watcher();
  }
}

export class Chart {
  #lines = [];
  #from = 0;
  #to = 1;
  #left = LEFT;
  #frame = 0;

  // `format` makes text of a value; an axis of `zero` begins there; `base` is that of units, 1000 or 1024.
  constructor({title, format, zero, base = 1000, cursor}) {
    this.base = base;
    this.title = title;
    this.format = format;
    this.zero = zero;
    this.cursor = cursor;
    this.now = el('span', {class: 'now'});
    this.legend = el('ul', {class: 'legend'});
    this.canvas = el('canvas', {tabindex: '0', role: 'img', 'aria-label': title});
    this.canvas.addEventListener('pointermove', (event) => cursor.move(this.#timeAt(event.offsetX)));
    this.canvas.addEventListener('pointerleave', () => cursor.move(null));
    this.canvas.addEventListener('blur', () => cursor.move(null));
    this.canvas.addEventListener('keydown', (event) => this.#key(event));
    this.element = el('figure', {class: 'card chart'},
        el('figcaption', {}, el('span', {class: 'name'}, title), this.now), this.canvas, this.legend);
    cursor.watch(() => this.redraw());
    this.resized = new ResizeObserver(() => this.redraw());
    this.resized.observe(this.canvas);
    this.recolour = () => this.redraw();
    DARK.addEventListener('change', this.recolour);
  }

  // lines: [{label, t, v, colour, faint}]; `now` is the figure that counts, as text.
  show(lines, from, to, now) {
    this.#lines = lines;
    [this.#from, this.#to] = [from, Math.max(to, from + 1000)];
    setText(this.now, now);
    this.redraw();
  }

  redraw() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #timeAt(x) {
    const part = (x - this.#left) / Math.max(1, this.canvas.clientWidth - this.#left - RIGHT);
    return this.#from + Math.min(1, Math.max(0, part)) * (this.#to - this.#from);
  }

  #key(event) {
    const step = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[event.key];
    if (!step) return;
    event.preventDefault();
    const time = (this.cursor.time ?? this.#to) + (Number.isFinite(step) ? step * (this.#to - this.#from) / 40 : step);
    this.cursor.move(Math.min(this.#to, Math.max(this.#from, time)));
    const said = this.#named().map((line) => `${line.label} ${this.format(valueAt(line, this.cursor.time))}`);
    announce(`${this.title}, ${clock(this.cursor.time)}: ${said.join(', ')}`);
  }

  #named() {
    return this.#lines.filter((line) => !line.faint);
  }

  #range() {
    let [low, high] = [Infinity, -Infinity];
    for (const {t, v} of this.#lines) {
      for (let i = 0; i < t.length; ++i) {
        if (t[i] < this.#from || t[i] > this.#to) continue;
        if (v[i] < low) low = v[i];
        if (v[i] > high) high = v[i];
      }
    }
    if (low > high) return [0, 1];
    if (this.zero) low = Math.min(0, low);
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [this.zero && low === 0 ? 0 : low - room, high + room];
  }

  #draw() {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight, ratio = window.devicePixelRatio || 1;
    if (!width || !height) return;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    }
    const style = getComputedStyle(this.canvas);
    const colour = (name) => style.getPropertyValue(name);
    const g = this.canvas.getContext('2d');
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = `11px ${style.fontFamily}`;
    g.lineWidth = 1;
    const [low, high] = this.#range();
    const marks = ticks(low, high, 2, this.base).map((v) => [v, this.#mark(v)]);
    const left = this.#left = Math.max(LEFT, ...marks.map(([, text]) => Math.ceil(g.measureText(text).width) + 8));
    const x = (t) => left + (t - this.#from) / (this.#to - this.#from) * (width - left - RIGHT);
    const y = (v) => height - BOTTOM - (v - low) / (high - low) * (height - TOP - BOTTOM);
    this.#axes(g, {marks, x, y, width, height, ink: colour('--dim'), grid: colour('--grid')});

    g.save();
    g.beginPath();
    g.rect(left, 0, width - left - RIGHT, height - BOTTOM + 1);
    g.clip();
    g.lineJoin = 'round';
    for (const line of this.#lines) {
      g.globalAlpha = line.faint ? 0.25 : 1;
      g.lineWidth = line.faint ? 1 : 1.6;
      g.strokeStyle = colour(`--line-${line.colour % COLOURS}`);
      g.beginPath();
      line.t.forEach((t, i) => i ? g.lineTo(x(t), y(line.v[i])) : g.moveTo(x(t), y(line.v[i])));
      g.stroke();
    }
    g.globalAlpha = 1;
    const time = this.cursor.time;
    if (time !== null && time >= this.#from && time <= this.#to) {
      g.strokeStyle = colour('--dim');
      g.lineWidth = 1;
      g.beginPath();
      g.moveTo(Math.round(x(time)) + 0.5, 0);
      g.lineTo(Math.round(x(time)) + 0.5, height - BOTTOM);
      g.stroke();
    }
    g.restore();
    this.#describe(time);
  }

  // 64.0 MiB/s is 64 MiB beside an axis.
  #mark(value) {
    return this.format(value).replace(/\.0+(?!\d)/, '').replace('/s', '');
  }

  #axes(g, {marks, x, y, width, height, ink, grid}) {
    g.fillStyle = ink;
    g.strokeStyle = grid;
    g.textBaseline = 'middle';
    g.textAlign = 'right';
    g.beginPath();
    for (const [v, text] of marks) {
      const at = Math.round(y(v)) + 0.5;
      g.moveTo(this.#left, at);
      g.lineTo(width - RIGHT, at);
      g.fillText(text, this.#left - 6, at);
    }
    g.stroke();
    g.textBaseline = 'alphabetic';
    g.textAlign = 'center';
    const wanted = (this.#to - this.#from) / 1000 / Math.max(2, (width - this.#left) / 90);
    const step = (STEPS_S.find((s) => s >= wanted) ?? STEPS_S[STEPS_S.length - 1]) * 1000;
    const zone = new Date(this.#to).getTimezoneOffset() * 60000;  // full hours are full hours here
    for (let t = Math.ceil((this.#from - zone) / step) * step + zone; t <= this.#to; t += step) {
      if (x(t) > this.#left + 18 && x(t) < width - 22) g.fillText(clock(t, step < 60000), x(t), height - 5);
    }
  }

  // The legend, with the values at the cursor or the last ones, and the name for who cannot see the canvas.
  #describe(time) {
    const named = this.#named();
    const items = named.map((line, i) => this.legend.children[i] ??
        el('li', {}, el('i', {}), el('span', {class: 'label'}), el('span', {class: 'value'})));
    setChildren(this.legend, items);
    named.forEach((line, i) => {
      const value = time === null ? line.v[line.v.length - 1] : valueAt(line, time);
      items[i].dataset.colour = line.colour % COLOURS;
      setText(items[i].children[1], line.label);
      setText(items[i].children[2], this.format(value));
    });
    const ways = named.map(({label, v}) => `${label} ${this.format(v[0])} to ${this.format(v[v.length - 1])}`);
    const span = `${clock(this.#from)} to ${clock(this.#to)}`;
    const name = `${this.title}: ${this.now.textContent}, ${span}. ${ways.join(', ')}`;
    if (this.canvas.getAttribute('aria-label') !== name) this.canvas.setAttribute('aria-label', name);
  }

  close() {
    this.resized.disconnect();
    DARK.removeEventListener('change', this.recolour);
    cancelAnimationFrame(this.#frame);
  }
}

// The last value at or before `time`.
function valueAt({t, v}, time) {
  let low = 0, high = t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return v[low - 1];
}

// Numbers between low and high, at least `wanted` of them, that are round in units of a power of `base`.
export function ticks(low, high, wanted, base = 1000) {
  const unit = base ** Math.floor(Math.log(Math.max(1, Math.abs(low), Math.abs(high))) / Math.log(base));
  const rough = (high - low) / wanted / unit;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = unit * power * ([5, 2, 1].find((m) => m * power <= rough) ?? 1);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) found.push(i * step);
  return found;
}
