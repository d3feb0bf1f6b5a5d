import { describe, expect, test } from 'vitest';
import type { JournalRecord } from '../../../../src/checkpoint/journal.ts';
import { foldJournal } from '../../../../src/checkpoint/journal-fold.ts';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import type { Lease } from '../../../../src/checkpoint/store.ts';
import { sleep } from '../../../../src/lib/time.ts';
import { HAND_OVER, LEFT, type Run } from '../../../../src/proxy/run/context/run.ts';
import { lostCallKey, runWithLostCall } from '../../../../src/proxy/run/notices/lost-calls.ts';
import { cutNote } from '../../../../src/proxy/run/notices/record-notices.ts';
import { threadKey } from '../../../../src/proxy/run/notices/thread-notice.ts';
import { chatNotices } from '../../../../src/proxy/wires/chunks/chat-conversation.ts';
import { call, close, text, transcriptOf } from '../../../plans/saying.ts';
import type { Fault } from '../../../provider/fault.ts';
import type { Plan } from '../../../provider/script.ts';
import { TOOLS } from '../../../simulation/arbitraries.ts';
import {
  DEFAULTS,
  OWNER,
  RUN,
  type Simulation,
  type SimulationOptions,
  simulate,
} from '../../../simulation/simulate.ts';
import type { VirtualTime } from '../../../simulation/virtual-time.ts';

const NEVER = new AbortController().signal;
const TTL_MS = 604_800_000;
const ALWAYS = 10;
const TEXT = 'Kelp grips the rock through the surge.';
const forecast = (id: string, city = 'Paris') => ({
  id,
  name: 'forecast',
  arguments: JSON.stringify({ city }),
});
const reset = (event: number): Fault => ({ kind: 'reset', at: { event } });
/** Cut after the text has begun, and again before anything new arrives. */
const EXHAUSTED: Plan = { parts: [{ text: TEXT }], faults: [reset(4), ...Array(ALWAYS).fill(reset(0))] };
const STALLED: Plan = {
  parts: [{ text: TEXT }],
  faults: [4, ...Array<number>(ALWAYS).fill(0)].map((event) => ({ kind: 'silence', at: { event } })),
};
/** The first call is complete, the second one is cut. */
const HALF_CALLED: Plan = {
  parts: [{ text: 'I look.' }, { tool: forecast('call_a') }, { tool: forecast('call_b', 'Brest') }],
  faults: [reset(11)],
};

/** Longer than the provider takes, and shorter than a run waits for a store. */
const SLOW_MS = 100;
/** Longer than a run waits for a store. */
const ENDLESS_MS = 60_000;
/** The wait for the journal, and then for the notes. */
const WAIT_MAX_MS = 1000 + 250;

/** A store that takes its time, and records what it has done. */
class WitnessStore extends MemoryStore {
  readonly did: string[] = [];
  /** When the end of the stream was sent. */
  sent_at_ms = Number.POSITIVE_INFINITY;
  delay_ms = SLOW_MS;
  readonly #time: VirtualTime;

  constructor(time: VirtualTime) {
    super({ time, ttl_ms: TTL_MS });
    this.#time = time;
    const { put } = this.notes;
    Object.assign(this.notes, {
      put: async (...note: Parameters<typeof put>) => {
        await this.#answer();
        await put.apply(this.notes, note);
        this.did.push(`note:${note[1].kind}`);
      },
    });
  }

  override async append(lease: Lease, records: readonly JournalRecord[]): Promise<number> {
    await this.#answer();
    const seq = await super.append(lease, records);
    const kinds = records
      .flatMap(({ events }) => events)
      .flatMap(({ deltas }) => deltas.map(({ kind }) => kind));
    this.did.push(...kinds.map((kind) => `stored:${kind}`));
    return seq;
  }

  override async acquire(...asked: Parameters<MemoryStore['acquire']>): Promise<Lease> {
    await this.#answer();
    return super.acquire(...asked);
  }

  sent(what: 'error' | 'done'): void {
    this.did.push(`sent:${what}`);
    this.sent_at_ms = this.#time.now();
  }

