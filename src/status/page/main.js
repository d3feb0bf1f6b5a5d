import { announceNow, announceStatus } from './announcer.js';
import { commandsOf } from './api-hints.js';
import { copies } from './copy.js';
import { NARROW, placeDetail } from './detail-place.js';
import { byId, element, write } from './elements.js';
import { followReplica } from './feed.js';
import { number, shortRun, words } from './format.js';
import { Model } from './model.js';
import { showOverview } from './overview.js';
import { createReader } from './reader.js';
import { ENDED_RUNS, LIVE_RUNS } from './run-list.js';
import { listenToRuns, showRuns } from './runs-table.js';
import { select } from './select.js';
import { TASKS } from './task-list.js';
import { treeOf } from './task-tree.js';
import { listenToTasks, showTasks } from './tasks-table.js';
import { hideDetail, showDetail } from './timeline-view.js';

/** Keeps the page small, however many runs there are. */
const ROWS_MAX = 25;
const CHOOSE = byId('no-detail').textContent;

const RUNS = { table: byId('runs'), caption: byId('runs-caption'), finds: 'run, model, upstream' };
const NO_RUNS = 'No runs yet. They appear here as they begin.';
/** The available lists, each with its table. */
const LISTS = {
  live: { ...RUNS, ...LIVE_RUNS, title: 'Live runs', given: 'oldest first', none: NO_RUNS },
  ended: { ...RUNS, ...ENDED_RUNS, title: 'Ended runs', given: 'last ended first', none: NO_RUNS },
  tasks: {
    ...TASKS,
    table: byId('tasks'),
    caption: byId('tasks-caption'),
    finds: 'task',
    title: 'Tasks',
    given: 'last step first',
    none: 'No tasks yet. A request with a Holdfast-Task header begins one.',
  },
};

const model = new Model();
const view = { list: 'live', kind: 'all', find: '', sort: 'given', descending: false, page: 0 };
let chosen = '';
/** The open task, and its details once known. */
let open = '';
let task;
/** Tasks whose subtasks are hidden. */
const folded = new Set();
let paused = false;
let connection = 'connecting';

const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
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
  // Outdated data is grey.
  document.documentElement.dataset.connection = state;
  write(node, CONNECTION[state]);
  byId('stale').hidden = state !== 'lost' || !model.status;
  if (state === 'lost' && model.status) {
    write(
      byId('stale'),
      `The replica does not answer. What you see is from ${CLOCK.format(model.heard_at_ms)}.`,
    );
    showOverview(model, true);
  }
  if (state === 'lost') announceNow('The connection to the replica is lost.');
  else if (wasLost) announceNow('Connected again.');
}

function show() {
  if (!model.status) return;
  showOverview(model, connection === 'lost');
  write(byId('live-count'), number(model.live.size));
  write(byId('ended-count'), number(model.ended.length));
  write(byId('tasks-count'), number(model.tasks.length));
  const list = LISTS[view.list];
  const isFiltered = view.kind !== 'all' || view.find.trim() !== '';
  const selected = select(list, model, view);
  const rows = list === LISTS.tasks && !isFiltered ? treeOf(selected, folded) : selected;
  const pages = Math.max(1, Math.ceil(rows.length / ROWS_MAX));
  view.page = Math.min(view.page, pages - 1);
  const first = view.page * ROWS_MAX;
  const shown = rows.slice(first, first + ROWS_MAX);
  if (list === LISTS.tasks) showTasks(shown, model.now_ms, { open, detail: task, chosen });
  else showRuns(shown, model.now_ms, chosen);
  for (const { table } of Object.values(LISTS)) table.hidden = table !== list.table || shown.length === 0;
  placeDetail(chosen);
  byId('no-runs').hidden = shown.length > 0;
  showFirstRequest(list, isFiltered);
  const noun = list === LISTS.tasks ? 'task' : 'run';
  write(byId('no-runs'), isFiltered ? `No ${noun} is like that.` : list.none);
  const range =
    shown.length > 0
      ? `${number(first + 1)}–${number(first + shown.length)} of ${number(rows.length)}`
      : '0 of 0';
  write(byId('page-number'), range);
  turnable(byId('previous'), view.page > 0);
  turnable(byId('next'), view.page < pages - 1);
}

/** Uses `aria-disabled`, because `disabled` would take the focus from a user who reaches the last page. */
const turnable = (button, isTurnable) => button.setAttribute('aria-disabled', String(!isTurnable));

function turn(button, by) {
  if (button.getAttribute('aria-disabled') === 'true') return;
  view.page += by;
  show();
  announceNow(`${view.list === 'tasks' ? 'Tasks' : 'Runs'} ${byId('page-number').textContent}`);
}

/** A replica that hasn't had a run yet shows how to start one. */
function showFirstRequest(list, isFiltered) {
  const isUnused = model.live.size === 0 && model.ended.length === 0 && list !== LISTS.tasks && !isFiltered;
  byId('first-request').hidden = !isUnused;
  if (isUnused) write(byId('first-command'), firstCommand());
}

