import { logKey } from '../../../src/checkpoint/redis/keys.ts';
import type { RunId } from '../../../src/checkpoint/store.ts';
import { RUN } from '../simulate.ts';
import type { Deployment } from './deployment.ts';
import type { SecondReader } from './history.ts';
import { type ConnectionEnd, SimulatedConnection } from './simulated-connection.ts';
import { WORD } from './word-provider.ts';

const RETRY_MS = 150;
/** A client gives up after this many requests in a row without new events. */
const FRUITLESS_MAX = 20;

/** The client library's limit for consecutive answers that aren't the stream. */
const REFUSALS_MAX = 8;

/** How the answer ended for a client. `refused`: it has events that the run lacks. */
export type ClientEnd = 'done' | 'error' | 'refused' | 'gave_up';

interface Chunk {
  readonly error?: unknown;
  readonly choices?: readonly {
    readonly delta: {
      readonly content?: string;
      readonly tool_calls?: readonly {
        readonly index: number;
        readonly id?: string;
        readonly function: { readonly arguments?: string };
      }[];
    };
    readonly finish_reason: string | null;
  }[];
}

/** A client that keeps its events and resumes the rest of the answer, as the client library does. */
export class SimulatedClient {
  readonly name: string;
  readonly payloads: string[] = [];
  readonly runs = new Set<RunId>([RUN]);
  /** The text received so far. */
  text = '';
  readonly calls: { readonly id: string; arguments: string }[] = [];
  finish: string | undefined;
  end: ClientEnd | undefined;
  /** When it had the complete answer except for the end of the stream. */
  whole_ms = 0;
  /** It was refused although the store had the beginning of its run at that time. */
  isKnown: boolean = false;
  readonly violations: string[] = [];
  readonly over: Promise<void>;
  readonly #deployment: Deployment;
  #run: RunId = RUN;
  #id: string | undefined;
  #connection: SimulatedConnection | undefined;
  #heard_ms = 0;
  #away_ms = 0;
  #isDone: boolean = false;
  #failed: boolean = false;

  /** `begins`: its first request begins the run. */
  constructor(
    deployment: Deployment,
    name: string,
    { at_ms, replica, begins }: SecondReader & { readonly begins: boolean },
  ) {
    this.#deployment = deployment;
    this.name = name;
    this.over = this.#live(at_ms, replica, begins);
  }

  get run(): RunId {
    return this.#run;
  }

  /** Breaks its connection and keeps it away for a while. */
  disconnect(away_ms = 0): void {
    this.#away_ms = away_ms;
    this.#connection?.close({ kind: 'broken' });
  }

  async #live(at_ms: number, first: number, begins: boolean): Promise<void> {
    await this.#sleep(at_ms);
    let fruitless = 0;
    let refusals = 0;
    for (let request = 0; this.end === undefined; request++) {
      const before = this.payloads.length;
      const end = await this.#ask(first + request, begins && request === 0);
      if (this.#isDone) this.end = 'done';
      else if (this.#failed) this.end = 'error';
      else if (this.payloads.length > before) fruitless = refusals = 0;
      else if (end.kind === 'rejected' && end.status === 409 && ++refusals >= REFUSALS_MAX) this.#refuse();
      else if (++fruitless >= FRUITLESS_MAX) this.end = 'gave_up';
      if (this.end === undefined) await this.#sleep(RETRY_MS + this.#away_ms);
      this.#away_ms = 0;
    }
  }

  #refuse(): void {
    this.end = 'refused';
    this.isKnown = this.#deployment.redis.hasRecords(logKey(this.#run));
  }

  async #ask(index: number, begins: boolean): Promise<ConnectionEnd> {
    const { time, history } = this.#deployment;
    const replica = this.#deployment.replica(index);
    const connection = new SimulatedConnection((frames) => this.#hear(frames, connection));
    this.#connection = connection;
    this.#heard_ms = time.now();
    if (begins) replica.begin(connection);
    else replica.resume(connection, { run: this.#run, payloads: [...this.payloads], id: this.#id });
    const watch = () => {
      const left_ms = this.#heard_ms + history.patience_ms - time.now();
      if (left_ms > 0) cancel = time.after(left_ms, watch);
      else connection.close({ kind: 'broken' });
    };
    let cancel = time.after(history.patience_ms, watch);
    const end = await connection.over;
    cancel();
    return end;
  }

  #hear(frames: string, connection: SimulatedConnection): void {
    this.#heard_ms = this.#deployment.time.now();
    const run = connection.headers['holdfast-run-id'];
    if (run !== undefined) this.#run = run as RunId;
    this.runs.add(this.#run);
    for (const block of frames.split('\n\n')) {
      let id: string | undefined;
      let payload: string | undefined;
      for (const line of block.split('\n')) {
        if (line.startsWith('data: ')) payload = line.slice('data: '.length);
        if (line.startsWith('id: ')) id = line.slice('id: '.length);
      }
      if (payload !== undefined) this.#take(payload, id);
    }
  }

  #take(payload: string, id: string | undefined): void {
    this.payloads.push(payload);
    if (id !== undefined) {
      this.#id = id;
      const ordinal = Number(id.split('.').at(-1));
      if (ordinal !== this.payloads.length)
        this.violations.push(`event ${this.payloads.length} has the id ${id}`);
    }
    if (this.#isDone || this.#failed) this.violations.push('something came after the end');
    if (payload === '[DONE]') {
      this.#isDone = true;
      return;
    }
    const { error, choices } = JSON.parse(payload) as Chunk;
    if (error !== undefined) this.#failed = true;
    const choice = choices?.[0];
    if (!choice) return;
    this.text += choice.delta.content ?? '';
    for (const { id: call, function: part } of choice.delta.tool_calls ?? []) {
      if (call !== undefined) this.calls.push({ id: call, arguments: '' });
      const last = this.calls.at(-1);
      if (last) last.arguments += part.arguments ?? '';
    }
    if (choice.finish_reason === null) return;
    this.finish = choice.finish_reason;
    this.whole_ms = this.#deployment.time.now();
  }

  /** The received words: the place of each, and the provider's request that produced it. */
  get words(): readonly { readonly place: number; readonly request: number }[] {
    return [...this.text.matchAll(WORD)].map(([, place, request]) => ({
      place: Number(place),
      request: Number(request),
    }));
  }

  #sleep(for_ms: number): Promise<void> {
    return new Promise((resolve) => this.#deployment.time.after(for_ms, resolve));
  }
}

export const firstClient = (deployment: Deployment): SimulatedClient =>
  new SimulatedClient(deployment, 'first', { at_ms: 0, replica: 0, begins: true });

export const secondReader = (deployment: Deployment, reader: SecondReader): SimulatedClient =>
  new SimulatedClient(deployment, `reader at ${reader.replica}`, { ...reader, begins: false });
