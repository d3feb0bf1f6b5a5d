import { settledCalls } from '../../checkpoint/journal-fold.ts';
import { Salvage, type UnattendedOptions } from '../../checkpoint/salvage.ts';
import type { SalvagedRun } from '../../checkpoint/salvaged-run.ts';
import { isKeyed } from '../../config/configuration.ts';
import type { NamedCall } from '../../plans/tool-call.ts';
import { WIRES } from '../wires/registry.ts';
import type { RunContext } from './context/run-context.ts';
import { readHeldCalls, unfinishedCalls } from './notices/held-calls.ts';
import { type LostCallNote, leaveLostCallNote, lostCallNote } from './notices/lost-calls.ts';
import { leaveThreadNote, salvageNote } from './notices/thread-notice.ts';

/** Share of the detach timeout during which only the client may continue the run. */
const SHARE_OF_CLIENT = 1 / 8;

/**
 * Creates the salvage of a replica: it leaves notes for threads, and counts and logs its work. `begin`: starts runs
 * that continue without a client; omitted, or without any operator key, no run does.
 */
export function createRunSalvage(
  { configuration, store, time, random, metrics, log, observer }: RunContext,
  begin?: UnattendedOptions['begin'],
): Salvage {
  const { checkpoint, resume, upstreams } = configuration;
  const { detached_ms, salvage_after_ms } = resume;
  const hasKey = Object.values(upstreams).some(isKeyed);

  async function keep(salvaged: SalvagedRun): Promise<void> {
    if (!resume.notices || salvaged.end.status === 'complete') return;
    const { run, owner, journal } = salvaged;
    const ttl_ms = checkpoint.ttl_s * 1000;
    const unfinished = unfinishedCalls(journal, await readHeldCalls(store.notes, owner, run));
    const lost = salvagedCallNote(salvaged, unfinished);
    if (lost) await leaveLostCallNote(store.notes, owner, lost, ttl_ms);
    const note = salvageNote(salvaged, unfinished);
    const thread = journal.header?.thread;
    if (note && thread !== undefined) await leaveThreadNote(store.notes, owner, thread, note, ttl_ms);
  }

  return new Salvage({
    store,
    time,
    random,
    after_ms: salvage_after_ms,
    ...(begin &&
      hasKey && {
        unattended: {
          after_ms: Math.min(salvage_after_ms, detached_ms * SHARE_OF_CLIENT),
          until_ms: Math.max(salvage_after_ms, detached_ms),
          begin,
        },
      }),
    keep,
    onSalvaged({ run, owner, end: { status, cause }, journal: { seq, header } }) {
      metrics.salvagedRuns.inc({ status });
      const step = status !== 'complete' && header?.step;
      if (step) observer.salvaged?.({ run, step: { ...step, owner }, ...(cause !== undefined && { cause }) });
      log.warn({ run, status, cause, events: seq }, 'run salvaged');
    },
    onError(error, unreported) {
      log.warn({ err: error, unreported }, 'salvage failed: the store does not answer');
    },
  });
}

/**
 * The note for requests with results of a salvaged run's settled calls: its replica was lost while it held other calls,
 * or while the provider ran a tool. `unfinished`: the held calls.
 */
function salvagedCallNote(
  { run, journal, givenUp }: SalvagedRun,
  unfinished: readonly NamedCall[],
): LostCallNote | undefined {
  const { header, providerTools, events } = journal;
  if (!header || givenUp) return undefined;
  const { previousAnswer, delivered } = WIRES[header.wire];
  const first = events.find(({ payload }) => payload !== undefined)?.payload;
  const answer = previousAnswer === undefined || first === undefined ? undefined : delivered.idOf(first);
  return lostCallNote(
    run,
    settledCalls(journal),
    unfinished,
    answer === undefined ? [] : [answer],
    providerTools.filter(({ state }) => state === 'running'),
  );
}
