import type { FinalStatus } from '../../checkpoint/store.ts';
import type { Interruption } from '../../interrupts/interruption.ts';
import { isPartial } from '../../plans/partial.ts';
import type { Transcript } from '../../plans/transcript.ts';

/** As what a run is stored that was given up after this interruption. */
export function finalStatus({ evidence }: Interruption, transcript: Transcript): FinalStatus {
  if (!isPartial(transcript)) return 'failed';
  if (evidence.kind === 'replica_lost') return 'recovered_from_partial';
  return evidence.kind === 'clock' ? 'timeout_partial' : 'failed';
}
