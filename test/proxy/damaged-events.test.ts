import { describe, expect, test } from 'vitest';
import type { WireName } from '../../src/checkpoint/journal.ts';
import type { ObservedInterruption } from '../../src/interrupts/interruption.ts';
import type { RunObserver } from '../../src/proxy/run/context/run-observer.ts';
import type { Fault, Position } from '../provider/fault.ts';
import type { Plan } from '../provider/script.ts';
import { TOOLS } from '../simulation/arbitraries.ts';
import { simulateDocument } from '../simulation/document.ts';
import { type Simulation, type SimulationOptions, simulate } from '../simulation/simulate.ts';

const WIRES: readonly WireName[] = ['chat_completions', 'completions', 'messages', 'responses'];
const TEXT = 'The dose is NOT lethal, as long as it is small.';
/** Within the text on all wires. */
const IN_TEXT: Position = { event: 6 };
const DEEP = '['.repeat(100_000) + ']'.repeat(100_000);
const DAMAGED_EVENT = { cause: 'provider_5xx', evidence: { kind: 'malformed_event' }, status: 502 };

const frame = (data: string, name?: string) =>
  `${name === undefined ? '' : `event: ${name}\n`}data: ${data}\n\n`;
const damage = (at: Position, event?: string): Fault => ({
  kind: 'malformed_event',
  at,
  ...(event !== undefined && { event }),
});
const tells = (...faults: readonly (Fault | undefined)[]): Plan => ({ parts: [{ text: TEXT }], faults });

interface Observed extends Simulation {
  readonly interruptions: readonly ObservedInterruption[];
}

async function observe(
  plan: Plan | ((attempt: number) => Plan),
  options: SimulationOptions = {},
): Promise<Observed> {
  const interruptions: ObservedInterruption[] = [];
  const observer: RunObserver = {
    begin: () => ({
      attempt: () => undefined,
      answering() {},
      attemptEnded: ({ interruption }) => void (interruption && interruptions.push(interruption)),
      planned() {},
      recovered() {},
      ended() {},
    }),
  };
  return { ...(await simulate(plan, { ...options, observer })), interruptions };
}

describe('a damaged event interrupts the attempt, and the rest is asked for from the last good event', () => {
  test('the word that was in it is in the answer', async () => {
    const { stream, outcome } = await observe((attempt) =>
      attempt === 1
        ? { parts: [{ text: TEXT.replace(' NOT', '') }], faults: [damage({ event: 4 })] }
        : tells(),
    );
    expect([stream.text, stream.finish, stream.done, outcome]).toEqual([TEXT, 'stop', true, 'recovered']);
  });

  describe.each([
    ['that does not parse', undefined],
    ['that is prose', frame('The server is busy.')],
    ['that is a bare value', frame('"NOT "')],
    ['that is a list', frame('["NOT "]')],
    ['that nests 100,000 levels deep', frame(`{"deep":${DEEP}}`)],
    ['whose choices nest 100,000 levels deep', frame(`{"choices":[{"index":0,"delta":${DEEP}}]}`)],
  ])('%s', (_, event) => {
    test.each(WIRES)('on %s', async (wire) => {
      const { stream, requests, outcome, interruptions } = await observe(tells(damage(IN_TEXT, event)), {
        wire,
      });
      expect(interruptions).toEqual([{ ...DAMAGED_EVENT, phase: 'text' }]);
      expect(requests).toHaveLength(2);
      expect([stream.text, stream.finish, stream.done, outcome]).toEqual([TEXT, 'stop', true, 'recovered']);
      expect(stream.violations).toEqual([]);
    });
  });

  test('is a failure like any other where nothing was said before', async () => {
    const first = damage({ event: 0 });
    const once = await observe(tells(first));
    expect(once.interruptions).toEqual([{ ...DAMAGED_EVENT, phase: 'first_token' }]);
    expect([once.stream.text, once.requests.length, once.outcome]).toEqual([TEXT, 2, 'recovered']);
  });

  test('does not undo an answer that has its finish reason, but its own report of usage is doubted', async () => {
    const { stream, requests, interruptions } = await observe(tells(damage({ after_finish: true })));
    expect([stream.text, stream.finish, stream.done, stream.violations]).toEqual([TEXT, 'stop', true, []]);
    expect([requests.length, interruptions]).toEqual([1, []]);
    expect(stream.usage).toBeDefined();
  });

  test('ends several choices with a typed error: they cannot be joined', async () => {
    const { stream, requests, outcome } = await observe(tells(damage(IN_TEXT)), { request: { n: 2 } });
    expect([requests.length, outcome]).toEqual([1, 'failed']);
    expect(stream.error).toMatchObject({ code: 'not_recoverable', holdfast: { cause: 'provider_5xx' } });
    expect(stream.done).toBe(false);
  });

  test('is half an event that the body ends in: then it is its end that interrupts', async () => {
    const { stream, interruptions } = await observe(tells({ kind: 'clean_eof', at: { within: 6 } }));
    expect(interruptions).toMatchObject([{ cause: 'connection_reset', evidence: { kind: 'clean_eof' } }]);
    expect(stream.text).toBe(TEXT);
  });
});

