import { AcquireRefusedError, type Lease, type StoredRun } from '../../checkpoint/store.ts';
import type { Bar } from '../../plans/decide.ts';
import type { Resumption, Run } from '../run/context/run.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { withLease } from '../run/context/with-lease.ts';
import { readHeldCalls } from '../run/notices/held-calls.ts';
import { wireOf } from '../wires/registry.ts';
import { beyond, reachable, restoredAt } from './reachable.ts';
import type { Position, Reader } from './reader.ts';

/** The result of trying to take over an orphaned run for a reader. */
export type Takeover =
  | { readonly kind: 'won'; readonly run: Run; readonly resumption: Resumption }
  /** Another replica delivers it, or it has ended. */
  | { readonly kind: 'lost' }
  /** The client has events that are no longer stored. */
  | { readonly kind: 'unreachable'; readonly stored: StoredRun }
  /** Its request is unknown, and nothing can be delivered without it. */
  | { readonly kind: 'not_resumable'; readonly stored: StoredRun };

const LOST: Takeover = { kind: 'lost' };

/** Tries to take the run over for a reader at `position`. Rejects if the store fails. */
export async function takeOver(reader: Reader, position: Position, context: RunContext): Promise<Takeover> {
  const orphan = await context.store.read(reader.run, reader.owner, 0);
  if (orphan?.status !== 'running' || orphan.holder.state === 'alive') return LOST;
  if (!reachable(orphan, position)) return { kind: 'unreachable', stored: orphan };
  const header = orphan.records[0]?.header;
  const known = reader.revive(header);
  if (!known && !endsWithoutRequest(orphan, position)) return { kind: 'not_resumable', stored: orphan };

  const lease = await acquired(reader, orphan, context);
  if (!lease) return LOST;
  return withLease(lease, () => underWay({ lease, orphan, known }, reader, position, context), context);
}

interface Claim {
  readonly lease: Lease;
  /** The run before the takeover. */
  readonly orphan: StoredRun;
  readonly known: Run | undefined;
}

async function underWay(
  { lease, orphan, known }: Claim,
  reader: Reader,
  position: Position,
  { store, metrics, log, configuration }: RunContext,
): Promise<Takeover> {
  // The previous holder may have appended events before it was fenced.
  const stored = await store.read(reader.run, reader.owner, 0);
  // A cancellation can win even while the run has a holder.
  const isOurs = stored?.status === 'running' && stored.epoch === lease.epoch;
  if (stored && !isOurs) return LOST;
  if (!stored || !reachable({ ...stored, holder: orphan.holder }, position)) {
    await store.release(lease);
    return { kind: 'unreachable', stored: stored ?? orphan };
  }
  const barred = known ? barOf(orphan, position, configuration.resume.max_takeovers) : 'request_unknown';
  metrics.takeovers.inc({ outcome: barred ? 'refused' : 'taken' });
  log.info(
    { run: reader.run, epoch: lease.epoch, from: stored.seq, ...(barred && { barred }) },
    'taken over',
  );
  const tail = beyond(stored, position);
  const held = await readHeldCalls(store.notes, reader.owner, reader.run).catch((error: unknown) => {
    // The continuation works without the names of cut calls.
    log.warn({ run: reader.run, err: error }, 'held calls unknown: the store failed');
    return undefined;
  });
  const resumption = { lease, stored, tail, held, ...(barred && { barred }) };
  return { kind: 'won', run: known ?? unknownRun(reader, stored), resumption };
}

async function acquired(
  { run, owner }: Reader,
  { epoch }: StoredRun,
  { store, metrics }: RunContext,
): Promise<Lease | undefined> {
  try {
    return await store.acquire(run, owner, epoch);
  } catch (error) {
    if (!(error instanceof AcquireRefusedError)) throw error;
    metrics.takeovers.inc({ outcome: 'lost_race' });
    return undefined;
  }
}

/**
 * Bars a run if several replicas in a row were lost without progress. Handovers don't count, because the replica was
 * healthy; neither do clients ahead of the log, because the run got further than the log shows.
 */
function barOf(stored: StoredRun, { cursor }: Position, max_takeovers: number): Bar | undefined {
  const { seq, holder } = stored;
  const isPoisoned = holder.state === 'lost' && cursor <= seq && fruitlessTakeovers(stored) >= max_takeovers;
  return isPoisoned ? 'poisoned' : undefined;
}

/** How many of the latest takeovers made no progress. */
export const fruitlessTakeovers = ({ seq, takeovers }: Pick<StoredRun, 'seq' | 'takeovers'>): number =>
  takeovers.length - 1 - takeovers.findLastIndex((takeover) => takeover.seq < seq);

/**
 * Whether the run can end without its request: settled calls are delivered in any case, and an answer that has finished
 * or failed needs only its end.
 */
export function endsWithoutRequest(stored: StoredRun, position: Position): boolean {
  const { transcript, ended, announcedError } = restoredAt(stored, position);
  const isOver = ended !== undefined || announcedError !== undefined || transcript.finish !== undefined;
  return isOver || transcript.closedCalls.length > 0;
}

/** A placeholder for a run whose request is unknown. Only its stored part is delivered; it never sends requests. */
function unknownRun({ run, owner, resumable, signal, asked }: Reader, stored: StoredRun): Run {
  const { records } = stored;
  const { model = '', upstream = '', events = 'none' } = records[0]?.header ?? {};
  return {
    id: run,
    owner,
    wire: wireOf(stored, asked),
    target: { name: upstream, upstream: { base_url: '', dialect: 'generic' }, headers: {} },
    body: '',
    request: { model, messages: [], stream: true },
    events,
    resumable,
    signal,
  };
}
