import { describe, expect, test } from 'vitest';
import type { Refusal } from '../../../src/checkpoint/file/refusal.ts';
import type { RunId } from '../../../src/checkpoint/store.ts';
import { COMPLETE, newRunId, temporaryDirectory, textOf } from '../fixtures.ts';
import { Peer, readRun, refusalOf } from './file-peer.ts';
import { InterruptedFileSystem } from './interrupted-file-system.ts';

/**
 * Runs `scenario` with an interruption before its first call, its second, and so on, until it reports that none
 * happened.
 */
async function atEveryCall(scenario: (at_call: number) => Promise<boolean>): Promise<void> {
  let at_call = 1;
  while (await scenario(at_call)) at_call++;
  expect(at_call).toBeGreaterThan(2);
}

describe('a takeover at any moment', () => {
  test('of an append keeps what was acknowledged and lets one of the two continue', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      const successor = new Peer(dir, run);
      const interruption = new InterruptedFileSystem(at_call, () => {
        expect(successor.acquire(1).append('B')).toBeUndefined();
      });
      const holder = new Peer(dir, run, { fs: interruption.fs }).acquire();
      holder.append('a');
      interruption.armed = true;
      const refusal = holder.append('b');
      interruption.armed = false;
      if (!interruption.interrupted) return false;
      const words = textOf(readRun(dir, run).records);
      expect(words).toBe(refusal && !words.includes('b') ? 'aB' : 'abB');
      expect(holder.append('c')).toMatchObject({ code: 'stale' });
      expect(successor.append('C')).toBeUndefined();
      expect(textOf(readRun(dir, run).records)).toBe(`${words}C`);
      return true;
    });
  });

  test('of a finish leaves either a finished run or one that continues', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      const successor = new Peer(dir, run);
      let taken: boolean | undefined;
      const interruption = new InterruptedFileSystem(at_call, () => {
        try {
          taken = successor.acquire(1).append('B') === undefined;
        } catch (error) {
          expect(error).toMatchObject({ code: 'finished' });
          taken = false;
        }
      });
      const holder = new Peer(dir, run, { fs: interruption.fs }).acquire();
      holder.append('a');
      interruption.armed = true;
      const refusal = refusalOf(() => holder.finish(COMPLETE));
      if (!interruption.interrupted) return false;
      const image = readRun(dir, run);
      expect(image.end).toEqual(taken ? undefined : COMPLETE);
      expect(textOf(image.records)).toBe(taken ? 'aB' : 'a');
      // A finish is rightly stale if another process completed it; the store then checks whether that is so.
      if (refusal) expect(refusal).toMatchObject({ code: 'stale' });
      if (taken) expect(refusal).toBeDefined();
      return true;
    });
  });

  test('that the holder does not know of yet keeps what was acknowledged to the holder', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      const holder = new Peer(dir, run).acquire();
      holder.append('a');
      let refusal: Refusal | undefined;
      const interruption = new InterruptedFileSystem(at_call, () => {
        refusal = holder.append('b');
      });
      const successor = new Peer(dir, run, { fs: interruption.fs });
      interruption.armed = true;
      successor.acquire(1);
      if (!interruption.interrupted) return false;
      expect(successor.append('B')).toBeUndefined();
      const words = textOf(readRun(dir, run).records);
      if (refusal) expect(['aB', 'abB']).toContain(words);
      else expect(words).toBe('abB');
      return true;
    });
  });

  test('of a takeover leaves the last successor, and every acknowledged event', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      const first = new Peer(dir, run).acquire();
      first.append('a');
      const third = new Peer(dir, run);
      const interruption = new InterruptedFileSystem(at_call, () => {
        expect(third.acquire(third.latest).append('3')).toBeUndefined();
      });
      const second = new Peer(dir, run, { fs: interruption.fs });
      interruption.armed = true;
      const refusal = refusalOf(() => second.acquire(1));
      interruption.armed = false;
      if (!interruption.interrupted) return false;
      expect([undefined, 'taken']).toContain(refusal?.code);
      expect(first.append('1')).toMatchObject({ code: 'stale' });
      expect(second.append('2')).toMatchObject({ code: 'stale' });
      expect(third.append('3')).toBeUndefined();
      expect(textOf(readRun(dir, run).records)).toBe('a33');
      return true;
    });
  });

  test('by two replicas that follow the same epoch lets one of them have it', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      new Peer(dir, run).acquire().append('a');
      const other = new Peer(dir, run);
      let otherRefusal: Refusal | undefined;
      const interruption = new InterruptedFileSystem(at_call, () => {
        otherRefusal = refusalOf(() => other.acquire(1));
      });
      const one = new Peer(dir, run, { fs: interruption.fs });
      interruption.armed = true;
      const refusal = refusalOf(() => one.acquire(1));
      interruption.armed = false;
      if (!interruption.interrupted) return false;
      const refusals = [refusal, otherRefusal];
      expect(refusals.filter((refused) => refused?.code === 'taken')).toHaveLength(1);
      const winner = refusal ? other : one;
      expect(winner.append('b')).toBeUndefined();
      expect(textOf(readRun(dir, run).records)).toBe('ab');
      return true;
    });
  });

  test('of a release leaves the run to the successor, with everything that was acknowledged', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      const successor = new Peer(dir, run);
      const interruption = new InterruptedFileSystem(at_call, () => {
        expect(successor.acquire(successor.latest).append('B')).toBeUndefined();
      });
      const holder = new Peer(dir, run, { fs: interruption.fs }).acquire();
      holder.append('a');
      interruption.armed = true;
      holder.release();
      interruption.armed = false;
      if (!interruption.interrupted) return false;
      expect(holder.append('b')).toMatchObject({ code: 'stale' });
      expect(successor.append('C')).toBeUndefined();
      expect(readRun(dir, run)).not.toHaveProperty('damage');
      expect(textOf(readRun(dir, run).records)).toBe('aBC');
      return true;
    });
  });

  test('of the finish of a run of several epochs leaves one finished run', async () => {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      new Peer(dir, run).acquire().append('a');
      const interruption = new InterruptedFileSystem(at_call, () => {
        const late = refusalOf(() => new Peer(dir, run).acquire(2));
        expect([undefined, 'finished']).toContain(late?.code);
      });
      const holder = new Peer(dir, run, { fs: interruption.fs }).acquire(1);
      holder.append('b');
      interruption.armed = true;
      const finished = refusalOf(() => holder.finish(COMPLETE));
      interruption.armed = false;
      if (!interruption.interrupted) return false;
      const image = readRun(dir, run);
      expect(textOf(image.records)).toBe('ab');
      if (finished === undefined) expect(image.end).toEqual(COMPLETE);
      else expect(finished).toMatchObject({ code: 'stale' });
      return true;
    });
  });
});

