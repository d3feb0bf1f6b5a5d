import type { Evidence } from '../interrupts/interruption.ts';
import { shownText } from './shown-text.ts';

/** Codes are short; what is longer is none. */
const DETAIL_CHARACTERS_MAX = 60;

/** What there is to know of evidence besides its kind. Some of it is the provider's own choice of words. */
export function evidenceDetail({ kind: _, ...details }: Evidence): string | undefined {
  const [detail] = Object.values(details);
  const isWord = typeof detail === 'string' || typeof detail === 'number';
  return isWord ? shownText(String(detail), DETAIL_CHARACTERS_MAX) : undefined;
}
