import { byId, chip, element, write } from './elements.js';
import { age, number } from './format.js';
import { keyed, listenToArrows } from './keyed.js';
import { createStepsView } from './steps-view.js';
import { nameOf, parentNameOf } from './task-list.js';
import { taskTone } from './tones.js';

const table = byId('tasks');
/** The steps view of each row. */
const views = new WeakMap();
const COLUMNS = table.tHead.rows[0].cells.length;

/** `onOpen` receives the task of a chosen row, `onFold` that of a fold button, and `onChoose` the run of a step. */
export function listenToTasks({ onOpen, onFold, onChoose }) {
  table.addEventListener('click', ({ target }) => {
    const step = target.closest('.step');
    const row = target.closest('tbody tr:first-child');
    if (target.closest('#detail') || !getSelection().isCollapsed) return;
    if (step) step.dataset.run && onChoose(step.dataset.run);
    else if (row) (target.closest('.fold') ? onFold : onOpen)(row.parentNode.dataset.task);
  });
  listenToArrows(table);
}

/**
 * Shows the tree's rows, or flat tasks, in the table in this order, and the known details below the open one. `view`:
 * the open task, its details and the chosen run.
 */
export function showTasks(rows, now_ms, view) {
  showRows(rows, now_ms, { ...view, shown: new Set(rows.map(({ task }) => task)) });
}

const showRows = keyed({
  parent: table,
  slots: table.tBodies,
  keyOf: ({ task }) => task,
  create: createTask,
  show: showTask,
  fallback: byId('runs-heading'),
});

function createTask(task) {
  const name = element('bdi', {}, nameOf(task));
  const button = element('button', { type: 'button', className: 'run cut mono', title: nameOf(task) }, name);
  const fold = element('button', { type: 'button', className: 'fold' });
  const part = element('span', { className: 'cut' }, 'part of ', element('bdi', {}));
  const family = element('div', { className: 'family quiet' }, fold, part);
  const figure = (label, ...parts) => element('td', { className: 'number', data: { label } }, ...parts);
  const tokens = (label) => figure(label, element('span', {}), element('div', { className: 'sum quiet' }));
  return element(
    'tbody',
    { data: { task: task.task } },
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, button, family),
      element('td', { className: 'state' }),
      figure('steps'),
      figure('recoveries'),
      tokens('tokens paid'),
      tokens('saved'),
      figure('age'),
    ),
  );
}

function showTask(group, task, now_ms, view) {
  const [row] = group.rows;
  const [name, state, steps, recoveries, paid, saved, since] = row.cells;
  const isOpen = task.task === view.open;
  row.classList.toggle('chosen', isOpen);
  row.querySelector('button').setAttribute('aria-expanded', String(isOpen));
  name.style.setProperty('--depth', task.depth ?? 0);
  showFamily(name, task, view.shown);
  showState(state, task, now_ms);
  write(steps, number(task.steps));
  write(recoveries, task.recoveries > 0 ? number(task.recoveries) : '–');
  const { total } = task;
  showTokens(paid, task.tokens_paid, total.tokens_paid, total);
  showTokens(saved, task.tokens_saved, total.tokens_saved, total);
  write(since, age(now_ms - task.began_at_ms));
  const isKnown = isOpen && view.detail?.task === task.task;
  if (!isKnown) group.rows[1]?.remove();
  else {
    const stepsRow = group.rows[1] ?? group.appendChild(createStepsRow());
    views.get(stepsRow).show(view.detail, now_ms, view.chosen);
  }
}

function createStepsRow() {
  const view = createStepsView();
  const row = element('tr', { className: 'steps-row' }, element('td', { colSpan: COLUMNS }, view.root));
  views.set(row, view);
  return row;
}

/**
 * Shows the number of tasks below on a button that folds them, and the parent, which is visible only if it isn't above
 * the task on this page.
 */
function showFamily(cell, task, shown) {
  const { total, isFolded, depth, parent } = task;
  const [open, family] = cell.children;
  const [fold, part] = family.children;
  const isTree = isFolded !== undefined;
  if (!isTree && fold === document.activeElement) open.focus();
  fold.hidden = !isTree;
  const below = `${number(total.below)} below`;
  write(fold, below);
  fold.setAttribute('aria-label', `${below} ${nameOf(task)}`);
  fold.setAttribute('aria-expanded', String(!isFolded));
  part.hidden = parent === undefined;
  part.classList.toggle('unseen', depth > 0 && shown.has(parent));
  part.title = parentNameOf(task) ?? '';
  write(part.lastChild, part.title);
}

/** The task's own tokens, and below them the sum including all tasks under it. */
function showTokens({ children: [own, all] }, tokens, all_tokens, { below }) {
  write(own, tokens > 0 ? number(tokens) : '–');
  write(all, below > 0 && all_tokens > 0 ? `${number(all_tokens)} in all` : '');
}

const STATES = { failed: 'last step failed' };

function showState(cell, { state, idle_since_ms }, now_ms) {
  const label = STATES[state] ?? state;
  if (cell.dataset.text !== label) {
    cell.dataset.text = label;
    cell.replaceChildren(chip(label, taskTone(state)), element('span', { className: 'quiet after' }));
  }
  write(cell.lastChild, idle_since_ms === undefined ? '' : `for ${age(now_ms - idle_since_ms)}`);
}
