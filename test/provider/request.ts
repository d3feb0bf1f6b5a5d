/** What the provider reads of a chat completion request. */
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
  /** Of a response: it is to be made whether or not it is listened to. */
  readonly background?: boolean;
}

export interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly prefix?: unknown;
  readonly partial?: unknown;
  readonly reasoning_content?: unknown;
}

/** Scripts are told what a prompt asks for and how far the answer has come: the answer begins behind this. */
export const PROMPT_END = '\n>>> ';

/** A request on `/v1/completions` in the terms of a chat; `null` for what no provider would take for one. */
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

/** `null` for what no provider would take for a chat completion request. */
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

/** A tokenizer's stand-in that anyone can recompute: 3 per message and 1 per 4 characters begun, of tools as well. */
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
