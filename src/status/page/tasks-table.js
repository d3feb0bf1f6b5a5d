import { byId, chip, element, write } from './elements.js';
import { age, number } from './format.js';
import { keyed, listenToArrows } from './keyed.js';
import { createStepsView } from './steps-view.js';
import { nameOf } from './task-list.js';
import { taskTone } from './tones.js';

const table = byId('tasks');
/** By the rows that they are in. */
const views = new WeakMap();
const COLUMNS = table.tHead.rows[0].cells.length;

/** `onOpen` gets the task whose row was chosen, and `onChoose` the run of a step. */
export function listenToTasks(onOpen, onChoose) {
  table.addEventListener('click', ({ target }) => {
    const step = target.closest('.step');
    const row = target.closest('tbody tr:first-child');
    if (!getSelection().isCollapsed) return;
    if (step) step.dataset.run && onChoose(step.dataset.run);
    else if (row) onOpen(row.parentNode.dataset.task);
  });
  listenToArrows(table);
}

/** Puts these tasks into the table, in this order, and below the one that is open what is known of it. */
export const showTasks = keyed({
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
  return element(
    'tbody',
    { data: { task: task.task } },
    element(
      'tr',
      {},
      element('th', { scope: 'row' }, button),
      element('td', {}),
      ...Array.from({ length: COLUMNS - 2 }, () => element('td', { className: 'number' })),
    ),
  );
}

/** `view`: the task that is open, what is known of it by now, and the run that is chosen. */
function showTask(group, task, now_ms, view) {
  const [row] = group.rows;
  const [, state, steps, recoveries, paid, saved, since] = row.cells;
  const isOpen = task.task === view.open;
  row.classList.toggle('chosen', isOpen);
  row.querySelector('button').setAttribute('aria-expanded', String(isOpen));
  showState(state, task, now_ms);
  write(steps, number(task.steps));
  write(recoveries, task.recoveries > 0 ? number(task.recoveries) : '–');
  write(paid, task.tokens_paid > 0 ? number(task.tokens_paid) : '–');
  write(saved, task.tokens_saved > 0 ? number(task.tokens_saved) : '–');
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

const STATES = { failed: 'last step failed' };

function showState(cell, { state, idle_since_ms }, now_ms) {
  const label = STATES[state] ?? state;
  if (cell.dataset.text !== label) {
    cell.dataset.text = label;
    cell.replaceChildren(chip(label, taskTone(state)), element('span', { className: 'quiet after' }));
  }
  write(cell.lastChild, idle_since_ms === undefined ? '' : `for ${age(now_ms - idle_since_ms)}`);
}
