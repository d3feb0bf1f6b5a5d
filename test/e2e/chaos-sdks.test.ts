import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { startChaos } from '../chaos-proxy/chaos.ts';
import { Read, startPacedProvider } from '../chaos-proxy/paced-provider.ts';
import { asked, cellsOf, seen, type Written } from '../chaos-proxy/sdk-faults.ts';
import { type Reader, STREAM_READERS } from '../chaos-proxy/sdk-readers.ts';

const QUESTION = {
  model: 'm',
  messages: [{ role: 'user' as const, content: 'When?' }],
  stream: true as const,
};

/** Every kind of fault, with the table row that describes it at any place. */
const KINDS = [
  ['cut', 'reset', 'cut reset@40'],
  ['cut', 'close', 'cut close@40'],
  ['cut', 'truncate', 'cut truncate@40'],
  ['stall', '20ms', 'stall 20ms@40'],
  ['error', 'overloaded', 'error overloaded@40'],
  ['error', 'rate_limit', 'error rate_limit@40'],
  ['error', 'server_error', 'error server_error@40'],
] as const;
/** Each place, with the place in the table that it is equivalent to. 10 % assumes an answer of 400 characters. */
const PLACES = { start: 'start', 40: '40', '10%': '40', tool: 'tool', end: 'end' } as const;

describe.each(KINDS)('--%s %s is the same wherever it strikes', (option, kind, row) => {
  test.each(Object.entries(PLACES))('at %s', async (place, sameAs) => {
    for (const [index, reader] of Object.values(STREAM_READERS).entries()) {
      const [name] = cellsOf(row)[index]?.split(', ') ?? [];
      const [resetName, before] = cellsOf(`cut reset@${sameAs}`)[index]?.split(', ') ?? [];
      // The answer never reaches the place, so it is whole.
      const isMissed = resetName === 'no error';
      const whole = cellsOf('stall 20ms@40')[index]?.split(', ')[1];
      const cell = await seen(reader, [option, `${kind}@${place}`]);
      const count = option === 'stall' || isMissed ? whole : before;
      expect(cell).toBe(`${isMissed ? 'no error' : name}, ${count}`.replace(/ \|$/, ''));
    }
  });
});

describe('what docs/chaos.md says besides', () => {
  const readers = Object.entries(STREAM_READERS);

  test.each(readers)(
    '%s: a stall is a silence after what was said, and the rest follows',
    async (_, reader) => {
      const gaps: number[] = [];
      let last_ms = performance.now();
      class Timed extends Read {
        override add(text: string | null | undefined): void {
          if (text) {
            gaps.push(performance.now() - last_ms);
            last_ms = performance.now();
          }
          super.add(text);
        }
      }
      const read = new Timed();
      const chaos = await startChaos(await startPacedProvider(read), { stall: ['300ms@40'] });
      await reader(chaos.url, read, {});
      // Pieces have ten characters.
      expect(gaps[4]).toBeGreaterThanOrEqual(295);
    },
  );

  test.each(readers)('%s: a reset is the TypeError of fetch', async (_, reader) => {
    const { error } = await asked(reader, ['cut', 'reset@40']);
    expect(error).toMatchObject({ name: 'TypeError', message: 'terminated' });
  });

  test.each(readers)('%s: a status comes without Retry-After', async (_, reader) => {
    const { error } = await asked(reader, ['error', '429']);
    const { headers } = error as Error & { headers: Headers };
    expect(headers.get('content-type')).toBe('application/json');
    expect(headers.get('retry-after')).toBeNull();
    expect(headers.get('retry-after-ms')).toBeNull();
  });

  test('only the finish reason tells an answer that was closed from a whole one', async () => {
    const finishes = async (written: Written) => {
      const found: string[] = [];
      const reader: Reader = async (baseURL, read) => {
        const client = new OpenAI({ baseURL, apiKey: 'sk-test', maxRetries: 0 });
        for await (const { choices } of await client.chat.completions.create(QUESTION)) {
          read.add(choices[0]?.delta.content);
          read.add(choices[0]?.delta.tool_calls?.[0]?.function?.arguments);
          if (choices[0]?.finish_reason) found.push(choices[0].finish_reason);
        }
      };
      await asked(reader, written);
      return found;
    };
    expect(await finishes(['stall', '1ms@40'])).toEqual(['tool_calls']);
    expect(await finishes(['cut', 'close@40'])).toEqual([]);
    expect(await finishes(['cut', 'close@end'])).toEqual([]);
  });

  test.each([
    ['error', '503', 2],
    ['cut', 'reset@40', 1],
    ['error', 'overloaded@40', 1],
  ] as const)(
    'an SDK that retries makes of --%s %s so many requests: %i',
    async (option, given, requests) => {
      const read = new Read();
      const chaos = await startChaos(await startPacedProvider(read), { [option]: [given] });
      const client = new OpenAI({ baseURL: chaos.url, apiKey: 'sk-test', maxRetries: 1 });
      const asking = async () => {
        for await (const { choices } of await client.chat.completions.create(QUESTION))
          read.add(choices[0]?.delta.content);
      };
      await expect(asking()).rejects.toThrow();
      expect(chaos.proxy.totals.requests).toBe(requests);
    },
  );
});
