import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { CASES, PROPERTY_MAX_MS, seedOr } from '../cases.ts';
import { expectShares } from '../shares.ts';

interface Task {
  readonly task: string;
  readonly parent?: string | undefined;
  readonly tokens_paid: number;
  readonly tokens_saved: number;
  readonly step_at_ms: number;
}

interface Totals extends Omit<Task, 'task' | 'parent'> {
  readonly below: number;
}

interface Row extends Task {
  readonly depth: number;
  readonly isFolded?: boolean;
}

/** The page's modules are plain JavaScript. */
const PAGE = new URL('../../src/status/page/', import.meta.url);
const { treeOf, withTotals } = (await import(new URL('task-tree.js', PAGE).href)) as {
  treeOf(tasks: readonly Task[], folded: ReadonlySet<string>): readonly Row[];
  withTotals(tasks: readonly Task[]): readonly (Task & { readonly total: Totals })[];
};

const SEED = seedOr(Date.now() % 2 ** 31);
const DEPTH_MAX = 6;
const NONE: ReadonlySet<string> = new Set();

const taskOf = (task: string, parent?: string, tokens_paid = 1): Task => ({
  task,
  ...(parent !== undefined && { parent }),
  tokens_paid,
  tokens_saved: 10 * tokens_paid,
  step_at_ms: tokens_paid,
});

/** As a reader sees it. */
const drawn = (tasks: readonly Task[], folded = NONE) =>
  treeOf(tasks, folded).map(({ task, depth }) => '  '.repeat(depth) + task);

describe('the tree of tasks', () => {
  it('has each task below its parent, and siblings in the order in which they came', () => {
    const tasks = [taskOf('c', 'b'), taskOf('e', 'a'), taskOf('f'), taskOf('b', 'a'), taskOf('a')];
    expect(drawn(tasks)).toEqual(['f', 'a', '  e', '  b', '    c']);
  });

  it('has what is a part of an unknown task at the top', () => {
    expect(drawn([taskOf('a', 'gone'), taskOf('b', 'a')])).toEqual(['a', '  b']);
  });

  it('has tasks that are above themselves at the top, and below them what is a part of them', () => {
    const tasks = [taskOf('a', 'a'), taskOf('b', 'c'), taskOf('c', 'b'), taskOf('d', 'c')];
    expect(drawn(tasks)).toEqual(['a', 'b', 'c', '  d']);
  });

  it('says of a task with others below it whether it is folded, and shows nothing below one that is', () => {
    const tasks = [taskOf('a'), taskOf('b', 'a'), taskOf('c', 'b'), taskOf('d')];
    expect(treeOf(tasks, NONE).map(({ isFolded }) => isFolded)).toEqual([false, false, undefined, undefined]);
    expect(treeOf(tasks, new Set(['a'])).map(({ isFolded }) => isFolded)).toEqual([true, undefined]);
    expect(drawn(tasks, new Set(['b', 'd']))).toEqual(['a', '  b', 'd']);
  });

  it('sums up what a task and all below it have come to', () => {
    const tasks = [
      taskOf('a', undefined, 1),
      taskOf('b', 'a', 20),
      taskOf('c', 'b', 300),
      taskOf('d', 'a', 4000),
    ];
    expect(withTotals(tasks).map(({ total }) => total)).toEqual([
      { below: 3, tokens_paid: 4321, tokens_saved: 43_210, step_at_ms: 4000 },
      { below: 1, tokens_paid: 320, tokens_saved: 3200, step_at_ms: 300 },
      { below: 0, tokens_paid: 300, tokens_saved: 3000, step_at_ms: 300 },
      { below: 0, tokens_paid: 4000, tokens_saved: 40_000, step_at_ms: 4000 },
    ]);
  });
});

