import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { WireName } from '../../src/checkpoint/journal.ts';
import type { Position } from '../provider/fault.ts';
import { PROMPT_END } from '../provider/request.ts';
import type { Continuation, Plan } from '../provider/script.ts';
import { PROVIDER_WIRES } from '../provider/wires/registry.ts';
import { CONTINUATIONS } from '../simulation/arbitraries.ts';
import { messagesRequestOf } from '../simulation/messages-request.ts';
import { responsesRequestOf } from '../simulation/responses-request.ts';
import { readingOf } from '../simulation/simulate.ts';
import { RouteDeployment } from './route-deployment.ts';
import { CREDENTIAL, fetchRun } from './talk.ts';

/** Words of four letters, all different; with its space, each takes five characters. */
const WORD_CHARACTERS = 5;
const wordOf = (index: number): string => {
  const number = (index * 7919) % 10_000;
  const letters = ['bcdfghjklmnpqrstvwxz', 'aeiou', 'zxwvtsrqpnmlkjhgfdcb', 'uoiea'];
  let rest = number;
  return letters
    .map((some) => {
      const letter = some[rest % some.length] ?? '';
      rest = Math.floor(rest / some.length);
      return letter;
    })
    .join('');
};
const TEXT = Array.from({ length: 400 }, (_, index) => wordOf(index)).join(' ');

/** Characters per delta; coprime to the length of a word, so that deltas end at every place of a word. */
const CHUNK = 7;
/**
 * How many deltas the first target sends before its cut, and then the second one, by the place of the cut. The second
 * target starts in the middle of a word unless its key ends in `after_word`.
 */
const FIRST_CUT = { in_word: 11, before_space: 12 };
const SECOND_CUT = {
  in_word: 102,
  before_space: 101,
  in_word_after_word: 107,
  before_space_after_word: 105,
};

interface Setting {
  readonly name: string;
  readonly wire: WireName;
  readonly model: string;
  /** How the second target is asked, and then the first one again, if they comply. */
  readonly modes: readonly [string, string];
}

const SETTINGS: readonly Setting[] = [
  { name: 'chat completions', wire: 'chat_completions', model: 'chat', modes: ['prefill', 'nudge'] },
  { name: 'completions', wire: 'completions', model: 'text', modes: ['prefill', 'prefill'] },
  {
    name: 'messages, where prefills are taken',
    wire: 'messages',
    model: 'claude-sonnet-4-5',
    modes: ['prefill', 'prefill'],
  },
  {
    name: 'messages, where they are not',
    wire: 'messages',
    model: 'claude-opus-4-6',
    modes: ['nudge', 'nudge'],
  },
  { name: 'responses', wire: 'responses', model: 'response', modes: ['nudge', 'nudge'] },
];

/** The position after this many deltas of an answer. */
function afterDeltas(wire: WireName, count: number): Position {
  const deltas = Array.from({ length: count + 1 }, (_, index) => ({ content: `@${index + 1}` }));
  const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  const envelope = { id: '', model: '', created: 0, wire };
  const { events } = PROVIDER_WIRES[wire].events({ deltas, finish: 'stop' }, envelope, usage, 'none');
  return { event: events.findIndex((event) => event.includes(`"@${count}"`)) + 1 };
}

/** Picks cuts that reveal a manner: a lost space, or a word that starts again. */
function cutsFor(continuation: Continuation, [, back]: Setting['modes']): readonly [number, number] {
  // If the space were lost at the first seam, the scripted model wouldn't recognise its own words.
  if (continuation === 'loses_whitespace') return [FIRST_CUT.in_word, SECOND_CUT.before_space];
  if (continuation !== 'repeats_word') return [FIRST_CUT.in_word, SECOND_CUT.in_word];
  // After a token-exact prefill, no model repeats the start of a word.
  const second = back === 'nudge' ? SECOND_CUT.in_word_after_word : SECOND_CUT.before_space_after_word;
  return [FIRST_CUT.before_space, second];
}

function requestOf(wire: WireName, model: string, question: string): object {
  const messages = [{ role: 'user', content: question }];
  const request = { model, messages, stream: true } as const;
  if (wire === 'messages') return messagesRequestOf(request);
  if (wire === 'responses') return responsesRequestOf(request);
  return wire === 'completions' ? { model, stream: true, prompt: `${question}${PROMPT_END}` } : request;
}

interface ShownSegment {
  readonly attempt: number;
  readonly epoch: number;
  readonly upstream: string;
  readonly mode: string;
  readonly characters: { readonly text: number };
}

vi.setConfig({ maxConcurrency: 8 });

