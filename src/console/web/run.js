// The page of one run: what went wrong first, then figures, nodes, load and logs, all of it live.

import {get, getExact, getRange, path, post, stream} from './api.js';
import {Charts} from './charts.js';
import {announce, confirm, el, isBad, isOver, setChildren, setState, setText} from './dom.js';
import {duration, usd, when} from './format.js';
import {LogPane} from './log.js';
import {cut, logUrl} from './log_tail.js';
import {Load, Nodes} from './nodes.js';

const STATUS_MS = 3000;     // how often nodes are asked
const TICK_MS = 1000;       // of the clock in the head
const POINTS = 600;         // of each series when the page opens
const LAST_LINES = 12;      // of the log of who caused a failure

export function openRun(main, name, showConnection) {
  document.title = `${name} · pscloud`;
  const url = `api/runs/${path(name)}`;
  let run = null, status = {}, source = null, closed = false, causeShown = null, asked = false, timer = 0;

  const fact = (label) => {
    const value = el('dd', {});
    return {value, element: el('div', {}, el('dt', {}, label), value)};
  };
  const facts = {where: fact('Where'), framework: fact('Framework'), nodes: fact('Nodes'), since: fact('Started'),
    took: fact('Took'), cost: fact('Cost so far'), steps: fact('Each step')};
  const pill = el('span', {class: 'pill'});
  const stop = el('button', {class: 'danger', hidden: true, onclick: askToStop}, 'Stop');
  const clean = el('button', {hidden: true, onclick: askToClean}, 'Clean up');
  const problem = el('section', {class: 'card problem', hidden: true, 'aria-label': 'What went wrong'});
  const note = el('p', {class: 'card note', role: 'status', hidden: true});
  const charts = new Charts();
  const log = new LogPane(name, follow);
  const nodes = new Nodes(readLog);
  const load = new Load();
  main.replaceChildren(
      el('nav', {class: 'crumbs', 'aria-label': 'Back'}, el('a', {href: '#/'}, '‹ All runs')),
      el('div', {class: 'title'}, el('h1', {tabindex: '-1'}, name), pill,
          el('div', {class: 'actions right'}, stop, clean)),
      el('dl', {class: 'facts'}, Object.values(facts).map(({element}) => element)),
      problem, note, charts.element, nodes.element, load.element, log.element);

  function show(next) {
    run = next;
    setState(pill, run.state);
    const over = isOver(run.state);
    stop.hidden = over;
    stop.disabled = run.state === 'stopping';
    clean.hidden = !over;
    setText(facts.where.value, run.where || '–');
    setText(facts.framework.value, run.framework || '–');
    setText(facts.nodes.value, roles(run.tasks));
    setText(facts.since.value, when(run.since_unix_ms));
    facts.since.value.title = new Date(run.since_unix_ms).toLocaleString();
    facts.steps.element.hidden = !run.tensorboard;
    setText(facts.steps.value, run.tensorboard ? `tensorboard --logdir ${run.tensorboard}` : '');
    tick();
    showNote();
    showProblem();
    log.update(run.tasks.map((task) => task.task), over);
    showNodes();
  }

  function showNote() {
    const waits = isOver(run.state) ? '' : run.waiting_for;
    const text = waits ? `Waiting: ${waits}` : isBad(run.state) ? '' : run.message;
    note.hidden = !text;
    setText(note, text);
  }

  function tick() {
    if (!run) return;
    const end = run.ended_unix_ms || (isOver(run.state) ? NaN : Date.now());
    setText(facts.took.value, duration(end - run.since_unix_ms));
    const priced = typeof run.cost_usd === 'number';
    facts.cost.element.hidden = !priced && !run.cost_incomplete;
    const perHour = run.cost_usd_per_hour && !isOver(run.state) ? ` (${usd(run.cost_usd_per_hour)} an hour)` : '';
    const more = run.cost_incomplete ? 'more than ' : '';
    setText(facts.cost.value, priced ? `${more}${usd(run.cost_usd)}${perHour}` : 'unknown');
  }

  function showNodes() {
    nodes.update(run, charts.samples, status);
    load.update(run, charts.samples, status);
  }

  // The task that failed first, and its last words: everything else on the page may only be what followed from it.
  function showProblem() {
    problem.hidden = !isBad(run.state) && !run.root_cause;
    if (problem.hidden) return;
    const key = `${run.state} ${run.root_cause} ${run.message}`;
    if (key === causeShown) return;
    causeShown = key;
    const cause = run.tasks.find((task) => task.task === run.root_cause);
    const ended = typeof cause?.code === 'number' ? `, exit code ${cause.code}${signal(cause.code)}` : '';
    const lines = el('pre', {hidden: true, tabindex: '0', 'aria-label': `Last lines of ${run.root_cause}`});
    setChildren(problem, [
        el('h2', {}, cause ? `${cause.task} failed first` : `This run ${ENDS[run.state] ?? 'failed'}`),
        el('p', {}, run.message || 'No reason was given.'),
        cause && el('p', {class: 'dim'}, `${cause.host || 'host not known'}${ended} `,
            el('button', {class: 'link', onclick: () => readLog(cause.task)}, 'Read its log')),
        lines]);
    if (!cause) return;
    getRange(logUrl(name, cause.task), 'bytes=-8192').then((piece) => {
      const last = cut(piece, false, true).lines.slice(-LAST_LINES);
      lines.hidden = last.length === 0;
      setText(lines, last.join('\n'));
    }).catch(() => {});  // its log may be gone; the message stands
  }

  function readLog(task) {
    log.choose(task);
    log.element.scrollIntoView();
    log.view.lines.focus();
  }

  async function act(verb, done) {
    try {
      await post(`${url}/${verb}`);
      announce(done);
    } catch (error) {
      problem.hidden = false;
      problem.replaceChildren(el('h2', {}, `${verb} was refused`), el('p', {role: 'alert'}, error.message));
      causeShown = null;
    }
  }

  async function askToStop() {
    const yes = await confirm({title: `Stop ${name}?`, yes: 'Stop the run',
      text: `${roles(run.tasks)} on ${run.where} are told to end. Logs and what was saved stay.`});
    if (!yes) return;
    stop.disabled = true;
    await act('stop', `${name} is being stopped`);
    stop.disabled = false;
  }

  async function askToClean() {
    const yes = await confirm({title: `Clean up after ${name}?`, yes: 'Clean up',
      text: `Removes what the run may have left on ${run.where}: processes, containers, jobs in queues. ` +
          `The same as: pscloud down ${name}`});
    if (yes) await act('cleanup', `What ${name} left is being removed`);
  }

  // One stream for all of it; another log is another stream.
  function follow() {
    source?.close();
    source = stream(`${url}/stream?logs=${encodeURIComponent(log.wanted)}&from=end`, {
      open() {
        showConnection(true);
        log.join();
        loadSamples();
      },
      down() {
        if (run && isOver(run.state)) return;
        showConnection(false);
      },
      state: show,
      lines: (event) => log.take(event),
      samples: ({rows}) => charts.add(rows),
      end() {
        source.close();
        showConnection(null, 'ended');
      },
    });
  }

  async function loadSamples() {
    try {
      const {rows} = await get(`${url}/samples?after_unix_ms=${charts.samples.last}&max=${POINTS}`);
      if (!closed) charts.add(rows);
    } catch {}  // the stream goes on; a run of long ago may have none
  }

  async function askNodes() {
    if (closed) return;
    try {
      if (!document.hidden && (!run || !isOver(run.state) || !asked)) status = await getExact(`${url}/nodes`);
      asked = true;
      if (run && !closed) showNodes();
    } catch {}  // older runs have told nothing
    if (!closed) timer = setTimeout(askNodes, STATUS_MS);
  }

  async function begin() {
    try {
      show(await get(url));
    } catch (error) {
      if (closed || error.status === 401) return;
      if (error.status === undefined) throw error;
      main.replaceChildren(el('div', {class: 'card empty'}, el('h1', {tabindex: '-1'}, name),
          el('p', {role: 'alert'}, error.message), el('p', {}, el('a', {href: '#/'}, 'All runs'))));
      return;
    }
    if (closed) return;
    log.choose('all');
    askNodes();
  }
  begin();
  const clockTimer = setInterval(tick, TICK_MS);
  return {
    close() {
      closed = true;
      clearInterval(clockTimer);
      clearTimeout(timer);
      source?.close();
      charts.close();
      log.close();
    },
  };
}

// "1 scheduler, 2 servers, 4 workers"
function roles(tasks) {
  const counts = new Map();
  for (const {role} of tasks) counts.set(role, (counts.get(role) ?? 0) + 1);
  return [...counts].map(([role, n]) => `${n} ${role}${n === 1 ? '' : 's'}`).join(', ') || 'no nodes';
}

const ENDS = {lost: 'was lost', missing: 'never got all its nodes'};
const SIGNALS = {130: 'interrupted', 134: 'aborted', 137: 'killed, perhaps for want of memory',
  139: 'segmentation fault', 143: 'terminated'};
const signal = (code) => (SIGNALS[code] ? ` (${SIGNALS[code]})` : '');
