import { byText } from './select.js';

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

const lasting = ({ created_at_ms, ended_at_ms = 0 }) => ended_at_ms - created_at_ms;

const RUNS = {
  orders: {
    run: byText(({ run }) => run),
    model: byText(({ model }) => model),
    upstream: byText(({ upstream }) => upstream),
    state: byText(({ outcome, state }) => outcome ?? state),
    attempt: (one, other) => one.attempt - other.attempt,
    characters: (one, other) => one.characters - other.characters,
    tool_calls: (one, other) => one.tool_calls - other.tool_calls,
    // Of the live runs, the last to begin is the youngest.
    age: (one, other) => lasting(one) - lasting(other),
  },
  textOf: ({ run, model, upstream, task = '' }) => `${run} ${model} ${upstream} ${task}`,
  begun: ({ key }) => key,
};

export const LIVE_RUNS = { ...RUNS, kinds: LIVE_KINDS, all: (model) => [...model.live.values()] };
export const ENDED_RUNS = { ...RUNS, kinds: ENDED_KINDS, all: (model) => model.ended };
