import { AcquireRefusedError, type Lease, type StoredRun } from '../../checkpoint/store.ts';
import type { Bar } from '../../plans/decide.ts';
import type { Resumption, Run } from '../run/context/run.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { withLease } from '../run/context/with-lease.ts';
import { readHeldCalls } from '../run/notices/held-calls.ts';
import { wireOf } from '../wires/registry.ts';
import { beyond, reachable, restoredAt } from './reachable.ts';
import type { Position, Reader } from './reader.ts';

/** The result of trying to take over an orphan that a reader waits for. */
export type Takeover =
  | { readonly kind: 'won'; readonly run: Run; readonly resumption: Resumption }
  /** A replica delivers it after all, or it has ended. */
  | { readonly kind: 'lost' }
  /** The client has events that no replica has any more. */
  | { readonly kind: 'unreachable'; readonly stored: StoredRun }
  /** Nothing can be asked for in its name, and there is nothing that has to be delivered without. */
  | { readonly kind: 'not_resumable'; readonly stored: StoredRun };

const LOST: Takeover = { kind: 'lost' };

/** Tries to take the run over for a reader at `position`. Rejects when the store fails. */
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
  /** As it was before. */
  readonly orphan: StoredRun;
  readonly known: Run | undefined;
}

async function underWay(
  { lease, orphan, known }: Claim,
  reader: Reader,
  position: Position,
  { store, metrics, log, configuration }: RunContext,
): Promise<Takeover> {
  // Until it was fenced, its holder may have appended more.
  const stored = await store.read(reader.run, reader.owner, 0);
  // A cancellation does not wait for the run to become an orphan.
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
    // Without the names of what was cut, the rest is asked for all the same.
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
 * Replicas that were lost one after the other before they brought anything new. A replica that handed the run over has
 * left it in good health, and a client that is ahead of the log got further than the log can tell.
 */
function barOf(stored: StoredRun, { cursor }: Position, max_takeovers: number): Bar | undefined {
  const { seq, holder } = stored;
  const isPoisoned = holder.state === 'lost' && cursor <= seq && fruitlessTakeovers(stored) >= max_takeovers;
  return isPoisoned ? 'poisoned' : undefined;
}

/** How many takeovers, up to the last one, have brought nothing new. */
export const fruitlessTakeovers = ({ seq, takeovers }: Pick<StoredRun, 'seq' | 'takeovers'>): number =>
  takeovers.length - 1 - takeovers.findLastIndex((takeover) => takeover.seq < seq);

/** Settled calls are delivered whatever else is missing, and an answer that is finished or has failed needs only its end. */
export function endsWithoutRequest(stored: StoredRun, position: Position): boolean {
  const { transcript, ended, announcedError } = restoredAt(stored, position);
  const isOver = ended !== undefined || announcedError !== undefined || transcript.finish !== undefined;
  return isOver || transcript.closedCalls.length > 0;
}

/** Stands for a run of which only the stored part can be delivered: nothing is ever sent anywhere in its name. */
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
