const NUMBER = new Intl.NumberFormat('en');

export const number = (value) => NUMBER.format(value);

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const padded = (value) => String(Math.floor(value)).padStart(2, '0');

/** For example, `340 ms`, `4.2 s`, `3:07`, `2 h 05 min`, `3 d 04 h`. */
export function duration(value_ms) {
  const ms = Math.max(0, value_ms);
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)}:${padded((ms % MINUTE) / SECOND)}`;
  if (ms < DAY) return `${Math.floor(ms / HOUR)} h ${padded((ms % HOUR) / MINUTE)} min`;
  return `${Math.floor(ms / DAY)} d ${padded((ms % DAY) / HOUR)} h`;
}

/** Whole seconds, so that a column of ages doesn't flicker. */
export const age = (value_ms) =>
  value_ms < MINUTE ? `${Math.max(0, Math.floor(value_ms / SECOND))} s` : duration(value_ms);

/** `connection_reset` as words. */
export const words = (name) => name.replaceAll('_', ' ');

export const shortRun = (run) => `${run.slice(0, 12)}…`;
