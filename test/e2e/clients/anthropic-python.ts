import { messageRequestOf } from './anthropic.ts';
import { type Answer, API_KEY, type ChatClient, type Question } from './chat-client.ts';
import type { TransportOptions } from './openai-python.ts';
import { PythonProcess } from './python-process.ts';

/** `events`: the synchronous client, event by event. `helper`: the asynchronous client with `.stream()`. */
export type MessagesManner = 'events' | 'helper';

/** Python's `anthropic`. */
export class AnthropicPython implements ChatClient {
  readonly name: string;
  readonly #manner: MessagesManner;
  readonly #process: PythonProcess;

  /** With `options`, requests go through the transport of `clients/python`. */
  constructor(interpreter: string, manner: MessagesManner, url: string, options?: TransportOptions) {
    const words = options ? [JSON.stringify(options)] : [];
    this.name = `anthropic for Python, ${manner}`;
    this.#manner = manner;
    this.#process = new PythonProcess(interpreter, 'ask_messages.py', url, API_KEY, ...words);
  }

  ask(question: Question): Promise<Answer> {
    return this.#process.ask(this.#manner, messageRequestOf(question));
  }

  close(): Promise<void> {
    return this.#process.close();
  }
}
