import { element } from './elements.js';
import { duration, words } from './format.js';
import { runAxis, ticksOf } from './run-axis.js';

const LEGEND = {
  asking: 'asking',
  whole: 'answered',
  cut: 'cut off',
  gap: 'gap until it continues',
  seam: 'seam',
  handover: 'hand-over',
};

/** A run on its time axis, with one lane per attempt. Everything shown is also described in words. */
export function showAxis(root, detail) {
  const axis = runAxis(detail, detail.now_ms);
  const text = JSON.stringify([axis, detail.run]);
  if (root.dataset.text === text) return;
  root.dataset.text = text;
  const place = (node, from_ms, to_ms = from_ms) => {
    node.style.insetInlineStart = percent(axis.at(from_ms));
    if (to_ms !== from_ms) node.style.inlineSize = percent(axis.at(to_ms) - axis.at(from_ms));
    return node;
  };
  const length_ms = axis.to_ms - axis.from_ms;
  const ticks = ticksOf(length_ms).map((tick_ms) =>
    place(
      element('span', { className: 'tick' }, tick_ms === 0 ? '0' : tickText(tick_ms)),
      axis.from_ms + tick_ms,
    ),
  );
  const handovers = axis.handovers.map(({ at_ms, entry }) =>
    place(element('span', { className: 'handover', title: words(entry.outcome ?? entry.kind) }), at_ms),
  );
  root.replaceChildren(
    ...(axis.omitted > 0
      ? [element('p', { className: 'quiet' }, `${axis.omitted} earlier attempts left out`)]
      : []),
    element(
      'div',
      { className: 'lanes' },
      element('span', { className: 'over' }, ...ticks),
      element('span', { className: 'over' }, ...handovers),
      ...axis.lanes.map((lane) => laneOf(lane, place)),
    ),
    legendOf(axis),
  );
}

function laneOf(lane, place) {
  const { attempt, upstream, model, bars, outcome, gap, seam, joined_at_ms } = lane;
  const name = attempt === undefined ? 'elsewhere' : upstream;
  const marks = bars.map(({ kind, from_ms, to_ms }) =>
    place(element('i', { className: 'bar-mark', data: { kind, outcome } }), from_ms, to_ms),
  );
  if (gap) {
    const kind = gap.isHealed ? 'healed' : 'open';
    marks.push(place(element('i', { className: 'gap-mark', data: { kind } }), gap.from_ms, gap.to_ms));
    marks.push(place(element('i', { className: 'cut-mark' }), gap.from_ms));
  } else if (outcome === 'interrupted')
    marks.push(place(element('i', { className: 'cut-mark' }), bars.at(-1).to_ms));
  if (joined_at_ms !== undefined)
    marks.push(
      place(element('i', { className: 'seam-mark', data: { seam: seam ?? 'pending' } }), joined_at_ms),
    );
  return element(
    'div',
    { className: 'lane', data: { outcome } },
    element(
      'span',
      { className: 'lane-name cut', title: model ? `${upstream} ${model}` : 'another replica' },
      element('b', {}, attempt ?? '↪'),
      ` ${name}`,
    ),
    element('span', { className: 'lane-track' }, ...marks),
    element('span', { className: 'lane-note' }, element('span', { className: 'lane-words' }, noteOf(lane))),
  );
}

/** A short description, so that nothing depends on colours and shapes alone. */
function noteOf({ outcome, interrupted, gap, seam, joined_at_ms }) {
  const join = joined_at_ms === undefined ? '' : seam ? `seam ${words(seam)}` : 'continues';
  const cut = interrupted ? `✕ ${words(interrupted.cause)}` : '';
  const silence = gap ? `${gap.isHealed ? 'gap' : 'silent for'} ${duration(gap.to_ms - gap.from_ms)}` : '';
  const end =
    outcome === 'whole'
      ? '✓ whole'
      : outcome === 'asking'
        ? 'asking…'
        : outcome === 'answering'
          ? 'answering…'
          : '';
  return [join, cut, silence, end].filter(Boolean).join(' · ');
}

function legendOf({ lanes, handovers }) {
  const kinds = new Set(['whole']);
  for (const { bars, outcome, gap, joined_at_ms } of lanes) {
    if (bars.some(({ kind }) => kind === 'asking')) kinds.add('asking');
    if (outcome === 'interrupted') kinds.add('cut');
    if (gap) kinds.add('gap');
    if (joined_at_ms !== undefined) kinds.add('seam');
  }
  if (handovers.length > 0) kinds.add('handover');
  return element(
    'p',
    { className: 'legend quiet' },
    ...Object.entries(LEGEND)
      .filter(([kind]) => kinds.has(kind))
      .map(([kind, label]) =>
        element(
          'span',
          { className: 'legend-key' },
          element('i', { className: 'key', data: { kind } }),
          label,
        ),
      ),
  );
}

const percent = (share) => `${(100 * share).toFixed(2)}%`;
const tickText = (ms) => (ms < 1000 ? `${ms} ms` : ms < 60_000 ? `${ms / 1000} s` : duration(ms));
