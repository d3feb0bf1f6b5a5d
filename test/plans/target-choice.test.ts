import { describe, expect, it } from 'vitest';
import { CLOCKS, type Evidence, type Interruption } from '../../src/interrupts/interruption.ts';
import {
  afterCompression,
  afterFailure,
  chooseTargets,
  newStanding,
  type Ownership,
  type Reaction,
  reactionTo,
  type Standing,
} from '../../src/plans/target-choice.ts';

const CLIENTS: Ownership = { key: false, model: false };
const OPERATORS: Ownership = { key: true, model: true };
const RESET: Evidence = { kind: 'transport', code: 'ECONNRESET' };

const interruption = (fields: Partial<Interruption>): Interruption => ({
  cause: 'provider_5xx',
  phase: 'connect',
  evidence: { kind: 'status', status: 500 },
  ...fields,
});

const CUT = interruption({ cause: 'connection_reset', phase: 'text', evidence: RESET });

describe('the reaction to', () => {
  const cases: [string, Partial<Interruption>, Reaction, Reaction][] = [
    ['a 5xx', { cause: 'provider_5xx', status: 500 }, 'again', 'again'],
    ['a 5xx that says when to come back', { status: 503, retry_after_ms: 0 }, 'next', 'next'],
    ['a 429', { cause: 'rate_limited', status: 429 }, 'next', 'next'],
    ['a reset before headers', { cause: 'connection_reset', evidence: RESET }, 'next', 'next'],
    ['a cut', CUT, 'again', 'again'],
    ['an end without an end', { cause: 'connection_reset', phase: 'eof', evidence: RESET }, 'again', 'again'],
    ['a GOAWAY', { cause: 'goaway', evidence: { kind: 'goaway', code: 0 } }, 'again', 'again'],
    [
      'the loss of a replica',
      { cause: 'connection_reset', evidence: { kind: 'replica_lost' } },
      'ours',
      'ours',
    ],
    ['a filter', { cause: 'content_filter' }, 'final', 'final'],
    ['an overflow', { cause: 'context_overflow' }, 'outgrown', 'outgrown'],
    ['an invalid request', { cause: 'invalid_request', status: 400 }, 'refused', 'refused'],
    ['a loop', { cause: 'invalid_request', status: 508 }, 'misconfigured', 'misconfigured'],
    [
      'a limit of ours',
      { cause: 'invalid_request', evidence: { kind: 'limit', limit: 'limits.run_bytes' } },
      'final',
      'final',
    ],
    ['a bad key', { cause: 'unauthorised', status: 401 }, 'refused', 'misconfigured'],
    ['a spent quota', { cause: 'quota', status: 402 }, 'refused', 'misconfigured'],
    ['an unknown model', { cause: 'model_not_found', status: 404 }, 'refused', 'misconfigured'],
  ];
  it.each(cases)('%s, by whose key and model name it is asked', (_, fields, clients, operators) => {
    expect(reactionTo(interruption(fields), CLIENTS)).toBe(clients);
    expect(reactionTo(interruption(fields), OPERATORS)).toBe(operators);
  });

  it('an unknown model whose name the operator has given', () => {
    const unknown = interruption({ cause: 'model_not_found' });
    expect(reactionTo(unknown, { key: false, model: true })).toBe('misconfigured');
  });

  it('a stall that no clock of ours has found', () => {
    expect(reactionTo(interruption({ cause: 'idle_stall' }), CLIENTS)).toBe('silent');
  });

  it.each([
    ['a cut', CUT],
    ['an end without an end', { ...CUT, phase: 'eof' as const }],
    ['a reset before headers', { ...CUT, phase: 'connect' as const }],
    ['a GOAWAY', interruption({ cause: 'goaway', evidence: { kind: 'goaway', code: 0 } })],
  ])('%s after a long silence is that to a silence', (_, said) => {
    expect(reactionTo(said, CLIENTS, 9_999)).not.toBe('silent');
    expect(reactionTo(said, CLIENTS, 10_000)).toBe('silent');
  });

  it('each clock', () => {
    const reactions = CLOCKS.map((clock) => [
      clock,
      reactionTo(interruption({ cause: 'idle_stall', evidence: { kind: 'clock', clock } }), CLIENTS),
    ]);
    expect(Object.fromEntries(reactions)).toEqual({
      connect: 'next',
      first_byte: 'silent',
      first_token: 'silent',
      idle: 'silent',
      progress: 'silent',
      attempt: 'again',
      hedge: 'outrun',
    });
  });
});

