import type { PrefillManner } from '../../../plans/seam/mode.ts';

/** Providers' messages in a 400 or 422 for a model that doesn't continue an assistant message. */
const SIGNATURES = [
  /does not support assistant message prefill|conversation must end with a user message/i,
  /requests ending with a model turn are not supported/i,
  /must end with a user role|ends with a user role or a function response/i,
  /prefill is incompatible with enable_thinking/i,
  /cannot have 2 or more assistant messages at the end|cannot continue an assistant message that contains tool calls/i,
  /final .?assistant.? message must start with a thinking block/i,
  /expected last role user or tool/i,
  /must be a user message, or an assistant message with prefix mode on/i,
  // The request was accepted without the prefill, so the unknown field is part of it.
  /extra inputs are not permitted|(?:unknown|unrecognized|unsupported) (?:request )?(?:parameter|argument|field|name)\b/i,
  /property .{1,64} is unsupported/i,
];

export const refusesPrefill = (message: string): boolean =>
  SIGNATURES.some((signature) => signature.test(message));

/** Less text doesn't allow a comparison of two answers. */
const COMPARED_CHARACTERS = 16;

/**
 * The head of a continuation that could be joined in more than one way. Once a nudge with a confirmed anchor has
 * produced the rest, the head shows how the target treated the prefix.
 */
export class PrefillDoubt {
  readonly #head: string;
  readonly #delivered: string;

  constructor(head: string, delivered: string) {
    this.#head = head.trimStart();
    this.#delivered = delivered;
  }

  /** `text`: the answer as known now. */
  resolve(text: string): PrefillManner | undefined {
    const said = (from: number) => this.#isAt(text.slice(from).trimStart());
    const isExact = said(this.#delivered.length);
    const isRepeated = said(0);
    if (isExact === isRepeated) return undefined;
    // An echo looks like a restarted answer, which is far more frequent, and an unneeded nudge costs less.
    return isExact ? 'exact' : 'new_turn';
  }

  #isAt(text: string): boolean {
    const length = Math.min(text.length, this.#head.length);
    return length >= COMPARED_CHARACTERS && text.slice(0, length) === this.#head.slice(0, length);
  }
}
