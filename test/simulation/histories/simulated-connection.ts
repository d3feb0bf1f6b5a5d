import type { Client } from '../../../src/proxy/downstream/client.ts';

/** How one request ended for its client. */
export type ConnectionEnd =
  | { readonly kind: 'ended' }
  /** The connection closed without an end: it was destroyed or killed, or the client gave up. */
  | { readonly kind: 'broken' }
  | { readonly kind: 'rejected'; readonly status: number };

/** One request of a client, and its answer. Frames sent after the client has left are lost. */
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

  /** Ends the connection from the client's point of view. */
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
