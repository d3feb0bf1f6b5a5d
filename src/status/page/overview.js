import { byId, element, write } from './elements.js';
import { fill } from './fill.js';
import { showFleet } from './fleet-view.js';
import { duration, number, words } from './format.js';
import { showSparkline } from './sparkline.js';
import { showTargets } from './targets-view.js';

const MINUTE_MS = 60_000;

const sum = (counts) => counts.reduce((total, { count }) => total + count, 0);

/** A number that is coloured unless it is 0. */
function count(id, value, tone) {
  const node = byId(id);
  write(node, number(value));
  node.dataset.tone = value > 0 ? tone : '';
}

export function showOverview(model, isLost) {
  const { status } = model;
  const { runs, interruptions, recovery_gaps: gaps, history, store, targets, fleet } = status;
  const { recovered = 0, salvaged = 0, failed = 0 } = runs.ended;
  write(byId('release'), status.release);
  const serving = byId('serving');
  // A replica that doesn't answer must not appear as serving, whatever it last reported.
  write(serving, isLost ? 'unreachable' : status.status);
  serving.dataset.tone = isLost ? 'bad' : status.status === 'serving' ? 'good' : 'warn';
  write(byId('replica'), fleet.find(({ self }) => self)?.name ?? '');
  write(byId('uptime'), isLost ? '' : `up ${uptime(model.now_ms - status.started_at_ms)}`);
  count('live', runs.live, '');
  count('recovering', runs.recovering, 'warn');
  showRescueRate(recovered + salvaged, failed);
  count('failed', failed, 'bad');
  count('interrupted', sum(interruptions), '');
  write(byId('longest'), gaps.count > 0 ? duration(gaps.max_ms) : '–');
  const shown = byId('store');
  write(shown, store.state === 'ok' ? store.name : `${store.name}: ${store.state}`);
  shown.dataset.tone = store.state === 'failing' ? 'bad' : '';
  const { reason, failed_appends } = store;
  const appends = failed_appends > 0 ? `${number(failed_appends)} appends failed` : '';
  write(byId('store-note'), [reason, appends].filter(Boolean).join(', '));
  const down = targets.filter(({ state }) => state !== 'closed').length;
  count('down', down, 'bad');
  for (const name of ['begun', 'interrupted', 'rescued', 'failed'])
    showSparkline(byId(`${name}-history`), history[name], history.slot_ms);
  showInterruptions(interruptions);
  showGaps(gaps);
  showTargets(targets, model.now_ms);
  showFleet(fleet, model.now_ms, isLost);
}

/** Share of ended interrupted runs whose clients still received their answers. */
function showRescueRate(rescued, failed) {
  const all = rescued + failed;
  const node = byId('rescue-rate');
  write(node, all > 0 ? `${shareText(rescued / all)}%` : '–');
  node.dataset.tone = all === 0 ? '' : failed > 0 ? 'warn' : 'rescued';
  write(byId('kept'), all > 0 ? `${number(rescued)} of ${number(all)}` : '');
}

/** Never rounded up to 100, so that a single failure shows. */
const shareText = (share) => (share === 1 ? '100' : (Math.floor(1000 * share) / 10).toFixed(1));

const uptime = (ms) => (ms < MINUTE_MS ? `${Math.floor(ms / 1000)} s` : duration(ms));

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
