import type { FinalStatus } from '../checkpoint/store.ts';
import type { Interruption } from '../interrupts/interruption.ts';
import type { Transcript } from '../plans/transcript.ts';

/** As what a run is stored that was given up after this interruption. */
export function finalStatus(
  { evidence }: Interruption,
  { text, refusal, reasoning }: Transcript,
): FinalStatus {
  const isPartial = text !== '' || refusal !== '' || reasoning !== '';
  if (isPartial && evidence.kind === 'replica_lost') return 'recovered_from_partial';
  return isPartial && evidence.kind === 'clock' ? 'timeout_partial' : 'failed';
}
