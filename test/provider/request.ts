/** What the provider reads of a chat completion request. */
export interface CompletionRequest {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly stream?: boolean | null;
  readonly stream_options?: { readonly include_usage?: boolean } | null;
  readonly max_tokens?: number | null;
  readonly max_completion_tokens?: number | null;
  readonly stop?: string | readonly string[] | null;
  readonly continue_final_message?: unknown;
  readonly add_generation_prompt?: unknown;
}

export interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly prefix?: unknown;
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

/** A tokenizer's stand-in that anyone can recompute: 3 per message and 1 per 4 characters begun. */
export function promptTokens(request: CompletionRequest): number {
  return request.messages.reduce((sum, message) => sum + 3 + Math.ceil(textOf(message).length / 4), 0);
}
