// The nodes of a run, what each does and whom it waits for; the load of its servers, and their hot keys.

import {byTask} from './charts.js';
import {el, isBad, isOver, setChildren, setState, setText, tableHead} from './dom.js';
import {bytes, bytesRate, count, milliseconds, number, percent} from './format.js';

const HEARTBEAT_LATE_MS = 10000;
const HOT_KEYS = 10;
const ROLES = ['scheduler', 'server', 'chief', 'worker', 'evaluator'];
const COLUMNS = {Node: '', State: '', Host: '', CPU: 'number', Memory: 'number', Sent: 'number', Received: 'number',
  Heartbeat: 'number', 'Waits for': '', Log: 'number'};

export class Nodes {
  #rows = new Map();

  // onlog(task): somebody wants to read its log.
  constructor(onlog) {
    this.onlog = onlog;
    this.body = el('tbody', {role: 'rowgroup'});
    this.element = el('section', {'aria-labelledby': 'nodes-title'},
        el('div', {class: 'bar'}, el('h2', {id: 'nodes-title'}, 'Nodes')),
        el('div', {class: 'card flush'}, el('table', {class: 'nodes', role: 'table', 'aria-labelledby': 'nodes-title'},
            tableHead(COLUMNS), this.body)));
  }

  // `status`: what each node last said of itself, by task.
  update(run, samples, status) {
    const tasks = [...run.tasks].sort((a, b) => rank(a, run) - rank(b, run) || byTask(a.task, b.task));
    setChildren(this.body, tasks.map((task) => {
      let row = this.#rows.get(task.task);
      if (!row) this.#rows.set(task.task, row = this.#makeRow(task.task));
      this.#fill(row, task, run, samples, status[task.task] ?? {});
      return row.element;
    }));
  }

  #makeRow(task) {
    const row = {pill: el('span', {class: 'pill'})};
    row.cells = Object.entries(COLUMNS).slice(2).map(([name, kind]) =>
        el('td', {role: 'cell', class: kind || null, 'data-label': name}));
    const open = el('button', {class: 'link', title: `Log of ${task}`, onclick: () => this.onlog(task)}, task);
    row.element = el('tr', {role: 'row'}, el('th', {role: 'rowheader', scope: 'row', class: 'name'}, open),
        el('td', {role: 'cell', class: 'state'}, row.pill), row.cells);
    return row;
  }

  #fill(row, task, run, samples, status) {
    const rate = (name) => bytesRate(samples.latest(name, task.task));
    const last = (name) => samples.latest(name, task.task) ?? task.sample?.[name];
    const age = last('heartbeat_age_ms');
    // What a node said last stays there when it has ended.
    const ended = isOver(task.state) || ['stopped', 'drained'].includes(task.state);
    const waits = ended ? '' : [status.waiting_for ?? []].flat().filter(Boolean).join(', ');
    const texts = [task.host || '–', percent(last('cpu_percent')), bytes(last('memory_bytes')), rate('sent_bytes'),
      rate('received_bytes'), milliseconds(age), waits || '–', bytes(task.log_bytes)];
    texts.forEach((text, i) => {
      setText(row.cells[i], text);
      row.cells[i].classList.toggle('none', text === '–');
    });
    row.cells[0].title = task.address ?? '';
    row.cells[5].classList.toggle('late', age > HEARTBEAT_LATE_MS);
    row.element.classList.toggle('cause', run.root_cause === task.task);
    setState(row.pill, task.state, task.code ? `${task.state} (${task.code})` : task.state);
  }
}

// Who caused a failure stands first, then who else failed, then by role.
function rank(task, run) {
  if (task.task === run.root_cause) return -2;
  if (isBad(task.state)) return -1;
  const role = ROLES.indexOf(task.role);
  return role < 0 ? ROLES.length : role;
}

// How evenly servers work, and which keys are asked for most.
export class Load {
  constructor() {
    this.servers = new BarTable('Load of servers',
        {Server: '', 'Requests/s': 'number', Keys: 'number', Share: 'share'});
    this.keys = new BarTable('Hot keys', {Key: '', Server: '', Requests: 'number', 'Of the hottest': 'share'});
    this.element = el('section', {class: 'load', hidden: true, 'aria-labelledby': 'load-title'},
        el('div', {class: 'bar'}, el('h2', {id: 'load-title'}, 'Load')),
        el('div', {class: 'pair'}, this.servers.element, this.keys.element));
  }

  update(run, samples, status) {
    const servers = run.tasks.filter(({role}) => role === 'server').map(({task}) => task).sort(byTask)
        .map((task) => ({task, requests: samples.latest('requests', task), keys: samples.latest('keys', task)}))
        .filter(({requests, keys}) => requests !== undefined || keys !== undefined);
    const total = servers.reduce((all, {requests}) => all + (requests ?? 0), 0) || 1;
    this.servers.show(servers.map(({task, requests, keys}) =>
        [task, number(requests), count(keys), (requests ?? 0) / total]));

    const hot = Object.entries(status)
        .flatMap(([task, node]) => hotKeys(node).map(([key, times]) => ({key, times, task})))
        .sort((a, b) => b.times - a.times).slice(0, HOT_KEYS);
    this.keys.show(hot.map(({key, times, task}) => [String(key), task, count(times), times / hot[0].times]));
    this.element.hidden = hot.length === 0 && servers.length === 0;
  }
}

function hotKeys(node) {
  return Array.isArray(node?.hot_keys) ? node.hot_keys.filter((pair) => Array.isArray(pair) && pair[1] > 0) : [];
}

// Rows of three texts and a part of one, which is a bar.
class BarTable {
  constructor(name, columns) {
    this.columns = Object.values(columns);
    this.body = el('tbody');
    this.element = el('div', {class: 'card flush'},
        el('table', {class: 'small', 'aria-label': name}, tableHead(columns), this.body));
  }

  show(rows) {
    this.element.hidden = rows.length === 0;
    while (this.body.rows.length > rows.length) this.body.lastChild.remove();
    rows.forEach((row, i) => {
      if (!this.body.rows[i]) this.body.append(this.#makeRow());
      const cells = this.body.rows[i].cells;
      row.slice(0, 3).forEach((text, k) => setText(cells[k], text));
      cells[3].querySelector('i').style.width = `${(100 * row[3]).toFixed(1)}%`;
      setText(cells[3].lastChild, percent(100 * row[3]));
    });
  }

  #makeRow() {
    return el('tr', {}, el('th', {scope: 'row'}), el('td', {class: this.columns[1] || null}),
        el('td', {class: 'number'}), el('td', {class: 'share'},
            el('div', {class: 'bar-back', 'aria-hidden': 'true'}, el('i', {})), el('span', {class: 'spoken'})));
  }
}
