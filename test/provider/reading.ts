/** One parsed `data:` event; only the fields that tests use are typed. */
export interface Chunk {
  readonly id: string;
  readonly model: string;
  readonly choices: readonly {
    readonly delta: {
      readonly role?: string;
      readonly content?: string;
      readonly refusal?: string | null;
      readonly reasoning_content?: string;
      readonly reasoning?: string;
      readonly tool_calls?: readonly {
        readonly index?: number;
        readonly id?: string;
        readonly function: { readonly name?: string; readonly arguments: string };
      }[];
    };
    readonly finish_reason: string | null;
  }[];
  readonly usage?: unknown;
  readonly error?: unknown;
}

/** The payloads of a well-formed event stream, without `[DONE]`. */
export function chunksOf(body: Buffer | string): Chunk[] {
  const payloads = body.toString().match(/(?<=^data: ).*$/gm) ?? [];
  return payloads.filter((payload) => payload !== '[DONE]').map((payload) => JSON.parse(payload) as Chunk);
}

export const contentOf = (chunks: readonly Chunk[]): string =>
  chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');

export const finishOf = (chunks: readonly Chunk[]): (string | null | undefined)[] =>
  chunks.map((chunk) => chunk.choices[0]?.finish_reason).filter((reason) => reason);

/** Assembles calls by id if they have one, else by index. */
export function callsOf(chunks: readonly Chunk[]): { id: string; name: string; arguments: string }[] {
  const calls: { id: string; name: string; arguments: string; index: number | undefined }[] = [];
  for (const delta of chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? [])) {
    const known = calls.findLast((call) =>
      delta.id === undefined ? call.index === delta.index : call.id === delta.id,
    );
    if (known) known.arguments += delta.function.arguments;
    else {
      const { name = '', arguments: json } = delta.function;
      calls.push({ id: delta.id ?? '', name, arguments: json, index: delta.index });
    }
  }
  return calls.map(({ id, name, arguments: json }) => ({ id, name, arguments: json }));
}
