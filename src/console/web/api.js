// Talks to the server that gave us this page, and to nobody else.

const KEY = 'pscloud-token';
const SILENCE_MS = 25000;  // a stream says at least ": alive" every 3 s
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// `pscloud console` prints an address that ends in #token=... . The token moves from there to this tab's memory at
// once, so that it does not stay in the history or get sent along with a link that somebody copies.
export function takeToken() {
  const place = new URL(location.href);
  const found = /(?:^#|&)token=([^&]+)/.exec(place.hash)?.[1] ?? place.searchParams.get('token');
  if (!found) return;
  setToken(decodeURIComponent(found));
  history.replaceState(null, '', place.pathname);
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token);
}

const token = () => sessionStorage.getItem(KEY) ?? '';
// Of a run or task; names are never trusted to be harmless in a path.
export const path = (...parts) => parts.map(encodeURIComponent).join('/');
// For links, which cannot send a header.
export const withToken = (url) => `${url}${url.includes('?') ? '&' : '?'}token=${encodeURIComponent(token())}`;

async function request(url, options = {}) {
  const headers = {...options.headers, Authorization: `Bearer ${token()}`};
  let reply;
  try {
    reply = await fetch(url, {...options, headers, cache: 'no-store', credentials: 'omit', redirect: 'error'});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'the console does not answer');
  }
  if (reply.ok) return reply;
  const text = await reply.text().catch(() => '');
  let message = text.slice(0, 300);
  try {
    message = JSON.parse(text).error ?? message;
  } catch {}  // no JSON: as it is
  if (reply.status === 401) window.dispatchEvent(new Event('pscloud-unauthorized'));
  throw new ApiError(reply.status, message || `status ${reply.status}`);
}

// Keys have 64 bits, numbers of JavaScript 53: what does not fit stays the text that it was.
function exact(_, value, context) {
  const wide = typeof value === 'number' && !Number.isSafeInteger(value) && Number.isInteger(value);
  return wide && /^-?\d+$/.test(context?.source ?? '') ? context.source : value;
}

export async function get(url) {
  return (await request(url)).json();
}
export async function getExact(url) {
  return JSON.parse(await (await request(url)).text(), exact);
}

export async function post(url) {
  return request(url, {method: 'POST', headers: {'X-Pscloud': '1'}});
}

// A part of a file: {bytes, begin, end}; "bytes=-4096" is its end. Nothing there is no error.
export async function getRange(url, range, signal) {
  let reply;
  try {
    reply = await request(url, {headers: {Range: range}, signal});
  } catch (error) {
    if (error.status === 416 || error.status === 404) return {bytes: new Uint8Array(), begin: 0, end: 0};
    throw error;
  }
  const bytes = new Uint8Array(await reply.arrayBuffer());
  const begin = Number(/bytes (\d+)-/.exec(reply.headers.get('Content-Range') ?? '')?.[1] ?? 0);
  return {bytes, begin, end: begin + bytes.length};
}

// Follows an event stream until close(), through breaks of the connection. handlers: open(again), down(), NAME(data).
// Read by fetch, not by EventSource, which could only send the token where logs of servers keep it: in the address.
export function stream(url, handlers) {
  let attempt = 0, opened = 0, closed = false, controller = null;

  async function follow() {
    controller = new AbortController();
    let alarm = 0;
    const expect = () => {
      clearTimeout(alarm);
      alarm = setTimeout(() => controller.abort(), SILENCE_MS);
    };
    try {
      expect();
      const reply = await request(url, {headers: {Accept: 'text/event-stream'}, signal: controller.signal});
      attempt = 0;
      handlers.open(opened++ > 0);
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      const take = eventParser((name, data) => handlers[name]?.(JSON.parse(data)));
      for (let part = await reader.read(); !part.done && !closed; part = await reader.read()) {
        expect();
        take(part.value);
      }
    } catch (error) {
      if ([401, 403, 404].includes(error.status)) closed = true;  // asking again does not help
      else if (!isBreak(error)) throw error;
    } finally {
      clearTimeout(alarm);
      if (!closed) {
        handlers.down();
        setTimeout(() => closed || follow(), RETRY_MS[Math.min(attempt++, RETRY_MS.length - 1)]);
      }
    }
  }
  follow();
  return {
    close() {
      closed = true;
      controller?.abort();
    },
  };
}

// The connection's fault, or our own close().
const isBreak = (error) => error.name === 'AbortError' || error instanceof ApiError || error instanceof TypeError;

// Text of an event stream, in any pieces -> give(name, data).
export function eventParser(give) {
  let rest = '', name = 'message', data = [];
  return (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') {
        if (data.length) give(name, data.join('\n'));
        name = 'message', data = [];
      } else if (line.startsWith('event:')) name = line.slice(6).trim();
      else if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
  };
}
