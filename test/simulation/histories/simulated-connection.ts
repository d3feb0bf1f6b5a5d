import type { Client } from '../../../src/proxy/downstream/client.ts';

/** How one request ended for the client that made it. */
export type ConnectionEnd =
  | { readonly kind: 'ended' }
  /** Without an end: destroyed, killed, or given up by the client. */
  | { readonly kind: 'broken' }
  | { readonly kind: 'rejected'; readonly status: number };

/** One request of a client, and what it hears of the answer. What is sent after it has gone is lost. */
export class SimulatedConnection implements Client {
  opened = false;
  headers: Readonly<Record<string, string>> = {};
  readonly #onFrames: (frames: string) => void;
  readonly #end = Promise.withResolvers<ConnectionEnd>();
  #isOver: boolean = false;

  constructor(onFrames: (frames: string) => void) {
    this.#onFrames = onFrames;
  }

  get begun(): boolean {
    return this.opened;
  }

  get over(): Promise<ConnectionEnd> {
    return this.#end.promise;
  }

  /** Seen from the client. */
  close(end: ConnectionEnd): void {
    this.#isOver = true;
    this.#end.resolve(end);
  }

  open(headers: Readonly<Record<string, string>>): void {
    this.opened = true;
    this.headers = headers;
  }

  write(frames: string): boolean {
    if (!this.#isOver) this.#onFrames(frames);
    return true;
  }

  async drained(): Promise<void> {}

  end(frames: string): void {
    this.write(frames);
    this.close({ kind: 'ended' });
  }

  destroy(): void {
    this.close({ kind: 'broken' });
  }

  reject(status: number): void {
    this.close({ kind: 'rejected', status });
  }
}
