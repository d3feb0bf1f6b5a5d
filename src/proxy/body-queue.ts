import type { TransportFailure } from './transport.ts';

/** Bytes waiting for the consumer after which the provider is held back, and below which it may go on. */
const HELD_BACK_ABOVE_BYTES = 256 * 1024;
const LET_GO_BELOW_BYTES = HELD_BACK_ABOVE_BYTES / 2;
/** What a piece costs besides its bytes; without it a flood of one-byte pieces would be all but free. */
const PIECE_OVERHEAD_BYTES = 256;

/** The provider's side of a response body. */
export interface BodySource {
  pause(): void;
  resume(): void;
  /** The consumer left before the end. */
  abandon(): void;
}

interface Waiter {
  resolve(result: IteratorResult<Buffer, undefined>): void;
  reject(failure: TransportFailure): void;
}

/**
 * A response body between undici, which pushes, and one consumer, who pulls. It is not a stream because it lies
 * on the path of every event: a pull costs one promise, settled at once when a piece is already there.
 *
 * One pull at a time, as `for await` does it.
 */
export class BodyQueue implements AsyncIterableIterator<Buffer, undefined> {
  readonly #source: BodySource;
  #pieces: Buffer[] = [];
  /** Index of the next piece: shifting an array of a thousand small pieces would move all of them each time. */
  #next = 0;
  #bytes = 0;
  #held_back: boolean = false;
  #waiter: Waiter | undefined;
  #ended: boolean = false;
  #failure: TransportFailure | undefined;

  constructor(source: BodySource) {
    this.#source = source;
  }

  push(piece: Buffer): void {
    if (this.#ended) return;
    const waiter = this.#waiter;
    if (waiter) {
      this.#waiter = undefined;
      waiter.resolve({ done: false, value: piece });
      return;
    }
    this.#pieces.push(piece);
    this.#bytes += piece.length + PIECE_OVERHEAD_BYTES;
    if (this.#bytes < HELD_BACK_ABOVE_BYTES || this.#held_back) return;
    this.#held_back = true;
    this.#source.pause();
  }

  /** The body ended properly. What is queued is still handed over. */
  end(): void {
    this.#ended = true;
    this.#waiter?.resolve({ done: true, value: undefined });
    this.#waiter = undefined;
  }

  /** The connection broke. What came before is still handed over, then every pull rejects. */
  fail(failure: TransportFailure): void {
    this.#ended = true;
    this.#failure = failure;
    this.#waiter?.reject(failure);
    this.#waiter = undefined;
  }

  /** As {@link fail}, but nobody wants what is queued any more. */
  discard(failure: TransportFailure): void {
    this.#clear();
    this.fail(failure);
  }

  next(): Promise<IteratorResult<Buffer, undefined>> {
    const piece = this.#pieces[this.#next];
    if (piece) {
      this.#advance(piece);
      return Promise.resolve({ done: false, value: piece });
    }
    if (this.#failure) return Promise.reject(this.#failure);
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
    });
  }

  return(): Promise<IteratorResult<Buffer, undefined>> {
    if (!this.#ended) this.#source.abandon();
    this.#clear();
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #advance(piece: Buffer): void {
    this.#bytes -= piece.length + PIECE_OVERHEAD_BYTES;
    this.#next++;
    if (this.#next === this.#pieces.length) {
      this.#pieces = [];
      this.#next = 0;
    }
    if (!this.#held_back || this.#ended || this.#bytes > LET_GO_BELOW_BYTES) return;
    this.#held_back = false;
    // Last, because undici may push what its parser had kept back before this returns.
    this.#source.resume();
  }

  #clear(): void {
    this.#pieces = [];
    this.#next = 0;
    this.#bytes = 0;
  }
}
