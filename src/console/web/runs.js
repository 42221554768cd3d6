// The list of runs: the newest first, thousands of older ones behind them, searched here and not on the server.

import {get} from './api.js';
import {announce, el, isBad, isOver, setChildren, setState, setText, tableHead} from './dom.js';
import {count, duration, usd, when} from './format.js';

const REFRESH_MS = 2000;
const FIRST = 100;    // so that something is there at once
const CHUNK = 1000;   // the rest
const STEP = 100;     // rows shown; more on demand

const FILTERS = {
  all: () => true,
  open: (run) => !isOver(run.state),
  failed: (run) => isBad(run.state),
  done: (run) => run.state === 'done',
};
const COLUMNS = {Run: '', State: '', Where: '', Nodes: 'number', Started: 'number', Took: 'number', Cost: 'number',
  'Waiting for': ''};

export function openRuns(main, showConnection) {
  document.title = 'Runs · pscloud';
  let runs = new Map();  // by name, the newest first
  let complete = false, failed = '', shown = STEP, filter = 'all', timer = 0, closed = false;
  const rows = new Map();

  const search = el('input', {id: 'search', type: 'search', placeholder: 'name, place or state',
    oninput: () => again()});
  const radio = (name) => el('input', {type: 'radio', name: 'filter', value: name, checked: name === filter,
    onchange: () => again(name)});
  const radios = Object.keys(FILTERS).map((name) => el('label', {class: 'choice'}, radio(name), name));
  const summary = el('p', {class: 'dim summary', role: 'status'});
  const body = el('tbody', {role: 'rowgroup'});
  const more = el('button', {class: 'more', hidden: true, onclick: () => {
    shown += STEP;
    render();
  }});
  const table = el('table', {class: 'runs', role: 'table', 'aria-label': 'Runs'}, tableHead(COLUMNS), body);
  const empty = el('div', {class: 'empty', hidden: true});
  main.replaceChildren(
      el('div', {class: 'title'}, el('h1', {tabindex: '-1'}, 'Runs'),
          el('form', {class: 'filters', role: 'search', onsubmit: (event) => event.preventDefault()},
              el('fieldset', {class: 'choices'}, el('legend', {class: 'spoken'}, 'State'), radios),
              el('label', {for: 'search', class: 'spoken'}, 'Search runs'), search)),
      summary, el('div', {class: 'card flush'}, table, empty), more);

  function again(name = filter) {
    filter = name;
    shown = STEP;
    announce(`${count(render())} runs`);
  }

  function makeRow(run) {
    const cell = (kind) => el('td', {role: 'cell', class: kind});
    const row = {pill: el('span', {class: 'pill'}), where: cell('where'), nodes: cell('count number'),
      since: cell('number'), took: cell('number'), cost: cell('number'), waits: cell('waits')};
    const link = el('a', {href: `#/run/${encodeURIComponent(run.name)}`}, run.name);
    row.element = el('tr', {role: 'row'}, el('th', {role: 'rowheader', scope: 'row', class: 'name'}, link),
        el('td', {role: 'cell', class: 'state'}, row.pill), row.where, row.nodes, row.since, row.took, row.cost,
        row.waits);
    return row;
  }

  function fill(row, run, now) {
    setState(row.pill, run.state);
    setText(row.where, run.where);
    setText(row.nodes, count(run.nodes));
    setText(row.since, when(run.since_unix_ms, now));
    row.since.title = new Date(run.since_unix_ms).toLocaleString();
    setText(row.took, duration((run.ended_unix_ms || (isOver(run.state) ? NaN : now)) - run.since_unix_ms));
    const priced = run.cost_usd !== null && run.cost_usd !== undefined;
    const more = run.cost_incomplete ? '> ' : '';
    setText(row.cost, priced ? `${more}${usd(run.cost_usd)}` : run.cost_incomplete ? 'unknown' : '');
    setText(row.waits, run.waiting_for ?? '');
  }

  // What is wanted, of all that is known; the number of runs that match.
  function render() {
    const now = Date.now();
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = [...runs.values()].filter((run) => FILTERS[filter](run) &&
        words.every((word) => `${run.name} ${run.where} ${run.state}`.toLowerCase().includes(word)));
    const wanted = matches.slice(0, shown).map((run) => {
      if (!rows.has(run.name)) rows.set(run.name, makeRow(run));
      fill(rows.get(run.name), run, now);
      return rows.get(run.name).element;
    });
    setChildren(body, wanted);
    const open = [...runs.values()].filter(FILTERS.open).length;
    setText(summary, failed || `${count(runs.size)} runs${complete ? '' : ' so far'}, ${open} open` +
        (matches.length < runs.size ? `; ${count(matches.length)} match` : ''));
    more.hidden = matches.length <= shown;
    setText(more, `Show ${Math.min(STEP, matches.length - shown)} more of ${count(matches.length - shown)}`);
    table.hidden = wanted.length === 0;
    empty.hidden = wanted.length > 0 || !complete;
    if (!empty.hidden && !empty.firstChild) {
      empty.append(el('p', {}, runs.size ? 'No run matches.' : 'No runs yet.'));
      if (!runs.size) empty.append(el('p', {}, 'Start one: ', el('code', {}, 'pscloud run --workers 2 -- my-program')));
    } else if (empty.hidden) empty.replaceChildren();
    if (rows.size > 5 * shown) rows.clear();  // rows of old searches; those still wanted are made again
    return matches.length;
  }

  async function loadAll() {
    const found = new Map();
    let next = null;
    do {
      const before = next === null ? '' : `&before=${encodeURIComponent(next)}`;
      const page = await get(`api/runs?state=all&limit=${next === null ? FIRST : CHUNK}${before}`);
      if (closed) return;
      for (const run of page.runs) found.set(run.name, run);
      if (!complete) runs = found, render();
      next = page.next;
    } while (next !== null && next !== undefined);
    runs = found;
    complete = true;
  }

  // The newest, and the open ones however old they are; all again when some are gone.
  async function refresh() {
    const page = await get(`api/runs?state=all&limit=${FIRST}`);
    const changed = page.runs.filter((run) => run.name);
    const names = new Set(changed.map((run) => run.name));
    if ([...runs.values()].some((run) => FILTERS.open(run) && !names.has(run.name))) {
      changed.push(...(await get(`api/runs?state=open&limit=${CHUNK}`)).runs.filter((run) => !names.has(run.name)));
    }
    const fresh = new Map(changed.filter((run) => !runs.has(run.name)).map((run) => [run.name, run]));
    for (const run of changed) if (runs.has(run.name)) runs.set(run.name, run);
    if (fresh.size) runs = new Map([...fresh, ...runs]);
    const seen = new Set(changed.map((run) => run.name));
    const unheard = [...runs.values()].some((run) => FILTERS.open(run) && !seen.has(run.name));
    if (unheard || runs.size !== page.total) await loadAll();
  }

  async function turn() {
    try {
      if (!document.hidden) await (complete ? refresh() : loadAll());
      failed = '';
    } catch (error) {
      if (error.status === undefined) throw error;
      failed = `The list could not be read: ${error.message}`;
    }
    if (closed) return;
    showConnection(failed ? false : null);
    render();
    timer = setTimeout(turn, REFRESH_MS);
  }
  turn();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}
