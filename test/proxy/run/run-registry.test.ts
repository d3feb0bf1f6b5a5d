import { describe, expect, it } from 'vitest';
import { HAND_OVER } from '../../../src/proxy/run/context/run.ts';
import { RunRegistry } from '../../../src/proxy/run/run-registry.ts';
import { newRunId, OWNER, STRANGER } from '../../checkpoint/fixtures.ts';
import { VirtualTime } from '../../simulation/virtual-time.ts';

const RUN = newRunId();

it('an owner has so many runs under way, and others have theirs', () => {
  const registry = new RunRegistry({ runs_per_owner: 2 });
  const first = registry.begin(OWNER);
  registry.begin(OWNER);
  expect(() => registry.begin(OWNER)).toThrow('This credential already has 2 active runs');
  registry.begin(STRANGER);
  first.end();
  const third = registry.begin(OWNER);
  expect(() => registry.begin(OWNER)).toThrow('limits.runs_per_owner');
  third.answered();
  third.end();
  registry.begin(OWNER);
  expect(() => registry.begin(OWNER)).toThrow('limits.runs_per_owner');
});

describe('a run that is held here', () => {
  it('can be found until it has ended', async () => {
    const registry = new RunRegistry({ runs_per_owner: 1 });
    const active = registry.begin(OWNER);
    expect(registry.holder(RUN)).toBeUndefined();
    registry.hold(RUN, active);
    expect(registry.holder(RUN)).toBe(active);
    active.end();
    await active.ended;
    expect(registry.holder(RUN)).toBeUndefined();
  });

  it('stays found when one that held it before has ended', async () => {
    const registry = new RunRegistry({ runs_per_owner: 2 });
    const [before, now] = [registry.begin(OWNER), registry.begin(OWNER)];
    registry.hold(RUN, before);
    registry.hold(RUN, now);
    before.end();
    await before.ended;
    expect(registry.holder(RUN)).toBe(now);
  });
});

describe('handing over', () => {
  it('waits for all that is under way to end', async () => {
    const time = new VirtualTime();
    const registry = new RunRegistry({ runs_per_owner: 2 });
    const runs = [registry.begin(OWNER), registry.begin(STRANGER)];
    for (const run of runs)
      run.signal.addEventListener('abort', () => time.after(100, () => run.end()), { once: true });
    await time.drive(registry.handOver(time, 1000));
    expect(time.now()).toBe(100);
    expect(runs.map(({ signal }) => signal.reason)).toEqual([HAND_OVER, HAND_OVER]);
  });

  it('waits for a run whose client has its answer, too', async () => {
    const time = new VirtualTime();
    const registry = new RunRegistry({ runs_per_owner: 1 });
    const run = registry.begin(OWNER);
    run.answered();
    time.after(100, () => run.end());
    await time.drive(registry.handOver(time, 1000));
    expect(time.now()).toBe(100);
  });

  it('waits for no longer than it may', async () => {
    const time = new VirtualTime();
    const registry = new RunRegistry({ runs_per_owner: 1 });
    registry.begin(OWNER);
    await time.drive(registry.handOver(time, 1000));
    expect(time.now()).toBe(1000);
  });
});
