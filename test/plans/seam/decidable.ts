import { anchorOf } from '../../../src/plans/seam/anchor.ts';
import { prefixOf } from '../../../src/plans/seam/mode.ts';
import type { Asked } from '../../provider/script.ts';
import type { Cut } from './cuts.ts';

/** The least repetition that the seam takes for one, and the least beginning of a word. */
const MEANT_CHARACTERS = 12;
const WORD_CHARACTERS = 3;

/** What a nudge asks for after this cut. */
export function nudgeAfter({ whole, delivered }: Pick<Cut, 'whole' | 'delivered'>): Asked {
  return { whole, sent: prefixOf(delivered, true).sent, anchor: anchorOf(delivered) };
}

/**
 * Where the rest begins with words that were delivered last, or those before it are repeated in turn, it cannot be told
 * by anything how much of an answer without the anchor is new. `lead`: what stands in front of the rest.
 */
export function isDecidable(cut: Cut, lead: string, meant = MEANT_CHARACTERS): boolean {
  const { whole, sent, anchor } = nudgeAfter(cut);
  const visible = sent.trimEnd();
  const said = (lead + whole.slice(sent.length)).trimStart();
  const repeated = lead.trim().length;
  const least = Math.min(meant, anchor.trimEnd().length);
  for (let length = least; length <= Math.min(visible.length, said.length); length++)
    if (length !== repeated && visible.endsWith(said.slice(0, length))) return false;
  return true;
}

/** Of a text that repeats nothing: what is said again in front of its rest cannot be taken for anything else. */
export function isPlain(cut: Cut, lead: string): boolean {
  const word = /\p{Ll}*$/u.exec(cut.delivered)?.[0] ?? '';
  const isWord = lead === word && word.length >= WORD_CHARACTERS && cut.delivered.split(word).length === 2;
  if (lead !== '' && !isWord && lead.trim().length < MEANT_CHARACTERS) return false;
  // Nothing of it is a repetition by nature, however short.
  return isDecidable(cut, lead, 2);
}