/** A run with targets in order of preference. */
class Scene {
  standings: readonly Standing[];
  doubted: boolean[];
  offset = 0;
  now_ms = 0;
  same_target_retries = 1;
  retry_after_max_ms = 60_000;
  retry_after_wait_ms = 0;

  constructor(contexts: readonly (number | undefined)[]) {
    this.standings = contexts.map(newStanding);
    this.doubted = contexts.map(() => false);
  }

  first(): readonly number[] {
    return chooseTargets(this);
  }

  /** The targets that can be asked after this. */
  after(
    target: number,
    said: Interruption,
    more: { added?: number; own?: Ownership; position?: number } = {},
  ) {
    const { added = 0, own = CLIENTS, position } = more;
    this.offset += added;
    const reaction = reactionTo(said, own);
    const ready_at_ms = said.retry_after_ms === undefined ? undefined : this.now_ms + said.retry_after_ms;
    const failure = {
      target,
      reaction,
      interruption: said,
      offset: this.offset,
      added,
      position,
      ready_at_ms,
    };
    this.standings = afterFailure(this.standings, failure);
    return chooseTargets({ ...this, failure });
  }
}

const scene = (...contexts: (number | undefined)[]) => new Scene(contexts);
const pair = () => scene(undefined, undefined);

describe('a route with one target', () => {
  it.each([
    ['a 5xx', interruption({})],
    ['silence', interruption({ cause: 'idle_stall', evidence: { kind: 'clock', clock: 'first_byte' } })],
    ['a 429', interruption({ cause: 'rate_limited', retry_after_ms: 60_000 })],
    ['a cut', CUT],
  ])('asks it again after %s, however often', (_, said) => {
    const route = scene(undefined);
    expect(route.first()).toEqual([0]);
    for (let attempt = 0; attempt < 5; attempt++) expect(route.after(0, said)).toEqual([0]);
  });

  it.each([
    'context_overflow',
    'invalid_request',
    'unauthorised',
    'model_not_found',
    'content_filter',
    'quota',
  ] as const)('ends with %s', (cause) => {
    expect(scene(undefined).after(0, interruption({ cause }), { own: OPERATORS })).toEqual([]);
  });

  it('is asked although its breaker is open', () => {
    const route = scene(undefined);
    route.doubted = [true];
    expect(route.first()).toEqual([0]);
  });
});

describe('the first attempt', () => {
  it('goes to the preferred target', () => {
    expect(pair().first()).toEqual([0, 1]);
  });

  it('to the next one while that is doubted, or is to be left alone', () => {
    const route = pair();
    route.doubted = [true, false];
    expect(route.first()).toEqual([1, 0]);
    const limited = pair();
    limited.standings = [{ ...newStanding(undefined), ready_at_ms: 1 }, newStanding(undefined)];
    expect(limited.first()).toEqual([1, 0]);
  });

  it('to the preferred one all the same when all are doubted', () => {
    const route = pair();
    route.doubted = [true, true];
    expect(route.first()).toEqual([0, 1]);
  });
});

