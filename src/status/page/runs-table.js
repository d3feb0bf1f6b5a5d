import { byId, chip, element, write } from './elements.js';
import { age, duration, number, shortRun, words } from './format.js';
import { keyed, listenToArrows } from './keyed.js';
import { outcomeTone, stateTone } from './tones.js';

const table = byId('runs');
const body = table.tBodies[0];

/** `onChoose` gets the run of the chosen row. */
export function listenToRuns(onChoose) {
  body.addEventListener('click', ({ target }) => {
    const row = target.closest('tr');
    if (row && getSelection().isCollapsed) onChoose(row.dataset.run);
  });
  listenToArrows(table);
}

/** Puts these runs into the table, in this order. */
export const showRuns = keyed({
  parent: body,
  slots: body.rows,
  keyOf: ({ key }) => key,
  create: createRow,
  show: showRun,
  fallback: byId('runs-heading'),
});

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
