import { type EpochName, epochNameAt } from '../../checkpoint/epoch.ts';
import { foldJournal } from '../../checkpoint/journal-fold.ts';
import type { StoredRun, Takeover } from '../../checkpoint/store.ts';
import { type ApiError, apiError, type ErrorObject, errorObject } from '../../lib/errors.ts';
import type { Outcome } from '../../plans/outcome.ts';
import type { Client } from '../downstream/client.ts';
import { eventFrames } from '../downstream/event-frame.ts';
import { KeptAlive } from '../downstream/kept-alive.ts';
import { HAND_OVER, type Resumption, type Run } from '../run/context/run.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { releaseLease, withLease } from '../run/context/with-lease.ts';
import { storedFailureEvent } from '../run/failure.ts';
import { relay } from '../run/relay.ts';
import { errorBodyOn, type Wire } from '../wires/common/wire.ts';
import { wireIn, wireOf } from '../wires/registry.ts';
import { agrees, beyond, replacedFrom, unreachable } from './reachable.ts';
import type { Position, Reader } from './reader.ts';
import { ReaderNote } from './reader-note.ts';
import { Replay } from './replay.ts';
import { StorePoll } from './store-poll.ts';
import { withEnding } from './stored-ending.ts';
import { takeOver } from './takeover.ts';

/**
 * Delivers a stored run to a client from its cursor: stored events first, then the ones its replica appends while that
 * is alive. After that, this replica takes the run over and continues it in the same response.
 *
 * `stored`: the whole run, read from 0, and `reachable` by the reader. The response is opened at once, unless events
 * that the client already has must be awaited. In the end it is ended, rejected or destroyed.
 */
export async function follow(
  reader: Reader,
  stored: StoredRun,
  client: Client,
  context: RunContext,
): Promise<Outcome> {
  const following = new Following(reader, stored, client, context);
  try {
    return await following.run(stored);
  } finally {
    following.close();
  }
}

class Following {
  readonly #reader: Reader;
  readonly #client: Client;
  readonly #context: RunContext;
  readonly #replay: Replay;
  readonly #poll: StorePoll;
  readonly #stream: KeptAlive;
  /** If the run has no header yet: the wire that the client names, or a guess. */
  #wire: Wire;
  readonly #began_ms: number;
  /** The takeovers known so far. */
  #takeovers: readonly Takeover[];
  readonly #note: ReaderNote;

  constructor(reader: Reader, stored: StoredRun, client: Client, context: RunContext) {
    this.#reader = reader;
    this.#client = client;
    this.#context = context;
    this.#replay = new Replay(reader, client.frameOf);
    this.#wire = wireOf(stored, reader.asked);
    this.#takeovers = stored.takeovers;
    this.#began_ms = context.time.now();
    const { keepalive_ms } = context.configuration.delivery;
    this.#poll = new StorePoll(context, reader.signal, { run: reader.run });
    this.#note = new ReaderNote(reader, context);
    this.#stream = new KeptAlive(client, context.time, keepalive_ms, () => this.#note.renew());
  }

  async run(first: StoredRun): Promise<Outcome> {
    let stored: StoredRun = first;
    if (first.status === 'running') this.#note.renew();
    for (;;) {
      if (this.#reader.signal.aborted) return this.#leave();
      if (this.#isReplaced(stored) || this.#isContradicted(stored)) return this.#refuse(stored);
      if (!this.#isBehind(stored)) await this.#send(stored);
      else if (!this.#mayCatchUp(stored)) return this.#refuse(stored);
      if (stored.status !== 'running') return this.#end();
      if (stored.holder.state !== 'alive') {
        const outcome = await this.#takeOver();
        if (outcome) return outcome;
      }
      await this.#rest();
      const read = await this.#poll.patiently(() => this.#read(this.#replay.seen));
      if (!read) return this.#reader.signal.aborted ? this.#leave() : this.#breakOff(read);
      stored = read;
    }
  }

  close(): void {
    this.#stream.close();
  }

  /**
   * Another replica continued from before the client's position, so the log has changed. The events in the client's
   * tail can still be compared if they haven't been yet.
   */
  #isReplaced({ takeovers }: StoredRun): boolean {
    const { cursor, tail } = this.#reader;
    const { seq, seen } = this.#replay;
    const replaced_from = replacedFrom(takeovers, this.#epoch);
    this.#takeovers = takeovers;
    return replaced_from < (seq === cursor ? Math.max(cursor - tail.length, seen) : seq);
  }

  /** The client's events beyond the log differ from the ones now stored. */
  #isContradicted({ records }: StoredRun): boolean {
    if (records[0]?.header) this.#wire = wireIn(records[0].header);
    return this.#replay.seen < this.#reader.cursor && !agrees(records, this.#reader, this.#wire);
  }

  /** The client has events that are neither in the log nor in its tail, so delivery must wait. */
  #isBehind({ seq, status }: StoredRun): boolean {
    const { cursor, tail } = this.#reader;
    return status === 'running' && seq < cursor - tail.length;
  }

  #mayCatchUp({ holder }: StoredRun): boolean {
    const { lease_ms } = this.#context.configuration.checkpoint;
    return holder.state === 'alive' && this.#context.time.now() - this.#began_ms < lease_ms;
  }

  async #send({ seq, records, takeovers }: StoredRun): Promise<void> {
    if (!this.#client.opened) {
      const { upstream, step } = records[0]?.header ?? {};
      this.#client.open({
        'holdfast-run-id': this.#reader.run,
        ...(upstream !== undefined && { 'holdfast-upstream': upstream }),
        ...(step && { 'holdfast-step': String(step.number) }),
        ...(seq > this.#replay.seq && { 'holdfast-replayed': 'true' }),
      });
      this.#client.write('');
    }
    for (const piece of this.#replay.pieces(records, takeovers)) {
      this.#poll.hurry();
      await this.#stream.write(piece);
      if (this.#reader.signal.aborted) return;
    }
  }