describe('a process that dies between any two of its calls', () => {
  /** Runs `work` on a file system that fails permanently from some call on, for each call in turn. */
  async function dieAtEveryCall(
    prepare: (dir: string, run: RunId) => void,
    work: (peer: Peer) => Promise<void> | void,
    after: number,
    check: (dir: string, run: RunId, survived: boolean) => void,
  ): Promise<void> {
    await atEveryCall(async (at_call) => {
      const dir = temporaryDirectory();
      const run = newRunId();
      prepare(dir, run);
      const death = new InterruptedFileSystem(at_call, () => {
        throw Object.assign(new Error('killed'), { code: 'KILLED' });
      });
      const victim = new Peer(dir, run, { fs: death.fs });
      if (after >= 0) victim.acquire(after).append('v');
      death.armed = true;
      death.forever = true;
      try {
        await work(victim);
      } catch (error) {
        expect(error).toMatchObject({ code: 'KILLED' });
      }
      death.armed = false;
      check(dir, run, !death.interrupted);
      return death.interrupted;
    });
  }

  const latestEpoch = (dir: string, run: RunId): number => new Peer(dir, run).latest;

  test('while it takes a run over leaves it to the next', async () => {
    await dieAtEveryCall(
      (dir, run) => expect(new Peer(dir, run).acquire().append('a')).toBeUndefined(),
      (victim) => {
        victim.acquire(1);
        victim.append('b');
      },
      -1,
      (dir, run) => {
        const next = new Peer(dir, run).acquire(latestEpoch(dir, run));
        expect(next.append('c')).toBeUndefined();
        expect(textOf(readRun(dir, run).records)).toMatch(/^ab?c$/);
        expect(readRun(dir, run)).not.toHaveProperty('damage');
      },
    );
  });

  test('while it hands a run over leaves it to the next', async () => {
    await dieAtEveryCall(
      () => {},
      (victim) => victim.release(),
      0,
      (dir, run, survived) => {
        if (survived)
          expect(new Peer(dir, run).call('read', { run })).toMatchObject({ holder: { state: 'released' } });
        const next = new Peer(dir, run).acquire(latestEpoch(dir, run));
        expect(next.append('c')).toBeUndefined();
        expect(textOf(readRun(dir, run).records)).toBe('vc');
      },
    );
  });

  test.each([
    ['one epoch', 0],
    ['several epochs', 1],
  ])('while it finishes a run of %s leaves it finished, or to the next', async (_, after) => {
    await dieAtEveryCall(
      (dir, run) => {
        if (after === 1) new Peer(dir, run).acquire().append('a');
      },
      async (victim) => {
        await victim.finish(COMPLETE);
      },
      after,
      (dir, run, survived) => {
        const text = after === 1 ? 'av' : 'v';
        expect(textOf(readRun(dir, run).records)).toBe(text);
        const { end } = readRun(dir, run);
        if (survived) expect(end).toEqual(COMPLETE);
        const refusal = refusalOf(() => new Peer(dir, run).acquire(Math.max(latestEpoch(dir, run), 1)));
        expect(refusal?.code).toBe(end ? 'finished' : undefined);
        expect(readRun(dir, run)).toMatchObject(end ? { end } : {});
        expect(textOf(readRun(dir, run).records)).toBe(text);
      },
    );
  });
});
