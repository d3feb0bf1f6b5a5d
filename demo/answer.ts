import OpenAI from 'openai';
import { type Act, TOOLS } from './acts.ts';

/** Longer than any act takes. */
const ANSWER_MAX_MS = 30_000;

/** An answer as the application receives it. */
export interface Answer {
  readonly text: string;
  readonly calls: readonly Call[];
  readonly finish: string;
  readonly usage: Usage | undefined;
  /** The longest gap between two pieces of content, in milliseconds. */
  readonly silence_ms: number;
}

export interface Call {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
}

/** Where to request the answer. */
export interface Source {
  readonly base_url: string;
  /** Replaces the SDK's default `fetch`. */
  readonly fetch?: typeof fetch;
}

/** Requests an answer with the plain SDK. `onText` receives the text as it arrives. */
export async function ask(
  source: Source,
  act: Act,
  onText: (text: string) => void = () => {},
): Promise<Answer> {
  const signal = AbortSignal.timeout(ANSWER_MAX_MS);
  try {
    return await stream(source, act, onText, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Error(`no whole answer to "${act.question}" within ${ANSWER_MAX_MS} ms`);
  }
}

async function stream(
  { base_url, fetch }: Source,
  { model, question }: Act,
  onText: (text: string) => void,
  signal: AbortSignal,
): Promise<Answer> {
  const client = new OpenAI({ baseURL: base_url, apiKey: 'demo', maxRetries: 0, ...(fetch && { fetch }) });
  const chunks = client.chat.completions.stream(
    {
      model,
      messages: [{ role: 'user', content: question }],
      tools: TOOLS,
      stream_options: { include_usage: true },
    },
    { signal },
  );
  let heard_ms: number | undefined;
  let silence_ms = 0;
  for await (const { choices } of chunks) {
    const delta = choices[0]?.delta;
    if (!delta?.content && !delta?.tool_calls) continue;
    const now_ms = performance.now();
    silence_ms = Math.max(silence_ms, now_ms - (heard_ms ?? now_ms));
    heard_ms = now_ms;
    if (delta.content) onText(delta.content);
  }
  const { choices, usage } = await chunks.finalChatCompletion();
  const [choice] = choices;
  if (!choice) throw new Error('the answer has no choice');
  const calls = (choice.message.tool_calls ?? []).flatMap((call) =>
    call.type === 'function'
      ? [{ id: call.id, name: call.function.name, arguments: call.function.arguments }]
      : [],
  );
  return { text: choice.message.content ?? '', calls, finish: choice.finish_reason, usage, silence_ms };
}
