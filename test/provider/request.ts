/** The fields of a chat completion request that the provider reads. */
export interface CompletionRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly stream?: boolean | null;
  readonly stream_options?: { readonly include_usage?: boolean } | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly tools?: readonly unknown[] | null;
  readonly stop?: string | readonly string[] | null;
  readonly continue_final_message?: unknown;
  readonly add_generation_prompt?: unknown;
  readonly enable_thinking?: unknown;
  /** For a response: generate it whether or not a client listens. */
  readonly background?: boolean;
}

export interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly prefix?: unknown;
  readonly partial?: unknown;
  readonly reasoning_content?: unknown;
}

/** Ends the question in a prompt; what follows is the answer so far. */
export const PROMPT_END = '\n>>> ';

/** A `/v1/completions` request as a chat request; `null` if no provider would accept it. */
export function promptRequest(body: unknown): CompletionRequest | null {
  if (typeof body !== 'object' || body === null) return null;
  const { prompt, ...request } = body as { readonly prompt?: unknown } & Partial<CompletionRequest>;
  if (typeof request.model !== 'string' || typeof prompt !== 'string') return null;
  const [question = '', ...answer] = prompt.split(PROMPT_END);
  const said = answer.join(PROMPT_END);
  const messages = [{ role: 'user', content: question + PROMPT_END }];
  return {
    ...request,
    model: request.model,
    messages: said === '' ? messages : [...messages, { role: 'assistant', content: said }],
  };
}

/** Returns `null` if no provider would accept it as a chat completion request. */
export function completionRequest(body: unknown): CompletionRequest | null {
  if (typeof body !== 'object' || body === null) return null;
  const { model, messages } = body as Partial<CompletionRequest>;
  if (typeof model !== 'string' || !Array.isArray(messages)) return null;
  const roles = messages.every((message: Partial<Message> | null) => typeof message?.role === 'string');
  return roles ? (body as CompletionRequest) : null;
}

/** A message's text, given as a string or as content parts. */
export function textOf(message: Message | undefined): string {
  const content = message?.content;
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: unknown }) => (typeof part.text === 'string' ? part.text : '')).join('');
}

/**
 * A stand-in for a tokenizer that is easy to recompute: 3 tokens per message, and 1 per 4 characters or part thereof,
 * tools included.
 */
export function promptTokens({ messages, tools }: CompletionRequest, characters_per_token = 4): number {
  const charactersOf = (message: Message) => {
    const { reasoning_content: thoughts } = message;
    return textOf(message).length + (typeof thoughts === 'string' ? thoughts.length : 0);
  };
  const said = messages.reduce(
    (sum, message) => sum + 3 + Math.ceil(charactersOf(message) / characters_per_token),
    0,
  );
  return said + (tools ? Math.ceil(JSON.stringify(tools).length / characters_per_token) : 0);
}