  #answer(): Promise<void> {
    return sleep(this.#time, this.delay_ms, NEVER);
  }
}

async function witnessed(
  plan: Plan,
  options: SimulationOptions & { readonly delay_ms?: number } = {},
): Promise<{ store: WitnessStore; simulation: Simulation }> {
  let store: WitnessStore | undefined;
  const simulation = await simulate(plan, {
    request: { tools: TOOLS },
    thread: 'thread',
    ...options,
    store(time) {
      store = new WitnessStore(time);
      store.delay_ms = options.delay_ms ?? SLOW_MS;
      return store;
    },
    onWrite(client, leave) {
      options.onWrite?.(client, leave);
      const { body } = client;
      if (body.includes('data: {"error"')) store?.sent('error');
      if (body.endsWith('data: [DONE]\n\n')) store?.sent('done');
    },
  });
  if (!store) throw new Error('no store was opened');
  return { store, simulation };
}

const noteOf = async ({ notes }: WitnessStore) => {
  const value = await notes.get(OWNER, threadKey('thread'));
  return value === undefined ? undefined : (JSON.parse(value) as Record<string, unknown>);
};

describe('what was said is stored before the client is told that this was all', () => {
  test('when the run is given up, and so is the note for its thread', async () => {
    const { store } = await witnessed(EXHAUSTED);
    const sent = store.did.indexOf('sent:error');
    expect(sent).toBeGreaterThan(0);
    expect(store.did.slice(0, sent).filter((did) => did === 'stored:text')).toHaveLength(3);
    expect(store.did.slice(sent)).not.toContain('stored:text');
    expect(store.did.slice(0, sent)).toContain('note:thread');
  });

  test.each<[string, Plan, string, string]>([
    ['given up', EXHAUSTED, 'sent:error', 'stored:text'],
    ['salvaged', HALF_CALLED, 'sent:done', 'stored:tool_close'],
  ])('when it is %s and needs no notice', async (_, plan, end, said) => {
    const configuration = { resume: { ...DEFAULTS.resume, notices: false } };
    const { store } = await witnessed(plan, { configuration, recovery: { max_attempts: 1 } });
    const sent = store.did.indexOf(end);
    expect(store.did.slice(0, sent)).toContain(said);
    expect(store.did.slice(sent)).not.toContain(said);
  });

  test('when settled calls are the answer, and so is the note about those that were cut', async () => {
    const { store, simulation } = await witnessed(HALF_CALLED);
    expect(simulation.outcome).toBe('salvaged');
    const sent = store.did.indexOf('sent:done');
    expect(sent).toBeGreaterThan(0);
    expect(store.did.slice(0, sent)).toContain('stored:tool_close');
    expect(store.did.slice(sent)).not.toContain('stored:tool_close');
    // One for the run, and one for the call that was delivered.
    expect(store.did.slice(0, sent).filter((did) => did === 'note:lost_call')).toHaveLength(2);
  });

  test.each([
    ['given up', EXHAUSTED],
    ['salvaged', HALF_CALLED],
  ])('but a store that does not answer does not hold back for long a run that is %s', async (_, plan) => {
    const prompt = await witnessed(plan);
    const endless = await witnessed(plan, { delay_ms: ENDLESS_MS });
    expect(endless.simulation.client.body).toBe(prompt.simulation.client.body);
    expect(endless.store.sent_at_ms).toBeLessThanOrEqual(prompt.store.sent_at_ms + WAIT_MAX_MS);
  });
});

