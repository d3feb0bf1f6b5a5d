import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { BodyQueue, Turns } from '../../../src/proxy/upstream/body-queue.ts';
import { TransportFailure } from '../../../src/proxy/upstream/transport.ts';

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

class SourcedQueue extends BodyQueue {
  readonly #source: RecordedSource;
  /** By default, no time passes during a test. */
  constructor(source: RecordedSource, turns: Turns = new Turns(() => 0)) {
    super(turns);
    this.#source = source;
  }
  protected pause(): void {
    this.#source.pause();
  }
  protected resume(): void {
    this.#source.resume();
  }
  protected abandon(): void {
    this.#source.abandon();
  }
}

const KIB = 1024;
const bytes = (length: number, fill = 0) => Buffer.alloc(length).fill(fill);
const FAILURE = new TransportFailure('ECONNRESET');

/** A consumer that takes one piece, and the next only after {@link release}. */
class SlowConsumer {
  readonly fills: number[] = [];
  #waiting = Promise.withResolvers<void>();
  readonly take = (piece: Buffer): Promise<void> => {
    this.fills.push(piece[0] ?? -1);
    return this.#waiting.promise;
  };
  async release(): Promise<void> {
    const { resolve } = this.#waiting;
    this.#waiting = Promise.withResolvers();
    resolve();
    await new Promise(setImmediate);
  }
}

/** Consumes the queue without delay. */
function consume(queue: BodyQueue, onPiece: (piece: Buffer) => void = () => {}) {
  const fills: number[] = [];
  const consumed = queue.consume((piece) => {
    fills.push(piece[0] ?? -1);
    onPiece(piece);
    return undefined;
  });
  return { fills, consumed };
}

describe('handing over', () => {
  test('at once, and the very piece that came', () => {
    const queue = new SourcedQueue(new RecordedSource());
    const taken: Buffer[] = [];
    consume(queue, (piece) => taken.push(piece));
    const piece = bytes(3);
    queue.push(piece);
    expect(taken).toHaveLength(1);
    expect(taken[0]).toBe(piece);
  });

  test('what came before the consumer, in order', async () => {
    const queue = new SourcedQueue(new RecordedSource());
    for (const fill of [1, 2]) queue.push(bytes(1, fill));
    const { fills, consumed } = consume(queue);
    queue.push(bytes(1, 3));
    queue.end();
    await consumed;
    expect(fills).toEqual([1, 2, 3]);
  });

  test('nothing while the consumer is busy; then in order', async () => {
    const queue = new SourcedQueue(new RecordedSource());
    const consumer = new SlowConsumer();
    const consumed = queue.consume(consumer.take);
    for (const fill of [1, 2, 3]) queue.push(bytes(1, fill));
    expect(consumer.fills).toEqual([1]);
    await consumer.release();
    expect(consumer.fills).toEqual([1, 2]);
    await consumer.release();
    await consumer.release();
    queue.push(bytes(1, 4));
    expect(consumer.fills).toEqual([1, 2, 3, 4]);
    queue.end();
    await consumer.release();
    await consumed;
  });

  test('what comes while a piece is taken follows it', async () => {
    const queue = new SourcedQueue(new RecordedSource());
    const { fills, consumed } = consume(queue, (piece) => {
      if (piece[0] === 1) queue.push(bytes(1, 2));
      else queue.end();
    });
    queue.push(bytes(1, 1));
    await consumed;
    expect(fills).toEqual([1, 2]);
  });
});

