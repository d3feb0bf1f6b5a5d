import { describe, expect, test } from 'vitest';
import { resumable } from '../../src/client/index.ts';
import { DONE, frameOf, framesOf, request } from './answers.ts';
import { cut, Fleet, type Step } from './fleet.ts';
import { COMPLETION, MESSAGE, RESPONSE } from './wire-answers.ts';

const WAYS = ['reset', 'fin', 'eof'] as const;
const CHAT = {
  path: '/v1/chat/completions',
  events: [
    ...['The tide ', '“à marée haute” ', '満潮 ', '🌊🌊', ' comes', '.'].map((content) =>
      JSON.stringify({ choices: [{ index: 0, delta: { content } }] }),
    ),
    DONE,
  ],
};
const CASES = [
  { ...CHAT, connections: 8, lanes: 8 },
  ...[COMPLETION, MESSAGE, RESPONSE].map((answer) => ({ ...answer, connections: 3, lanes: 2 })),
];

/** The id is one digit, so that most cuts fall within the payload. */
const frame = (payload: string, id: string) => `id: ${id.slice(-1)}\n${frameOf(payload)}`;

/** Cuts the remaining body at a different place on each connection, so that every byte gets its turn. */
const cutOf =
  (offset: number, connection: number): Step =>
  (telling) => {
    const place = (offset + connection * 29) % telling.body.length;
    return cut(place, WAYS[(offset + connection) % WAYS.length])(telling);
  };

describe.each(CASES)('$path on $connections connections', ({ path, events, connections, lanes }) => {
  const bytes = Buffer.byteLength(events.map((event) => frame(event, '1')).join(''));

  test.concurrent.each(Array.from({ length: lanes }, (_, lane) => lane))(
    `cut at each of ${bytes} bytes, one in ${lanes} from %i on: exact`,
    async (lane) => {
      const fleet = await Fleet.open(events, { frame });
      const fetch = resumable({ endpoints: fleet.urls, backoffMs: 0, backoffMaxMs: 0 });
      const cursors = new Set<number | undefined>();
      for (let offset = lane; offset < bytes; offset += lanes) {
        fleet.asked.length = 0;
        fleet.script(
          ...Array.from({ length: connections - 1 }, (_, connection) => cutOf(offset, connection)),
        );
        const body = await (await fetch(fleet.urls[0] + path, request())).text();
        expect(body, `cut at byte ${offset}`).toBe(framesOf(events));
        expect(fleet.asked).toHaveLength(connections);
        // The client avoids the replica that failed last, so the replicas alternate.
        const replicas = fleet.asked.map(({ replica }) => replica);
        expect(replicas.slice(1).every((replica, index) => replica !== replicas[index])).toBe(true);
        for (const asked of fleet.asked) cursors.add((asked.body as { cursor?: number }).cursor);
      }
      // The client must have resumed after every event, and not only from the start.
      expect(cursors).toEqual(new Set([undefined, ...events.keys()]));
      fleet.close();
    },
    60_000,
  );
});
