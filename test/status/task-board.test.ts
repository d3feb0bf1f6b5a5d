import { describe, expect, it } from 'vitest';
import type { Owner } from '../../src/checkpoint/store.ts';
import type { ObservedStep } from '../../src/proxy/run/context/run-observer.ts';
import { BoardChanges, RunBoard } from '../../src/status/run-board.ts';
import { attempt, begin, RESET, runId, StandingTime } from './observed.ts';

const NAME = 'sell-the-house-of-ann';
const step = (number: number, task = NAME, owner = 'an owner'): ObservedStep => ({
  task,
  number,
  owner: owner as Owner,
});
const usage = { prompt_tokens: 90, completion_tokens: 10, total_tokens: 100 };

function createBoard(content = false) {
  const time = new StandingTime();
  return { time, board: new RunBoard({ time, content }) };
}

/** A step that was answered at once. */
function answer(board: RunBoard, number: number, task = NAME) {
  const { watch } = begin(board, { run: runId(`${task}-${number}`), step: step(number, task) });
  watch.attempt(attempt(1));
  watch.answering();
  watch.attemptEnded({ outcome: 'complete', added: 10, usage });
  watch.ended({ outcome: 'complete' });
}

describe('a task on the board', () => {
  it('is what its steps do: answering, recovering, idle, or failed', () => {
    const { board, time } = createBoard();
    const began_at_ms = time.wall_ms;
    answer(board, 1);
    expect(board.tasks.read().tasks).toMatchObject([
      { state: 'idle', steps: 1, began_at_ms, step_at_ms: began_at_ms, idle_since_ms: began_at_ms },
    ]);
    time.wall_ms += 1000;
    const { watch } = begin(board, { run: runId(2), step: step(2) });
    const state = () => board.tasks.read().tasks[0];
    expect(state()).toMatchObject({ state: 'answering', steps: 2, step_at_ms: began_at_ms + 1000 });
    expect(state()).not.toHaveProperty('idle_since_ms');
    watch.attempt(attempt(1));
    watch.attemptEnded({ outcome: 'interrupted', added: 4, interruption: RESET });
    expect(state()).toMatchObject({ state: 'recovering', recoveries: 0 });
    watch.planned({ plan: 'R1', wait_ms: 0 });
    watch.attempt(attempt(2));
    watch.answering();
    watch.recovered({ plan: 'R1', mode: 'prefill', gap_ms: 12 });
    expect(state()).toMatchObject({ state: 'answering', recoveries: 1 });
    time.wall_ms += 500;
    watch.ended({ outcome: 'failed' });
    expect(state()).toMatchObject({ state: 'failed', idle_since_ms: began_at_ms + 1500 });
    board.replayed({ step: step(2), tokens: 100 });
    expect(state()).toMatchObject({ state: 'idle', steps: 2 });
  });

  it('counts what its attempts have cost, and what its replays have saved', () => {
    const { board } = createBoard();
    answer(board, 1);
    answer(board, 2);
    for (const tokens of [100, 100]) board.replayed({ step: step(1), tokens });
    board.replayed({ step: step(3), tokens: 7 });
    expect(board.tasks.read().tasks).toMatchObject([{ steps: 3, tokens_paid: 200, tokens_saved: 207 }]);
    const [{ task } = { task: '' }] = board.tasks.read().tasks;
    expect(board.tasks.detail(task)?.shown).toMatchObject([
      { number: 1, replays: 2, stays: [{ outcome: 'complete', step: 1, task }] },
      { number: 2, replays: 0 },
      { number: 3, replays: 1, stays: [] },
    ]);
  });

  it('counts a step once, even if it is replayed after its run is forgotten', () => {
    const { board } = createBoard();
    for (let number = 1; number <= 60; number++) answer(board, number);
    board.replayed({ step: step(1), tokens: 100 });
    expect(board.tasks.read().tasks).toMatchObject([{ steps: 60 }]);
  });

  it('counts an answer that was finished with what was settled as recovered', () => {
    const { board } = createBoard();
    const { watch } = begin(board, { step: step(1) });
    watch.attemptEnded({ outcome: 'interrupted', added: 4, interruption: RESET });
    watch.planned({ plan: 'R2', wait_ms: 0 });
    expect(board.tasks.read().tasks).toMatchObject([{ recoveries: 1 }]);
  });

  it('is one of its owner: the same name of another one is another task', () => {
    const { board } = createBoard();
    for (const owner of ['one', 'other', 'one']) begin(board, { step: step(1, NAME, owner) });
    expect(board.tasks.read().tasks.map(({ steps }) => steps)).toEqual([1, 1]);
  });

  it('says its name only where content is shown', () => {
    for (const content of [false, true]) {
      const { board } = createBoard(content);
      answer(board, 1, 'a\u202eb');
      const [task] = board.tasks.read().tasks;
      expect(task?.task).toMatch(/^task_[\w-]{16}$/);
      expect(task?.name).toBe(content ? 'a\ufffdb' : undefined);
    }
  });

  it('says which task it is a part of, as its first step that names one has it', () => {
    const { board } = createBoard();
    answer(board, 1, 'T1');
    board.replayed({ step: step(1), tokens: 5 });
    for (const parent of ['T1', 'T2']) begin(board, { step: { ...step(2), parent } });
    const [child, parent] = board.tasks.read().tasks;
    expect(parent).not.toHaveProperty('parent');
    expect(child?.parent).toBe(parent?.task);
    expect(child).not.toHaveProperty('parent_name');
  });

  it('is known as a part of another one by a replay alone, and says the name of that one where content is shown', () => {
    const { board } = createBoard(true);
    board.replayed({ step: { ...step(1), parent: `T\u202e${'1'.repeat(100)}` }, tokens: 5 });
    const [task] = board.tasks.read().tasks;
    expect(task?.parent).toMatch(/^task_[\w-]{16}$/);
    expect(task?.parent_name).toBe(`T\ufffd${'1'.repeat(77)}…`);
  });

  it('shows the stays of a run that was left and continued as one step, and of a number the latest run', () => {
    const { board } = createBoard();
    const again = { run: runId('again'), step: step(1) };
    for (const outcome of ['handed_over', 'complete'] as const) begin(board, again).watch.ended({ outcome });
    const [{ task } = { task: '' }] = board.tasks.read().tasks;
    const shown = () => board.tasks.detail(task)?.shown.map(({ stays }) => stays.map(({ run }) => run));
    expect(shown()).toEqual([[again.run, again.run]]);
    begin(board, { run: runId('other'), step: step(1) });
    expect(shown()).toEqual([[runId('other')]]);
  });
});