describe('a text that one target begins, another continues, and the first one ends', () => {
  let deployment: RouteDeployment;
  beforeAll(async () => {
    deployment = await RouteDeployment.start(
      { '*': { upstream: { dialect: 'openai' } } },
      {
        recovery: { backoff_ms: 1, backoff_max_ms: 10, same_target_retries: 0, max_attempts: 10 },
        // Every answer of both targets is cut, which must not open the breaker.
        breaker: { failures: 1000, failure_percent: 100, window: 1000 },
      },
    );
  });
  afterAll(() => deployment.close());

  /** What the client has of such an answer, and which target each part came from. */
  async function talk(setting: Setting, continuation: Continuation) {
    const { wire, model, modes } = setting;
    const question = `${setting.name}, ${continuation}`;
    const [first, second] = cutsFor(continuation, modes).map((count) => afterDeltas(wire, count));
    // The targets asked by prefill are known to continue it exactly.
    const isExact = modes[0] === 'prefill' && continuation !== 'rejects_prefill';
    const prefilled = isExact ? ({ prefilled: 'exact' } as const) : {};
    const plan: Plan = { parts: [{ text: TEXT }], chunk: CHUNK, continuation, ...prefilled };
    if (!first || !second) throw new Error('there are two cuts');
    deployment.plan(question, {
      first: { ...plan, faults: [{ kind: 'reset', at: first }] },
      second: {
        ...plan,
        // A refused prefill is a request of its own, and is cut as well.
        faults: Array.from({ length: 2 }, () => ({ kind: 'reset', at: second })),
      },
    });
    const { holdfast } = deployment;
    const response = await fetch(`${holdfast.url}${PROVIDER_WIRES[wire].path}`, {
      method: 'POST',
      headers: { ...CREDENTIAL, 'content-type': 'application/json' },
      body: JSON.stringify(requestOf(wire, `${model}-${continuation}`, question)),
    });
    const body = await response.text();
    const run = response.headers.get('holdfast-run-id') ?? '';
    const { segments, text } = await vi.waitFor(
      async () => {
        const told = (await (await fetchRun(holdfast, run)).json()) as {
          status: string;
          text: string;
          segments: readonly ShownSegment[];
        };
        expect(told.status).toBe('complete');
        return told;
      },
      { timeout: 15_000 },
    );
    return { stream: readingOf(body, { wire }), stored: text, segments };
  }

  describe.each(SETTINGS)('$name', (setting) => {
    test.concurrent.each(CONTINUATIONS)('is the uncut text: %s', async (continuation) => {
      const { stream, stored, segments } = await talk(setting, continuation);
      const shown = (text: string) =>
        continuation === 'loses_whitespace' ? text.replaceAll(/\s/g, '') : text;
      expect(stream).toMatchObject({ done: true, finish: 'stop', violations: [] });
      expect(shown(stream.text)).toBe(shown(TEXT));
      expect(stored).toBe(stream.text);

      expect(segments.map(({ upstream }) => upstream)).toEqual(['first_0', 'second', 'first_0']);
      const attempts = segments.map(({ attempt }) => attempt);
      expect(attempts).toEqual(attempts.toSorted((one, other) => one - other));
      expect(segments.every(({ epoch }) => epoch === 1)).toBe(true);
      const lengths = segments.map(({ characters }) => characters.text);
      expect(lengths.reduce((sum, length) => sum + length)).toBe(stream.text.length);
      // The first target is cut exactly where the plan says.
      const [first, second] = cutsFor(continuation, setting.modes);
      expect(lengths[0]).toBe(first * CHUNK);
      // Other manners repeat some text before the cut.
      if (continuation !== 'straight_on') return;
      expect(lengths).toEqual([first * CHUNK, second * CHUNK, TEXT.length - (first + second) * CHUNK]);
      expect(segments.map(({ mode }) => mode)).toEqual(['first', ...setting.modes]);
      expect(attempts).toEqual([1, 2, 3]);
    });
  });

  test('shows what is lost at a seam, and what comes twice', () => {
    const at = (first: number, second: number) => (first * CHUNK + second * CHUNK) % WORD_CHARACTERS;
    const atSpace = WORD_CHARACTERS - 1;
    expect(at(FIRST_CUT.before_space, 0)).toBe(atSpace);
    expect(at(FIRST_CUT.in_word, 0)).toBe(2);
    expect(at(FIRST_CUT.in_word, SECOND_CUT.before_space)).toBe(atSpace);
    expect(at(FIRST_CUT.in_word, SECOND_CUT.in_word)).toBe(1);
    expect(at(FIRST_CUT.before_space, SECOND_CUT.before_space_after_word)).toBe(atSpace);
    expect(at(FIRST_CUT.before_space, SECOND_CUT.in_word_after_word)).toBe(3);
    expect(new Set(TEXT.split(' ')).size).toBe(400);
  });
});
