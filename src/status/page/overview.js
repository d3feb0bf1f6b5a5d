import { byId, chip, element, write } from './elements.js';
import { duration, number, words } from './format.js';
import { breakerTone } from './tones.js';

const MINUTE_MS = 60_000;

const sum = (counts) => counts.reduce((total, { count }) => total + count, 0);

/** A number that is nothing to worry about while it is 0. */
function count(id, value, tone) {
  const node = byId(id);
  write(node, number(value));
  node.dataset.tone = value > 0 ? tone : '';
}

export function showOverview(model) {
  const { status } = model;
  const { runs, interruptions, recovery_gaps: gaps, store, targets } = status;
  const { recovered = 0, salvaged = 0, failed = 0 } = runs.ended;
  write(byId('release'), status.release);
  const serving = byId('serving');
  write(serving, status.status);
  serving.dataset.tone = status.status === 'serving' ? 'good' : 'warn';
  write(byId('uptime'), `up ${uptime(model.now_ms - status.started_at_ms)}`);
  count('live', runs.live, '');
  count('recovering', runs.recovering, 'warn');
  count('kept', recovered + salvaged, 'good');
  count('failed', failed, 'bad');
  count('interrupted', sum(interruptions), '');
  write(byId('longest'), gaps.count > 0 ? duration(gaps.max_ms) : '–');
  const shown = byId('store');
  write(shown, store.state === 'ok' ? store.name : `${store.name}: ${store.state}`);
  shown.dataset.tone = store.state === 'failing' ? 'bad' : '';
  const down = targets.filter(({ state }) => state !== 'closed').length;
  count('down', down, 'bad');
  showInterruptions(interruptions);
  showGaps(gaps);
  showTargets(store, targets);
}

const uptime = (ms) => (ms < MINUTE_MS ? `${Math.floor(ms / 1000)} s` : duration(ms));

/** Rows of one table, made anew only when they say something else. */
function fill(id, rows) {
  const table = byId(id);
  const text = JSON.stringify(rows.map(({ text }) => text));
  if (table.dataset.text === text) return;
  table.dataset.text = text;
  table.tBodies[0].replaceChildren(...rows.map(({ make }) => make()));
  table.hidden = rows.length === 0;
}

function bar(value, most) {
  const made = element('span', { className: 'fill' });
  made.style.inlineSize = `${Math.max(2, (100 * value) / most)}%`;
  return element('td', { className: 'number' }, made, element('span', {}, number(value)));
}

function showInterruptions(interruptions) {
  const sorted = [...interruptions].sort((one, other) => other.count - one.count);
  const most = sorted[0]?.count ?? 1;
  fill(
    'interruptions',
    sorted.map(({ cause, upstream, count: value }) => ({
      text: [cause, upstream, value],
      make: () =>
        element(
          'tr',
          {},
          element('th', { scope: 'row' }, words(cause)),
          element('td', { className: 'quiet cut', title: upstream }, upstream),
          bar(value, most),
        ),
    })),
  );
}

function showGaps({ count: all, buckets }) {
  const most = Math.max(...buckets.map(({ count: value }) => value));
  const last_ms = buckets.at(-2).le_ms;
  const rows = buckets.map(({ le_ms, count: value }) => ({
    text: [le_ms, value, most],
    make: () => {
      const length = le_ms === null ? `over ${duration(last_ms)}` : `up to ${bound(le_ms)}`;
      return element(
        'tr',
        {},
        element('th', { scope: 'row' }, length),
        value > 0 ? bar(value, most) : nothing(),
      );
    },
  }));
  fill('gaps', all > 0 ? rows : []);
}

const nothing = () => element('td', { className: 'number quiet' }, '0');
const bound = (ms) => (ms < 1000 ? `${ms} ms` : `${ms / 1000} s`);

function showTargets(store, targets) {
  const { name, state, reason, failed_appends } = store;
  const appends = failed_appends > 0 ? `, ${number(failed_appends)} appends failed` : '';
  const tone = state === 'ok' ? 'good' : state === 'failing' ? 'bad' : 'quiet';
  const rows = targets.map((target) => ({
    text: target,
    make: () =>
      element(
        'tr',
        {},
        element('th', { scope: 'row' }, target.upstream, ...(target.model ? [` ${target.model}`] : [])),
        element('td', {}, chip(`breaker ${words(target.state)}`, breakerTone(target.state))),
      ),
  }));
  fill('targets', [
    {
      text: store,
      make: () =>
        element(
          'tr',
          {},
          element(
            'th',
            { scope: 'row' },
            `store ${name}`,
            element('span', { className: 'quiet' }, `${reason ? `: ${reason}` : ''}${appends}`),
          ),
          element('td', {}, chip(state, tone)),
        ),
    },
    ...rows,
  ]);
}
