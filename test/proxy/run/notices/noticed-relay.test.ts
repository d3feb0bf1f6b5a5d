import { describe, expect, test } from 'vitest';
import { CheckpointScheduler } from '../../../../src/checkpoint/checkpoint-scheduler.ts';
import type { WireName } from '../../../../src/checkpoint/journal.ts';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import { PauseWatch } from '../../../../src/lib/pause-watch.ts';
import type { RunContext } from '../../../../src/proxy/run/context/run-context.ts';
import { NO_OBSERVER } from '../../../../src/proxy/run/context/run-observer.ts';
import { NoticeBoard } from '../../../../src/proxy/run/notices/notice-board.ts';
import { noticedRelay } from '../../../../src/proxy/run/notices/noticed-relay.ts';
import { leaveThreadNote, threadKey, threadNote } from '../../../../src/proxy/run/notices/thread-notice.ts';
import { relay } from '../../../../src/proxy/run/relay.ts';
import type { Transport } from '../../../../src/proxy/upstream/transport.ts';
import { CapabilityMemory } from '../../../../src/proxy/wires/dialects/capability-memory.ts';
import { newRunId } from '../../../checkpoint/fixtures.ts';
import type { Fault } from '../../../provider/fault.ts';
import type { Plan } from '../../../provider/script.ts';
import { RecordingClient } from '../../../simulation/recording-client.ts';
import {
  configurationOf,
  METRICS,
  OWNER,
  RUN,
  runOf,
  SILENT_LOG,
  type SimulationOptions,
} from '../../../simulation/simulate.ts';
import { SimulatedProvider } from '../../../simulation/simulated-provider.ts';
import { readStream } from '../../../simulation/stream-reading.ts';
import { VirtualTime } from '../../../simulation/virtual-time.ts';

const TTL_MS = 604_800_000;
const TEXT = 'Kelp grips the rock through the surge.';
const SYSTEM = { role: 'system', content: 'Be brief.' };
const USER = { role: 'user', content: 'Tell me.' };
const NOTICE = expect.stringMatching(/^last_partial_recovery: \{.*"partial_tail":"The holdfast"\} /);
const refusal = (status: number): Fault => ({ kind: 'status', status, body: { error: { message: 'no' } } });

type Body = Readonly<Record<string, unknown>>;

/** One replica, with a note in its store for the thread `thread`. */
class Replica {
  readonly time = new VirtualTime();
  readonly store = new MemoryStore({ time: this.time, ttl_ms: TTL_MS });
  readonly #options: SimulationOptions;
  readonly #context: Omit<RunContext, 'transport'>;
  readonly #board: NoticeBoard;

