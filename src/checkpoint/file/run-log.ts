import { NOTHING_STORED } from '../append-order.ts';
import { withProof } from '../proven-text.ts';
import { epochSeal, type Seal } from '../seal.ts';
import {
  type Damage,
  type Holder,
  isSameOwner,
  type Orphan,
  type Owner,
  type RunEnd,
  type RunId,
} from '../store.ts';
import { encodeFrame } from './frame.ts';
import { encodeClaim, encodeCopy, type LogState } from './log-state.ts';
import { replicaName } from './names.ts';
import type { PrivateDirectory } from './private-directory.ts';
import type { AnswerTo, RequestOf, Writing } from './protocol.ts';
import { refused } from './refusal.ts';
import { resealedLines } from './reseal.ts';
import { decodeRun, type FoundRun, PLACE_OF_END, type RunImage } from './run-image.ts';
import type { RunState } from './run-table.ts';
import type { Outcome, SegmentLog } from './segment-log.ts';

export interface RunLogOptions {
  readonly directory: PrivateDirectory;
  readonly log: SegmentLog;
  readonly state: LogState;
  readonly replica: string;
  readonly lease_ms: number;
  readonly seal: Seal | undefined;
}

/**
 * The directory's runs on the writer thread.
 *
 * Fencing: the order of the log decides. Of several claims of one epoch, only the first counts; appends and ends count
 * only before the next claim. A process reports success once it has read its own frame back and found that it counts.
 * So a successor reads everything that was reported as stored, and anything written after its claim is refused and
 * never read.
 */
export class RunLog {
  readonly #options: RunLogOptions;
  /** Claims that count although their process saw them fail, so that it may try again. */
  readonly #unconfirmed = new Set<string>();

  constructor(options: RunLogOptions) {
    this.#options = options;
  }

