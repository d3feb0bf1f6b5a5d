import fc from 'fast-check';

/** A part of the model's uninterrupted answer, which includes tools that the provider runs. */
export type ScriptPart =
  | { readonly kind: 'text' | 'reasoning'; readonly pieces: readonly string[] }
  /** The tool's arguments and result contain `key`, by which executions are counted. */
  | { readonly kind: 'tool'; readonly key: string; readonly shape: 'self_contained' | 'paired' };

export interface ToolScript {
  readonly parts: readonly ScriptPart[];
  /** The answer ends with a call to one of the client's tools. */
  readonly calls: boolean;
  /** For each request, the number of events before the connection is lost; an answer without an entry is complete. */
  readonly cuts: readonly (number | null)[];
  /** The number of events per piece. */
  readonly batch: number;
  /** The provider includes encrypted reasoning, for the client to return. */
  readonly seals: boolean;
}

/** All words of an answer are distinct, so any repetition is an error. */
const wordsOf = (from: number, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `kelp${from + index}x `);

const drafts = fc.record({
  kind: fc.constantFrom('text', 'text', 'reasoning', 'tool', 'tool', 'tool' as const),
  words: fc.integer({ min: 1, max: 9 }),
  paired: fc.boolean(),
});

const parts = fc.array(drafts, { minLength: 2, maxLength: 7 }).map((list): ScriptPart[] => {
  let words = 0;
  let tools = 0;
  const all = list.map((draft, index): ScriptPart => {
    if (draft.kind === 'tool')
      return { kind: 'tool', key: `key${tools++}`, shape: draft.paired ? 'paired' : 'self_contained' };
    words += draft.words;
    // Consecutive reasoning would form one block.
    const kind = draft.kind === 'reasoning' && list[index - 1]?.kind === 'reasoning' ? 'text' : draft.kind;
    return { kind, pieces: wordsOf(words - draft.words, draft.words) } as ScriptPart;
  });
  return [...all, { kind: 'text', pieces: wordsOf(words, 3) }];
});

export const toolScripts: fc.Arbitrary<ToolScript> = fc.record({
  parts,
  calls: fc.constantFrom(false, false, true),
  cuts: fc.array(fc.option(fc.nat(45), { nil: null, freq: 5 }), { minLength: 1, maxLength: 5 }),
  batch: fc.constantFrom(1, 1, 2, 5, 100),
  seals: fc.boolean(),
});

export const scriptText = ({ parts: all }: ToolScript): string =>
  all.map((part) => (part.kind === 'text' ? part.pieces.join('') : '')).join('');

export const scriptKeys = ({ parts: all }: ToolScript): readonly string[] =>
  all.flatMap((part) => (part.kind === 'tool' ? [part.key] : []));

/**
 * The rest of the answer after the tools with these keys and after `tail`, the text since the last tool; `undefined` if
 * the model never said that.
 */
export function restOf(
  { parts: all }: ToolScript,
  keys: readonly string[],
  tail: string,
): readonly ScriptPart[] | undefined {
  const place = all.findLastIndex((part) => part.kind === 'tool' && part.key === keys.at(-1));
  const before = all.slice(0, place + 1).flatMap((part) => (part.kind === 'tool' ? [part.key] : []));
  if (before.join() !== keys.join()) return undefined;
  let left = tail;
  const rest: ScriptPart[] = [];
  for (const part of all.slice(place + 1)) {
    if (left.trim() === '') rest.push(part);
    else if (part.kind === 'tool') return undefined;
    else if (part.kind === 'text') {
      const text = part.pieces.join('');
      if (text.startsWith(left)) {
        if (text !== left) rest.push({ kind: 'text', pieces: [text.slice(left.length)] });
        left = '';
      } else if (left.startsWith(text)) left = left.slice(text.length);
      else return undefined;
    }
  }
  return left.trim() === '' ? rest : undefined;
}
