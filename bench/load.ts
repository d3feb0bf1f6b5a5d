import { join } from 'node:path';
import type { ClientAnswer, ClientOrder, Outcome, Window } from './client-messages.ts';
import { nextMessage, type Running, startScript } from './processes.ts';

/** The client process, as the benchmark sees it. */
export class Load {
  readonly #script: Running;

  constructor() {
    this.#script = startScript(join(import.meta.dirname, 'client.ts'));
  }

  get pid(): number {
    return this.#script.pid;
  }

  async open(order: Omit<Extract<ClientOrder, { order: 'open' }>, 'order'>): Promise<void> {
    await this.#ask({ order: 'open', ...order }, 'opened');
  }

  mark(): Promise<Window> {
    return this.#ask({ order: 'mark' }, 'marked');
  }

  finish(): Promise<Outcome> {
    return this.#ask({ order: 'finish' }, 'finished');
  }

  stop(): Promise<void> {
    return this.#script.stop();
  }

  async #ask<Name extends ClientAnswer['answer']>(order: ClientOrder, expected: Name) {
    const message = nextMessage<ClientAnswer>(this.#script);
    this.#script.process.send(order);
    const answer = await message;
    if (answer.answer !== expected) throw new Error(`expected ${expected}, the client said ${answer.answer}`);
    return answer as Extract<ClientAnswer, { answer: Name }>;
  }
}
