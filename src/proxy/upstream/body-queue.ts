import type { ResponseBody, TakePiece, TransportFailure } from './transport.ts';

/** Bytes waiting for the consumer after which the provider is held back, and below which it may continue. */
const HELD_BACK_ABOVE_BYTES = 256 * 1024;
const LET_GO_BELOW_BYTES = HELD_BACK_ABOVE_BYTES / 2;
/** What a piece costs besides its bytes; without it a flood of one-byte pieces would be all but free. */
const PIECE_OVERHEAD_BYTES = 256;

/** For how long a turn of the event loop hands pieces over; then timers, clients and the store have theirs. */
const TURN_MS = 10;

/** A queue that has pieces for its consumer, and no time left in this turn. */
interface Waiting {
  bytes(): number;
  handOver(): void;
}

/**
 * Shares the turns of the event loop among all queues. In each, the queue that has waited longest comes first, then those
 * with the fewest bytes: however many streams flood this process, tokens pass them.
 */
export class Turns {
  readonly #now: () => number;
  #began_ms = 0;
  #isCounting: boolean = false;
  /** Those that have waited longest come first. */
  #waiting: Waiting[] = [];

  /** `now`: milliseconds, monotonic. */
  constructor(now: () => number = performance.now.bind(performance)) {
    this.#now = now;
  }

  get isSpent(): boolean {
    if (this.#isCounting) return this.#now() - this.#began_ms >= TURN_MS;
    this.#isCounting = true;
    this.#began_ms = this.#now();
    setImmediate(this.#next);
    return false;
  }

  wait(queue: Waiting): void {
    this.#waiting.push(queue);
  }

  readonly #next = (): void => {
    this.#isCounting = this.#waiting.length > 0;
    if (!this.#isCounting) return;
    setImmediate(this.#next);
    this.#began_ms = this.#now();
    const [first, ...others] = this.#waiting;
    this.#waiting = [];
    first?.handOver();
    const left = new Set(others);
    for (const queue of others.toSorted((one, other) => one.bytes() - other.bytes())) {
      if (this.isSpent) break;
      left.delete(queue);
      queue.handOver();
    }
    // Those that were passed stay ahead of what came meanwhile.
    this.#waiting = [...left, ...this.#waiting];
  };
}

const OF_THIS_PROCESS = new Turns();

/**
 * A response body between undici, which pushes, and one consumer. It is neither a stream nor an iterator because it
 * lies on the path of every event: a piece goes straight to a consumer that is ready for it, without a promise.
 */
export abstract class BodyQueue implements ResponseBody {
  readonly #turns: Turns;
  #pieces: Buffer[] = [];
  /** Index of the next piece: shifting an array of a thousand small pieces would move all of them each time. */
  #next = 0;
  #bytes = 0;
  #held_back: boolean = false;
  #take: TakePiece | undefined;
  #consumed: PromiseWithResolvers<void> | undefined;
  /** Nothing waits, neither a piece nor the consumer. */
  #ready: boolean = false;
  #ended: boolean = false;
  #failure: TransportFailure | undefined;

  constructor(turns: Turns = OF_THIS_PROCESS) {
    this.#turns = turns;
  }

  /** Holds the provider back, until {@link resume}. */
  protected abstract pause(): void;
  protected abstract resume(): void;
  /** The consumer left before the end. */
  protected abstract abandon(): void;

  consume(take: TakePiece): Promise<void> {
    this.#take = take;
    this.#consumed = Promise.withResolvers();
    this.#handOver(this.#shift());
    return this.#consumed.promise;
  }

  /** Pieces that have come together. */
  pushAll(pieces: readonly Buffer[]): void {
    const isReady = this.#ready;
    this.#ready = false;
    for (const piece of pieces) this.push(piece);
    if (isReady) this.#handOverInTurn();
  }

  push(piece: Buffer): void {
    if (this.#ended) return;
    if (this.#ready && !this.#turns.isSpent) {
      this.#handOver(piece);
      return;
    }
    if (this.#ready) this.#wait();
    this.#pieces.push(piece);
    this.#bytes += piece.length + PIECE_OVERHEAD_BYTES;
    if (this.#bytes < HELD_BACK_ABOVE_BYTES || this.#held_back) return;
    this.#held_back = true;
    this.pause();
  }

  /** The body ended properly. What is queued is still handed over. */
  end(): void {
    this.#ended = true;
    if (this.#ready) this.#settle();
  }

  /** The connection broke. The consumer still gets what came before, then the failure. */
  fail(failure: TransportFailure): void {
    this.#failure = failure;
    this.end();
  }

  /** As {@link fail}, but drops what is queued. */
  discard(failure: TransportFailure): void {
    this.#clear();
    this.fail(failure);
  }

  #handOverInTurn(): void {
    if (this.#turns.isSpent) this.#wait();
    else this.#handOver(this.#shift());
  }

  #wait(): void {
    this.#ready = false;
    this.#turns.wait({ bytes: () => this.#bytes, handOver: () => this.#handOver(this.#shift()) });
  }

  /** Hands over `piece` and all that is queued behind it, as far as the consumer takes it at once. */
  #handOver(piece: Buffer | undefined): void {
    // Not ready meanwhile: what is pushed while a piece is taken, or by `resume`, has to queue up.
    this.#ready = false;
    for (let next = piece; next; next = this.#shift()) {
      let waiting: Promise<void> | undefined;
      try {
        waiting = this.#take?.(next, this.#next < this.#pieces.length);
      } catch (error) {
        this.#leave(error);
        return;
      }
      if (waiting !== undefined) {
        waiting.then(
          () => this.#handOverInTurn(),
          (error: unknown) => this.#leave(error),
        );
        return;
      }
    }
    if (this.#ended) this.#settle();
    else this.#ready = true;
  }

  #shift(): Buffer | undefined {
    const piece = this.#pieces[this.#next];
    if (!piece) return undefined;
    this.#bytes -= piece.length + PIECE_OVERHEAD_BYTES;
    this.#next++;
    if (this.#next === this.#pieces.length) {
      this.#pieces = [];
      this.#next = 0;
    }
    if (this.#held_back && !this.#ended && this.#bytes <= LET_GO_BELOW_BYTES) {
      this.#held_back = false;
      // Last, because undici may push what its parser had kept back before this returns.
      this.resume();
    }
    return piece;
  }

  /** The consumer failed, and takes nothing more. */
  #leave(error: unknown): void {
    this.#consumed?.reject(error);
    this.#clear();
    if (!this.#ended) this.abandon();
    this.#ended = true;
  }

  #settle(): void {
    this.#ready = false;
    if (this.#failure) this.#consumed?.reject(this.#failure);
    else this.#consumed?.resolve();
  }

  #clear(): void {
    this.#pieces = [];
    this.#next = 0;
    this.#bytes = 0;
  }
}
