import { once } from 'node:events';

/** Heap that survived a full garbage collection. */
export interface LiveHeap {
  /** Minutes since the start of the soak. */
  readonly minutes: number;
  readonly bytes: number;
}

/**
 * Measures the heap of another Node process (started with `--inspect`) right after forcing a full collection. The
 * figures that a process reports itself depend on how long ago it last collected.
 */
export class HeapInspector {
  readonly #socket: WebSocket;
  #commands = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  static async connect(inspector_port: number): Promise<HeapInspector> {
    const response = await fetch(`http://127.0.0.1:${inspector_port}/json/list`);
    const [target] = (await response.json()) as { webSocketDebuggerUrl: string }[];
    if (!target) throw new Error('the process offers nothing to inspect');
    const socket = new WebSocket(target.webSocketDebuggerUrl);
    await once(socket, 'open');
    return new HeapInspector(socket);
  }

  async measure(started_ms: number): Promise<LiveHeap> {
    const { heap_bytes: bytes } = await this.live();
    return { minutes: (performance.now() - started_ms) / 60_000, bytes };
  }

  /** Live bytes in the heap and in buffers outside it. */
  async live(): Promise<{ readonly heap_bytes: number; readonly buffers_bytes: number }> {
    await this.#call('HeapProfiler.collectGarbage');
    const usage = (await this.#call('Runtime.getHeapUsage')) as {
      readonly usedSize: number;
      readonly backingStorageSize: number;
    };
    return { heap_bytes: usage.usedSize, buffers_bytes: usage.backingStorageSize };
  }

  close(): void {
    this.#socket.close();
  }

  /** Must not be called while another command is in progress. */
  async #call(method: string): Promise<unknown> {
    const id = ++this.#commands;
    const answered = once(this.#socket, 'message');
    this.#socket.send(JSON.stringify({ id, method }));
    const [event] = (await answered) as [{ data: string }];
    const answer = JSON.parse(event.data) as { id: number; result?: unknown; error?: { message: string } };
    if (answer.id !== id || answer.error)
      throw new Error(`${method}: ${answer.error?.message ?? event.data}`);
    return answer.result;
  }
}
