/** What a client is to ask, and with which tools. */
export interface Question {
  readonly model: string;
  readonly content: string;
  readonly tools: readonly Tool[];
  /** Parameters of the request besides those that every client sends. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

export interface Tool {
  readonly name: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** What an application has in its hands when a client is done. What the client does not know of is left out. */
export interface Answer {
  readonly text: string;
  readonly reasoning?: string | undefined;
  readonly toolCalls: readonly ToolCall[];
  readonly finish: string | null | undefined;
  /** In the client's own words. */
  readonly usage: unknown;
}

export interface ToolCall {
  readonly id: string | undefined;
  readonly name: string;
  /** Parsed, where the client parses. */
  readonly arguments: unknown;
}

/** One way of streaming a chat completion with one SDK. */
export interface ChatClient {
  readonly name: string;
  /** Its answers have what was shown of thoughts that were cut, beside those that were made again. */
  readonly tellsCutThoughts?: true;
  /** Rejects with whatever the SDK raises, by whichever means it does. */
  ask(question: Question): Promise<Answer>;
  /** Where there is something to close. Rejects if the client had complaints. */
  close?(): Promise<void>;
}

export const API_KEY = 'client-key';

/** The `tools` of a request, as the API has them. */
export const functionTools = (tools: readonly Tool[]) =>
  tools.map(({ name, parameters }) => ({
    type: 'function' as const,
    function: { name, parameters: { ...parameters }, strict: true },
  }));
