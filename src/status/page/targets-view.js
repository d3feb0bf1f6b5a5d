import { chip, element } from './elements.js';
import { fill } from './fill.js';
import { age, duration, number, words } from './format.js';
import { breakerTone } from './tones.js';

const MINUTE_MS = 60_000;

/** The state of each target, in configuration order. */
export function showTargets(targets, now_ms) {
  fill(
    'targets',
    targets.map((target) => {
      const ago = target.last_failure && agoText(now_ms - target.last_failure.at_ms);
      return { text: [target, ago], make: () => rowOf(target, ago) };
    }),
  );
}

function rowOf({ upstream, model, attempts, errors, first_token, last_failure, state, alone }, ago) {
  const share = attempts > 0 ? ` ${Math.round((100 * errors) / attempts)}%` : '';
  return element(
    'tr',
    {},
    element(
      'th',
      { scope: 'row' },
      upstream,
      ...(model ? [element('span', { className: 'quiet after' }, model)] : []),
    ),
    element('td', { className: 'number', data: { label: 'attempts' } }, number(attempts)),
    element(
      'td',
      { className: 'number', data: { label: 'errors', tone: errors > 0 ? 'bad' : '' } },
      errors > 0 ? number(errors) : '–',
      ...(errors > 0 ? [element('span', { className: 'quiet' }, share)] : []),
    ),
    element(
      'td',
      { className: 'number', data: { label: 'first token' } },
      first_token ? duration(first_token.p50_ms) : '–',
    ),
    element(
      'td',
      { className: 'number', data: { label: '95th' } },
      first_token ? duration(first_token.p95_ms) : '–',
    ),
    element('td', { className: 'failure' }, ...(last_failure ? failureOf(last_failure, ago) : ['–'])),
    element(
      'td',
      {},
      alone ? element('span', { className: 'quiet' }, 'none') : chip(words(state), breakerTone(state)),
    ),
  );
}

function failureOf({ cause, evidence, detail, status }, ago) {
  const known = status ?? detail;
  const title = [words(evidence), detail, status].filter((part) => part !== undefined).join(' ');
  return [
    element('span', { title }, known === undefined ? words(cause) : `${words(cause)} ${known}`),
    element('span', { className: 'quiet after' }, ago),
  ];
}

/** In whole minutes, so that the table isn't recreated every second. */
const agoText = (ms) => (ms < MINUTE_MS ? 'just now' : `${age(Math.floor(ms / MINUTE_MS) * MINUTE_MS)} ago`);
