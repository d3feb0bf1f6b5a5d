/** In every version of Node that this runs on, but not among the types of the language's last edition. */
interface ExactJson {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(source: string): unknown;
}

const exact = JSON as unknown as ExactJson;

/**
 * JSON as `JSON.parse` has it, but for numbers that would come out of `JSON.stringify` in other digits than they went in:
 * those stand for themselves there. What a model is sent back of its own calls is to be what it has said.
 */
export const parsedExactly = (text: string): unknown =>
  exact.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined && String(value) !== source
      ? exact.rawJSON(source)
      : value,
  );
