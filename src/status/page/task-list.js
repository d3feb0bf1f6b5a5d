import { byText } from './select.js';
import { withTotals } from './task-tree.js';

const hasState = (wanted) => (task) => task.state === wanted;

export const nameOf = ({ name, task }) => name ?? task;
export const parentNameOf = ({ parent_name, parent }) => parent_name ?? parent;

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
    tokens_paid: (one, other) => one.total.tokens_paid - other.total.tokens_paid,
    tokens_saved: (one, other) => one.total.tokens_saved - other.total.tokens_saved,
    // The last to begin is the youngest.
    age: (one, other) => other.began_at_ms - one.began_at_ms,
  },
  // A search for a task's name also finds its subtasks.
  textOf: ({ name = '', task, parent_name = '', parent = '' }) => `${name} ${task} ${parent_name} ${parent}`,
  begun: ({ began_at_ms }) => began_at_ms,
  /** An agent that waits for its sub-agents is placed by their latest step. */
  all: (model) => withTotals(model.tasks).sort((one, other) => other.total.step_at_ms - one.total.step_at_ms),
};