describe('what provably says nothing passes', () => {
  describe.each([
    ['an event without data', frame('')],
    ['an empty value', frame('null')],
    ['an empty object', frame('{}')],
    ['a sign of life whose data is no JSON', frame('still here', 'keepalive')],
    ['a comment', ': {"choices":\n\n'],
    ['an event of an unknown type', frame('{"type":"tide","height":3}', 'tide')],
  ])('%s', (_, event) => {
    test.each(WIRES)('on %s', async (wire) => {
      const { stream, requests, interruptions } = await observe(tells(damage(IN_TEXT, event)), { wire });
      expect([stream.text, stream.finish, stream.done]).toEqual([TEXT, 'stop', true]);
      expect([requests.length, interruptions]).toEqual([1, []]);
    });
  });
});

describe('a client that asked for no stream is answered as one that did', () => {
  describe.each([
    ['nests 100,000 levels deep', frame(`{"deep":${DEEP}}`)],
    [
      'has a type and nests 100,000 levels deep',
      frame(`{"type":"response.output_text.delta","deep":${DEEP}}`),
    ],
    [
      'says that it is an error and nests 100,000 levels deep',
      frame(`{"error":{"message":${DEEP}}}`, 'error'),
    ],
  ])('of an event that %s', (_, event) => {
    test.each(WIRES)('on %s', async (wire) => {
      const { status, body, outcome, stream } = await simulateDocument(tells(damage(IN_TEXT, event)), {
        wire,
      });
      expect([status, outcome, stream.text]).toEqual([200, 'recovered', TEXT]);
      expect(JSON.stringify(body)).toContain(TEXT);
    });

    test.each(WIRES)('on %s, with an error where no attempt does better', async (wire) => {
      const { status, body, outcome } = await simulateDocument(
        tells(...Array(8).fill(damage({ event: 0 }, event))),
        {
          wire,
        },
      );
      expect(status).toBeGreaterThanOrEqual(500);
      expect(outcome).not.toBe('complete');
      expect(body).toMatchObject({ error: { message: expect.any(String) } });
      expect(JSON.stringify(body)).not.toMatch(/RangeError|internal_error/);
    });
  });
});

describe('tool arguments that nest 100,000 levels deep', () => {
  const call = (text: string) => ({ tool: { id: 'call_a', name: 'forecast', arguments: text } });

  test.each(WIRES.filter((wire) => wire !== 'completions'))('are broken arguments on %s', async (wire) => {
    const { stream, outcome, interruptions } = await observe(
      (attempt) => ({
        parts: [call(attempt === 1 ? `{"city":${DEEP}}` : '{"city":"Paris"}')],
        chunk: 'part',
      }),
      { wire, request: { tools: TOOLS } },
    );
    expect(interruptions.map(({ evidence }) => evidence.kind)).toEqual(['unparsable_arguments']);
    expect(stream.toolCalls.map(({ arguments: text }) => text)).toEqual(['{"city":"Paris"}']);
    expect([stream.finish, stream.done, outcome]).toEqual(['tool_calls', true, 'recovered']);
  });

  test('are damage where they come as an object', async () => {
    const whole = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"forecast","arguments":{"city":${DEEP}}}}]}}]}`;
    const { stream, interruptions } = await observe(
      { parts: [{ text: TEXT }], faults: [damage({ event: 3 }, frame(whole))] },
      { request: { tools: TOOLS } },
    );
    expect(interruptions).toMatchObject([DAMAGED_EVENT]);
    expect([stream.text, stream.finish]).toEqual([TEXT, 'stop']);
  });
});
