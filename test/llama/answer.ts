import { callsOf, chunksOf } from '../provider/reading.ts';

/** What an application has received when a streamed answer ends. */
export interface StreamedAnswer {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly finish: readonly string[];
  readonly usage: { readonly prompt: unknown; readonly completion: unknown; readonly total: unknown };
  readonly done: boolean;
}

interface Piece {
  readonly choices: readonly {
    readonly delta?: { readonly content?: string | null };
    readonly text?: string;
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: Readonly<Record<string, unknown>>;
}

/** Asks with greedy decoding. Rejects if the response is incomplete. */
export async function streamedAnswer(
  url: string,
  path: '/chat/completions' | '/completions',
  body: object,
): Promise<StreamedAnswer> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer client-key' },
    body: JSON.stringify({
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
      ...body,
    }),
  });
  const stream = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${stream}`);
  const chunks = chunksOf(stream);
  const pieces = chunks as unknown as readonly Piece[];
  const choices = pieces.flatMap((piece) => piece.choices ?? []);
  const usage = pieces.findLast((piece) => piece.usage)?.usage ?? {};
  return {
    text: choices.map(({ delta, text }) => delta?.content ?? text ?? '').join(''),
    // llama.cpp generates a new id for each call, so leave the ids out.
    calls: callsOf(chunks.filter((chunk) => chunk.choices?.[0]?.delta)).map(({ name, arguments: json }) => ({
      name,
      arguments: json,
    })),
    finish: choices.flatMap(({ finish_reason }) => finish_reason ?? []),
    usage: { prompt: usage.prompt_tokens, completion: usage.completion_tokens, total: usage.total_tokens },
    done: stream.endsWith('data: [DONE]\n\n'),
  };
}
