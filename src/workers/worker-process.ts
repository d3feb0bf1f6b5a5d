import cluster, { type Worker } from 'node:cluster';
import { join } from 'node:path';
import type { Configuration } from '../config/configuration.ts';
import type { FromWorker, QuestionKind, Questions, ToWorker } from './messages.ts';
import type { MetricPart } from './shared-metrics.ts';

/** The worker runs from source or from the build, like this file. */
const PROGRAM = join(import.meta.dirname, `../commands/worker${import.meta.filename.slice(-3)}`);

/** How long a worker may take to end after its drain. */
const END_MAX_MS = 10_000;

/** A worker couldn't start. `name` is that of the worker's error. */
export class WorkerFailure extends Error {
  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface WorkerOptions {
  /** From 1. Successors have the same number. */
  readonly number: number;
  readonly directory: string;
  readonly configuration: Configuration;
}

/** The supervisor's handle on one worker. */
export class WorkerProcess {
  readonly number: number;
  /** Unique and increasing, also across successors. */
  readonly id: number;
  readonly admin_socket: string;
  /** The configuration that the worker started with or has applied since. */
  configuration: Configuration;
  isListening = false;
  isAlive = true;
  /** Resolves once the worker serves. Rejects with a {@link WorkerFailure}. */
  readonly started: Promise<void>;
  readonly exited: Promise<Exit>;
  /** The worker's final metrics, if it ended in good order. */
  last: MetricPart | undefined;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #questions = 0;
  #stopOrder: ToWorker | undefined;
  #overdue: NodeJS.Timeout | undefined;

  constructor({ number, directory, configuration }: WorkerOptions) {
    // `advanced`, because metrics contain NaN, which JSON can't represent.
    cluster.setupPrimary({ exec: PROGRAM, args: [], serialization: 'advanced' });
    this.number = number;
    this.configuration = configuration;
    this.#worker = cluster.fork();
    this.id = this.#worker.id;
    this.admin_socket = join(directory, `${this.id}.sock`);
    const started = Promise.withResolvers<void>();
    this.started = started.promise;
    this.started.catch(() => {});
    this.#worker.on('message', (message: FromWorker) => this.#receive(message, started));
    // Sending to an ending process may fail. Nothing depends on it.
    this.#worker.on('error', () => {});
    this.exited = new Promise((resolve) => {
      this.#worker.once('exit', (code: number | null, signal: string | null) => {
        this.isListening = false;
        this.isAlive = false;
        clearTimeout(this.#overdue);
        const how = signal ?? `status ${code}`;
        started.reject(new WorkerFailure('CommandFailure', `a worker ended before it could serve (${how})`));
        for (const { reject } of this.#waiting.values()) reject(new Error(`it has ended (${how})`));
        resolve({ code, signal });
      });
    });
  }

  get pid(): number | undefined {
    return this.#worker.process.pid;
  }

  /** Rejects with the worker's reason if it refuses, and if it ends or doesn't answer in time. */
  ask<Kind extends QuestionKind>(
    kind: Kind,
    asked: Questions[Kind]['asked'],
    answer_max_ms: number,
  ): Promise<Questions[Kind]['answer']> {
    const id = ++this.#questions;
    const waiting = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiting);
    const overdue = setTimeout(
      () => waiting.reject(new Error(`no answer within ${answer_max_ms / 1000} s`)),
      answer_max_ms,
    );
    this.#send({ kind, id, ...asked } as ToWorker);
    return waiting.promise.finally(() => {
      clearTimeout(overdue);
      this.#waiting.delete(id);
    }) as Promise<Questions[Kind]['answer']>;
  }

  /** Drains and ends the worker. `isLeaving`: the other workers keep running. */
  stop({ isLeaving, drain_ms }: { readonly isLeaving: boolean; readonly drain_ms: number }): void {
    this.isListening &&= !isLeaving;
    this.#stopOrder = { kind: 'stop', isLeaving };
    this.#send(this.#stopOrder);
    // A drain ends by itself, but a stuck worker doesn't.
    this.#overdue ??= setTimeout(() => this.kill(), drain_ms + END_MAX_MS);
  }

  kill(): void {
    this.#worker.process.kill('SIGKILL');
  }

  #receive(message: FromWorker, started: PromiseWithResolvers<void>): void {
    switch (message.kind) {
      case 'born': {
        const { number, admin_socket, configuration } = this;
        this.#send(this.#stopOrder ?? { kind: 'start', place: { number, admin_socket }, configuration });
        return;
      }
      case 'listening':
        this.isListening = true;
        started.resolve();
        return;
      case 'failed':
        started.reject(new WorkerFailure(message.name, message.message));
        return;
      case 'answer':
        this.#waiting.get(message.id)?.resolve(message.value);
        return;
      case 'refusal':
        this.#waiting.get(message.id)?.reject(new Error(message.reason));
        return;
      case 'ended':
        this.last = message.metrics;
    }
  }

  #send(message: ToWorker): void {
    if (this.#worker.isConnected()) this.#worker.send(message);
  }
}
