import { type Answer, API_KEY, type ChatClient, functionTools, type Question } from './chat-client.ts';
import { responsesTools } from './openai-responses.ts';
import { PythonProcess } from './python-process.ts';

/**
 * `chunks`: the synchronous client, chunk by chunk. `helper`: the asynchronous client with `.stream()`. `events` and
 * `response_helper` are the same on the Responses API.
 */
export type PythonManner = 'chunks' | 'helper' | 'events' | 'response_helper';

/** Options of the transports in `clients/python`. */
export interface TransportOptions {
  readonly endpoints: readonly string[];
  readonly idle_s?: number;
  readonly max_retries?: number;
}

/** Python's `openai` in its own process. */
export class OpenaiPython implements ChatClient {
  readonly name: string;
  readonly #manner: PythonManner;
  readonly #process: PythonProcess;

  /** With `options`, requests go through the transport of `clients/python`. */
  constructor(interpreter: string, manner: PythonManner, baseURL: string, options?: TransportOptions) {
    const words = options ? [JSON.stringify(options)] : [];
    this.name = `openai for Python, ${manner}`;
    this.#manner = manner;
    this.#process = new PythonProcess(interpreter, 'ask.py', baseURL, API_KEY, ...words);
  }

  ask({ model, content, tools, parameters }: Question): Promise<Answer> {
    const isChat = this.#manner === 'chunks' || this.#manner === 'helper';
    const asked = isChat
      ? {
          messages: [{ role: 'user', content }],
          stream_options: { include_usage: true },
          ...(tools.length > 0 && { tools: functionTools(tools) }),
        }
      : { input: content, ...(tools.length > 0 && { tools: responsesTools(tools) }) };
    // The SDK rejects arguments that it doesn't know.
    const { extra_headers, ...extra_body } = parameters ?? {};
    return this.#process.ask(this.#manner, { model, ...asked, extra_headers, extra_body });
  }

  /** Rejects if the process printed anything that a caller couldn't catch. */
  close(): Promise<void> {
    return this.#process.close();
  }
}
