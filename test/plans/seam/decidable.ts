import { anchorOf } from '../../../src/plans/seam/anchor.ts';
import { prefixOf } from '../../../src/plans/seam/mode.ts';
import type { Asked } from '../../provider/script.ts';
import type { Cut } from './cuts.ts';

/** The shortest repetition that the seam recognises, and the shortest beginning of a word. */
const MEANT_CHARACTERS = 12;
const WORD_CHARACTERS = 3;

/** What a nudge asks for after this cut. */
export function nudgeAfter({ whole, delivered }: Pick<Cut, 'whole' | 'delivered'>): Asked {
  return { whole, sent: prefixOf(delivered, true).sent, anchor: anchorOf(delivered) };
}

/**
 * Whether `lead`, the text before the rest, is the only part that matches the end of what was delivered. With a second
 * match, nothing shows how much of an answer without the anchor is new.
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

/** For a text that doesn't repeat itself: whether `lead` is unmistakably a repetition. */
export function isPlain(cut: Cut, lead: string): boolean {
  const word = /\p{Ll}*$/u.exec(cut.delivered)?.[0] ?? '';
  const isWord = lead === word && word.length >= WORD_CHARACTERS && cut.delivered.split(word).length === 2;
  if (lead !== '' && !isWord && lead.trim().length < MEANT_CHARACTERS) return false;
  // Not even a short part of the text is repeated by nature.
  return isDecidable(cut, lead, 2);
}
