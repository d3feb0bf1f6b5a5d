import type { Evidence } from '../interrupts/interruption.ts';
import { shownText } from './shown-text.ts';

/** Codes are short; anything longer isn't a code. */
const DETAIL_CHARACTERS_MAX = 60;

/** The detail of evidence besides its kind. May be text chosen by the provider. */
export function evidenceDetail({ kind: _, ...details }: Evidence): string | undefined {
  const [detail] = Object.values(details);
  const isWord = typeof detail === 'string' || typeof detail === 'number';
  return isWord ? shownText(String(detail), DETAIL_CHARACTERS_MAX) : undefined;
}