describe('after a failure', () => {
  it.each([
    ['5xx', interruption({})],
    ['cut', CUT],
  ])('one %s is no reason to leave, two are', (_, said) => {
    const route = pair();
    const more = { added: said === CUT ? 1 : 0 };
    expect(route.after(0, said, more)).toEqual([0, 1]);
    expect(route.after(0, said, more)).toEqual([1, 0]);
    expect(route.after(1, said, more)).toEqual([1, 0]);
    expect(route.after(1, said, more)).toEqual([0, 1]);
  });

  it('without retries every failure is a reason', () => {
    const route = pair();
    route.same_target_retries = 0;
    expect(route.after(0, CUT, { added: 10 })).toEqual([1, 0]);
    expect(route.after(1, CUT, { added: 10 })).toEqual([0, 1]);
  });

  it('a target whose breaker has opened is not asked again first', () => {
    const route = pair();
    route.doubted = [true, false];
    expect(route.after(0, interruption({}))).toEqual([1, 0]);
  });

  it('the target with the fewest failures comes next, not the preferred one', () => {
    const route = scene(undefined, undefined, undefined);
    const limited = interruption({ cause: 'rate_limited' });
    expect(route.after(0, limited)).toEqual([1, 2, 0]);
    expect(route.after(1, limited)).toEqual([2, 0, 1]);
    expect(route.after(2, limited)).toEqual([0, 1, 2]);
  });

  it('a target that asked to be left alone comes after all that did not, the soonest first', () => {
    const route = scene(undefined, undefined, undefined);
    expect(route.after(0, interruption({ cause: 'rate_limited', retry_after_ms: 9000 }))).toEqual([1, 2, 0]);
    expect(route.after(1, interruption({ cause: 'rate_limited', retry_after_ms: 2000 }))).toEqual([2, 1, 0]);
    expect(route.after(2, interruption({}))).toEqual([2, 1, 0]);
    route.now_ms = 9000;
    expect(route.after(2, interruption({}))).toEqual([0, 1, 2]);
  });

  it('a target that let the client wait is not asked again, unless it had said something and is the last', () => {
    const silence = interruption({
      cause: 'idle_stall',
      phase: 'text',
      evidence: { kind: 'clock', clock: 'idle' },
    });
    const route = pair();
    expect(route.after(0, silence)).toEqual([1]);
    expect(route.after(1, silence)).toEqual([]);
    const stalled = pair();
    expect(stalled.after(0, silence, { added: 10 })).toEqual([1, 0]);
    expect(stalled.after(1, interruption({}))).toEqual([1, 0]);
    expect(stalled.after(1, interruption({}))).toEqual([1, 0]);
    expect(stalled.after(1, silence)).toEqual([0]);
    expect(stalled.after(0, silence)).toEqual([]);
  });

  it('a target whose attempts speak and die three times at one place is not asked there again', () => {
    const route = pair();
    route.same_target_retries = 5;
    expect(route.after(0, CUT, { position: 7 })).toEqual([0, 1]);
    expect(route.after(0, CUT, { position: 7 })).toEqual([0, 1]);
    expect(route.after(0, CUT, { position: 7 })).toEqual([1]);
    expect(route.after(1, CUT, { added: 1, position: 8 })).toEqual([1, 0]);
  });

  it('one that fails before the first token, however often, is asked again', () => {
    const route = pair();
    const error = interruption({ phase: 'first_token', evidence: { kind: 'error_event', type: '' } });
    route.same_target_retries = 5;
    for (let attempt = 0; attempt < 5; attempt++) expect(route.after(0, error)).toEqual([0, 1]);
  });

  it('a target that asks for a longer wait than is allowed is not asked again', () => {
    const limited = (retry_after_ms: number) => interruption({ cause: 'rate_limited', retry_after_ms });
    expect(scene(undefined).after(0, limited(60_000))).toEqual([0]);
    expect(scene(undefined).after(0, limited(60_001))).toEqual([]);
    const route = pair();
    expect(route.after(0, limited(60_001))).toEqual([1]);
    expect(route.after(1, limited(60_000))).toEqual([1]);
    route.now_ms = 1;
    expect(route.after(1, interruption({}))).toEqual([1, 0]);
  });

  it('a target is waited for although there is another, as far as that is allowed', () => {
    const limited = (retry_after_ms: number) => interruption({ cause: 'rate_limited', retry_after_ms });
    const unavailable = interruption({ status: 503, retry_after_ms: 2000 });
    const waiting = () => Object.assign(pair(), { retry_after_wait_ms: 2000 });
    expect(waiting().after(0, limited(2000))).toEqual([0, 1]);
    expect(waiting().after(0, unavailable)).toEqual([0, 1]);
    expect(waiting().after(0, limited(2001))).toEqual([1, 0]);
    expect(waiting().after(0, interruption({ cause: 'rate_limited' }))).toEqual([1, 0]);
    expect(pair().after(0, limited(1))).toEqual([1, 0]);
    const route = waiting();
    route.after(0, limited(2000));
    expect(route.after(0, limited(2000))).toEqual([1, 0]);
    const doubted = waiting();
    doubted.doubted = [true, false];
    expect(doubted.after(0, limited(2000))).toEqual([1, 0]);
  });
});

