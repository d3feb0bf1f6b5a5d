import { describe, expect, test } from 'vitest';
import { CallReplay } from '../../src/plans/call-replay.ts';
import type { Delta, ToolDelta } from '../../src/plans/delta.ts';

const shown = (index: number, text: string, state: 'open' | 'closed' = 'open', name = 'forecast') => ({
  index,
  name,
  arguments: text,
  state,
});
const start = (index: number, name = 'forecast'): ToolDelta => ({
  kind: 'tool_start',
  index,
  id: 'again',
  name,
});
const said = (index: number, text: string): ToolDelta => ({ kind: 'tool_arguments', index, text });
const close = (index: number): ToolDelta => ({ kind: 'tool_close', index, proof: 3 });

/** What the replay passes on of the deltas, or why it rejects the answer. */
function joined(replay: CallReplay, ...deltas: readonly ToolDelta[]): readonly Delta[] | string {
  const all: Delta[] = [];
  for (const delta of deltas) {
    const accepted = replay.accept(delta);
    if (typeof accepted === 'string') return accepted;
    all.push(...accepted);
  }
  return all;
}

describe('a call that was cut', () => {
  test.each([
    ['in the same pieces', ['{"a', '":1}']],
    ['in one piece', ['{"a":1}']],
    ['in other pieces', ['{', '"a":', '1', '}']],
  ])('continues in the call that the client has: %s', (_, pieces) => {
    const replay = new CallReplay([shown(0, '{"a')]);
    const deltas = joined(replay, start(7), ...pieces.map((piece) => said(7, piece)), close(7));
    const more = (deltas as readonly ToolDelta[]).flatMap((delta) => ('text' in delta ? delta.text : []));
    expect(more.join('')).toBe('":1}');
    expect((deltas as readonly ToolDelta[]).every(({ index }) => index === 0)).toBe(true);
    expect(deltas.at(-1)).toEqual({ kind: 'tool_close', index: 0, proof: 3 });
    expect(replay.isOver).toBe(true);
  });

  test('is one of several that come interleaved', () => {
    const replay = new CallReplay([shown(0, '{"a'), shown(1, '{"b')]);
    expect(
      joined(replay, start(5), start(6), said(6, '{"b":2}'), said(5, '{"a":1}'), close(5), close(6)),
    ).toEqual([said(1, '":2}'), said(0, '":1}'), close(0), close(1)]);
  });

  test.each<[string, readonly ToolDelta[]]>([
    ['with another name', [start(7, 'search')]],
    ['with other arguments', [start(7), said(7, '{"b')]],
    ['with arguments that differ behind a piece that is the same', [start(7), said(7, '{"'), said(7, 'b')]],
    ['with less', [start(7), said(7, '{"'), close(7)]],
  ])('does not continue in one that comes %s', (_, deltas) => {
    expect(joined(new CallReplay([shown(0, '{"a')]), ...deltas)).toBe('diverged');
  });

  test('has not come again before all of it has', () => {
    const replay = new CallReplay([shown(0, '{"a')]);
    expect(replay.isOver).toBe(false);
    joined(replay, start(7), said(7, '{"'));
    expect(replay.isOver).toBe(false);
    joined(replay, said(7, 'a'));
    expect(replay.isOver).toBe(true);
  });
});

describe('a call that is settled', () => {
  test('is left out', () => {
    const replay = new CallReplay([shown(0, '{"a":1}', 'closed'), shown(1, '')]);
    const deltas = joined(replay, start(3), said(3, '{"a":1}'), close(3), start(4), said(4, '{}'));
    expect(deltas).toEqual([said(1, '{}')]);
  });

  test('does not go on', () => {
    const replay = new CallReplay([shown(0, '{"a":1}', 'closed')]);
    expect(joined(replay, start(3), said(3, '{"a":1} '))).toBe('diverged');
  });
});

test('calls after those that were shown are new', () => {
  const replay = new CallReplay([shown(0, '{"a":1}', 'closed')]);
  const deltas = joined(replay, start(3), said(3, '{"a":1}'), close(3), start(4), said(4, '{}'), close(4));
  expect(deltas).toEqual([start(4), said(4, '{}'), close(4)]);
});
