/** Maximum indentation of rows. */
const DEPTH_MAX = 6;

/**
 * The tasks, each with totals for itself and all tasks below it: `total` has both token sums, the number of tasks
 * `below` and the start of their latest step.
 */
export function withTotals(tasks) {
  const parents = parentsOf(tasks);
  const totals = new Map();
  for (const { task, tokens_paid, tokens_saved, step_at_ms } of tasks) {
    for (let id = task; id !== undefined; id = parents.get(id)) {
      const total = totals.get(id) ?? { below: 0, tokens_paid: 0, tokens_saved: 0, step_at_ms: 0 };
      totals.set(id, {
        below: total.below + (id === task ? 0 : 1),
        tokens_paid: total.tokens_paid + tokens_paid,
        tokens_saved: total.tokens_saved + tokens_saved,
        step_at_ms: Math.max(total.step_at_ms, step_at_ms),
      });
    }
  }
  return tasks.map((task) => ({ ...task, total: totals.get(task.task) }));
}

/**
 * The rows of a tree: each task is followed by its subtasks in the given order and has its `depth`, 0 at the top. A
 * task with subtasks has `isFolded`, which is true and hides them if its id is in the set `folded`.
 */
export function treeOf(tasks, folded) {
  const parents = parentsOf(tasks);
  const parts = Map.groupBy(tasks, ({ task }) => parents.get(task));
  const rowsBelow = (parent, depth) =>
    (parts.get(parent) ?? []).flatMap((task) => {
      const { task: id } = task;
      if (!parts.has(id)) return [{ ...task, depth }];
      const isFolded = folded.has(id);
      const below = isFolded ? [] : rowsBelow(id, Math.min(depth + 1, DEPTH_MAX));
      return [{ ...task, depth, isFolded }, ...below];
    });
  return rowsBelow(undefined, 0);
}

/**
 * The parent of each task, if it is among them. Clients name parents, so tasks in a cycle are treated as having none.
 */
function parentsOf(tasks) {
  const named = new Map(tasks.map(({ task, parent }) => [task, parent]));
  return new Map([...named].filter(([task, parent]) => named.has(parent) && !isAboveItself(task, named)));
}

function isAboveItself(task, named) {
  const passed = new Set();
  let above = named.get(task);
  while (above !== undefined && above !== task && !passed.has(above)) {
    passed.add(above);
    above = named.get(above);
  }
  return above === task;
}
