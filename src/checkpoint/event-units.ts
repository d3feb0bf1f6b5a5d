import type { JournalEvent } from './journal.ts';

/** What an event weighs besides its text. */
const OVERHEAD_UNITS = 64;

/** What an event weighs in memory, roughly, in UTF-16 units. */
export function unitsOf(event: JournalEvent): number {
  let units = OVERHEAD_UNITS + (event.payload?.length ?? 0);
  for (const delta of event.deltas) {
    switch (delta.kind) {
      case 'text':
      case 'refusal':
      case 'reasoning':
      case 'tool_arguments':
        units += delta.text.length;
        break;
      case 'choice_call':
        units += delta.arguments.length;
    }
  }
  return units;
}
