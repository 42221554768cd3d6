// The figures of a run, as series by name and task, and as lines for charts. Memory is bounded: a series that gets too
// long loses every second point of its older half.

const POINTS_MAX = 1200;
const SERIES_MAX = 5000;
const COUNTERS = new Set(['sent_bytes', 'received_bytes', 'push_bytes', 'pull_bytes', 'requests']);

export class Samples {
  #count = 0;
  #series = new Map();  // name -> task -> {t: [], v: []}, times increasing
  last = 0;             // unix ms of the newest

  get names() {
    return [...this.#series.keys()];
  }

  // Rows [unix_ms, task, name, value] in any order; those that are there already count once.
  add(rows) {
    const late = new Set();
    for (const [t, task, name, value] of rows) {
      if (typeof t !== 'number' || typeof value !== 'number' || !Number.isFinite(value)) continue;
      const series = this.#of(String(name), String(task));
      if (!series) continue;
      const end = series.t.length ? series.t[series.t.length - 1] : -Infinity;
      if (t === end) continue;
      if (t < end) late.add(series);
      series.t.push(t);
      series.v.push(value);
      this.last = Math.max(this.last, t);
      if (series.t.length > POINTS_MAX && !late.has(series)) thin(series);
    }
    for (const series of late) sort(series);
  }

  #of(name, task) {
    const known = this.#series.get(name)?.get(task);
    if (known || this.#count === SERIES_MAX) return known;
    if (!this.#series.has(name)) this.#series.set(name, new Map());
    const series = {t: [], v: []};
    this.#series.get(name).set(task, series);
    this.#count++;
    return series;
  }

  tasks(name) {
    return [...(this.#series.get(name)?.keys() ?? [])];
  }

  // What a chart shows of a series: its values, or for a counter how fast it grows, per second.
  series(name, task) {
    const series = this.#series.get(name)?.get(task);
    if (!series) return {t: [], v: []};
    return COUNTERS.has(name) ? rates(series) : series;
  }

  latest(name, task) {
    const series = this.#series.get(name)?.get(task);
    if (!series) return undefined;
    if (!COUNTERS.has(name)) return series.v[series.v.length - 1];
    return rates({t: series.t.slice(-2), v: series.v.slice(-2)}).v[0];
  }

  // One line out of those of all tasks, at `steps` times between `from` and `to`: combine(values) of those that have a
  // value then, a mean of what a task told since the time before. Tasks tell theirs at different times: each value
  // holds until the next, or for a few usual distances.
  combined(name, from, to, steps, combine) {
    const all = this.tasks(name).map((task) => this.series(name, task)).filter((series) => series.t.length);
    const line = {t: [], v: []};
    const at = all.map(() => 0);
    const holds = all.map(({t}) => Math.max(6000, 3 * (t[t.length - 1] - t[0]) / Math.max(1, t.length - 1)));
    for (let i = 0; i <= steps; ++i) {
      const time = from + (to - from) * i / steps;
      const values = [];
      all.forEach(({t, v}, k) => {
        let sum = 0, told = 0;
        for (; at[k] < t.length && t[at[k]] <= time; ++at[k]) sum += v[at[k]], ++told;
        const last = at[k] - 1;
        if (told && i > 0) values.push(sum / told);
        else if (last >= 0 && time - t[last] <= holds[k]) values.push(v[last]);
      });
      if (!values.length) continue;
      line.t.push(time);
      line.v.push(combine(values));
    }
    return line;
  }

  // From the first figure to the last one, of what was told.
  span() {
    let first = Infinity;
    for (const tasks of this.#series.values()) {
      for (const {t} of tasks.values()) first = Math.min(first, t[0] ?? Infinity);
    }
    return [Math.min(first, this.last), this.last];
  }
}

function rates({t, v}) {
  const out = {t: [], v: []};
  for (let i = 1; i < t.length; ++i) {
    if (v[i] < v[i - 1]) continue;  // the task has begun anew
    out.t.push(t[i]);
    out.v.push((v[i] - v[i - 1]) / (t[i] - t[i - 1]) * 1000);
  }
  return out;
}

function thin(series) {
  const half = series.t.length >> 1;
  const keep = (_, i) => i >= half || i % 2 === 0;
  series.t = series.t.filter(keep);
  series.v = series.v.filter(keep);
}

function sort(series) {
  const order = series.t.map((_, i) => i).sort((a, b) => series.t[a] - series.t[b]);
  const unique = order.filter((at, i) => i === 0 || series.t[at] !== series.t[order[i - 1]]);
  [series.t, series.v] = [unique.map((i) => series.t[i]), unique.map((i) => series.v[i])];
  while (series.t.length > POINTS_MAX) thin(series);
}