describe('the tasks of the board', () => {
  it('are listed with the last one that had a step first', () => {
    const { board } = createBoard(true);
    for (const task of ['a', 'b', 'a']) answer(board, 1, task);
    expect(board.tasks.read().tasks.map(({ name }) => name)).toEqual(['a', 'b']);
  });

  it('are bounded, and so are the steps of each', () => {
    const { board } = createBoard();
    for (let number = 1; number <= 70; number++) answer(board, number);
    const [{ task } = { task: '' }] = board.tasks.read().tasks;
    expect(board.tasks.read().tasks).toMatchObject([{ steps: 70 }]);
    expect(board.tasks.detail(task)?.shown.map(({ number }) => number)).toEqual(
      Array.from({ length: 50 }, (_, index) => index + 21),
    );
    for (let count = 1; count <= 100; count++) answer(board, 1, `task ${count}`);
    expect(board.tasks.read().tasks).toHaveLength(100);
    expect(board.tasks.detail(task)).toBeUndefined();
  });

  it('keep their runs when the list of ended runs has forgotten them, without what they have said', () => {
    const { board } = createBoard(true);
    const { watch, answer: said } = begin(board, { step: step(1) });
    said.text = 'the answer';
    watch.ended({ outcome: 'complete' });
    expect(board.detail(runId(1))?.text).toBe('the answer');
    for (let count = 0; count < 200; count++) {
      begin(board, { run: runId(`other-${count}`) }).watch.ended({ outcome: 'complete' });
    }
    expect(board.detail(runId(1))).toMatchObject({ outcome: 'complete', text: '' });
  });

  it('reach viewers once they have changed', () => {
    const { board } = createBoard();
    const changes = new BoardChanges();
    board.changes = changes;
    answer(board, 1);
    expect(changes.collect(board.live)?.tasks).toMatchObject([{ state: 'idle', steps: 1 }]);
    expect(changes.collect(board.live)).toEqual({});
    board.replayed({ step: step(1), tokens: 5 });
    expect(changes.collect(board.live)).toMatchObject({ tasks: [{ tokens_saved: 5 }] });
  });
});
