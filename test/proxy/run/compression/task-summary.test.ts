import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import { NOTE_CHARACTERS_MAX, type Notes } from '../../../../src/checkpoint/notes.ts';
import { middleOf } from '../../../../src/plans/compression.ts';
import { type TakenApart, takenApart } from '../../../../src/proxy/run/compression/omission.ts';
import {
  keepForTask,
  middleOfSummary,
  summaryOfTask,
  type TaskSummary,
  taskSummary,
} from '../../../../src/proxy/run/compression/task-summary.ts';
import type { Run } from '../../../../src/proxy/run/context/run.ts';
import type { RunContext } from '../../../../src/proxy/run/context/run-context.ts';
import { chatConversation } from '../../../../src/proxy/wires/chunks/chat-conversation.ts';
import type { WireRequest } from '../../../../src/proxy/wires/common/wire.ts';
import { CASES, seedOr } from '../../../cases.ts';
import { expectShares } from '../../../shares.ts';
import { DEFAULTS, OWNER, RUN, SILENT_LOG } from '../../../simulation/simulate.ts';
import { VirtualTime } from '../../../simulation/virtual-time.ts';

const SEED = seedOr(20_261_128);
const RUNS = { seed: SEED, numRuns: CASES };

interface Message {
  readonly role: string;
  readonly content: string;
}

function apart(messages: readonly Message[]): TakenApart {
  const request = { model: 'model', messages } as unknown as WireRequest;
  const taken = takenApart(chatConversation as Parameters<typeof takenApart>[0], request);
  if (!taken) throw new Error('it is a conversation');
  return taken;
}

const message = fc.record(
  {
    role: fc.constantFrom('system', 'user', 'assistant', 'assistant'),
    content: fc.string({ maxLength: 6 }),
  },
  { noNullPrototype: true },
);
const some = fc.array(message, { maxLength: 12 });

describe('the summary that is kept for a task', () => {
  it(`stands for the same messages in whatever the conversation becomes (${RUNS.numRuns} cases, seed ${SEED})`, () => {
    let kept = 0;
    let joined = 0;
    fc.assert(
      fc.property(some, some, fc.integer({ min: 1, max: 4 }), fc.nat(), (before, after, keep, place) => {
        const first = apart(before);
        const middle = middleOf(first.parts, keep);
        if (!middle) return;
        kept++;
        if (middle.joined_to !== undefined) joined++;
        const stored = JSON.parse(JSON.stringify(taskSummary('Tides.', first, middle)));
        expect(middleOfSummary(stored, apart([...before, ...after]), keep)).toEqual(middle);
        // Not if more messages have to stay than it allows.
        expect(middleOfSummary(stored, first, before.length)).toBeUndefined();

        const told = [...middle.left_out, middle.joined_to].filter((index) => index !== undefined);
        const changed = told[place % told.length] as number;
        const other = before.with(changed, { role: 'user', content: 'Something else.' });
        expect(middleOfSummary(stored, apart([...other, ...after]), keep)).toBeUndefined();
        const without = [...before.toSpliced(changed, 1), ...after];
        // An identical message may have taken its place.
        const isSaid = told.every((index) => isDeepStrictEqual(without[index], before[index]));
        if (!isSaid) expect(middleOfSummary(stored, apart(without), keep)).toBeUndefined();
        expect(middleOfSummary(stored, apart(before.slice(0, changed)), keep)).toBeUndefined();
      }),
      RUNS,
    );
    expectShares({ kept, joined }, RUNS.numRuns, { kept: 1 / 2, joined: 1 / 20 });
  });

  it('stands for the same messages where only instructions have changed', () => {
    const at = (time: string) => [
      { role: 'system', content: `It is ${time}.` },
      { role: 'user', content: 'When is high water?' },
      ...Array.from({ length: 4 }, (_, hour) => ({ role: 'assistant', content: `Not at ${hour}.` })),
      { role: 'user', content: 'And tomorrow?' },
    ];
    const first = apart(at('nine'));
    const middle = middleOf(first.parts, 1);
    if (!middle) throw new Error('nothing is left out');
    expect(middleOfSummary(taskSummary('Tides.', first, middle), apart(at('ten')), 1)).toEqual(middle);
  });
});

describe('the store of a summary', () => {
  const KEPT = { end: 3, summary: 'Tides.', digest: '00' };
  const run = { id: RUN, owner: OWNER, step: { task: 'tides', number: 2 } } as unknown as Run;

  function situation(notes: Partial<Notes> = {}) {
    const time = new VirtualTime();
    const memory = new MemoryStore({ time, ttl_ms: 1000 });
    const store = {
      notes: { put: memory.notes.put.bind(memory.notes), get: memory.notes.get.bind(memory.notes), ...notes },
    };
    const context = { store, time, log: SILENT_LOG, configuration: DEFAULTS } as unknown as RunContext;
    return {
      keep: (summary: TaskSummary) => time.drive(keepForTask(run, summary, context)),
      find: (of = run) => time.drive(summaryOfTask(of, context)),
    };
  }

  it('has it for the task of its owner, and for no other run', async () => {
    const { keep, find } = situation();
    expect(await find()).toBeUndefined();
    await keep(KEPT);
    expect(await find()).toEqual(KEPT);
    expect(await find({ ...run, step: { task: 'other', number: 2 } })).toBeUndefined();
    expect(await find({ ...run, owner: 'other' as typeof OWNER })).toBeUndefined();
    const { step: _, ...alone } = run;
    expect(await find(alone)).toBeUndefined();
  });

  it.each<[string, Partial<Notes>]>([
    ['refuses', { get: () => Promise.reject(new Error('no')), put: () => Promise.reject(new Error('no')) }],
    ['is silent', { get: () => new Promise(() => {}), put: () => new Promise(() => {}) }],
  ])('lets the request go out as it would without: it %s', async (_, notes) => {
    const { keep, find } = situation(notes);
    await keep(KEPT);
    expect(await find()).toBeUndefined();
  });

  it('does not take one that is longer than a note', async () => {
    const { keep, find } = situation();
    await keep({ ...KEPT, summary: 'x'.repeat(NOTE_CHARACTERS_MAX) });
    expect(await find()).toBeUndefined();
  });
});