const firstCommand = () => commandsOf(model.status.api, location.hostname).first;

const readRun = createReader({
  pathOf: (id) => `runs/${id}`,
  // A detail that arrives before the first snapshot is requested again with it.
  show: (detail) => model.status && showDetail(detail, model.status),
  gone: () => hideDetail('The replica does not remember this run any more.'),
});

const readTask = createReader({
  pathOf: (id) => `tasks/${id}`,
  show(detail) {
    task = detail;
    show();
  },
  gone() {
    task = undefined;
    show();
  },
});

function choose(run) {
  chosen = run === chosen ? '' : run;
  link(chosen);
  if (chosen) announceNow(`Timeline of ${shortRun(chosen)}`);
  else hideDetail(CHOOSE);
  show();
  void readRun(chosen);
}

function openTask(id) {
  open = id === open ? '' : id;
  task = undefined;
  link(open);
  show();
  void readTask(open);
}

function fold(id) {
  if (!folded.delete(id)) folded.add(id);
  show();
}

/** Puts the shown item into the address, so that it can be linked to. */
const link = (id) => history.replaceState(null, '', id ? `#${id}` : location.pathname);

function showList(list) {
  Object.assign(view, { list, kind: 'all', sort: 'given', page: 0 });
  document.querySelector(`input[name=list][value=${list}]`).checked = true;
  showKinds();
  showOrder();
  show();
}

/** Opens the run or task named in the address. */
function follow(address) {
  if (address.startsWith('run_') && address !== chosen) choose(address);
  if (!address.startsWith('task_') || address === open) return;
  showList('tasks');
  openTask(address);
}

function showKinds() {
  const { kinds, finds } = LISTS[view.list];
  const state = view.list === 'ended' ? 'Outcome' : 'State';
  write(byId('kind-label'), state);
  write(byId('runs').querySelector('[data-sort=state]'), state);
  write(byId('runs').querySelector('[data-sort=age]'), view.list === 'ended' ? 'Lasted' : 'Age');
  byId('find').placeholder = finds;
  byId('kind').replaceChildren(
    ...Object.keys(kinds).map((kind) => element('option', { value: kind }, words(kind))),
  );
}

function showOrder() {
  const { table, caption, title, given } = LISTS[view.list];
  for (const header of table.tHead.rows[0].cells) {
    const { sort } = header.firstElementChild.dataset;
    if (sort === view.sort) header.setAttribute('aria-sort', view.descending ? 'descending' : 'ascending');
    else header.removeAttribute('aria-sort');
  }
  write(caption, `${title}, ${view.sort === 'given' ? given : `by ${words(view.sort)}`}`);
}

for (const radio of document.querySelectorAll('input[name=list]')) {
  radio.addEventListener('change', () => showList(radio.value));
}
byId('kind').addEventListener('change', ({ target }) => {
  Object.assign(view, { kind: target.value, page: 0 });
  show();
});
byId('find').addEventListener('input', ({ target }) => {
  Object.assign(view, { find: target.value, page: 0 });
  show();
});
for (const id of ['runs', 'tasks']) {
  byId(id).tHead.addEventListener('click', ({ target }) => {
    const { sort } = target.closest('button')?.dataset ?? {};
    if (!sort) return;
    view.descending = sort === view.sort && !view.descending;
    Object.assign(view, { sort, page: 0 });
    showOrder();
    show();
  });
}
byId('previous').addEventListener('click', ({ currentTarget }) => turn(currentTarget, -1));
byId('next').addEventListener('click', ({ currentTarget }) => turn(currentTarget, 1));
byId('close-detail').addEventListener('click', () => {
  const row = document.querySelector('.step.chosen button, #runs .chosen button');
  choose(chosen);
  (row ?? byId('runs-heading')).focus();
});
byId('pause').addEventListener('click', ({ currentTarget }) => {
  paused = !paused;
  currentTarget.setAttribute('aria-pressed', String(paused));
  showConnection();
  if (!paused) show();
});
listenToRuns(choose);
listenToTasks({ onOpen: openTask, onChoose: choose, onFold: fold });
copies(byId('copy-first'), firstCommand);
NARROW.addEventListener('change', () => placeDetail(chosen));
addEventListener('hashchange', () => follow(location.hash.slice(1)));

showKinds();
showOrder();
followReplica({
  onSnapshot(snapshot) {
    model.replace(snapshot);
    if (paused) return;
    show();
    void readRun();
    void readTask();
  },
  onUpdate(update) {
    model.update(update);
    if (paused) return;
    show();
    announceStatus(model.status);
    const isTold = update.entries?.some(({ run }) => run === chosen);
    if (isTold || model.status.content) void readRun();
    if (update.tasks?.some(({ task: id }) => id === open)) void readTask();
  },
  onState(state) {
    connection = state;
    showConnection();
  },
});
follow(location.hash.slice(1));
