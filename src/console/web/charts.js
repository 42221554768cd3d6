// Which charts a run has: those we know, in the order in which a person asks, then whatever else its program tells.

import {Chart, Cursor} from './chart.js';
import {el, setChildren} from './dom.js';
import {bytes, bytesRate, count, milliseconds, number, percent} from './format.js';
import {Samples} from './samples.js';

const STEPS_MAX = 240;  // points of a combined line
const STEP_MS = 2000;   // it needs none between samples
const EACH_MAX = 5;     // so many tasks have a line of their own; more are shown faintly behind their mean
const OTHERS_MAX = 30;  // charts of figures that only the program knows
const DRAW_MS = 500;    // charts are drawn at most so often

const sum = (values) => values.reduce((a, b) => a + b, 0);
const mean = (values) => sum(values) / values.length;
const most = (values) => Math.max(...values);
const perSecond = (value) => `${number(value)}/s`;

// names: the figures; labels: where several share a chart; combine: makes one line of all tasks, for each name; each:
// tasks have lines of their own.
const KNOWN = [
  {title: 'Loss', names: ['loss'], combine: [mean], each: true, format: number},
  {title: 'AUC', names: ['auc'], combine: [mean], each: true, format: number},
  {title: 'Examples', names: ['examples_per_s'], labels: ['all workers'], combine: [sum], format: perSecond,
    zero: true},
  {title: 'Push latency', names: ['push_ms_p50', 'push_ms_p99'], labels: ['median', 'worst p99'], combine: [mean, most],
    format: milliseconds, zero: true},
  {title: 'Pull latency', names: ['pull_ms_p50', 'pull_ms_p99'], labels: ['median', 'worst p99'], combine: [mean, most],
    format: milliseconds, zero: true},
  {title: 'Push, pull', names: ['push_bytes', 'pull_bytes'], labels: ['pushed', 'pulled'], combine: [sum, sum],
    format: bytesRate, zero: true, base: 1024},
  {title: 'Staleness', names: ['staleness', 'staleness_max'], labels: ['mean', 'worst'], combine: [mean, most],
    format: number, zero: true},
  {title: 'Requests by server', names: ['requests'], combine: [sum], each: true, format: perSecond, zero: true},
  {title: 'Keys', names: ['keys'], labels: ['all servers'], combine: [sum], format: count, zero: true},
  {title: 'CPU', names: ['cpu_percent'], combine: [sum], each: true, format: percent, zero: true},
  {title: 'Memory', names: ['memory_bytes'], labels: ['all nodes'], combine: [sum], format: bytes, zero: true,
    base: 1024},
  {title: 'Network', names: ['sent_bytes', 'received_bytes'], labels: ['sent', 'received'], combine: [sum, sum],
    format: bytesRate, zero: true, base: 1024},
];
const WORD = new Map([[mean, 'mean'], [sum, 'sum'], [most, 'worst']]);
const SHOWN_ELSEWHERE = new Set(['heartbeat_age_ms']);  // in the table of nodes
const SPANS = {'whole run': Infinity, 'last 30 min': 30 * 60000, 'last 5 min': 5 * 60000, 'last minute': 60000};

export class Charts {
  samples = new Samples();
  #charts = new Map();  // title -> Chart
  #cursor = new Cursor();
  #span = Infinity;
  #timer = 0;

  constructor() {
    const choose = (event) => {
      this.#span = SPANS[event.target.value];
      this.#draw();
    };
    this.grid = el('div', {class: 'charts'});
    this.empty = el('p', {class: 'empty card'}, 'No figures yet.');
    this.element = el('section', {'aria-labelledby': 'charts-title'},
        el('div', {class: 'bar'}, el('h2', {id: 'charts-title'}, 'Figures'),
            el('label', {class: 'right'}, el('span', {class: 'spoken'}, 'Time shown '),
                el('select', {onchange: choose}, Object.keys(SPANS).map((name) => el('option', {}, name))))),
        this.empty, this.grid);
  }

  add(rows) {
    this.samples.add(rows);
    this.#timer ||= setTimeout(() => {
      this.#timer = 0;
      this.#draw();
    }, DRAW_MS);
  }

  #specs() {
    const known = new Set(KNOWN.flatMap((spec) => spec.names));
    const others = this.samples.names.filter((name) => !known.has(name) && !SHOWN_ELSEWHERE.has(name)).sort()
        .slice(0, OTHERS_MAX)
        .map((name) => ({title: name, names: [name], combine: [mean], each: true, format: number}));
    return [...KNOWN, ...others].filter((spec) => spec.names.some((name) => this.samples.tasks(name).length));
  }

  #lines(spec, from, to) {
    const steps = Math.min(STEPS_MAX, Math.max(1, Math.round((to - from) / STEP_MS)));
    if (spec.each) {
      const [name] = spec.names;
      const tasks = this.samples.tasks(name).sort(byTask);
      const each = tasks.map((task, i) => ({label: task, colour: i, ...this.samples.series(name, task)}));
      if (tasks.length <= EACH_MAX) return each;
      return [...each.map((line) => ({...line, colour: 0, faint: true})),
        {label: `${WORD.get(spec.combine[0])} of ${tasks.length}`, colour: 0,
          ...this.samples.combined(name, from, to, steps, spec.combine[0])}];
    }
    return spec.names.map((name, i) => ({label: spec.labels?.[i] ?? name, colour: i,
      ...this.samples.combined(name, from, to, steps, spec.combine[i])}));
  }

  #draw() {
    const [first, last] = this.samples.span();
    const from = Math.max(first, last - this.#span);
    const specs = this.#specs();
    setChildren(this.grid, specs.map((spec) => {
      let chart = this.#charts.get(spec.title);
      if (!chart) this.#charts.set(spec.title, chart = new Chart({...spec, cursor: this.#cursor}));
      const lines = this.#lines(spec, from, last);
      const latest = spec.each ? [this.#latest(spec, last)] : lines.map(({v}) => v[v.length - 1]);
      chart.show(lines, from, last, latest.filter(Number.isFinite).map(spec.format).join(' · '));
      return chart.element;
    }));
    this.empty.hidden = specs.length > 0;
  }

  // Of those tasks that still tell it; where none does, of all that did.
  #latest({names: [name], combine: [combine]}, last) {
    const now = this.samples.combined(name, last, last, 1, combine).v[0];
    if (now !== undefined) return now;
    const values = this.samples.tasks(name).map((task) => this.samples.latest(name, task)).filter(Number.isFinite);
    return values.length ? combine(values) : undefined;
  }

  close() {
    clearTimeout(this.#timer);
    for (const chart of this.#charts.values()) chart.close();
  }
}

// worker-2 before worker-10.
export function byTask(a, b) {
  return a.localeCompare(b, 'en', {numeric: true});
}
