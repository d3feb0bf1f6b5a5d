import { describe, expect, it } from 'vitest';
import { CircuitBreaker } from '../../src/plans/circuit-breaker.ts';

const LIMITS = { failures: 5, failure_percent: 50, window: 20, open_ms: 5000, open_max_ms: 20_000 };

class Scene {
  readonly breaker = new CircuitBreaker(LIMITS);
  now_ms = 0;

  /** One instantaneous attempt. True if the breaker admitted it. */
  attempt(works: boolean, answered = works): boolean {
    if (!this.breaker.admits(this.now_ms)) return false;
    const began_ms = this.now_ms;
    const probe = this.breaker.begin(began_ms);
    if (answered) this.breaker.succeeded(this.now_ms);
    if (!works) this.breaker.failed({ began_ms, now_ms: this.now_ms, answered, probe });
    return true;
  }

  times(count: number, works: boolean, answered = works): void {
    for (let index = 0; index < count; index++) this.attempt(works, answered);
  }

  get state() {
    return this.breaker.state(this.now_ms);
  }
}

const opened = (): Scene => {
  const scene = new Scene();
  scene.times(LIMITS.failures, false);
  return scene;
};

describe('opening', () => {
  it('takes so many failures in a row', () => {
    const scene = new Scene();
    scene.times(4, false);
    scene.times(1, true);
    scene.times(4, false);
    expect(scene.state).toBe('closed');
    scene.times(1, false);
    expect(scene.state).toBe('open');
    expect(scene.breaker.admits(scene.now_ms)).toBe(false);
  });

  it('or so many of the last outcomes', () => {
    const scene = new Scene();
    for (let pair = 0; pair < 9; pair++) {
      scene.times(1, true);
      scene.times(1, false);
    }
    scene.times(1, true);
    expect(scene.state).toBe('closed');
    scene.times(1, false);
    expect(scene.state).toBe('open');
  });

  it('of which those before are forgotten', () => {
    const scene = new Scene();
    scene.times(30, true);
    for (let pair = 0; pair < 9; pair++) {
      scene.times(1, false);
      scene.times(1, true);
    }
    expect(scene.state).toBe('closed');
    scene.times(1, false);
    expect(scene.state).toBe('open');
  });

  it('answers that broke off together are not that many failures in a row', () => {
    const scene = new Scene();
    scene.times(12, true);
    const lost = { began_ms: 0, now_ms: 0, answered: true, probe: false };
    for (let stream = 0; stream < 8; stream++) scene.breaker.failed(lost);
    expect(scene.state).toBe('closed');
  });

  it('a target that begins every answer and finishes none is down as well', () => {
    const scene = new Scene();
    scene.times(10, false, true);
    expect(scene.state).toBe('open');
  });
});

describe('while it is open', () => {
  it('one attempt at a time finds out, after a while', () => {
    const scene = opened();
    scene.now_ms = 4999;
    expect(scene.breaker.admits(scene.now_ms)).toBe(false);
    scene.now_ms = 5000;
    expect(scene.state).toBe('half_open');
    expect(scene.breaker.admits(scene.now_ms)).toBe(true);
    expect(scene.breaker.begin(scene.now_ms)).toBe(true);
    expect(scene.breaker.admits(scene.now_ms)).toBe(false);
    expect(scene.breaker.begin(scene.now_ms)).toBe(false);
  });

  it('a probe that is answered closes it, with a clean record', () => {
    const scene = opened();
    scene.now_ms = 5000;
    scene.attempt(true);
    expect(scene.state).toBe('closed');
    scene.times(4, false);
    expect(scene.state).toBe('closed');
  });

  it('each probe that fails doubles the time to the next, up to a limit', () => {
    const scene = opened();
    for (const open_ms of [5000, 10_000, 20_000, 20_000]) {
      scene.now_ms += open_ms - 1;
      expect(scene.state).toBe('open');
      scene.now_ms += 1;
      expect(scene.attempt(false)).toBe(true);
    }
    // Closing the breaker resets the time.
    scene.now_ms += 20_000;
    scene.attempt(true);
    scene.times(5, false);
    scene.now_ms += 5000;
    expect(scene.state).toBe('half_open');
  });

  it('a probe that came to nothing makes room for another', () => {
    const scene = opened();
    scene.now_ms = 5000;
    scene.breaker.begin(5000);
    scene.breaker.release(5000);
    expect(scene.breaker.admits(5000)).toBe(true);
  });

  it('a probe that is never answered does too, and counts no more when it is given up', () => {
    const scene = opened();
    expect(scene.breaker.begin(5000)).toBe(true);
    expect(scene.breaker.admits(24_999)).toBe(false);
    expect(scene.breaker.admits(25_000)).toBe(true);
    expect(scene.breaker.begin(25_000)).toBe(true);
    scene.breaker.release(5000);
    expect(scene.breaker.admits(25_001)).toBe(false);
    const late = { began_ms: 5000, now_ms: 26_000, answered: false, probe: true };
    expect(scene.breaker.failed(late)).toBe(false);
    expect(scene.breaker.succeeded(26_500)).toBe(true);
    expect(scene.breaker.failed({ ...late, now_ms: 125_000 })).toBe(false);
    expect(scene.breaker.state(125_000)).toBe('closed');
  });

  it('failures of attempts that began before change nothing', () => {
    const scene = opened();
    const before = { began_ms: 0, now_ms: 5500, answered: false, probe: false };
    expect(scene.breaker.failed(before)).toBe(false);
    expect(scene.breaker.state(5500)).toBe('half_open');
    scene.breaker.succeeded(6000);
    for (let late = 0; late < 5; late++) scene.breaker.failed({ ...before, now_ms: 7000 });
    expect(scene.breaker.state(7000)).toBe('closed');
  });
});

it('an outage of a minute with a request every four seconds costs few probes and is over soon after', () => {
  const scene = new Scene();
  const asked: number[] = [];
  for (; scene.now_ms < 120_000; scene.now_ms += 4000) {
    const isDown = scene.now_ms >= 8000 && scene.now_ms < 68_000;
    if (scene.attempt(!isDown)) asked.push(scene.now_ms);
  }
  const during = asked.filter((at_ms) => at_ms >= 8000 && at_ms < 68_000);
  const after = asked.filter((at_ms) => at_ms >= 68_000);
  expect(during.length - LIMITS.failures).toBeLessThanOrEqual(4);
  expect(after[0]).toBeLessThanOrEqual(68_000 + 24_000);
  expect(after.slice(1)).toHaveLength((116_000 - (after[0] ?? 0)) / 4000);
});
