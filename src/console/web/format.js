// Numbers and times for people. A figure that is not known is a dash, never a zero.

const NONE = '–';
const known = (value) => typeof value === 'number' && Number.isFinite(value);

// Four digits that matter: 0.4213, 1.234, 18.25, 12,400.
export function number(value) {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e6) return scaled(value, 1000, ['', 'k', 'M', 'G', 'T', 'P']);
  if (size >= 1000) return Math.round(value).toLocaleString('en-US');
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return value.toPrecision(4).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
}

export function count(value) {
  return known(value) ? Math.round(value).toLocaleString('en-US') : NONE;
}

function scaled(value, step, units) {
  let i = 0;
  while (Math.abs(value) >= step && i < units.length - 1) value /= step, ++i;
  const digits = i === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${step === 1024 ? '\u00a0' : ''}${units[i]}`;
}

export function bytes(value) {
  return known(value) ? scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']) : NONE;
}

export function bytesRate(value) {
  return known(value) ? `${bytes(value)}/s` : NONE;
}

export function percent(value) {
  return known(value) ? `${value < 9.95 ? value.toFixed(1) : Math.round(value)}\u00a0%` : NONE;
}

export function milliseconds(value) {
  if (!known(value)) return NONE;
  if (value >= 10000) return duration(value);
  return value >= 1000 ? `${(value / 1000).toFixed(1)}\u00a0s` : `${number(Number(value.toPrecision(3)))}\u00a0ms`;
}

export function usd(value) {
  return known(value) ? `$${value.toFixed(value < 1 ? 3 : 2)}` : NONE;
}

export function duration(ms) {
  if (!known(ms)) return NONE;
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}\u00a0s`;
  if (s < 3600) return `${Math.floor(s / 60)}\u00a0m ${s % 60}\u00a0s`;
  if (s < 86400) return `${Math.floor(s / 3600)}\u00a0h ${Math.floor(s / 60) % 60}\u00a0m`;
  return `${Math.floor(s / 86400)}\u00a0d ${Math.floor(s / 3600) % 24}\u00a0h`;
}

const two = (n) => String(n).padStart(2, '0');

export function clock(ms, seconds = true) {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}${seconds ? `:${two(date.getSeconds())}` : ''}`;
}

// Today's times as 14:03, older ones as 11-16 14:03, those of other years as 2025-11-16.
export function when(ms, now = Date.now()) {
  if (!known(ms) || ms <= 0) return NONE;
  const date = new Date(ms), today = new Date(now);
  const day = `${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  if (date.toDateString() === today.toDateString()) return clock(ms, false);
  return date.getFullYear() === today.getFullYear() ? `${day} ${clock(ms, false)}` : `${date.getFullYear()}-${day}`;
}
