/** What to ask, and with which tools. */
export interface Question {
  readonly model: string;
  readonly content: string;
  readonly tools: readonly Tool[];
  /** Request parameters besides those that every client sends. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

export interface Tool {
  readonly name: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** What an application has once the client is done. Fields that the client doesn't provide are left out. */
export interface Answer {
  readonly text: string;
  readonly reasoning?: string | undefined;
  readonly toolCalls: readonly ToolCall[];
  readonly finish: string | null | undefined;
  /** In the client's own format. */
  readonly usage: unknown;
}

export interface ToolCall {
  readonly id: string | undefined;
  readonly name: string;
  /** Parsed, if the client parses it. */
  readonly arguments: unknown;
}

/** One way to stream a chat completion with one SDK. */
export interface ChatClient {
  readonly name: string;
  /** Its answers keep reasoning that was shown and then cut, ahead of the regenerated reasoning. */
  readonly tellsCutThoughts?: true;
  /** Rejects with the error that the SDK raises, however it raises it. */
  ask(question: Question): Promise<Answer>;
  /** Present if there is something to close. Rejects if the client printed warnings or errors. */
  close?(): Promise<void>;
}

export const API_KEY = 'client-key';

/** The `tools` of a request, in the API's format. */
export const functionTools = (tools: readonly Tool[]) =>
  tools.map(({ name, parameters }) => ({
    type: 'function' as const,
    function: { name, parameters: { ...parameters }, strict: true },
  }));