/** Up to 40 tasks in trees of any depth and width; some are part of themselves, of each other, or of unknown tasks. */
const families = fc.integer({ min: 1, max: 40 }).chain((count) => {
  const near = fc.integer({ min: 1, max: 3 }).map((by) => (nth: number) => nth - by);
  const any = fc.nat(count).map((other) => () => other);
  const none = fc.constant(() => undefined);
  const parent = fc.oneof({ weight: 6, arbitrary: near }, { weight: 1, arbitrary: any }, none);
  const numbers = fc.array(fc.record({ parent, tokens: fc.nat(1000) }), {
    minLength: count,
    maxLength: count,
  });
  return numbers
    .map((all) =>
      all.map(({ parent: parentOf, tokens }, nth) => taskOf(`${nth}`, parentOf(nth)?.toString(), tokens)),
    )
    .chain((tasks) => fc.shuffledSubarray(tasks, { minLength: count }));
});

const idsOf = (tasks: readonly Task[]) => tasks.map(({ task }) => task);

test('whatever parents are named, each task is there once, within the block of its parent, and sums lose nothing', {
  timeout: PROPERTY_MAX_MS,
}, () => {
  const counts = { circular: 0, deep: 0, unknown: 0 };
  const property = fc.property(families, (tasks) => {
    const named = new Map(tasks.map(({ task, parent }) => [task, parent]));
    /** A task's ancestors, nearest first; they include the task itself if they form a cycle. */
    const above = (task: string): string[] => {
      const found: string[] = [];
      for (let id = named.get(task); id !== undefined && named.has(id); id = named.get(id)) {
        if (found.includes(id)) break;
        found.push(id);
      }
      return found;
    };
    const parentOf = (task: string) => (above(task).includes(task) ? undefined : above(task)[0]);
    const rows = treeOf(tasks, NONE);
    expect(idsOf(rows).toSorted()).toEqual(idsOf(tasks).toSorted());
    const siblings = (all: readonly Task[]) => Object.groupBy(idsOf(all), (task) => parentOf(task) ?? 'top');
    expect(siblings(rows)).toEqual(siblings(tasks));
    const at = new Map(idsOf(rows).map((task, index) => [task, index]));
    for (const [index, { task, depth }] of rows.entries()) {
      const parent = parentOf(task);
      const start = parent === undefined ? undefined : at.get(parent);
      if (parent === undefined || start === undefined) {
        expect(depth).toBe(0);
        continue;
      }
      expect(start).toBeLessThan(index);
      expect(depth).toBe(Math.min((rows[start]?.depth ?? 0) + 1, DEPTH_MAX));
      // Only descendants of the parent come in between.
      for (const { task: between } of rows.slice(start + 1, index)) expect(above(between)).toContain(parent);
    }

    const summed = withTotals(tasks);
    expect(idsOf(summed)).toEqual(idsOf(tasks));
    const roots = summed.filter(({ task }) => parentOf(task) === undefined);
    const paid = (all: readonly { readonly tokens_paid: number }[]) =>
      all.reduce((sum, { tokens_paid }) => sum + tokens_paid, 0);
    expect(paid(roots.map(({ total }) => total))).toBe(paid(tasks));
    expect(roots.reduce((sum, { total }) => sum + 1 + total.below, 0)).toBe(tasks.length);

    const folded = new Set(idsOf(tasks).filter((_, index) => index % 3 === 0));
    const isHidden = (task: string): boolean => {
      const parent = parentOf(task);
      return parent !== undefined && (folded.has(parent) || isHidden(parent));
    };
    expect(idsOf(treeOf(tasks, folded))).toEqual(idsOf(rows).filter((task) => !isHidden(task)));

    if (idsOf(tasks).some((task) => above(task).includes(task))) counts.circular++;
    if (rows.some(({ depth }) => depth === DEPTH_MAX)) counts.deep++;
    if (tasks.some(({ parent }) => parent !== undefined && !named.has(parent))) counts.unknown++;
  });
  fc.assert(property, { seed: SEED, numRuns: CASES });
  expectShares(counts, CASES, { circular: 1 / 5, deep: 1 / 10, unknown: 1 / 5 });
});