  constructor(options: SimulationOptions = { request: { messages: [SYSTEM, USER] } }) {
    this.#options = options;
    this.#context = {
      configuration: configurationOf(options),
      store: this.store,
      scheduler: new CheckpointScheduler({ interval_ms: 100, time: this.time }),
      pauses: new PauseWatch(this.time, 1000),
      observer: NO_OBSERVER,
      capabilities: new CapabilityMemory(this.time),
      metrics: METRICS,
      log: SILENT_LOG,
      time: this.time,
      random: () => 0.5,
    };
    this.#board = new NoticeBoard(this.#context);
  }

  async leave(): Promise<void> {
    const end = { status: 'recovered_from_partial' } as const;
    const times = { created_at_ms: 0, interrupted_at_ms: 0 };
    const cut = { run: newRunId(), ...times, model: 'm', end, text: 'The holdfast', calls: [] };
    await leaveThreadNote(this.store.notes, OWNER, 'thread', threadNote(cut), TTL_MS);
  }

  /** Relays one run of the thread and returns what its provider was asked. */
  async ask(plan: Plan | ((attempt: number) => Plan), id = RUN) {
    const provider = new SimulatedProvider(plan, this.time);
    const client = new RecordingClient();
    const run = { ...runOf(this.#options, new AbortController().signal, true), id, thread: 'thread' };
    const bodies: Body[] = [];
    const transport: Transport = {
      open(request) {
        bodies.push(JSON.parse(String(request.body)) as Body);
        return provider.open(request);
      },
      close: async () => {},
    };
    const context = { ...this.#context, transport };
    const outcome = await this.time.drive(noticedRelay(relay, this.#board)(run, client, context));
    const messages = provider.requests.map(({ body }) => body.messages);
    const left = provider.requests.map(({ aborted }) => aborted);
    return { outcome, client, messages, left, bodies };
  }
}

async function told(plan: Plan | ((attempt: number) => Plan), options?: SimulationOptions) {
  const replica = new Replica(options);
  await replica.leave();
  return { replica, ...(await replica.ask(plan)) };
}

const WHOLE: Plan = { parts: [{ text: TEXT }] };
const textOf = ({ body }: RecordingClient) => readStream(body, { live: false }).text;

describe('the model is told', () => {
  test('by the next request of the thread, and by no other', async () => {
    const { replica, messages } = await told(WHOLE);
    expect(messages).toEqual([[SYSTEM, { role: 'system', content: NOTICE }, USER]]);
    expect((await replica.ask(WHOLE, newRunId())).messages).toEqual([[SYSTEM, USER]]);
  });

  test('by every request that is made for the run', async () => {
    const { messages, client } = await told({ ...WHOLE, faults: [{ kind: 'reset', at: { event: 4 } }] });
    expect(messages).toHaveLength(2);
    expect(messages[1]?.slice(0, 3)).toEqual([SYSTEM, { role: 'system', content: NOTICE }, USER]);
    expect(messages[1]?.map(({ role }) => role).slice(3)).toEqual(['assistant', 'user']);
    expect(textOf(client)).toBe(TEXT);
  });

  test('while the journal keeps what the client sent', async () => {
    const { replica } = await told(WHOLE);
    const stored = await replica.store.read(RUN, OWNER, 0);
    expect(JSON.parse(stored?.records[0]?.header?.body ?? '')).toMatchObject({ messages: [SYSTEM, USER] });
  });

  test('again, when the first request was rejected', async () => {
    const { replica, client } = await told({ ...WHOLE, faults: [refusal(401)] });
    expect(client.rejection?.status).toBe(401);
    const { messages } = await replica.ask(WHOLE, newRunId());
    expect(messages[0]?.[1]).toEqual({ role: 'system', content: NOTICE });
  });
});

describe('a provider that refuses a second system message', () => {
  const refusing =
    (attempts: number) =>
    (attempt: number): Plan =>
      attempt <= attempts ? { ...WHOLE, faults: Array(attempts).fill(refusal(400)) } : WHOLE;

  test('is told in the first one, on a connection that does not wait for the end of the refusal', async () => {
    const { messages, client, left } = await told(refusing(1));
    expect(left[0]).toBe(true);
    expect(messages[1]).toEqual([
      { role: 'system', content: expect.stringMatching(/^Be brief\.\n\nlast_partial_recovery: /) },
      USER,
    ]);
    expect(textOf(client)).toBe(TEXT);
  });

  test('and that one as well costs its client nothing', async () => {
    const { replica, messages, client } = await told(refusing(2));
    expect(messages).toHaveLength(3);
    expect(messages[2]).toEqual([SYSTEM, USER]);
    expect(textOf(client)).toBe(TEXT);
    // The notice would be refused again.
    expect((await replica.ask(WHOLE, newRunId())).messages).toEqual([[SYSTEM, USER]]);
  });

  test('is not to blame when it refuses the request in any form', async () => {
    const { replica, messages, client } = await told({ ...WHOLE, faults: Array(3).fill(refusal(400)) });
    expect(messages).toHaveLength(3);
    expect(client.rejection?.status).toBe(400);
    const { messages: next } = await replica.ask(WHOLE, newRunId());
    expect(next[0]?.[1]).toEqual({ role: 'system', content: NOTICE });
  });
});

describe('on other wires', () => {
  const TEXT_NOTICE = { type: 'text', text: NOTICE };
  const ITEM = { type: 'message', role: 'system', content: NOTICE };
  const JOINED = expect.stringMatching(/^Tell me\.\n\nlast_partial_recovery: /);
  const refused = (times: number): Plan => ({ ...WHOLE, faults: Array(times).fill(refusal(400)) });

  /** How the three forms change a request, in order. */
  const FORMS: readonly [WireName, object, readonly object[]][] = [
    [
      'messages',
      { messages: [USER] },
      [
        { messages: [{ ...USER, content: JOINED }] },
        { messages: [USER], system: NOTICE },
        { messages: [USER] },
      ],
    ],
    [
      'messages',
      { messages: [USER], system: [{ type: 'text', text: 'Be brief.' }] },
      [
        { messages: [{ ...USER, content: JOINED }], system: [{ type: 'text', text: 'Be brief.' }] },
        { messages: [USER], system: [{ type: 'text', text: 'Be brief.' }, TEXT_NOTICE] },
        { messages: [USER], system: [{ type: 'text', text: 'Be brief.' }] },
      ],
    ],
    [
      'responses',
      { messages: [USER] },
      [{ input: [ITEM, USER] }, { input: [USER], instructions: NOTICE }, { input: [USER] }],
    ],
  ];

  test.each(FORMS)('the model is told in every form that %s has', async (wire, request, forms) => {
    for (const [refusals, form] of forms.entries()) {
      const { bodies, outcome } = await told(refused(refusals), { wire, request });
      expect(outcome).toBe('complete');
      expect(bodies).toHaveLength(refusals + 1);
      expect(bodies.at(-1)).toMatchObject(form);
      const isTold = JSON.stringify(bodies.at(-1)).includes('last_partial_recovery');
      expect(isTold).toBe(refusals < 2);
    }
  });

  test.each(FORMS)('a request for the rest says it where the first one did, on %s', async (wire, request) => {
    const cut: Plan = { ...WHOLE, faults: [{ kind: 'reset', at: { event: 8 } }] };
    const { bodies, client } = await told(cut, { wire, request });
    expect(bodies).toHaveLength(2);
    const [first, rest] = bodies.map(({ system, messages, input }) => ({
      system,
      head: (messages ?? input) as object[],
    }));
    expect(rest?.system).toEqual(first?.system);
    expect(rest?.head.slice(0, first?.head.length)).toEqual(first?.head);
    expect(rest?.head).toHaveLength((first?.head.length ?? 0) + 2);
    expect(JSON.stringify(rest).split('last_partial_recovery')).toHaveLength(2);
    expect(client.body).toContain('surge');
  });

  test('a request with only a prompt carries no notice, which waits for another one', async () => {
    const { replica, bodies } = await told(WHOLE, { wire: 'completions' });
    expect(JSON.stringify(bodies)).not.toContain('last_partial_recovery');
    expect(await replica.store.notes.get(OWNER, threadKey('thread'))).toBeDefined();
  });
});
