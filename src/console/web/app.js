// Which view is shown, and what stands around it. The address after # says it: #/ or #/run/NAME.

import {get, setToken, takeToken} from './api.js';
import {el, setText} from './dom.js';
import {openRun} from './run.js';
import {openRuns} from './runs.js';

const main = document.getElementById('main');
const connection = document.getElementById('connection');
let view = null;

// live: true, false, or null where nothing is followed.
function showConnection(live, text) {
  setText(connection, text ?? (live ? 'live' : live === false ? 'connection lost, trying again' : ''));
  connection.dataset.live = String(live);
}

function route() {
  const [kind, name] = location.hash.replace(/^#\/?/, '').split('/').map(decoded);
  view?.close();
  showConnection(null);
  view = kind === 'run' && name ? openRun(main, name, showConnection) : openRuns(main, showConnection);
  window.scrollTo(0, 0);
  main.querySelector('h1')?.focus();
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;  // no such address is ours, but somebody may type one
  }
}

function askForToken() {
  if (main.querySelector('#token')) return;
  view?.close();
  view = null;
  showConnection(null);
  const input = el('input', {id: 'token', type: 'password', autocomplete: 'off', required: true});
  const enter = (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    start();
  };
  main.replaceChildren(el('form', {class: 'card token', onsubmit: enter},
      el('h1', {tabindex: '-1'}, 'This console needs its token'),
      el('p', {}, 'The command that started it printed an address with the token in it. Open that, or enter the token ',
          'here. It is kept in this tab only.'),
      el('p', {}, el('label', {for: 'token'}, 'Token '), input, ' ', el('button', {class: 'primary'}, 'Open'))));
  input.focus();
}

async function start() {
  route();
  try {
    const about = await get('api/about');
    const kind = about.controller ? 'controller, ' : '';
    setText(document.getElementById('about'), `${kind}${about.user}@${about.host}, ${about.version}`);
  } catch {}  // the view says what is wrong
}

window.addEventListener('hashchange', () => {
  takeToken();
  route();
});
window.addEventListener('pscloud-unauthorized', askForToken);
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  (main.querySelector('h1') ?? main).focus();
});
document.addEventListener('keydown', (event) => {
  // "/" goes to the search, as in many programs.
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches('input, select, textarea') || document.querySelector('dialog[open]')) return;
  const search = main.querySelector('input[type=search]');
  if (search) event.preventDefault(), search.focus();
});

takeToken();
start();
