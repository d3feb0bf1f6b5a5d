import { speakable } from './anchor.ts';

/** What a target makes of a trailing assistant message: continues it, repeats it first and then continues, or answers anew. */
export type PrefillManner = 'exact' | 'echo' | 'new_turn';

/** The delivered text as a provider may be sent it, and what had to be left off its end. */
export interface Prefix {
  readonly sent: string;
  /** White space, or half a surrogate pair: delivered to the client, but not sent. */
  readonly trimmed: string;
}

/**
 * Half a surrogate pair is not text. White space at its end is left off as well unless the target is known to keep it
 * (`keepsSpace`): several providers refuse a prefix that ends in white space, or drop it silently. Whatever is trimmed is
 * taken off the head of the continuation again by the seam.
 */
export function prefixOf(delivered: string, keepsSpace: boolean): Prefix {
  const whole = speakable(delivered);
  const sent = keepsSpace ? whole : whole.trimEnd();
  return { sent, trimmed: delivered.slice(sent.length) };
}