describe('the end', () => {
  test('reaches a consumer that is ready', async () => {
    const queue = new SourcedQueue(new RecordedSource());
    const { consumed } = consume(queue);
    queue.end();
    await consumed;
  });

  test('waits until the last piece was taken', async () => {
    const queue = new SourcedQueue(new RecordedSource());
    const consumer = new SlowConsumer();
    let over = false;
    const consumed = queue.consume(consumer.take).then(() => {
      over = true;
    });
    queue.push(bytes(1, 1));
    queue.end();
    await new Promise(setImmediate);
    expect(over).toBe(false);
    await consumer.release();
    await consumed;
  });

  test('that came before the consumer', async () => {
    const queue = new SourcedQueue(new RecordedSource());
    queue.end();
    await consume(queue).consumed;
  });

  test('a failure reaches a consumer that is ready', async () => {
    const queue = new SourcedQueue(new RecordedSource());
    const { consumed } = consume(queue);
    queue.fail(FAILURE);
    await expect(consumed).rejects.toBe(FAILURE);
  });

  test('a failure comes after what came before it', async () => {
    const queue = new SourcedQueue(new RecordedSource());
    queue.push(bytes(1, 1));
    queue.fail(FAILURE);
    const { fills, consumed } = consume(queue);
    await expect(consumed).rejects.toBe(FAILURE);
    expect(fills).toEqual([1]);
  });

  test('a discarded body hands over nothing that is queued', async () => {
    const queue = new SourcedQueue(new RecordedSource());
    queue.push(bytes(1, 1));
    queue.discard(FAILURE);
    const { fills, consumed } = consume(queue);
    await expect(consumed).rejects.toBe(FAILURE);
    expect(fills).toEqual([]);
  });

  test('a body discarded while a piece is taken ends with that piece', async () => {
    const queue = new SourcedQueue(new RecordedSource());
    for (const fill of [1, 2]) queue.push(bytes(1, fill));
    const { fills, consumed } = consume(queue, () => queue.discard(FAILURE));
    await expect(consumed).rejects.toBe(FAILURE);
    expect(fills).toEqual([1]);
  });

  test('nothing is taken after it', () => {
    const queue = new SourcedQueue(new RecordedSource());
    const { fills } = consume(queue);
    queue.end();
    queue.push(bytes(1, 1));
    expect(fills).toEqual([]);
  });
});

describe('a consumer that fails', () => {
  const MISTAKE = new Error('a mistake of ours');

  test('abandons the source, which never sees the error', async () => {
    const source = new RecordedSource();
    const queue = new SourcedQueue(source);
    const { fills, consumed } = consume(queue, () => {
      throw MISTAKE;
    });
    expect(() => queue.push(bytes(1, 1))).not.toThrow();
    queue.push(bytes(1, 2));
    await expect(consumed).rejects.toBe(MISTAKE);
    expect(fills).toEqual([1]);
    expect(source.calls).toEqual(['abandon']);
  });

  test('by its promise as well', async () => {
    const source = new RecordedSource();
    const queue = new SourcedQueue(source);
    const taken: Buffer[] = [];
    const consumed = queue.consume((piece) => {
      taken.push(piece);
      return Promise.reject(MISTAKE);
    });
    queue.push(bytes(1, 1));
    queue.push(bytes(1, 2));
    await expect(consumed).rejects.toBe(MISTAKE);
    expect(taken).toHaveLength(1);
    expect(source.calls).toEqual(['abandon']);
  });

  test('after the end abandons nothing', async () => {
    const source = new RecordedSource();
    const queue = new SourcedQueue(source);
    queue.push(bytes(1, 1));
    queue.end();
    const { consumed } = consume(queue, () => {
      throw MISTAKE;
    });
    await expect(consumed).rejects.toBe(MISTAKE);
    expect(source.calls).toEqual([]);
  });
});

describe('holding back', () => {
  test('from 256 KiB on, once; and letting go at half of it, once', async () => {
    const source = new RecordedSource();
    const queue = new SourcedQueue(source);
    const consumer = new SlowConsumer();
    const pieceOf16KibWithItsOverhead = bytes(16 * KIB - 256);
    const push = (pieces: number) => {
      for (let piece = 0; piece < pieces; piece += 1) queue.push(pieceOf16KibWithItsOverhead);
    };
    const release = async (pieces: number) => {
      for (let piece = 0; piece < pieces; piece += 1) await consumer.release();
    };
    push(15);
    expect(source.calls).toEqual([]);
    push(2);
    expect(source.calls).toEqual(['pause']);
    void queue.consume(consumer.take);
    await release(7);
    expect(source.calls).toEqual(['pause']);
    await release(10);
    expect(source.calls).toEqual(['pause', 'resume']);
  });

  test('not for a consumer that is ready', () => {
    const source = new RecordedSource();
    const queue = new SourcedQueue(source);
    const { fills } = consume(queue);
    for (let piece = 0; piece < 20; piece += 1) queue.push(bytes(64 * KIB));
    expect(fills).toHaveLength(20);
    expect(source.calls).toEqual([]);
  });

  test('a flood of one-byte pieces is held back too', () => {
    const source = new RecordedSource();
    const queue = new SourcedQueue(source);
    let pieces = 0;
    for (; source.calls.length === 0; pieces += 1) queue.push(bytes(1));
    expect(pieces).toBeLessThan(2 * KIB);
  });

  test('pieces that come while letting go stay in order', async () => {
    const source = new RecordedSource();
    const queue = new SourcedQueue(source);
    queue.push(bytes(200 * KIB, 1));
    queue.push(bytes(100 * KIB, 2));
    source.onResume = () => {
      queue.push(bytes(1, 3));
      queue.end();
    };
    const { fills, consumed } = consume(queue);
    await consumed;
    expect(fills).toEqual([1, 2, 3]);
  });

  test('a source that has ended is not let go', async () => {
    const source = new RecordedSource();
    const queue = new SourcedQueue(source);
    queue.push(bytes(300 * KIB));
    queue.end();
    await consume(queue).consumed;
    expect(source.calls).toEqual(['pause']);
  });
});

