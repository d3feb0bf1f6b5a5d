import type { ResponseBody, TakePiece, TransportFailure } from './transport.ts';

/** Limits of the queued bytes: the provider is paused above, and resumed below. */
const HELD_BACK_ABOVE_BYTES = 256 * 1024;
const LET_GO_BELOW_BYTES = HELD_BACK_ABOVE_BYTES / 2;
/** Cost of a piece in addition to its bytes; otherwise a flood of one-byte pieces would be nearly free. */
const PIECE_OVERHEAD_BYTES = 256;

/**
 * How long pieces are handed over per turn of the event loop, before timers, clients and the store get theirs; or up to
 * twice as long in a turn whose beginning is not known.
 */
const TURN_MS = 5;

/** A queue with pieces for its consumer, waiting for the next turn. */
interface Waiting {
  bytes(): number;
  handOver(): void;
}

/**
 * Shares the turns of the event loop among all queues. Each turn starts with the queue that has waited longest, then
 * continues with those that hold the fewest bytes, so that tokens overtake floods.
 *
 * Only a callback of the next turn shows that a turn has ended, and one per turn costs a quiet server up to 5 % more CPU
 * per event. So it is scheduled only once {@link TURN_MS} have passed since the last known beginning of a turn.
 */
export class Turns {
  readonly #now: () => number;
  /** When a turn began, or counting. */
  #began_ms = 0;
  /** {@link #next} will be called in the next turn. */
  #isCounting: boolean = false;
  /** Longest wait first. */
  #waiting: Waiting[] = [];

  /** `now`: milliseconds, monotonic. */
  constructor(now: () => number = performance.now.bind(performance)) {
    this.#now = now;
  }

  get isSpent(): boolean {
    const now_ms = this.#now();
    const hasPassed = now_ms - this.#began_ms >= TURN_MS;
    if (this.#isCounting || !hasPassed) return hasPassed;
    this.#isCounting = true;
    this.#began_ms = now_ms;
    setImmediate(this.#next);
    return false;
  }

  wait(queue: Waiting): void {
    this.#waiting.push(queue);
  }

  readonly #next = (): void => {
    this.#began_ms = this.#now();
    this.#isCounting = this.#waiting.length > 0;
    if (!this.#isCounting) return;
    setImmediate(this.#next);
    const [first, ...others] = this.#waiting;
    this.#waiting = [];
    first?.handOver();
    const left = new Set(others);
    for (const queue of others.toSorted((one, other) => one.bytes() - other.bytes())) {
      if (this.isSpent) break;
      left.delete(queue);
      queue.handOver();
    }
    // Queues that were skipped stay ahead of new ones.
    this.#waiting = [...left, ...this.#waiting];
  };
}

const OF_THIS_PROCESS = new Turns();

/**
 * A response body between undici, which pushes, and one consumer. It is neither a stream nor an iterator, because it is
 * on the path of every event: a piece goes straight to a ready consumer, without a promise.
 */
export abstract class BodyQueue implements ResponseBody {
  readonly #turns: Turns;
  #pieces: Buffer[] = [];
  /** Index of the next piece, because shifting an array of many small pieces would move all of them each time. */
  #next = 0;
  #bytes = 0;
  #held_back: boolean = false;
  #take: TakePiece | undefined;
  #consumed: PromiseWithResolvers<void> | undefined;
  /** The queue is empty and the consumer waits for a piece. */
  #ready: boolean = false;
  #ended: boolean = false;
  #failure: TransportFailure | undefined;

  constructor(turns: Turns = OF_THIS_PROCESS) {
    this.#turns = turns;
  }

  /** Pauses the provider until {@link resume}. */
  protected abstract pause(): void;
  protected abstract resume(): void;
  /** Called if the consumer leaves before the end. */
  protected abstract abandon(): void;

  consume(take: TakePiece): Promise<void> {
    this.#take = take;
    this.#consumed = Promise.withResolvers();
    this.#handOver(this.#shift());
    return this.#consumed.promise;
  }

  /** Adds pieces that arrived together. */
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

  /** The body ended cleanly. Queued pieces are still handed over. */
  end(): void {
    this.#ended = true;
    if (this.#ready) this.#settle();
  }

  /** The connection broke. The consumer still gets the queued pieces, then the failure. */
  fail(failure: TransportFailure): void {
    this.#failure = failure;
    this.end();
  }

  /** Like {@link fail}, but drops queued pieces. */
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

  /** Hands over `piece` and everything queued after it, until the consumer asks to wait. */
  #handOver(piece: Buffer | undefined): void {
    // Not ready meanwhile, so that pieces pushed during a take or by `resume` are queued.
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
      // Last, because undici may push pieces before this returns.
      this.resume();
    }
    return piece;
  }

  /** The consumer failed and takes no more pieces. */
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