describe('a permanent failure', () => {
  it('of the operator leads to the next target, and never back', () => {
    const route = pair();
    const unauthorised = interruption({ cause: 'unauthorised' });
    expect(route.after(0, unauthorised, { own: OPERATORS })).toEqual([1]);
    expect(route.after(1, interruption({}))).toEqual([1]);
    expect(route.after(1, unauthorised, { own: OPERATORS })).toEqual([]);
  });

  it.each(['unauthorised', 'quota', 'model_not_found', 'invalid_request'] as const)(
    'of the client, %s, ends it',
    (cause) => {
      expect(pair().after(0, interruption({ cause }))).toEqual([]);
    },
  );

  it.each(['unauthorised', 'model_not_found', 'invalid_request'] as const)(
    '%s of a target that was asked in place of another leaves that one and the others',
    (cause) => {
      const route = scene(undefined, undefined, undefined);
      route.after(0, interruption({ cause: 'rate_limited' }));
      expect(route.after(1, interruption({ cause }))).toEqual([2, 0]);
    },
  );

  it('is never routed around for a content filter', () => {
    const route = pair();
    route.after(0, interruption({}));
    expect(route.after(1, interruption({ cause: 'content_filter' }), { own: OPERATORS })).toEqual([]);
  });
});

describe('an overflow', () => {
  const overflow = interruption({ cause: 'context_overflow' });

  it('leads to larger targets, and to those of which nothing is known', () => {
    expect(scene(8000, 8000, 4000, undefined, 128_000, 32_000).after(0, overflow)).toEqual([3, 4, 5]);
  });

  it('has a target of which nothing is known tried once', () => {
    const route = scene(undefined, undefined, 128_000);
    expect(route.after(0, overflow)).toEqual([1, 2]);
    expect(route.after(1, overflow)).toEqual([2]);
    expect(route.after(2, overflow)).toEqual([]);
  });

  it('leads back to a target that failed for another reason, unless it is known to be no larger', () => {
    const limited = interruption({ cause: 'rate_limited' });
    const unknown = pair();
    unknown.after(0, limited);
    expect(unknown.after(1, overflow)).toEqual([0]);
    const small = scene(8000, 8000);
    small.after(0, limited);
    expect(small.after(1, overflow)).toEqual([]);
  });
});

describe('a request that has become shorter', () => {
  const overflow = interruption({ cause: 'context_overflow' });
  const shorter = (route: Scene, target: number) => {
    route.standings = afterCompression(route.standings);
    return chooseTargets({ ...route, failure: { target, reaction: 'ours', interruption: overflow } });
  };

  it('may go to targets for which it was too long, the last of them first', () => {
    const route = scene(8000, 32_000, 4000);
    expect(route.after(0, overflow)).toEqual([1]);
    expect(route.after(1, overflow)).toEqual([]);
    expect(shorter(route, 1)).toEqual([1, 0, 2]);
  });

  it('may go to the only one', () => {
    const route = scene(undefined);
    expect(route.after(0, overflow)).toEqual([]);
    expect(shorter(route, 0)).toEqual([0]);
  });

  it('does not go to targets that may not be asked any more', () => {
    const route = scene(8000, 32_000);
    route.after(0, interruption({ cause: 'unauthorised' }), { own: OPERATORS });
    expect(route.after(1, overflow)).toEqual([]);
    expect(shorter(route, 1)).toEqual([1]);
  });
});

it('what is no fault of the target changes nothing', () => {
  const route = pair();
  const lost = interruption({ cause: 'connection_reset', evidence: { kind: 'replica_lost' } });
  for (let attempt = 0; attempt < 3; attempt++) expect(route.after(1, lost)).toEqual([1, 0]);
});
