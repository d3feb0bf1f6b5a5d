import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { type Task, type ToolCall, UnknownCallError } from '../../../src/client/index.ts';

/** Where an agent can be lost. */
export type Place = 'chunk' | 'tool';

/** A tool that sends mail by writing lines to a file. `stock`: it doesn't know about tasks. */
export class MailTool {
  /** The places where its process could have been lost, in order. */
  readonly places: Place[] = [];
  readonly #invitations: Task;
  readonly #mailbox: string;
  readonly #place: number;
  readonly #manner: string;

  /** Its process is killed at the n-th place. */
  constructor(invitations: Task, mailbox: string, place: number, manner: string) {
    this.#invitations = invitations;
    this.#mailbox = mailbox;
    this.#place = place;
    this.#manner = manner;
  }

  mayBeLostHere(at: Place): void {
    this.places.push(at);
    if (this.places.length === this.#place) process.kill(process.pid, 'SIGKILL');
  }

  async run(call: ToolCall, to: string): Promise<string> {
    this.mayBeLostHere('tool');
    const result = this.#manner === 'ledger' ? await this.#runOnce(call, to) : this.#send(to);
    this.mayBeLostHere('tool');
    return result;
  }

  async #runOnce(call: ToolCall, to: string): Promise<string> {
    const send = () => this.#invitations.tool(call, () => this.#send(to), { holdMs: 300 });
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof UnknownCallError)) throw error;
      // The mailbox shows whether the call took effect.
      if (this.#hasMailed(to)) return `sent to ${to}`;
      await error.release();
      return send();
    }
  }

  #send(to: string): string {
    this.mayBeLostHere('tool');
    appendFileSync(this.#mailbox, `${to}\n`);
    this.mayBeLostHere('tool');
    return `sent to ${to}`;
  }

  #hasMailed(to: string): boolean {
    return existsSync(this.#mailbox) && readFileSync(this.#mailbox, 'utf8').split('\n').includes(to);
  }
}
