import { Connection } from './connection.ts';
import type { Endpoints } from './endpoints.ts';
import { LedgerError } from './errors.ts';
import type { Settings } from './options.ts';
import type { Place } from './place.ts';
import { Refusal } from './refusal.ts';
import { type Failure, RetryBudget, sleep } from './retry-budget.ts';
import type { TaskDocument, TaskEvent, TaskTerms } from './task-documents.ts';
import { fieldsOf } from './wires.ts';

/** Holdfast's answer to a claim; see docs/tasks.md. */
export interface ClaimAnswer {
  readonly outcome?: unknown;
  readonly result?: unknown;
  readonly claim?: unknown;
  readonly retry_after_ms?: unknown;
}

interface Claim {
  readonly claim: string;
  readonly hold_ms: number;
  readonly repeat: 'never' | 'with_key';
}

interface TaskChange {
  readonly reason?: string | undefined;
  readonly ttl_s?: number | undefined;
}

/** Asks Holdfast about one task and its tool calls. Every request is idempotent, and may be sent several times. */
export class TaskRequests {
  readonly #task: string;
  readonly #settings: Settings;
  readonly #endpoints: Endpoints;

  constructor(task: string, settings: Settings, endpoints: Endpoints) {
    this.#task = task;
    this.#settings = settings;
    this.#endpoints = endpoints;
  }

  claim(place: Place, key: string, claim: Claim): Promise<ClaimAnswer> {
    return this.#ask(place, 'POST', `/calls/${key}/claim`, claim);
  }

  async keepResult(place: Place, key: string, claim: string, result: { readonly result?: unknown }) {
    await this.#ask(place, 'PUT', `/calls/${key}/result`, { claim, ...result });
  }

  async release(place: Place, key: string, claim: string): Promise<void> {
    await this.#ask(place, 'POST', `/calls/${key}/release`, { claim });
  }

  show(place: Place, signal?: AbortSignal): Promise<TaskDocument> {
    return this.#ask(place, 'GET', '', undefined, signal);
  }

  /** `verb`: the last part of the path. `said`: JSON omits fields that are undefined. */
  say(place: Place, verb: string, said: TaskChange): Promise<TaskDocument> {
    return this.#ask(place, 'POST', `/${verb}`, said);
  }

  setTerms(place: Place, terms: TaskTerms): Promise<TaskDocument> {
    return this.#ask(place, 'PUT', '', terms);
  }

  /**
   * The task's events as they arrive, over as many connections as needed, until one of them ends and `isOver`.
   * Rejects with a {@link LedgerError}, or with the signal's reason.
   */
  async *events(
    place: Place,
    isOver: () => boolean,
    signal: AbortSignal,
  ): AsyncGenerator<readonly TaskEvent[], void> {
    const budget = new RetryBudget(this.#settings);
    const headers = new Headers(place.headers);
    for (;;) {
      const { root, connection } = await this.#open(place, headers, budget, signal);
      let cause: unknown;
      try {
        for (;;) {
          const events = await connection.read(this.#settings.idleMs);
          if (!events) break;
          // A keep-alive counts as progress, too: in a paused task, nothing else arrives.
          budget.heard();
          budget.progressed();
          if (events.payloads.length === 0) continue;
          const told = events.payloads.map((payload) => JSON.parse(payload) as TaskEvent);
          headers.set('last-event-id', events.id);
          yield told;
        }
        if (isOver()) return;
      } catch (error) {
        cause = error;
      } finally {
        connection.close();
      }
      await this.#moveOn(root, budget, { cause }, signal);
    }
  }

  #open(
    place: Place,
    headers: Headers,
    budget: RetryBudget,
    signal: AbortSignal,
  ): Promise<{ readonly root: string; readonly connection: Connection }> {
    const { fetch, idleMs } = this.#settings;
    const ask = async (url: string, root: string) => {
      const connection = new Connection(signal);
      const response = await connection.request(fetch, url, { headers }, idleMs);
      if (response.ok) return { root, connection };
      throw new Refusal(response, await connection.within(idleMs, () => response.text()));
    };
    return this.#inTurn(place, '/events', ask, budget, signal);
  }

  /** Rejects with a {@link LedgerError}, or with the signal's reason. */
  #ask<Answer>(
    place: Place,
    method: string,
    path: string,
    body?: object,
    signal?: AbortSignal,
  ): Promise<Answer> {
    const { fetch, idleMs } = this.#settings;
    const headers = new Headers(place.headers);
    if (body) headers.set('content-type', 'application/json');
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const ask = async (url: string) => {
      const limits = [AbortSignal.timeout(idleMs), ...(signal ? [signal] : [])];
      const response = await fetch(url, { ...init, signal: AbortSignal.any(limits) });
      const text = await response.text();
      const fields = fieldsOf(text);
      if (response.ok && fields) return fields as Answer;
      throw new Refusal(response, text);
    };
    return this.#inTurn(place, path, ask, new RetryBudget(this.#settings), signal);
  }

  /** Asks one replica after another. `ask` rejects with a {@link Refusal}, or because there was no answer. */
  async #inTurn<Answer>(
    place: Place,
    path: string,
    ask: (url: string, root: string) => Promise<Answer>,
    budget: RetryBudget,
    signal?: AbortSignal,
  ): Promise<Answer> {
    for (let root = this.#endpoints.first(place.root); ; root = this.#endpoints.after(root)) {
      try {
        const answer = await ask(`${root}/holdfast/v1/tasks/${encodeURIComponent(this.#task)}${path}`, root);
        this.#endpoints.answered(root);
        return answer;
      } catch (error) {
        const refusal = error instanceof Refusal ? error : undefined;
        if (refusal?.isFinal) throw refusal.cause;
        await this.#moveOn(root, budget, refusal ?? { isClosedDoor: true, cause: error }, signal);
      }
    }
  }

  /** Waits until it's time to ask the next replica. Rejects with a {@link LedgerError} when the budget is spent. */
  async #moveOn(
    root: string,
    budget: RetryBudget,
    failure: Failure & { readonly cause: unknown },
    signal?: AbortSignal,
  ): Promise<void> {
    signal?.throwIfAborted();
    this.#endpoints.failed(root);
    const wait_ms = budget.next(failure);
    if (wait_ms === undefined) {
      const { cause } = failure;
      throw new LedgerError('Holdfast could not be asked about the task.', { cause });
    }
    await sleep(wait_ms, signal);
  }
}
