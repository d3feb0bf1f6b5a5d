import { describe, expect, it } from 'vitest';
import { TargetBoard } from '../../src/status/target-board.ts';
import { VirtualTime } from '../simulation/virtual-time.ts';
import { RESET } from './observed.ts';

const TARGETS = [
  { upstream: 'first', model: '' },
  { upstream: 'second', model: 'llama-4' },
];

describe('the targets on the board', () => {
  it('count attempts and errors, and keep the last failure', () => {
    const time = new VirtualTime();
    const board = new TargetBoard(time, TARGETS);
    board.begin('first', 'gpt-4o').failed({ ...RESET, status: 502 });
    board.begin('first', 'whatever a client asks for').answered();
    board.begin('second', 'llama-4').answered();
    expect(board.read()).toEqual([
      {
        ...{ upstream: 'first', model: '', attempts: 2, errors: 1, first_token: { p50_ms: 0, p95_ms: 0 } },
        last_failure: {
          ...{ at_ms: time.wall(), cause: 'connection_reset', evidence: 'transport' },
          ...{ detail: 'ECONNRESET', status: 502 },
        },
      },
      {
        ...{ upstream: 'second', model: 'llama-4', attempts: 1, errors: 0 },
        first_token: { p50_ms: 0, p95_ms: 0 },
      },
    ]);
  });

  it('are those of the last configuration, with what the ones that it keeps have come to', () => {
    const board = new TargetBoard(new VirtualTime(), TARGETS);
    board.begin('second', 'llama-4').answered();
    const underWay = board.begin('first', 'gpt-4o');
    board.configure([{ upstream: 'new', model: '' }, ...TARGETS.slice(1)]);
    underWay.answered();
    expect(board.read().map(({ upstream, attempts }) => [upstream, attempts])).toEqual([
      ['new', 0],
      ['second', 1],
    ]);
  });

  it('are those of the configuration, and upstreams that are asked without a route', () => {
    const board = new TargetBoard(new VirtualTime(), TARGETS);
    for (let nth = 0; nth < 100; nth++) board.begin('third', `model ${nth}`);
    expect(board.read().map(({ upstream, model, attempts }) => [upstream, model, attempts])).toEqual([
      ['first', '', 0],
      ['second', 'llama-4', 0],
      ['third', '', 100],
    ]);
  });

  it('have the median and the 95th percentile of the last hundred first tokens', () => {
    let now_ms = 0;
    const time = new VirtualTime();
    const board = new TargetBoard(
      { now: () => now_ms, wall: () => 0, after: time.after.bind(time) },
      TARGETS,
    );
    const answer = (after_ms: number) => {
      const attempt = board.begin('first', '');
      now_ms += after_ms;
      attempt.answered();
    };
    for (let nth = 0; nth < 50; nth++) answer(60_000);
    for (let nth = 1; nth <= 100; nth++) answer(nth);
    expect(board.read()[0]).toMatchObject({ attempts: 150, first_token: { p50_ms: 50, p95_ms: 95 } });
  });
});
