import type { Decoded } from './checked-line.ts';
import { PROOF_CHARACTERS, type Seal } from './seal.ts';

/*
 * Text stored with a proof has one of three forms: a JSON array, with the proof as its last element; a JSON object,
 * with the proof as its last field `proof`; or words, with the proof as the last word. Readers that don't know proofs
 * ignore it.
 */

const UNPROVEN =
  'without a proof: an older version or another writer has stored it; see checkpoint.unproven in the configuration';
const UNKNOWN_KEY = 'proven with a key that is not configured';
const WRONG = 'not what was stored there: its proof is wrong';

interface Form {
  readonly before: string;
  readonly after: string;
}

const IN_ARRAY: Form = { before: ',"', after: '"]' };
const IN_OBJECT: Form = { before: ',"proof":"', after: '"}' };
const IN_WORDS: Form = { before: ' ', after: '' };

function formOf(text: string): Form {
  const last = text.at(-1);
  if (last === ']') return IN_ARRAY;
  return last === '}' ? IN_OBJECT : IN_WORDS;
}

/** The text with a proof that it belongs in this place; see {@link Seal.prove}. */
export function withProof(text: string, seal: Seal | undefined, place: string): string {
  if (!seal) return text;
  const { before, after } = formOf(text);
  const open = after === '' ? text : text.slice(0, -1);
  return `${open}${before}${seal.prove(text, place)}${after}`;
}

/** The trusted part of a text, and whether it is proven. */
export interface Believed {
  /** Without its proof. */
  readonly text: string;
  readonly isProven: boolean;
}

/** Without a seal, every text is trusted. */
export function believedText(text: string, seal: Seal | undefined, place: string): Decoded<Believed> {
  const { before, after } = formOf(text);
  const end = text.length - after.length;
  const start = end - PROOF_CHARACTERS;
  const hasProof = text.slice(Math.max(start - before.length, 0), start) === before;
  const said = hasProof ? `${text.slice(0, start - before.length)}${after.slice(1)}` : text;
  if (!seal) return { value: { text: said, isProven: false } };
  const verdict = hasProof ? seal.verify(said, text.slice(start, end), place) : 'unknown';
  if (verdict === 'proven') return { value: { text: said, isProven: true } };
  if (verdict === 'wrong') return { reason: WRONG };
  if (seal.acceptsUnproven) return { value: { text: said, isProven: false } };
  return { reason: hasProof ? UNKNOWN_KEY : UNPROVEN };
}
