const LIVE_KINDS = {
  all: () => true,
  recovering: ({ state, interruptions }) =>
    interruptions > 0 && state !== 'answering' && state !== 'finishing',
  interrupted: ({ interruptions }) => interruptions > 0,
  'taken over': ({ taken_over }) => taken_over,
  asking: ({ state }) => state === 'asking',
  answering: ({ state }) => state === 'answering',
};

const OUTCOMES = [
  'complete',
  'recovered',
  'salvaged',
  'failed',
  'rejected',
  'cancelled',
  'superseded',
  'handed_over',
  'replayed',
];
const ENDED_KINDS = {
  all: () => true,
  ...Object.fromEntries(OUTCOMES.map((name) => [name, ({ outcome }) => outcome === name])),
};

const KINDS = { live: LIVE_KINDS, ended: ENDED_KINDS };

/** What runs of a list can be told apart by. */
export const kindsOf = (list) => Object.keys(KINDS[list]);

const text = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

const lasting = ({ created_at_ms, ended_at_ms = 0 }) => ended_at_ms - created_at_ms;

const ORDERS = {
  run: (one, other) => text(one.run, other.run),
  model: (one, other) => text(one.model, other.model),
  upstream: (one, other) => text(one.upstream, other.upstream),
  state: (one, other) => text(one.outcome ?? one.state, other.outcome ?? other.state),
  attempt: (one, other) => one.attempt - other.attempt,
  characters: (one, other) => one.characters - other.characters,
  tool_calls: (one, other) => one.tool_calls - other.tool_calls,
  // Of the live runs, the last to begin is the youngest.
  age: (one, other) => lasting(one) - lasting(other),
};

/** The runs of a list that are asked for, in the order asked for. */
export function selectRuns(model, { list, kind, find, sort, descending }) {
  const isOfKind = KINDS[list][kind] ?? LIVE_KINDS.all;
  const needle = find.trim().toLowerCase();
  const isFound = ({ run, model: name, upstream }) =>
    needle === '' || `${run} ${name} ${upstream}`.toLowerCase().includes(needle);
  const runs = [...(list === 'live' ? model.live.values() : model.ended)];
  const selected = runs.filter((run) => isOfKind(run) && isFound(run));
  if (sort === 'given') return selected;
  const direction = descending ? -1 : 1;
  // Those that are equal stay in the order in which they began: rows that change places for nothing cannot be read.
  return selected.sort((one, other) => direction * ORDERS[sort](one, other) || one.key - other.key);
}
