import { courseSpans } from './course-spans.js';
import { byId, chip, element, write } from './elements.js';
import { age, duration, number, shortRun, words } from './format.js';
import { keyed, listenToArrows } from './keyed.js';
import { place } from './place.js';
import { shownState } from './run-state.js';

const table = byId('runs');
const body = table.tBodies[0];

/** `onChoose` receives the run of the chosen row. */
export function listenToRuns(onChoose) {
  body.addEventListener('click', ({ target }) => {
    const row = target.closest('tr');
    if (row && !target.closest('#detail') && getSelection().isCollapsed) onChoose(row.dataset.run);
  });
  listenToArrows(table);
}

/** Shows these runs in the table, in this order. */
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
  const course = element('span', { className: 'strip' });
  course.setAttribute('aria-hidden', 'true');
  return element(
    'tr',
    { data: { run } },
    element('th', { scope: 'row' }, button),
    element('td', { className: 'cut', title: `${model} (${notes.join(', ')})` }, element('bdi', {}, model)),
    element('td', { className: 'cut' }),
    element('td', { className: 'state' }),
    element('td', { className: 'course' }, course),
    ...['attempt', 'characters', 'tools', 'age'].map((label) =>
      element('td', { className: 'number', data: { label } }),
    ),
  );
}

function showRun(row, run, now_ms, chosen) {
  const [, , upstream, state, course, attempt, characters, tools, since] = row.cells;
  const isChosen = run.run === chosen;
  row.classList.toggle('chosen', isChosen);
  row.querySelector('button').setAttribute('aria-expanded', String(isChosen));
  write(upstream, run.upstream);
  showState(state, run);
  showCourse(course.firstChild, run, now_ms);
  write(attempt, String(run.attempt));
  write(characters, number(run.characters));
  write(tools, run.tool_calls > 0 ? number(run.tool_calls) : '–');
  const { created_at_ms, ended_at_ms } = run;
  write(
    since,
    ended_at_ms === undefined ? age(now_ms - created_at_ms) : duration(ended_at_ms - created_at_ms),
  );
}

function showState(cell, run) {
  const { label, tone, after } = shownState(run);
  const text = `${label} ${after}`;
  if (cell.dataset.text === text) return;
  cell.dataset.text = text;
  cell.replaceChildren(
    chip(label, tone),
    ...(after ? [element('span', { className: 'quiet after' }, after)] : []),
  );
}

/** Bars keep their elements, because only a run's last bar usually changes. */
function showCourse(strip, run, now_ms) {
  const spans = courseSpans(run, now_ms);
  while (strip.children.length > spans.length) strip.lastChild.remove();
  for (const [index, { kind, start, size }] of spans.entries()) {
    const bar = strip.children[index] ?? strip.appendChild(element('i', {}));
    if (bar.dataset.kind !== kind) bar.dataset.kind = kind;
    place(bar, start, size);
  }
}
