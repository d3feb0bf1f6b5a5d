import { byText } from './select.js';

const hasState = (wanted) => (task) => task.state === wanted;

export const nameOf = ({ name, task }) => name ?? task;

export const TASKS = {
  kinds: {
    all: () => true,
    answering: hasState('answering'),
    recovering: hasState('recovering'),
    idle: hasState('idle'),
    failed: hasState('failed'),
  },
  orders: {
    task: byText(nameOf),
    state: byText(({ state }) => state),
    steps: (one, other) => one.steps - other.steps,
    recoveries: (one, other) => one.recoveries - other.recoveries,
    tokens_paid: (one, other) => one.tokens_paid - other.tokens_paid,
    tokens_saved: (one, other) => one.tokens_saved - other.tokens_saved,
    // The last to begin is the youngest.
    age: (one, other) => other.began_at_ms - one.began_at_ms,
  },
  textOf: ({ name = '', task }) => `${name} ${task}`,
  begun: ({ began_at_ms }) => began_at_ms,
  all: (model) => model.tasks,
};
