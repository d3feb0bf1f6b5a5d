import { announceNow, announceStatus } from './announcer.js';
import { byId, element, write } from './elements.js';
import { follow } from './feed.js';
import { number, shortRun, words } from './format.js';
import { Model } from './model.js';
import { showOverview } from './overview.js';
import { kindsOf, selectRuns } from './run-list.js';
import { listenToRows, showRuns } from './runs-table.js';
import { hideDetail, showDetail } from './timeline-view.js';

/** The page stays small, however many runs there are. */
const ROWS_MAX = 25;
const CHOOSE = byId('no-detail').textContent;

const model = new Model();
const view = { list: 'live', kind: 'all', find: '', sort: 'given', descending: false, page: 0 };
let chosen = '';
let paused = false;
let connection = 'connecting';
let asking = false;

const CONNECTION = {
  connecting: 'Connecting',
  live: 'Live',
  lost: 'Connection lost, trying again',
  paused: 'Paused',
};

function showConnection() {
  const state = paused && connection === 'live' ? 'paused' : connection;
  const node = byId('connection');
  if (node.dataset.state === state) return;
  const wasLost = node.dataset.state === 'lost';
  node.dataset.state = state;
  write(node, CONNECTION[state]);
  if (state === 'lost') announceNow('The connection to the replica is lost.');
  else if (wasLost) announceNow('Connected again.');
}

function show() {
  if (!model.status) return;
  showOverview(model);
  write(byId('live-count'), number(model.live.size));
  write(byId('ended-count'), number(model.ended.length));
  const runs = selectRuns(model, view);
  const pages = Math.max(1, Math.ceil(runs.length / ROWS_MAX));
  view.page = Math.min(view.page, pages - 1);
  const first = view.page * ROWS_MAX;
  const shown = runs.slice(first, first + ROWS_MAX);
  showRuns(shown, model.now_ms, chosen);
  byId('runs').hidden = shown.length === 0;
  byId('no-runs').hidden = shown.length > 0;
  const isFiltered = view.kind !== 'all' || view.find !== '';
  write(
    byId('no-runs'),
    isFiltered ? 'No run is like that.' : 'No runs yet. They appear here as they begin.',
  );
  const range =
    shown.length > 0
      ? `${number(first + 1)}–${number(first + shown.length)} of ${number(runs.length)}`
      : '0 of 0';
  write(byId('page-number'), range);
  turnable(byId('previous'), view.page > 0);
  turnable(byId('next'), view.page < pages - 1);
}

/** Not `disabled`: that would take the focus from a reader who turns to the last page. */
const turnable = (button, isTurnable) => button.setAttribute('aria-disabled', String(!isTurnable));

function turn(button, by) {
  if (button.getAttribute('aria-disabled') === 'true') return;
  view.page += by;
  show();
  announceNow(`Runs ${byId('page-number').textContent}`);
}

async function readDetail() {
  if (asking || chosen === '') return;
  asking = true;
  const wanted = chosen;
  try {
    const response = await fetch(`runs/${encodeURIComponent(wanted)}`);
    const detail = response.ok ? await response.json() : undefined;
    if (wanted !== chosen) return;
    if (detail) showDetail(detail);
    else hideDetail('The replica does not remember this run any more.');
  } catch {
    // The connection is lost, and the page says so.
  } finally {
    asking = false;
    if (wanted !== chosen) void readDetail();
  }
}

function choose(run) {
  chosen = run === chosen ? '' : run;
  // What is shown can be linked to.
  history.replaceState(null, '', chosen ? `#${chosen}` : location.pathname);
  if (chosen) announceNow(`Timeline of ${shortRun(chosen)}`);
  else hideDetail(CHOOSE);
  show();
  void readDetail();
}

function showKinds() {
  write(byId('kind-label'), view.list === 'live' ? 'State' : 'Outcome');
  write(document.querySelector('[data-sort=state]'), view.list === 'live' ? 'State' : 'Outcome');
  write(document.querySelector('[data-sort=age]'), view.list === 'live' ? 'Age' : 'Lasted');
  byId('kind').replaceChildren(
    ...kindsOf(view.list).map((kind) => element('option', { value: kind }, words(kind))),
  );
}

function showOrder() {
  for (const header of byId('runs').tHead.rows[0].cells) {
    const { sort } = header.firstElementChild.dataset;
    if (sort === view.sort) header.setAttribute('aria-sort', view.descending ? 'descending' : 'ascending');
    else header.removeAttribute('aria-sort');
  }
  const order =
    view.sort === 'given'
      ? view.list === 'live'
        ? 'oldest first'
        : 'last ended first'
      : `by ${words(view.sort)}`;
  write(byId('runs-caption'), `${view.list === 'live' ? 'Live' : 'Ended'} runs, ${order}`);
}

for (const radio of document.querySelectorAll('input[name=list]')) {
  radio.addEventListener('change', () => {
    Object.assign(view, { list: radio.value, kind: 'all', sort: 'given', page: 0 });
    showKinds();
    showOrder();
    show();
  });
}
byId('kind').addEventListener('change', ({ target }) => {
  Object.assign(view, { kind: target.value, page: 0 });
  show();
});
byId('find').addEventListener('input', ({ target }) => {
  Object.assign(view, { find: target.value, page: 0 });
  show();
});
byId('runs').tHead.addEventListener('click', ({ target }) => {
  const { sort } = target.closest('button')?.dataset ?? {};
  if (!sort) return;
  view.descending = sort === view.sort && !view.descending;
  Object.assign(view, { sort, page: 0 });
  showOrder();
  show();
});
byId('previous').addEventListener('click', ({ currentTarget }) => turn(currentTarget, -1));
byId('next').addEventListener('click', ({ currentTarget }) => turn(currentTarget, 1));
byId('close-detail').addEventListener('click', () => {
  const row = document.querySelector('tr.chosen button');
  choose(chosen);
  (row ?? byId('runs-heading')).focus();
});
byId('pause').addEventListener('click', ({ currentTarget }) => {
  paused = !paused;
  currentTarget.setAttribute('aria-pressed', String(paused));
  showConnection();
  if (!paused) show();
});
listenToRows(choose);
addEventListener('hashchange', () => {
  const run = location.hash.slice(1);
  if (run.startsWith('run_') && run !== chosen) choose(run);
});

showKinds();
showOrder();
follow({
  onSnapshot(snapshot) {
    model.replace(snapshot);
    if (paused) return;
    show();
    void readDetail();
  },
  onUpdate(update) {
    model.update(update);
    if (paused) return;
    show();
    announceStatus(model.status);
    const isTold = update.entries?.some(({ run }) => run === chosen);
    if (isTold || model.status.content) void readDetail();
  },
  onState(state) {
    connection = state;
    showConnection();
  },
});
if (location.hash.startsWith('#run_')) choose(location.hash.slice(1));
