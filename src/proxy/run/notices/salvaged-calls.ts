import { settledCalls } from '../../../checkpoint/journal-fold.ts';
import type { SalvagedRun } from '../../../checkpoint/salvaged-run.ts';
import type { NamedCall } from '../../../plans/held-calls.ts';
import { WIRES } from '../../wires/registry.ts';
import { type LostCallNote, lostCallNote } from './lost-calls.ts';

/**
 * What the results of a salvaged run's settled calls have to tell: its replica was lost while it held others, or while
 * the provider ran a tool. `unfinished`: those calls.
 */
export function salvagedCallNote(
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
