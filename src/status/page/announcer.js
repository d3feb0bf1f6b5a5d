import { byId } from './elements.js';
import { number } from './format.js';

/** Minimum interval between announcements to screen readers. */
const EVERY_MS = 15_000;

let told_ms = Number.NEGATIVE_INFINITY;

function announce(text) {
  const announcer = byId('announcer');
  if (announcer.textContent !== text) announcer.textContent = text;
}

/** Announces at once, for the effect of an action or something urgent. */
export function announceNow(text) {
  told_ms = performance.now();
  announce(text);
}

export function announceStatus({ runs, status }) {
  if (performance.now() - told_ms < EVERY_MS) return;
  told_ms = performance.now();
  const { failed = 0 } = runs.ended;
  const draining = status === 'draining' ? ' The replica is draining.' : '';
  announce(
    `${number(runs.live)} live runs, ${number(runs.recovering)} recovering, ${number(failed)} failed so far.${draining}`,
  );
}
