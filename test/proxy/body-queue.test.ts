import { describe, expect, test } from 'vitest';
import { BodyQueue } from '../../src/proxy/body-queue.ts';
import { TransportFailure } from '../../src/proxy/transport.ts';

class RecordedSource {
  readonly calls: string[] = [];
  /** Runs within `resume()`, as undici's parser does. */
  onResume: () => void = () => {};
  pause(): void {
    this.calls.push('pause');
  }
  resume(): void {
    this.calls.push('resume');
    this.onResume();
  }
  abandon(): void {
    this.calls.push('abandon');
  }
}

const KIB = 1024;
const bytes = (length: number, fill = 0) => Buffer.alloc(length).fill(fill);
const FAILURE = new TransportFailure('ECONNRESET');

async function drained(queue: BodyQueue): Promise<number[]> {
  const fills: number[] = [];
  for await (const piece of queue) fills.push(piece[0] ?? -1);
  return fills;
}

describe('handing over', () => {
  test('a piece for which the consumer waits', async () => {
    const queue = new BodyQueue(new RecordedSource());
    const waiting = queue.next();
    queue.push(bytes(1, 7));
    expect(await waiting).toEqual({ done: false, value: bytes(1, 7) });
  });

  test('queued pieces in order, without waiting for more', async () => {
    const queue = new BodyQueue(new RecordedSource());
    for (const fill of [1, 2, 3]) queue.push(bytes(1, fill));
    queue.end();
    expect(await drained(queue)).toEqual([1, 2, 3]);
    expect(await queue.next()).toEqual({ done: true, value: undefined });
  });

  test('the very piece that came, not a copy', async () => {
    const queue = new BodyQueue(new RecordedSource());
    const piece = bytes(3);
    queue.push(piece);
    expect((await queue.next()).value).toBe(piece);
  });
});

describe('the end', () => {
  test('reaches a consumer that waits', async () => {
    const queue = new BodyQueue(new RecordedSource());
    const waiting = queue.next();
    queue.end();
    expect(await waiting).toEqual({ done: true, value: undefined });
  });

  test('a failure reaches a consumer that waits', async () => {
    const queue = new BodyQueue(new RecordedSource());
    const waiting = queue.next();
    queue.fail(FAILURE);
    await expect(waiting).rejects.toBe(FAILURE);
  });

  test('a failure comes after what came before it, and every time', async () => {
    const queue = new BodyQueue(new RecordedSource());
    queue.push(bytes(1, 1));
    queue.fail(FAILURE);
    expect((await queue.next()).value).toEqual(bytes(1, 1));
    await expect(queue.next()).rejects.toBe(FAILURE);
    await expect(queue.next()).rejects.toBe(FAILURE);
  });

  test('a discarded body fails at once', async () => {
    const queue = new BodyQueue(new RecordedSource());
    queue.push(bytes(1, 1));
    queue.discard(FAILURE);
    await expect(queue.next()).rejects.toBe(FAILURE);
  });

  test('a consumer that leaves early abandons the source and sees an end', async () => {
    const source = new RecordedSource();
    const queue = new BodyQueue(source);
    queue.push(bytes(1, 1));
    queue.push(bytes(1, 2));
    for await (const piece of queue) {
      expect(piece).toEqual(bytes(1, 1));
      break;
    }
    expect(source.calls).toEqual(['abandon']);
    expect(await queue.next()).toEqual({ done: true, value: undefined });
  });

  test('a consumer that leaves after the end abandons nothing', async () => {
    const source = new RecordedSource();
    const queue = new BodyQueue(source);
    queue.push(bytes(1, 1));
    queue.end();
    for await (const _ of queue) break;
    expect(source.calls).toEqual([]);
  });
});

describe('holding back', () => {
  test('from 256 KiB on, once; and letting go at half of it, once', async () => {
    const source = new RecordedSource();
    const queue = new BodyQueue(source);
    const pieceOf16KibWithItsOverhead = bytes(16 * KIB - 256);
    const push = (pieces: number) => {
      for (let piece = 0; piece < pieces; piece += 1) queue.push(pieceOf16KibWithItsOverhead);
    };
    const pull = async (pieces: number) => {
      for (let piece = 0; piece < pieces; piece += 1) await queue.next();
    };
    push(15);
    expect(source.calls).toEqual([]);
    push(2);
    expect(source.calls).toEqual(['pause']);
    await pull(8);
    expect(source.calls).toEqual(['pause']);
    await pull(9);
    expect(source.calls).toEqual(['pause', 'resume']);
  });

  test('a piece for which the consumer waits is not counted', async () => {
    const source = new RecordedSource();
    const queue = new BodyQueue(source);
    for (let piece = 0; piece < 20; piece += 1) {
      const waiting = queue.next();
      queue.push(bytes(64 * KIB));
      await waiting;
    }
    expect(source.calls).toEqual([]);
  });

  test('a flood of one-byte pieces is held back too', () => {
    const source = new RecordedSource();
    const queue = new BodyQueue(source);
    let pieces = 0;
    for (; source.calls.length === 0; pieces += 1) queue.push(bytes(1));
    expect(pieces).toBeLessThan(2 * KIB);
  });

  test('pieces that come while letting go stay in order', async () => {
    const source = new RecordedSource();
    const queue = new BodyQueue(source);
    queue.push(bytes(200 * KIB, 1));
    queue.push(bytes(100 * KIB, 2));
    source.onResume = () => {
      queue.push(bytes(1, 3));
      queue.end();
    };
    expect(await drained(queue)).toEqual([1, 2, 3]);
  });

  test('a source that has ended is not let go', async () => {
    const source = new RecordedSource();
    const queue = new BodyQueue(source);
    queue.push(bytes(300 * KIB));
    queue.end();
    await drained(queue);
    expect(source.calls).toEqual(['pause']);
  });
});
