import { describe, expect, test } from 'vitest';
import type { JournalEvent } from '../../../src/checkpoint/journal.ts';
import { MemoryStore } from '../../../src/checkpoint/memory/store.ts';
import type { Plan } from '../../provider/script.ts';
import { Fleet, payloadsOf } from '../../simulation/fleet.ts';
import { readResponses } from '../../simulation/responses-reading.ts';
import { OWNER, RUN } from '../../simulation/simulate.ts';

const PLAN: Plan = {
  parts: [
    { text: 'Kelp grips the rock.' },
    { tool: { id: 'call_a', name: 'forecast', arguments: '{"city":"Paris"}' } },
    { tool: { id: 'call_b', name: 'forecast', arguments: '{"city":"Brest"}' } },
  ],
};

/** The account is empty, so nothing more is requested. */
const GIVEN_UP: Plan = { ...PLAN, faults: [{ kind: 'error_quota', at: { event: 7 } }] };

const THOUGHT: Plan = { parts: [{ reasoning: 'They ask about the sea.' }, { text: 'It is salty.' }] };

/** A response that a replica delivered to its end, and what was stored of it. */
async function told(plan = PLAN) {
  const fleet = new Fleet(plan, { wire: 'responses' });
  const { client, outcome } = fleet.begin(fleet.replica());
  await fleet.time.drive(outcome);
  const { records } = await fleet.stored();
  const events = records.flatMap((record) => record.events);
  return { header: records[0]?.header, events, payloads: payloadsOf(client.body) };
}

/** A run whose replica was lost when this much of it was stored. */
async function lostAfter(stored: number, plan = PLAN) {
  const { header, events, payloads } = await told(plan);
  // The provider never uses an id twice.
  const fleet = new Fleet({ ...plan, id: 'later' }, { wire: 'responses' });
  const store = new MemoryStore({ time: fleet.time, ttl_ms: 604_800_000, runs: fleet.runs });
  const lease = await store.acquire(RUN, OWNER);
  await store.append(lease, [{ seq: 0, ...(header && { header }), events: [] }]);
  if (stored > 0) await store.append(lease, [{ seq: stored, events: events.slice(0, stored) }]);
  await store.close();
  const comeBack = async (had: number) => {
    const tail = payloads.slice(0, had);
    const session = await fleet.follow(fleet.replica(), { cursor: had, tail, resumable: true });
    const outcome = await fleet.time.drive(session.outcome);
    const body = [...tail, ...payloadsOf(session.client.body)];
    return {
      outcome,
      thoughts: () => thoughtsAtTheEnd(body),
      client: session.client,
      reading: readingOf(body),
      asked: fleet.provider.requests.length,
    };
  };
  return { payloads, comeBack };
}

const readingOf = (payloads: readonly string[]) =>
  readResponses(
    payloads
      .map((payload) => `event: ${(JSON.parse(payload) as { type: string }).type}\ndata: ${payload}\n\n`)
      .join(''),
  );

/** The ids of the thoughts at the end of the response, with their encrypted content. */
const thoughtsAtTheEnd = (payloads: readonly string[]) => {
  const { response } = JSON.parse(payloads.at(-1) ?? '') as {
    response: { output: Record<string, string>[] };
  };
  return response.output
    .filter(({ type }) => type === 'reasoning')
    .map(({ id, encrypted_content }) => [id, encrypted_content]);
};

const at = (payloads: readonly string[], type: string, nth = 1): number => {
  const places = payloads.flatMap((payload, place) => (payload.includes(`"type":"${type}"`) ? [place] : []));
  return (places[nth - 1] ?? -1) + 1;
};
const ARGUMENTS = 'response.function_call_arguments.delta';

describe('a response whose replica is lost', () => {
  test('is continued wherever it was stored and however much of it its client has', async () => {
    const { payloads } = await told();
    for (let stored = 0; stored <= payloads.length; stored++) {
      for (const had of [stored, Math.max(0, stored - 3)]) {
        const { comeBack } = await lostAfter(stored);
        const { reading } = await comeBack(had);
        expect(reading, `${stored} stored, ${had} had`).toMatchObject({ violations: [], done: true });
        expect(reading.text).toBe('Kelp grips the rock.');
        expect(reading.toolCalls[0]).toEqual({
          id: 'call_a',
          name: 'forecast',
          arguments: '{"city":"Paris"}',
        });
      }
    }
  });

  test('ends with one item of thoughts, all of it of one attempt, wherever it was lost', async () => {
    const { payloads } = await told(THOUGHT);
    const done = at(payloads, 'response.output_item.done');
    const first = at(payloads, 'response.reasoning_summary_text.delta');
    for (let stored = first; stored < payloads.length; stored++) {
      const { comeBack } = await lostAfter(stored, THOUGHT);
      const { reading, thoughts } = await comeBack(stored);
      expect(reading, `${stored} stored`).toMatchObject({
        violations: [],
        text: 'It is salty.',
        kept_reasoning: 'They ask about the sea.',
      });
      const [[id, secret] = [], ...others] = thoughts();
      expect(secret).toBe(`thought by ${id}`);
      expect(others).toEqual([]);
      if (stored >= done) expect(reading.reasoning).toBe('They ask about the sea.');
    }
  });

  test('has the whole of a call where it has its beginning', async () => {
    const { events, payloads } = await told();
    const added = at(payloads, 'function_call');
    expect((events[added - 1] as JournalEvent).deltas.map(({ kind }) => kind)).toEqual([
      'tool_start',
      'tool_arguments',
      'tool_close',
    ]);
    const { comeBack } = await lostAfter(added);
    const { outcome, reading, asked } = await comeBack(added);
    expect(outcome).toBe('salvaged');
    expect(reading).toMatchObject({ violations: [], toolCalls: [{ id: 'call_a' }], finish: 'tool_calls' });
    expect(asked).toBe(0);
  });

  test('continues for a client that has half a call, if the other half is stored', async () => {
    const { payloads } = await told();
    const half = at(payloads, ARGUMENTS, 2);
    const { comeBack } = await lostAfter(payloads.length - 1);
    expect((await comeBack(half)).reading).toMatchObject({ violations: [], toolCalls: [{}, {}], done: true });
  });

  test('does not, if the other half is lost', async () => {
    const { payloads } = await told();
    const half = at(payloads, ARGUMENTS, 2);
    const { comeBack } = await lostAfter(at(payloads, 'function_call') - 1);
    const { client, asked } = await comeBack(half);
    expect(client.destroyed).toBe(true);
    expect(asked).toBe(0);
  });

  test('ends as it was announced to end, where its client was told the error before the replica was lost', async () => {
    const { payloads } = await told(GIVEN_UP);
    const error = at(payloads, 'error');
    expect(payloads).toHaveLength(error + 1);
    for (let stored = 0; stored <= error; stored++) {
      const { comeBack } = await lostAfter(stored, GIVEN_UP);
      const { outcome, reading, asked } = await comeBack(error);
      expect(outcome, `${stored} stored`).toBe('failed');
      expect(reading).toMatchObject({ violations: [], error: { code: 'stream_interrupted' } });
      expect(asked).toBe(0);
    }
  });
});
