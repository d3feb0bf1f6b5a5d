import { join } from 'node:path';
import type { ClientAnswer, ClientOrder, Outcome, Timings, Window } from './client-messages.ts';
import { nextMessage, type Running, startScript } from './processes.ts';
import type { Target } from './target.ts';

type OpenOrder = Extract<ClientOrder, { order: 'open' }>;

/** By default, one stream on each of `connections`, all at once and as fast as possible. */
export type Streams = Pick<OpenOrder, 'connections' | 'events'> & Partial<Omit<OpenOrder, 'order'>>;

const AT_ONCE = { ramp_ms: 1, repeat: false, interval_us: 0, arrival_step_us: 1 };

/** The benchmark's handle on the client process. */
export class Load {
  readonly #script: Running;

  constructor() {
    this.#script = startScript(join(import.meta.dirname, 'client.ts'));
  }

  get pid(): number {
    return this.#script.pid;
  }

  /** Resolves once every connection has received its first content. */
  async open({ port, headers = {} }: Target, streams: Streams): Promise<void> {
    await this.#ask({ order: 'open', port, headers, ...AT_ONCE, ...streams }, 'opened');
  }

  mark(): Promise<Window> {
    return this.#ask({ order: 'mark' }, 'marked');
  }

  finish(): Promise<Outcome> {
    return this.#ask({ order: 'finish' }, 'finished');
  }

  /** Timings of the last window that ended and of the one before it. */
  async timings(): Promise<{ readonly last: Timings; readonly previous: Timings }> {
    const { windows } = await this.#ask({ order: 'timings' }, 'timings');
    const [previous, last] = windows.slice(-2);
    if (previous === undefined || last === undefined) throw new Error('fewer than two windows have ended');
    return { last, previous };
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
