// Where a file's end and the stream that follows it meet: each line is shown once, though both may have it.

import {getRange, path} from './api.js';

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const NEWLINE = 10;

export const logUrl = (run, task) => `api/runs/${path(run)}/logs/${path(task)}`;

// Whole lines of a piece of a file: {lines, offsets, end}, offsets of their first bytes. `whole`: it begins with one;
// `finished`: what has no end of line is one too.
export function cut({bytes, begin}, whole, finished) {
  const first = whole || begin === 0 ? 0 : bytes.indexOf(NEWLINE) + 1;
  const last = finished ? bytes.length : bytes.lastIndexOf(NEWLINE) + 1;
  const lines = [], offsets = [];
  for (let at = first; at < last;) {
    const found = bytes.indexOf(NEWLINE, at);
    const end = found < 0 ? last : found;
    lines.push(decoder.decode(bytes.subarray(at, end)));
    offsets.push(begin + at);
    at = end + 1;
  }
  return {lines, offsets, end: begin + Math.max(first, last)};
}

export class LogTails {
  #ends = new Map();   // task -> bytes that were taken in
  #joins = new Set();  // tasks of whom the next event may hold lines that the tail had

  constructor(run) {
    this.run = run;
  }

  // {lines, end}: the last lines of a log, at most `size` bytes; after a break of the connection only what is new. They
  // count as seen once take() is told so: until then another attempt gives them again.
  async read(task, size, finished, signal) {
    const known = this.#ends.get(task) ?? 0;
    const piece = await getRange(logUrl(this.run, task), `bytes=-${size}`, signal);
    const skip = Math.max(0, known - piece.begin);
    const part = {bytes: piece.bytes.subarray(skip), begin: piece.begin + skip};
    const {lines, end} = cut(part, part.begin === known, finished);
    if (known && part.begin > known) lines.unshift(`… ${part.begin - known} bytes left out …`);
    return {lines, end: Math.max(end, known)};
  }

  take(task, end) {
    this.#ends.set(task, end);
    this.#joins.add(task);
  }

  // Those lines of an event that are new.
  unseen({task, offset, lines}) {
    const known = this.#ends.get(task) ?? 0;
    if (offset <= known) return [];
    this.#ends.set(task, offset);
    if (!this.#joins.delete(task)) return lines;
    // Counted from the end, whose place is known. Bytes that are no UTF-8 may make this wrong by a line, once.
    let first = lines.length;
    for (let at = offset; first > 0 && at > known;) at -= encoder.encode(lines[--first]).length + 1;
    return lines.slice(first);
  }

  forget() {
    this.#ends.clear();
    this.#joins.clear();
  }
}

// Lines of several logs in the order of the times that they begin with; a line without one stays behind the one before.
export function merge(logs) {
  const lines = [];
  for (const [task, {lines: texts}] of logs) {
    let time = '';
    for (const text of texts) {
      time = /^\[?(?:\d{4}-\d\d-\d\d[T ])?(\d\d:\d\d:\d\d(?:[.,]\d+)?)/.exec(text)?.[1] ?? time;
      lines.push({task, text, time});
    }
  }
  return lines.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
}
