import { chip, element, write } from './elements.js';
import { duration, number } from './format.js';
import { keyed } from './keyed.js';
import { place } from './place.js';
import { shownState } from './run-state.js';
import { spansOf } from './step-spans.js';
import { timeAxis } from './time-axis.js';
import { describe } from './timeline-view.js';

/** A narrower cut has no room for its length. */
const LABELLED_CUT = 0.07;
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const LEGEND = { asking: 'asking', answering: 'answering', gap: 'interrupted', replay: 'replayed' };

/** The steps of one task, one line each, on a common time axis. */
export function createStepsView() {
  const omitted = element('p', { className: 'quiet' });
  const from = element('span', {});
  const to = element('span', {});
  const cuts = element('div', { className: 'cuts' });
  const list = element('ol', {});
  const legend = element(
    'p',
    { className: 'legend quiet' },
    ...Object.entries(LEGEND).map(([kind, label]) =>
      element(
        'span',
        { className: 'legend-key' },
        element('i', { className: 'sample', data: { kind } }),
        label,
      ),
    ),
  );
  const axis = element('div', { className: 'axis quiet' }, from, cuts, to);
  axis.setAttribute('aria-hidden', 'true');
  legend.setAttribute('aria-hidden', 'true');
  const root = element('div', { className: 'steps' }, omitted, axis, list, legend);
  const showSteps = keyed({
    parent: list,
    slots: list.children,
    keyOf: ({ step }) => step.number,
    create: createStep,
    show: showStep,
    fallback: root,
  });

  return {
    root,
    show({ shown, steps }, now_ms, chosen) {
      const lines = shown.map((step) => ({ step, spans: spansOf(step, now_ms) }));
      const all = lines.flatMap(({ step: { replayed_at_ms: at_ms }, spans }) =>
        at_ms === undefined ? spans : [...spans, { from_ms: at_ms, to_ms: at_ms }],
      );
      if (all.length === 0) return;
      const scale = timeAxis(all);
      const isLive = shown.some(({ stays }) => stays.at(-1)?.state !== 'ended' && stays.length > 0);
      const [first, last] = [Math.min, Math.max].map((pick) =>
        pick(...all.flatMap(({ from_ms, to_ms }) => [from_ms, to_ms])),
      );
      write(from, CLOCK.format(first));
      write(to, isLive ? 'now' : CLOCK.format(last));
      showCuts(cuts, scale);
      omitted.hidden = steps <= shown.length;
      write(omitted, `${number(steps - shown.length)} earlier steps are left out.`);
      showSteps(lines, scale, chosen);
    },
  };
}

function createStep({ step: { number: nth } }) {
  const track = element('span', { className: 'track' });
  track.setAttribute('aria-hidden', 'true');
  const name = element('button', { type: 'button', className: 'run' }, `Step ${nth}`);
  return element(
    'li',
    { className: 'step' },
    name,
    track,
    element('span', { className: 'said' }),
    element('span', { className: 'took quiet' }),
  );
}

function showStep(line, { step, spans }, scale, chosen) {
  const [name, track, said, took] = line.children;
  const stay = step.stays.at(-1);
  const isChosen = stay !== undefined && stay.run === chosen;
  line.classList.toggle('chosen', isChosen);
  if (stay) {
    line.dataset.run = stay.run;
    name.setAttribute('aria-expanded', String(isChosen));
    name.setAttribute('aria-controls', 'detail');
  }
  // Without a run there is nothing to open, but the button stays reachable by keyboard.
  name.setAttribute('aria-disabled', String(stay === undefined));
  showSaid(said, step, stay);
  const took_ms = spans.length > 0 ? spans.at(-1).to_ms - spans[0].from_ms : undefined;
  write(took, took_ms === undefined ? '' : duration(took_ms));
  showTrack(track, step, spans, scale);
}

function showSaid(cell, { replays }, stay) {
  const { attempt = 0 } = stay ?? {};
  const shown = stay && shownState(stay);
  const text = JSON.stringify([shown, attempt, replays]);
  if (cell.dataset.text === text) return;
  cell.dataset.text = text;
  const chips = [
    ...(shown ? [chip(shown.label, shown.tone)] : []),
    ...(replays > 0 ? [chip(replays > 1 ? `replayed ${number(replays)}×` : 'replayed', 'info')] : []),
    ...(attempt > 1 ? [element('span', { className: 'quiet' }, `${number(attempt)} attempts`)] : []),
  ];
  cell.replaceChildren(...chips);
}

/** Bars keep their elements, because only the last one grows. */
function showTrack(track, { replayed_at_ms: at_ms }, spans, scale) {
  const marks = [
    ...spans.map((span) => ({ ...span, title: titleOf(span) })),
    ...(at_ms === undefined
      ? []
      : [{ kind: 'replay', from_ms: at_ms, to_ms: at_ms, title: `replayed at ${CLOCK.format(at_ms)}` }]),
  ];
  while (track.children.length > marks.length) track.lastChild.remove();
  for (const [index, { kind, from_ms, to_ms, title }] of marks.entries()) {
    const mark = track.children[index] ?? track.appendChild(element('i', {}));
    mark.dataset.kind = kind;
    mark.title = title;
    place(mark, scale.at(from_ms), scale.at(to_ms) - scale.at(from_ms));
  }
}

function titleOf({ kind, attempt, interrupted, from_ms, to_ms }) {
  const { title, more } = describe(attempt ?? interrupted ?? { kind });
  return [title, more, duration(to_ms - from_ms)].filter(Boolean).join(' · ');
}

function showCuts(node, { cuts }) {
  while (node.children.length > cuts.length) node.lastChild.remove();
  for (const [index, { start, width, rest_ms }] of cuts.entries()) {
    const cut = node.children[index] ?? node.appendChild(element('span', { className: 'cut-rest' }));
    write(cut, width >= LABELLED_CUT ? duration(rest_ms) : '');
    cut.title = duration(rest_ms);
    place(cut, start, width);
  }
}