  acquire({
    run,
    owner,
    after,
  }: RequestOf<'acquire'>): Writing<AnswerTo<'acquire'>> | { answer: AnswerTo<'acquire'> } {
    const { replica, seal, state } = this.#options;
    const epoch = after + 1;
    const known = state.runs.get(run);
    const claim = `${run} ${epoch}`;
    if (known?.epoch === epoch && known.holder === replica && this.#unconfirmed.delete(claim))
      return { answer: { seq: known.seq } };
    admit(known, run, owner, after);
    const image = after > 0 ? this.#image(run) : undefined;
    // The table's knowledge of a run isn't proven, so the lines are read and verified.
    if (after > 0 && !(image && isSameOwner(image.owner, owner))) throw refused('foreign', run);
    const damage = image?.damage;
    const base = damage && image ? image.seq : (known?.seq ?? NOTHING_STORED);
    const isRewound = damage !== undefined;
    this.#unconfirmed.add(claim);
    return {
      lines: [encodeClaim(run, { epoch, owner, holder: replica, base, isRewound }, seal)],
      answer: ([outcome]) => {
        this.#unconfirmed.delete(claim);
        expectOk(outcome, run);
        return { seq: state.runs.get(run)?.seq ?? NOTHING_STORED, ...(damage && { damage }) };
      },
    };
  }

  append([run, epoch, entry, ...bodies]: RequestOf<'append'>): Writing<undefined> {
    this.#held(run, epoch);
    const lines = bodies.map((body) => encodeFrame('r', run, epoch, body));
    if (entry !== undefined) lines.push(encodeFrame('i', run, 0, entry));
    return {
      lines,
      answer: (outcomes) => {
        for (let at = 0; at < bodies.length; at++) expectOk(outcomes[at], run);
        return undefined;
      },
    };
  }

  finish(request: RequestOf<'finish'>): Writing<Damage | undefined> {
    const { run, epoch, owner, seq } = request;
    const known = this.#options.state.runs.get(run);
    // A lease may finish twice, because the first answer may have been lost.
    if (known?.status && known.epoch === epoch && known.owner && isSameOwner(known.owner, owner))
      return { lines: [], answer: () => undefined };
    this.#held(run, epoch);
    const own_seal = epochSeal(this.#options.seal, run, owner, epoch);
    // The replica that took the run over can't have seen later damage.
    const damage = epoch > 1 ? this.#image(run)?.damage : undefined;
    const end: RunEnd =
      damage && request.end.status === 'complete'
        ? { ...request.end, status: 'recovered_from_partial' }
        : request.end;
    return {
      lines: [
        encodeFrame('z', run, epoch, withProof(JSON.stringify({ ...end, seq }), own_seal, PLACE_OF_END)),
      ],
      answer: ([outcome]) => {
        expectOk(outcome, run);
        if (epoch > 1) this.#reseal(run);
        this.#options.log.syncSoon();
        return damage;
      },
    };
  }

  /** Claims the next epoch without a holder. Does nothing if the lease is already fenced. */
  release({ run, epoch, seq }: RequestOf<'release'>): Writing<undefined> | { answer: undefined } {
    const known = this.#options.state.runs.get(run);
    if (!known?.owner || !this.#isHeld(known, epoch)) return { answer: undefined };
    const claim = { epoch: epoch + 1, owner: known.owner, holder: undefined, base: seq, isRewound: false };
    return { lines: [encodeClaim(run, claim, this.#options.seal)], answer: () => undefined };
  }

  purge({ run, owner }: RequestOf<'purge'>): Writing<undefined> | { answer: undefined } {
    const { state } = this.#options;
    const known = state.runs.get(run);
    if (!known?.owner || !known.status || known.isPurged || !isSameOwner(known.owner, owner))
      return { answer: undefined };
    return {
      lines: [encodeFrame('p', run, 0, '')],
      answer: ([outcome]) => {
        if (!outcome) throw notWritten();
        this.blank(run);
        return undefined;
      },
    };
  }

  /** Overwrites all lines of a purged run. */
  blank(run: RunId): void {
    const { log, state } = this.#options;
    log.blank(state.runs.takePlaces(run));
  }

  read({ run }: RequestOf<'read'>): { answer: FoundRun | undefined } {
    const { state, directory, lease_ms } = this.#options;
    const known = state.runs.get(run);
    if (!known || known.isPurged) return { answer: undefined };
    const lines = this.#lines(run);
    if (!lines) return { answer: undefined };
    const holder = holderOf(directory, known.holder, lease_ms);
    return { answer: { lines, holder, ...(known.status && { ended_at_ms: known.at_ms }) } };
  }

  orphans({ limit }: RequestOf<'orphans'>): { answer: readonly Orphan[] } {
    const { state } = this.#options;
    const isAlive = this.livingReplicas();
    const orphans: Orphan[] = [];
    for (const run of state.runs.running) {
      if (orphans.length === limit) break;
      const { owner, epoch, holder } = state.runs.get(run) as RunState;
      if (owner && !isAlive(holder)) orphans.push({ run, owner, epoch });
    }
    return { answer: orphans };
  }

  forget({ owner, runs }: RequestOf<'forget_runs'>): Writing<undefined> {
    const own = runs.filter((run) => this.#options.state.runs.get(run)?.owner === owner);
    return { lines: own.map((run) => encodeFrame('f', run, 0, '')), answer: () => undefined };
  }

  /** Returns a check that looks up each replica's sign of life only once. */
  livingReplicas(): (replica: string | undefined) => boolean {
    const { directory, lease_ms } = this.#options;
    const known = new Map<string | undefined, boolean>();
    return (replica) => {
      const isAlive = known.get(replica) ?? holderOf(directory, replica, lease_ms).state === 'alive';
      known.set(replica, isAlive);
      return isAlive;
    };
  }

  /** A run that was taken over may have begun under a key that is no longer configured everywhere. */
  #reseal(run: RunId): void {
    const { log, seal, state } = this.#options;
    const lines = seal && this.#lines(run);
    const resealed = lines && resealedLines(lines, run, seal);
    const known = state.runs.get(run);
    if (known && resealed) log.append(encodeCopy(run, known, Date.now(), resealed));
  }

  #isHeld(known: RunState, epoch: number): boolean {
    return known.epoch === epoch && known.holder === this.#options.replica && !known.isPurged;
  }

  /** Throws `stale` unless this process holds the epoch. */
  #held(run: RunId, epoch: number): RunState {
    const known = this.#options.state.runs.get(run);
    if (!known || !this.#isHeld(known, epoch)) throw refused('stale', run);
    return known;
  }

  #image(run: RunId): RunImage | undefined {
    const lines = this.#lines(run);
    return lines && decodeRun(lines, run, this.#options.seal);
  }

  /** Undefined if the lines are gone, because another process forgot the run and removed its segment. */
  #lines(run: RunId): Buffer | undefined {
    const { log, state } = this.#options;
    return log.readCurrent(() => state.runs.get(run)?.places ?? []);
  }
}

/** Checked before anything is written, so that neither a foreign owner nor a late claim can fence the holder. */
function admit(known: RunState | undefined, run: RunId, owner: Owner, after: number): void {
  if (!known && after === 0) return;
  if (!known?.owner || known.isPurged || !isSameOwner(known.owner, owner)) throw refused('foreign', run);
  if (known.status) throw refused('finished', run);
  if (known.epoch !== after) throw refused('taken', run);
}

function expectOk(outcome: Outcome | undefined, run: RunId): void {
  if (!outcome) throw notWritten();
  if (outcome.code !== 'ok') throw refused(outcome.code, run);
}

const notWritten = () => refused('ENOSPC', 'not all of it could be written');

/** The state of a run's holder, judged by its sign of life. */
function holderOf(directory: PrivateDirectory, replica: string | undefined, lease_ms: number): Holder {
  if (replica === undefined) return { state: 'released' };
  const modified_ms = directory.modified_ms(replicaName(replica));
  if (modified_ms === undefined) return { state: 'lost' };
  // A sign of life from the future predates a clock that was set back; a live process renews it soon.
  const silent_ms = Math.abs(Date.now() - modified_ms);
  return silent_ms <= lease_ms ? { state: 'alive', silent_ms } : { state: 'lost' };
}
