import { describe, expect, it } from 'vitest';
import { NumberedWatch, type Observed } from '../../../src/proxy/api/numbered-watch.ts';
import { OPEN_MAX, positionId, positionIn, type SeenNumbers } from '../../../src/proxy/api/task-position.ts';

const NEVER = new AbortController().signal;
const NOTHING: SeenNumbers = { last: 0, open: new Map() };

/** Numbered things with a state each, and a record of the questions about them. */
function numbered(states: string[]) {
  const asked: number[] = [];
  return {
    asked,
    async names(first: number, last: number) {
      return states
        .map((_, index) => ({ number: index + 1, name: `n${index + 1}` }))
        .filter(({ number }) => number >= first && number <= last && states[number - 1] !== 'gone');
    },
    async observe({ number }: { readonly number: number }): Promise<Observed> {
      asked.push(number);
      const state = states[number - 1] ?? '';
      return {
        token: state,
        document: { number, state },
        isFinal: state === 'done',
        isUnderWay: state === 'running',
      };
    },
  };
}

function watching(states: string[], from: SeenNumbers = NOTHING) {
  const things = numbered(states);
  const watch = new NumberedWatch(from, things, NEVER);
  const look = async () => {
    const told: string[] = [];
    await watch.look(states.length, async (document) => {
      const { number, state } = document as { number: number; state: string };
      told.push(`${number} ${state}`);
    });
    return told;
  };
  return { things, watch, look };
}

describe('a watch of what has numbers', () => {
  it('tells each of them once, and what changes until it is final', async () => {
    const states = ['done', 'running', 'gone', ''];
    const { watch, look } = watching(states);
    expect(await look()).toEqual(['1 done', '2 running']);
    expect(watch.isUnderWay).toBe(true);
    expect(await look()).toEqual([]);
    states[1] = 'done';
    states[3] = 'failed';
    expect(await look()).toEqual(['2 done', '4 failed']);
    expect([watch.isUnderWay, watch.position]).toEqual([false, { last: 4, open: new Map([[4, 'failed']]) }]);
  });

  it('asks nothing about what is final, and takes turns with what is open', async () => {
    const states = [
      ...Array.from({ length: 20 }, () => 'failed'),
      ...Array.from({ length: 80 }, () => 'done'),
    ];
    const { things, look } = watching(states);
    await look();
    const rounds: number[] = [];
    for (let round = 0; round < 5; round++) {
      things.asked.length = 0;
      expect(await look()).toEqual([]);
      rounds.push(...things.asked);
    }
    expect(rounds).toHaveLength(40);
    for (const number of [1, 8, 9, 16, 17, 20])
      expect(rounds.filter((each) => each === number)).toHaveLength(2);
  });

  it('asks for no more than a few while its client takes nothing', async () => {
    const states = Array.from({ length: 1000 }, () => 'done');
    const { things, watch } = watching(states);
    const { promise, resolve } = Promise.withResolvers<void>();
    const { promise: told, resolve: onTold } = Promise.withResolvers<void>();
    const looked = watch.look(states.length, () => {
      onTold();
      return promise;
    });
    await told;
    expect([things.asked.length, watch.position.last]).toEqual([4, 1]);
    resolve();
    await looked;
    expect(watch.position.last).toBe(1000);
  });

  it('knows of so many that may still change, the last ones', async () => {
    const { watch, look } = watching(Array.from({ length: OPEN_MAX + 6 }, () => 'running'));
    expect(await look()).toHaveLength(OPEN_MAX + 6);
    expect([watch.position.open.size, [...watch.position.open.keys()][0]]).toEqual([OPEN_MAX, 7]);
  });

  it('is the same again after a position that a client has kept', async () => {
    const states = ['running', 'done', 'failed'];
    const first = watching(states);
    await first.look();
    const id = positionId({ era: 'e', token: 't', steps: first.watch.position, calls: NOTHING });
    const { steps } = positionIn('after', id);
    const again = watching(states, steps);
    // Assumed, because nothing is known before the first look.
    expect(again.watch.isUnderWay).toBe(true);
    expect(await again.look()).toEqual([]);
    states[0] = 'gone';
    states[2] = 'done';
    expect(await watching(states, steps).look()).toEqual(['3 done']);
  });
});

it.each([
  '',
  'x',
  ['["e","t",0,[]]'],
  ['["e","t",0,[],-1,[]]'],
  ['["e","t",0,[[1]],0,[]]'],
  [`["e","t",0,${JSON.stringify(Array.from({ length: OPEN_MAX + 1 }, (_, index) => [index, 't']))},0,[]]`],
])('%s is no position', (given) => {
  const id = typeof given === 'string' ? given : Buffer.from(given[0] ?? '').toString('base64url');
  expect(() => positionIn('after', id)).toThrow(
    expect.objectContaining({ code: 'invalid_field', status: 400 }),
  );
});