  async #rest(): Promise<void> {
    this.#note.renew();
    await this.#poll.rest();
  }

  /** `null`: the run was purged or has expired. */
  #read(from: number): Promise<StoredRun | null> {
    const { run, owner } = this.#reader;
    return this.#context.store.read(run, owner, from);
  }

  /** The client's position. Its own tail counts only until more was sent. */
  get #position(): Position {
    const { cursor } = this.#reader;
    const { seq } = this.#replay;
    return seq === cursor ? this.#reader : { ...this.#reader, cursor: seq, epoch: this.#epoch, tail: [] };
  }

  /** The epoch of the last event sent to the client. */
  get #epoch(): EpochName {
    return epochNameAt(this.#replay.seq, this.#takeovers);
  }

  /** The outcome; undefined if another replica has the run now. */
  async #takeOver(): Promise<Outcome | undefined> {
    const takeover = await this.#poll.patiently(() => takeOver(this.#reader, this.#position, this.#context));
    if (!takeover) return this.#reader.signal.aborted ? this.#leave() : this.#breakOff(takeover);
    switch (takeover.kind) {
      case 'lost':
        return undefined;
      case 'unreachable':
        return this.#refuse(takeover.stored);
      case 'not_resumable':
        return this.#fail(takeover.stored);
    }
    const { run, resumption } = takeover;
    return withLease(resumption.lease, () => this.#continue(run, resumption), this.#context);
  }

  async #continue(run: Run, resumption: Resumption): Promise<Outcome> {
    // The replica that delivers it does not know yet that the run may outlive its client.
    if (this.#reader.signal.aborted) {
      await releaseLease(resumption.lease, this.#context);
      return this.#leave();
    }
    this.#reader.onTakenOver();
    await this.#send(resumption.stored);
    const comments = this.#replay.commentsBehind(beyond(resumption.stored, this.#position));
    if (comments !== '') await this.#stream.write(comments);
    this.close();
    return relay(run, this.#client, this.#context, resumption);
  }

  async #end(): Promise<Outcome> {
    if (!this.#replay.ended) {
      const whole = await this.#poll.patiently(() => this.#read(0));
      if (!whole) return this.#breakOff(whole);
      await this.#send(withEnding(this.#reader.run, whole));
    }
    this.#client.end('');
    return this.#replay.ended === 'done' ? 'replayed' : 'failed';
  }

  /** The run is left unchanged: a client that brings its request can still have it continued. */
  #fail(stored: StoredRun): Outcome {
    const wire = this.#wire;
    const journal = foldJournal(stored.records);
    const error = storedFailureEvent(this.#reader.run, journal, {
      error: this.#whyNotResumable(stored),
      cause: 'replica_lost',
      retryable: true,
    });
    this.#context.metrics.takeovers.inc({ outcome: 'refused' });
    const payloads = wire.delivered.failure(error, journal.events);
    this.#client.end(eventFrames(payloads, wire, this.#client.frameOf));
    return 'failed';
  }

  /** A known request can't be continued if no route serves its model. */
  #whyNotResumable({ records }: StoredRun): ErrorObject {
    const header = records[0]?.header;
    const isKnown = header?.body !== undefined || this.#reader.asked !== undefined;
    if (!isKnown) return errorObject('not_resumable');
    return errorObject('run_not_routed', { model: header?.model ?? 'of the request' });
  }

  /** The client's events can't be joined to the log. */
  #refuse(stored: StoredRun): Outcome {
    if (this.#client.opened) return this.#destroy();
    return this.#reject(unreachable(stored, this.#reader));
  }

  /** There is nothing to read: the run no longer exists, or the store is unavailable. */
  #breakOff(read: null | undefined): Outcome {
    if (this.#client.opened) return this.#destroy();
    return this.#reject(apiError(read === null ? 'run_not_found' : 'store_unavailable'));
  }

  /** Without an end, so that the client can't mistake the partial answer for a complete one. */
  #destroy(): Outcome {
    this.#client.destroy();
    return 'failed';
  }

  #leave(): Outcome {
    if (this.#reader.signal.reason !== HAND_OVER) return 'cancelled';
    if (this.#client.opened) this.#client.destroy();
    return 'handed_over';
  }

  #reject({ status, headers, body }: ApiError): Outcome {
    this.#client.reject(status, headers, errorBodyOn(this.#wire, body));
    return 'rejected';
  }
}
