import { messageRequestOf } from './anthropic.ts';
import { type Answer, API_KEY, type ChatClient, type Question } from './chat-client.ts';
import { PythonProcess } from './python-process.ts';

/** `events`: the synchronous client, event by event. `helper`: the asynchronous one with `.stream()`. */
export type MessagesManner = 'events' | 'helper';

/** `anthropic` for Python. */
export class AnthropicPython implements ChatClient {
  readonly name: string;
  readonly #manner: MessagesManner;
  readonly #process: PythonProcess;

  constructor(interpreter: string, manner: MessagesManner, url: string) {
    this.name = `anthropic for Python, ${manner}`;
    this.#manner = manner;
    this.#process = new PythonProcess(interpreter, 'ask_messages.py', url, API_KEY);
  }

  ask(question: Question): Promise<Answer> {
    return this.#process.ask(this.#manner, messageRequestOf(question));
  }

  close(): Promise<void> {
    return this.#process.close();
  }
}
