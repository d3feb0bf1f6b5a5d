import { describe, expect, test } from 'vitest';
import type { Delta } from '../../src/plans/delta.ts';
import { ShownCalls, type ShownFragment } from '../../src/plans/shown-calls.ts';
import { call, close, start } from './saying.ts';

type ToolDelta = Extract<Delta, { kind: 'tool_start' | 'tool_arguments' | 'tool_close' }>;

/** What is shown of consecutive deltas. */
const shown = (calls: ShownCalls, ...deltas: (Delta | Delta[])[]): ShownFragment[] =>
  deltas.flat().flatMap((delta) => calls.show(delta as ToolDelta) ?? []);

const held = () => new ShownCalls({ live: false, legacy: false });
const live = () => new ShownCalls({ live: true, legacy: false });

describe('held until they are closed', () => {
  test('nothing of an open call is shown', () => {
    expect(shown(held(), call(0, 'weather', '{"city":', '"Paris"}'))).toEqual([]);
  });

  test('a closed call is shown whole, and recorded as it is shown', () => {
    expect(shown(held(), call(0, 'weather', '{"city":', '"Paris"}'), close(0, 2))).toMatchObject([
      {
        position: 0,
        start: { id: 'call_0', name: 'weather', extra: {} },
        arguments: '{"city":"Paris"}',
        legacy: false,
        deltas: [
          { kind: 'tool_start', index: 0, id: 'call_0', name: 'weather' },
          { kind: 'tool_arguments', index: 0, text: '{"city":"Paris"}' },
          { kind: 'tool_close', index: 0, proof: 2 },
        ],
      },
    ]);
  });

  test('arguments that never came are an empty object', () => {
    expect(shown(held(), call(0, 'now'), close(0))).toMatchObject([{ arguments: '{}' }]);
  });

  test('positions are contiguous in the order of showing, whatever was cut', () => {
    const calls = held();
    const fragments = shown(calls, call(0, 'a', '{'), call(1, 'b'), call(5, 'c'), close(5));
    expect(calls.cancel(0)).toBeUndefined();
    fragments.push(...shown(calls, close(1), call(6, 'd'), close(6)));
    expect(fragments.map(({ position, start }) => `${position} ${start?.name}`)).toEqual([
      '0 c',
      '1 b',
      '2 d',
    ]);
  });

  test('a call that was given up is not shown by what still comes of it', () => {
    const calls = held();
    shown(calls, call(0, 'a', '{'));
    calls.cancel(0);
    expect(shown(calls, { kind: 'tool_arguments', index: 0, text: '}' }, close(0))).toEqual([]);
  });
});

describe('live', () => {
  test('every fragment is shown as it comes', () => {
    const fragments = shown(live(), call(0, 'weather', '{"city":', '"Paris"}'), close(0));
    expect(fragments).toMatchObject([
      {
        position: 0,
        start: { id: 'call_0', name: 'weather' },
        arguments: '',
        deltas: [{ kind: 'tool_start', index: 0, id: 'call_0', name: 'weather' }],
      },
      {
        position: 0,
        arguments: '{"city":',
        deltas: [{ kind: 'tool_arguments', index: 0, text: '{"city":' }],
      },
      { position: 0, arguments: '"Paris"}' },
    ]);
    expect(fragments[1]).not.toHaveProperty('start');
  });

  test('arguments that never came are made up for at the close', () => {
    const [, atClose] = shown(live(), call(0, 'now'), close(0));
    expect(atClose).toMatchObject({
      arguments: '{}',
      deltas: [{ kind: 'tool_arguments', index: 0, text: '{}' }],
    });
  });

  test('interleaved fragments keep their positions', () => {
    const fragments = shown(
      live(),
      start(3, 'a'),
      start(7, 'b'),
      { kind: 'tool_arguments', index: 7, text: 'b' },
      { kind: 'tool_arguments', index: 3, text: 'a' },
    );
    expect(fragments.map(({ position, arguments: text }) => `${position}${text}`)).toEqual([
      '0',
      '1',
      '1b',
      '0a',
    ]);
  });

  test('a call that is cut was seen, and where', () => {
    const calls = live();
    shown(calls, call(0, 'a'), call(4, 'b', '{'));
    expect(calls.cancel(4)).toMatchObject({ position: 1, id: 'call_4', name: 'b' });
    expect(calls.cancel(4)).toBeUndefined();
  });

  test('a delta without anything to show is recorded at the position of its call', () => {
    const calls = live();
    shown(calls, call(0, 'a'), call(4, 'b', '{}'));
    expect(calls.positioned({ kind: 'tool_close', index: 4, proof: 3 })).toEqual({
      kind: 'tool_close',
      index: 1,
      proof: 3,
    });
    expect(calls.positioned({ kind: 'tool_close', index: 9, proof: 3 })).toMatchObject({ index: 9 });
  });
});

describe('ids', () => {
  const anonymous: Delta = { kind: 'tool_start', index: 3, id: '', name: 'now' };

  test('one is given where the provider gave none', () => {
    expect(shown(held(), anonymous, close(3))).toMatchObject([{ start: { id: 'call_3' } }]);
  });

  test('the legacy interface has none', () => {
    const legacy = new ShownCalls({ live: false, legacy: true });
    expect(shown(legacy, anonymous, close(3))).toMatchObject([{ start: { id: '' }, legacy: true }]);
  });
});

test('fields of the provider’s own are shown', () => {
  const extra = { extra_content: { google: { thought_signature: 'abc' } } };
  expect(
    shown(held(), { kind: 'tool_start', index: 0, id: 'a', name: 'now', extra }, close(0)),
  ).toMatchObject([{ start: { extra } }]);
});
