import { describe, expect, test } from 'vitest';
import type { Owner } from '../../../../src/checkpoint/store.ts';
import {
  type ObservedReplay,
  type ObservedRun,
  type ObservedSalvage,
  observers,
  type RunObservation,
  type RunObserver,
} from '../../../../src/proxy/run/context/run-observer.ts';
import type { Fault } from '../../../provider/fault.ts';
import type { Plan } from '../../../provider/script.ts';
import { TOOLS } from '../../../simulation/arbitraries.ts';
import { simulate } from '../../../simulation/simulate.ts';
import { simulateTakeovers } from '../../../simulation/takeovers.ts';

const TEXT = 'Kelp grips the rock through the surge and does not let go.';
const reset = (event: number): Fault => ({ kind: 'reset', at: { event } });
const cutText = (...faults: Fault[]): Plan => ({ parts: [{ text: TEXT }], faults });

/** Records what it observes, run by run. */
class Notebook implements RunObserver {
  readonly runs: { readonly run: ObservedRun; readonly told: unknown[][] }[] = [];
  readonly #headers: Record<string, string> | undefined;

  constructor(headers?: Record<string, string>) {
    this.#headers = headers;
  }

  begin(run: ObservedRun): RunObservation {
    const told: unknown[][] = [];
    this.runs.push({ run, told });
    return {
      attempt: (attempt) => {
        told.push(['attempt', attempt]);
        return this.#headers;
      },
      answering: () => void told.push(['answering', run.answer.characters]),
      attemptEnded: (end) => void told.push(['attemptEnded', end]),
      planned: (plan) => void told.push(['planned', plan]),
      recovered: (recovery) => void told.push(['recovered', recovery]),
      ended: (end) => void told.push(['ended', end]),
    };
  }

  get told(): unknown[][] {
    return this.runs.flatMap(({ told }) => told);
  }

  get kinds(): unknown[] {
    return this.told.map(([kind]) => kind);
  }
}