describe('a run that is given up', () => {
  test.each([
    ['a provider that breaks', EXHAUSTED, 'failed', 'connection_reset'],
    ['a clock of ours', STALLED, 'timeout_partial', 'idle_stall'],
  ])('because of %s leaves its thread a note', async (_, plan, status, cause) => {
    const { store, simulation } = await witnessed(plan);
    const stored = await store.read(RUN, OWNER, 0);
    expect(stored?.end).toMatchObject({ status, cause });
    expect(await noteOf(store)).toMatchObject({
      run: expect.stringMatching(/^run_/),
      status,
      cause,
      model: 'model',
      partial_tail: simulation.stream.text,
      interrupted_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
  });

  test.each<[string, Plan, SimulationOptions]>([
    ['it said nothing', { ...EXHAUSTED, faults: Array(ALWAYS).fill(reset(0)) }, {}],
    ['it is of no thread', EXHAUSTED, { thread: undefined as unknown as string }],
    [
      'notices are turned off',
      EXHAUSTED,
      { configuration: { resume: { ...DEFAULTS.resume, notices: false } } },
    ],
    ['it was not given up at all', { parts: [{ text: TEXT }], faults: [reset(4)] }, {}],
  ])('leaves none when %s', async (_, plan, options) => {
    const { store } = await witnessed(plan, options);
    expect(await noteOf(store)).toBeUndefined();
    expect(store.did).not.toContain('note:thread');
  });

  test('leaves none when a filter has stopped it', () => {
    const run = { id: 'run_x', thread: 'thread', request: { model: 'model' } } as unknown as Run;
    const turn = {
      run,
      transcript: transcriptOf(text(TEXT)),
      created_at_ms: 0,
      interrupted_at_ms: 0,
      unfinishedCalls: [],
      forwardedCalls: { settled: [], unfinished: [] },
    };
    expect(cutNote(turn, { status: 'failed', cause: 'provider_5xx' })).toMatchObject({ partial_tail: TEXT });
    expect(cutNote(turn, { status: 'failed', cause: 'content_filter' })).toBeUndefined();
  });

  test('says when it was interrupted, not when it was given up', async () => {
    const { store, simulation } = await witnessed(
      { parts: [{ text: TEXT }], faults: [reset(4), { kind: 'silence', at: { event: 0 } }] },
      { recovery: { max_attempts: 2 } },
    );
    const stored = await store.read(RUN, OWNER, 0);
    const interrupted_at_ms = Date.parse(String((await noteOf(store))?.interrupted_at));
    expect(simulation.outcome).toBe('failed');
    // The second attempt was silent until a clock expired.
    expect((stored?.end?.at_ms ?? 0) - interrupted_at_ms).toBeGreaterThan(60_000);
  });

  test('names the calls that were settled, and those that were not', () => {
    const transcript = transcriptOf(text(TEXT), call(0, 'forecast'), close(0), call(1, 'tides'));
    const run = { id: 'run_x', thread: 'thread', request: { model: 'model' } } as unknown as Run;
    const unfinishedCalls = transcript.openCalls;
    const forwardedCalls = { settled: [], unfinished: [] };
    const turn = { run, transcript, created_at_ms: 0, interrupted_at_ms: 0, unfinishedCalls, forwardedCalls };
    expect(cutNote(turn, { status: 'failed' })).toMatchObject({
      settled_calls: [{ id: transcript.closedCalls[0]?.id, name: 'forecast' }],
      unfinished_calls: [{ id: unfinishedCalls[0]?.id, name: 'tides' }],
    });
  });

  test('names a call that was held when nothing was left to try', async () => {
    const { store } = await witnessed({
      parts: [{ text: TEXT }, { tool: forecast('call_a') }],
      faults: [reset(12), ...Array(ALWAYS).fill(reset(0))],
    });
    expect(await noteOf(store)).toMatchObject({ unfinished_calls: [{ id: 'call_a', name: 'forecast' }] });
  });
});

describe('a run whose client has left without cancelling it', () => {
  /** The client leaves after some of the text. */
  const leaving = (reason: unknown): SimulationOptions => ({
    onWrite: ({ body }, leave) => {
      if (body.includes('grips')) leave(reason);
    },
  });

  test('leaves its thread the note that a run leaves whose replica died', async () => {
    const { store, simulation } = await witnessed({ parts: [{ text: TEXT }] }, leaving(LEFT));
    expect(simulation.outcome).toBe('cancelled');
    const stored = await store.read(RUN, OWNER, 0);
    expect(stored?.end).toMatchObject({ status: 'cancelled', cause: 'client_left' });
    const { text: said } = foldJournal(stored?.records ?? []);
    expect(said).toContain('grips');
    expect(await noteOf(store)).toMatchObject({ status: 'cancelled', cause: 'client_left', model: 'model' });
    expect(String((await noteOf(store))?.partial_tail)).toContain('grips');
  });

  test.each<[string, unknown, SimulationOptions]>([
    ['it was cancelled', Symbol('cancelled'), {}],
    ['it was handed over', HAND_OVER, {}],
    ['notices are turned off', LEFT, { configuration: { resume: { ...DEFAULTS.resume, notices: false } } }],
    ['it is of no thread', LEFT, { thread: undefined as unknown as string }],
  ])('leaves none when %s', async (_, reason, options) => {
    const { store } = await witnessed({ parts: [{ text: TEXT }] }, { ...leaving(reason), ...options });
    expect(await noteOf(store)).toBeUndefined();
  });
});

describe('calls that were cut', () => {
  const lostIn = ({ notes }: WitnessStore) => notes.get(OWNER, lostCallKey(RUN));

  /** A request that brings the results of the calls that the client was given. */
  const results = ({ stream }: Simulation) => [
    { role: 'user', content: 'Tell me.' },
    {
      role: 'assistant',
      content: stream.text,
      tool_calls: stream.toolCalls.map(({ id, name, arguments: json }) => ({
        id,
        type: 'function',
        function: { name, arguments: json },
      })),
    },
    ...stream.toolCalls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'rain' })),
  ];

  test('beside one that was delivered are found by its result', async () => {
    const { store, simulation } = await witnessed(HALF_CALLED);
    expect(simulation.stream.toolCalls).toEqual([forecast('call_a')]);
    expect(await lostIn(store)).toBe('["forecast"]');
    const answered = chatNotices.answeredCalls({ messages: results(simulation) });
    expect(await runWithLostCall(store.notes, OWNER, answered)).toBe(RUN);
  });

  test('are found by the id that a call was given because it came without one', async () => {
    const plan: Plan = {
      ...HALF_CALLED,
      parts: [{ text: 'I look.' }, { tool: forecast('') }, { tool: forecast('', 'Brest') }],
    };
    const { store, simulation } = await witnessed(plan);
    expect(simulation.stream.toolCalls).toHaveLength(1);
    const answered = chatNotices.answeredCalls({ messages: results(simulation) });
    expect(await runWithLostCall(store.notes, OWNER, answered)).toBe(RUN);
  });

  /** Text, then a call that is cut; the continuation has these parts instead. */
  const continued =
    (parts: Plan['parts']) =>
    (attempt: number): Plan =>
      attempt === 1
        ? { parts: [{ text: 'I look.' }, { tool: forecast('call_a') }], faults: [reset(6)] }
        : { parts: [{ text: 'I look.' }, ...parts] };

  test.each<[string, SimulationOptions['events'], Plan['parts'], string | undefined]>([
    [
      'and not made again, as the client could see',
      'chunks',
      [{ tool: { id: 'call_n', name: 'now', arguments: '{}' } }],
      '["forecast"]',
    ],
    ['and made again', 'chunks', [{ tool: forecast('call_c') }], undefined],
    [
      'and not made again, which no client could see',
      'none',
      [{ tool: { id: 'call_n', name: 'now', arguments: '{}' } }],
      undefined,
    ],
    ['and not made again, with no result to come', 'chunks', [], undefined],
  ])('while nothing was settled, %s', async (_, events = 'none', parts, lost) => {
    const plan = continued(parts);
    let store: WitnessStore | undefined;
    const { outcome } = await simulate(plan, {
      events,
      request: { tools: TOOLS },
      store: (time) => (store = new WitnessStore(time)),
    });
    expect(outcome).toBe('recovered');
    expect(store && (await lostIn(store))).toBe(lost);
  });

  test('are of no use to the legacy interface, which has no ids', async () => {
    const { store } = await witnessed(HALF_CALLED, { request: { functions: TOOLS } });
    expect(store.did).not.toContain('note:lost_call');
  });
});
