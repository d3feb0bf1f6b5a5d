import { expect, test } from 'vitest';
import { MemoryStore } from '../../../../src/checkpoint/memory/store.ts';
import {
  forgetHeldCalls,
  neverSettled,
  noteHeldCalls,
  readHeldCalls,
  unfinishedCalls,
} from '../../../../src/proxy/run/notices/held-calls.ts';
import { newRunId, OWNER, STRANGER } from '../../../checkpoint/fixtures.ts';
import { VirtualTime } from '../../../simulation/virtual-time.ts';

const call = (id: string, name = 'forecast') => ({ id, name });
const [A, B, C] = [call('a'), call('b'), call('c')];

test.each([
  ['nothing was noted', undefined, [A], []],
  ['none was settled', { calls: [A, B], settled: 0 }, [], [A, B]],
  ['one of two of the same name was settled', { calls: [A, B], settled: 0 }, [B], [A]],
  ['it was made again under another id', { calls: [A], settled: 0 }, [C], []],
  ['another tool was called since', { calls: [A], settled: 0 }, [call('c', 'tides')], [A]],
  ['one of its name was settled before it began', { calls: [B], settled: 1 }, [A], [B]],
  ['its id was used before', { calls: [A], settled: 1 }, [A], [A]],
  ['its id was used before, and it was settled', { calls: [A], settled: 1 }, [A, A], []],
  [
    'a long name was settled',
    { calls: [call('a', 'x'.repeat(64))], settled: 0 },
    [call('a', 'x'.repeat(99))],
    [],
  ],
])('what is left of held calls when %s', (_, held, delivered, left) => {
  expect(neverSettled(held, delivered)).toEqual(left);
});

test('an answer that is finished has no unfinished calls, and one that showed its calls has the open ones', () => {
  const shown = { ...A, index: 0, arguments: '{' };
  const settled = { ...B, index: 1, arguments: '{}', closed: 3 as const };
  expect(unfinishedCalls({ tool_calls: [shown, settled] }, undefined)).toEqual([A]);
  expect(unfinishedCalls({ tool_calls: [settled] }, { calls: [A], settled: 1 })).toEqual([A]);
  expect(unfinishedCalls({ tool_calls: [], finish: 'stop' }, { calls: [A], settled: 0 })).toEqual([]);
});

test('are found by the owner of their run alone, fit a note, and are forgotten', async () => {
  const { notes } = new MemoryStore({ time: new VirtualTime(), ttl_ms: 1000 });
  const run = newRunId();
  const calls = Array(100).fill(call('\u0000'.repeat(1000), '\u0000'.repeat(1000)));
  await noteHeldCalls(notes, OWNER, run, { calls, settled: 2 }, 1000);
  expect((await readHeldCalls(notes, OWNER, run))?.calls[0]).toEqual(
    call('\u0000'.repeat(64), '\u0000'.repeat(64)),
  );
  expect(await readHeldCalls(notes, STRANGER, run)).toBeUndefined();
  await noteHeldCalls(notes, OWNER, run, { calls: [A], settled: 2 }, 1000);
  expect(await readHeldCalls(notes, OWNER, run)).toEqual({ calls: [A], settled: 2 });
  await forgetHeldCalls(notes, OWNER, run);
  expect(await readHeldCalls(notes, OWNER, run)).toBeUndefined();
});
