import { describe, expect, test } from 'vitest';
import { resumable } from '../../src/client/index.ts';
import { DONE, framesOf, request } from './answers.ts';
import { cut, Fleet, type Step } from './fleet.ts';

const CONNECTIONS = 8;
const WAYS = ['reset', 'fin', 'eof'] as const;
const EVENTS = [
  ...['The tide ', '“à marée haute” ', '満潮 ', '🌊🌊', ' comes', '.'].map((content) =>
    JSON.stringify({ choices: [{ index: 0, delta: { content } }] }),
  ),
  DONE,
];
/** So short an id that most bytes are those of characters. */
const frame = (payload: string, id: string) => `id: ${id.slice(-1)}\ndata: ${payload}\n\n`;
const BYTES = Buffer.byteLength(EVENTS.map((event) => frame(event, '1')).join(''));

/** Breaks somewhere else in what is left each time, so that all of it is cut by and by. */
const cutOf =
  (offset: number, connection: number): Step =>
  (telling) => {
    const place = (offset + connection * 29) % telling.body.length;
    return cut(place, WAYS[(offset + connection) % WAYS.length])(telling);
  };

const LANES = Array.from({ length: 8 }, (_, lane) => lane);

describe(`cut at each of ${BYTES} bytes, and on seven connections`, () => {
  test.concurrent.each(LANES)(
    'every eighth byte from %i on: exact',
    async (lane) => {
      const fleet = await Fleet.open(EVENTS, { frame });
      const fetch = resumable({ endpoints: fleet.urls, backoff_ms: 0, backoff_max_ms: 0 });
      const cursors = new Set<number | undefined>();
      for (let offset = lane; offset < BYTES; offset += LANES.length) {
        fleet.asked.length = 0;
        fleet.script(
          ...Array.from({ length: CONNECTIONS - 1 }, (_, connection) => cutOf(offset, connection)),
        );
        const body = await (await fetch(fleet.chatUrl, request())).text();
        expect(body, `cut at byte ${offset}`).toBe(framesOf(EVENTS));
        expect(fleet.asked).toHaveLength(CONNECTIONS);
        // What failed last is avoided: they take turns.
        const replicas = fleet.asked.map(({ replica }) => replica);
        expect(replicas.slice(1).every((replica, index) => replica !== replicas[index])).toBe(true);
        for (const asked of fleet.asked) cursors.add((asked.body as { cursor?: number }).cursor);
      }
      // Resumed from everywhere, not from the start only.
      expect(cursors).toEqual(new Set([undefined, 0, 1, 2, 3, 4, 5, 6]));
      fleet.close();
    },
    60_000,
  );
});
