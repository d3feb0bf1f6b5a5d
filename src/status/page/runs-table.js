import { byId, chip, element, write } from './elements.js';
import { age, duration, number, shortRun, words } from './format.js';
import { outcomeTone, stateTone } from './tones.js';

const table = byId('runs');
const body = table.tBodies[0];
/** Rows that are in the table, by the keys of their runs. */
const rows = new Map();

/** `onChoose` gets the run of the chosen row. */
export function listenToRows(onChoose) {
  body.addEventListener('click', ({ target }) => {
    const row = target.closest('tr');
    if (row && getSelection().isCollapsed) onChoose(row.dataset.run);
  });
  body.addEventListener('keydown', (event) => {
    const { key, target } = event;
    const row = target.closest('tr');
    const near =
      key === 'ArrowDown' ? row.nextElementSibling : key === 'ArrowUp' ? row.previousElementSibling : null;
    if (!near) return;
    event.preventDefault();
    near.querySelector('button').focus();
  });
}

/** Puts these runs into the table, in this order, and changes nothing else about it. */
export function showRuns(runs, now_ms, chosen) {
  const focused = document.activeElement;
  const focusedIndex = [...body.rows].findIndex((row) => row.contains(focused));
  const wanted = new Set(runs.map(({ key }) => key));
  for (const [key, row] of rows) {
    if (wanted.has(key)) continue;
    row.remove();
    rows.delete(key);
  }
  for (const [index, run] of runs.entries()) {
    const row = rows.get(run.key) ?? createRow(run);
    rows.set(run.key, row);
    showRun(row, run, now_ms, chosen);
    if (body.rows[index] !== row) body.insertBefore(row, body.rows[index] ?? null);
  }
  if (focusedIndex !== -1) keepFocus(focused, focusedIndex);
}

/** A row that moves loses the focus, and a row that leaves takes it along; keyboard users would begin at the top. */
function keepFocus(focused, index) {
  if (document.activeElement === focused) return;
  const near = body.rows[Math.min(index, body.rows.length - 1)]?.querySelector('button');
  (focused.isConnected ? focused : (near ?? byId('runs-heading'))).focus({ preventScroll: true });
}

function createRow({ run, model, streamed, resumable, taken_over, wire }) {
  const button = element('button', { type: 'button', className: 'run mono', title: run }, shortRun(run));
  button.setAttribute('aria-controls', 'detail');
  const notes = [
    words(wire),
    ...(streamed ? [] : ['not streamed']),
    ...(resumable ? ['resumable'] : []),
    ...(taken_over ? ['taken over'] : []),
  ];
  return element(
    'tr',
    { data: { run } },
    element('th', { scope: 'row' }, button),
    element('td', { className: 'cut', title: `${model} (${notes.join(', ')})` }, element('bdi', {}, model)),
    element('td', { className: 'cut' }),
    element('td', {}),
    element('td', { className: 'number' }),
    element('td', { className: 'number' }),
    element('td', { className: 'number' }),
    element('td', { className: 'number' }),
  );
}

function showRun(row, run, now_ms, chosen) {
  const [, , upstream, state, attempt, characters, tools, since] = row.cells;
  const isChosen = run.run === chosen;
  row.classList.toggle('chosen', isChosen);
  row.querySelector('button').setAttribute('aria-expanded', String(isChosen));
  write(upstream, run.upstream);
  showState(state, run);
  write(attempt, String(run.attempt));
  write(characters, number(run.characters));
  write(tools, run.tool_calls > 0 ? number(run.tool_calls) : '–');
  const { created_at_ms, ended_at_ms } = run;
  write(
    since,
    ended_at_ms === undefined ? age(now_ms - created_at_ms) : duration(ended_at_ms - created_at_ms),
  );
}

function showState(cell, { state, outcome, interruptions, cause }) {
  const tone = outcome ? outcomeTone(outcome) : stateTone(state);
  const label = outcome ?? (state === 'asking' && interruptions > 0 ? 'recovering' : state);
  const after = interruptions > 0 && cause ? `after ${words(cause)}` : '';
  const text = `${label} ${after}`;
  if (cell.dataset.text === text) return;
  cell.dataset.text = text;
  cell.replaceChildren(
    chip(words(label), label === 'recovering' ? 'warn' : tone),
    ...(after ? [element('span', { className: 'quiet after' }, after)] : []),
  );
}
