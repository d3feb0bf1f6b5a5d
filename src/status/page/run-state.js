import { words } from './format.js';
import { outcomeTone, stateTone } from './tones.js';

/**
 * A run's state at a glance: `label`, its `tone`, and `after`, its interruptions. A run that answers again after an
 * interruption is `rescued`, to distinguish it from one without trouble.
 */
export function shownState({ state, outcome, interruptions, recoveries, cause }) {
  const others = interruptions > 1 ? ` + ${interruptions - 1} more` : '';
  const after = interruptions > 0 && cause ? `after ${words(cause)}${others}` : '';
  if (outcome) return { label: words(outcome), tone: outcomeTone(outcome), after };
  if (state === 'asking' && interruptions > 0) return { label: 'recovering', tone: 'warn', after };
  const isRescued = recoveries > 0 && (state === 'answering' || state === 'finishing');
  return isRescued
    ? { label: 'rescued', tone: 'rescued', after }
    : { label: state, tone: stateTone(state), after };
}