describe('an observer', () => {
  test('sees every attempt of a run that is cut twice, and how it continues', async () => {
    const notebook = new Notebook();
    await simulate({ ...cutText(reset(4), reset(3)), continuation: 'straight_on' }, { observer: notebook });

    expect(notebook.runs[0]?.run).toMatchObject({
      wire: 'chat_completions',
      model: 'model',
      upstream: 'default',
      streamed: true,
      resumable: false,
    });
    const gone = ['attemptEnded', 'planned', 'attempt', 'answering', 'recovered'];
    expect(notebook.kinds).toEqual(['attempt', 'answering', ...gone, ...gone, 'attemptEnded', 'ended']);
    expect(notebook.told[0]).toEqual([
      'attempt',
      { attempt: 1, upstream: 'default', mode: 'first', asked_model: 'model' },
    ]);
    expect(notebook.told[2]).toEqual([
      'attemptEnded',
      {
        outcome: 'interrupted',
        added: 14,
        interruption: {
          cause: 'connection_reset',
          phase: 'text',
          evidence: { kind: 'transport', code: 'ECONNRESET' },
        },
      },
    ]);
    expect(notebook.told[3]).toEqual(['planned', { plan: 'R1', wait_ms: expect.any(Number) }]);
    expect(notebook.told[4]).toMatchObject([
      'attempt',
      { attempt: 2, mode: 'nudge', plan: 'R1', cause: 'connection_reset' },
    ]);
    expect(notebook.told.at(-2)).toMatchObject(['attemptEnded', { outcome: 'complete', seam: 'unanchored' }]);
    expect(notebook.told.at(-1)).toEqual(['ended', { outcome: 'recovered', finish: 'stop' }]);
  });

  test('sees of the answer what there is of it at the time', async () => {
    const notebook = new Notebook();
    const seen: string[] = [];
    await simulate(cutText(reset(4)), {
      observer: notebook,
      onWrite: () => void seen.push(notebook.runs[0]?.run.answer.text ?? ''),
    });
    expect(seen[0]).toBe('Kelp');
    expect(notebook.runs[0]?.run.answer).toMatchObject({
      text: TEXT,
      characters: TEXT.length,
      tool_calls: 0,
    });
  });

  test('sees that settled calls end the answer', async () => {
    const call = (id: string) => ({ id, name: 'forecast', arguments: '{"city":"Paris"}' });
    const notebook = new Notebook();
    const plan: Plan = { parts: [{ tool: call('a') }, { tool: call('b') }], faults: [reset(6)] };
    await simulate(plan, { observer: notebook, request: { tools: TOOLS } });
    expect(notebook.told.slice(-2)).toEqual([
      ['planned', { plan: 'R2', wait_ms: 0 }],
      ['ended', { outcome: 'salvaged', finish: 'tool_calls' }],
    ]);
  });

  test('sees why a run is given up', async () => {
    const notebook = new Notebook();
    await simulate(cutText(reset(4)), { observer: notebook, recovery: { max_attempts: 1 } });
    expect(notebook.told.slice(-2)).toEqual([
      [
        'planned',
        {
          plan: 'give_up',
          why: 'attempts',
          wait_ms: 0,
          failure: { cause: 'connection_reset', attempts: 1 },
        },
      ],
      ['ended', { outcome: 'failed' }],
    ]);
  });

  test('sees where a run is taken over, and that its replica was lost', async () => {
    const notebook = new Notebook();
    const takeover = {
      manner: 'wrapper',
      durability: 'write_ahead',
      fates: [{ kind: 'event', event: 3 }],
    } as const;
    const { stream } = await simulateTakeovers(cutText(), { ...takeover, observer: notebook });

    expect(stream.text).toBe(TEXT);
    const [lost, successor] = notebook.runs;
    expect(lost?.told.map(([kind]) => kind)).not.toContain('ended');
    expect(successor?.run).toMatchObject({ run: lost?.run.run, taken_over: { epoch: 2, after_event: 4 } });
    expect(successor?.told[0]).toMatchObject([
      'attemptEnded',
      { outcome: 'interrupted', interruption: { evidence: { kind: 'replica_lost' } } },
    ]);
    expect(successor?.told[2]).toMatchObject(['attempt', { attempt: 2, plan: 'R1' }]);
    expect(successor?.told.at(-1)).toEqual(['ended', { outcome: 'recovered', finish: 'stop' }]);
  });

  test('sees the end when the client leaves in the middle of an attempt', async () => {
    const notebook = new Notebook();
    await simulate(cutText(), { observer: notebook, onWrite: (_client, leave) => leave() });
    expect(notebook.kinds).toEqual(['attempt', 'answering', 'ended']);
    expect(notebook.told.at(-1)).toEqual(['ended', { outcome: 'cancelled' }]);
  });

  test('has its headers sent in place of those of the client', async () => {
    const { requests } = await simulate(cutText(reset(4)), {
      observer: new Notebook({ traceparent: 'of the attempt' }),
      headers: { traceparent: 'of the client', authorization: 'Bearer key' },
    });
    const headers = { traceparent: 'of the attempt', authorization: 'Bearer key' };
    expect(requests.map((request) => request.headers)).toEqual([
      expect.objectContaining(headers),
      expect.objectContaining(headers),
    ]);
  });

  test('gets the trace context that the client sent', async () => {
    const notebook = new Notebook();
    const headers = { traceparent: '00-a-b-01', tracestate: 'x=y' };
    await simulate(cutText(), { observer: notebook, headers });
    expect(notebook.runs[0]?.run).toMatchObject(headers);
  });
});

describe('several observers', () => {
  test('see the same', async () => {
    const [one, other] = [new Notebook({ a: '1' }), new Notebook({ b: '2' })];
    const blind: RunObserver = { begin: () => undefined };
    const { requests } = await simulate(cutText(reset(4)), { observer: observers([one, blind, other]) });
    expect(one.told).toEqual(other.told);
    expect(one.kinds.at(-1)).toBe('ended');
    expect(requests[0]?.headers).toMatchObject({ a: '1', b: '2' });
  });
});

test('a replayed step is shown to all observers that want to know of it', () => {
  const told: ObservedReplay[] = [];
  const wanting: RunObserver = { begin: () => undefined, replayed: (replay) => void told.push(replay) };
  const replay: ObservedReplay = {
    step: { task: 'T23', number: 3, owner: 'an owner' as Owner },
    tokens: 130,
  };
  observers([wanting, new Notebook(), wanting]).replayed?.(replay);
  expect(told).toEqual([replay, replay]);
});

test('a salvaged step is shown to all observers that want to know of it', () => {
  const told: ObservedSalvage[] = [];
  const wanting: RunObserver = { begin: () => undefined, salvaged: (salvage) => void told.push(salvage) };
  const salvage: ObservedSalvage = {
    run: 'run_kelp',
    step: { task: 'T23', number: 3, owner: 'an owner' as Owner },
    cause: 'replica_lost',
  };
  observers([wanting, new Notebook(), wanting]).salvaged?.(salvage);
  expect(told).toEqual([salvage, salvage]);
});