describe('where many queues have more than a turn of the event loop can take', () => {
  const turn = () => new Promise(setImmediate);

  /**
   * Queues whose consumers share a clock. `piece_ms`: how long they take for a piece. `handled`: names of the queues, in
   * the order in which pieces were taken.
   */
  function busyQueues(piece_ms = 4) {
    let now_ms = 0;
    const turns = new Turns(() => now_ms);
    const handled: string[] = [];
    const open = (name: string) => {
      const source = new RecordedSource();
      const queue = new SourcedQueue(source, turns);
      const { fills, consumed } = consume(queue, () => {
        now_ms += piece_ms;
        handled.push(name);
      });
      return { queue, source, fills, consumed };
    };
    return { open, handled };
  }

  test('later turns take the rest', async () => {
    const { open, handled } = busyQueues();
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const queues = names.map(open);
    for (const { queue } of queues) queue.push(bytes(1));
    // Twice as long, because nothing showed when this turn began.
    expect(handled).toEqual(['a', 'b', 'c', 'd']);
    await turn();
    expect(handled).toHaveLength(6);
    await turn();
    expect(handled).toHaveLength(names.length);
    expect(new Set(handled)).toEqual(new Set(names));
  });

  test('the next turn is watched for only once much time has passed', async () => {
    const { open } = busyQueues(0.1);
    const { queue, fills } = open('a');
    const schedule = vi.spyOn(globalThis, 'setImmediate');
    onTestFinished(() => schedule.mockRestore());
    for (let pieces = 0; pieces < 200; pieces++) {
      queue.push(bytes(1));
      await new Promise((resolve) => setTimeout(resolve));
    }
    expect(fills).toHaveLength(200);
    expect(schedule.mock.calls.length).toBeGreaterThan(0);
    expect(schedule.mock.calls.length).toBeLessThanOrEqual(4);
  });

  test('those with little in them pass those with much, which come all the same', async () => {
    const { open, handled } = busyQueues();
    const floods = Array.from({ length: 10 }, (_, index) => open(`flood ${index}`));
    for (const { queue } of floods) queue.push(bytes(64 * KIB));
    const token = open('token');
    token.queue.push(bytes(100));
    expect(handled).toEqual(['flood 0', 'flood 1', 'flood 2', 'flood 3']);
    await turn();
    expect(handled.slice(4, 6)).toEqual(['flood 4', 'token']);
    for (let tokens = 0; tokens < 7; tokens++) {
      token.queue.push(bytes(100));
      await turn();
    }
    expect(new Set(handled).size).toBe(11);
  });

  test('one with much in it is not passed over for ever', async () => {
    const { open, handled } = busyQueues();
    const small = Array.from({ length: 12 }, (_, index) => open(`small ${index}`));
    const huge = open('huge');
    for (let turns = 0; turns < 10; turns++) {
      for (const { queue } of small) queue.push(bytes(1));
      if (turns === 0) huge.queue.push(bytes(200 * KIB));
      await turn();
    }
    expect(handled).toContain('huge');
  });

  test('pieces keep their order, the provider is held back, and the end comes last', async () => {
    const { open } = busyQueues();
    for (const { queue } of [open('a'), open('b'), open('c'), open('d')]) queue.push(bytes(1));
    const { queue, source, fills, consumed } = open('late');
    for (const fill of [1, 2, 3, 4, 5]) queue.push(bytes(64 * KIB, fill));
    queue.end();
    expect(fills).toEqual([]);
    expect(source.calls).toEqual(['pause']);
    await consumed;
    expect(fills).toEqual([1, 2, 3, 4, 5]);
  });

  test('a failure reaches the consumer, without what was dropped', async () => {
    const { open } = busyQueues();
    for (const { queue } of [open('a'), open('b'), open('c'), open('d')]) queue.push(bytes(1));
    const { queue, fills, consumed } = open('late');
    queue.push(bytes(1, 1));
    queue.discard(FAILURE);
    await expect(consumed).rejects.toBe(FAILURE);
    expect(fills).toEqual([]);
  });
});
