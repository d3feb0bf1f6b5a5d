import { isUnavailable, retryAfterOf } from './answer.ts';
import type { Endpoints } from './endpoints.ts';
import { LedgerError } from './errors.ts';
import type { Settings } from './options.ts';
import { RetryBudget, sleep } from './retry-budget.ts';
import { fieldsOf } from './wires.ts';

/** Where Holdfast is asked about a task, with which headers. */
export interface LedgerPlace {
  readonly root: string;
  readonly headers: Headers;
}

/** What Holdfast says to a claim; see docs/tasks.md. */
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

/** What Holdfast says of a task. There is more than these: see docs/tasks.md. */
export interface TaskDocument {
  readonly id: string;
  /** `pending`: it has no steps yet; `failed`: it is running, and its last step had no answer. */
  readonly status: 'pending' | 'running' | 'failed' | 'paused' | 'completed' | 'cancelled';
  readonly reason: string | null;
  readonly steps: number;
  readonly steps_total: number | null;
  readonly [field: string]: unknown;
}

/** What a task is, and how far it may go. */
export interface TaskTerms {
  /** For people; at most 1000 characters. */
  readonly description?: string | null;
  /** How many steps it takes, as far as you know. */
  readonly steps_total?: number | null;
  /** Until when it has new steps, in seconds since the Unix epoch. */
  readonly deadline_at?: number | null;
  /** It has no new steps once its answers, with their prompts, have taken so many. */
  readonly budget_tokens?: number | null;
}

/** Asks Holdfast about one task and its tool calls. Each request may be sent several times: it means the same every time. */
export class TaskRequests {
  readonly #task: string;
  readonly #settings: Settings;
  readonly #endpoints: Endpoints;

  constructor(task: string, settings: Settings, endpoints: Endpoints) {
    this.#task = task;
    this.#settings = settings;
    this.#endpoints = endpoints;
  }

  claim(place: LedgerPlace, key: string, claim: Claim): Promise<ClaimAnswer> {
    return this.#ask(place, 'POST', `/calls/${key}/claim`, claim);
  }

  async keepResult(place: LedgerPlace, key: string, claim: string, result: { readonly result?: unknown }) {
    await this.#ask(place, 'PUT', `/calls/${key}/result`, { claim, ...result });
  }

  async release(place: LedgerPlace, key: string, claim: string): Promise<void> {
    await this.#ask(place, 'POST', `/calls/${key}/release`, { claim });
  }

  show(place: LedgerPlace): Promise<TaskDocument> {
    return this.#ask(place, 'GET', '');
  }

  /** `verb`: as it is in the path. */
  say(place: LedgerPlace, verb: string, reason?: string): Promise<TaskDocument> {
    return this.#ask(place, 'POST', `/${verb}`, { ...(reason !== undefined && { reason }) });
  }

  setTerms(place: LedgerPlace, terms: TaskTerms): Promise<TaskDocument> {
    return this.#ask(place, 'PUT', '', terms);
  }

  /** Rejects with a {@link LedgerError}. */
  async #ask<Answer>(place: LedgerPlace, method: string, path: string, body?: object): Promise<Answer> {
    const { fetch, idle_ms } = this.#settings;
    const budget = new RetryBudget(this.#settings);
    const headers = new Headers(place.headers);
    if (body) headers.set('content-type', 'application/json');
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    for (let root = this.#endpoints.first(place.root); ; root = this.#endpoints.after(root)) {
      const url = `${root}/holdfast/v1/tasks/${encodeURIComponent(this.#task)}${path}`;
      let cause: unknown;
      let retry_after_ms: number | undefined;
      try {
        const response = await fetch(url, { ...init, signal: AbortSignal.timeout(idle_ms) });
        const fields = fieldsOf(await response.text());
        if (response.ok && fields) {
          this.#endpoints.answered(root);
          return fields as Answer;
        }
        cause = refusalOf(response, fields);
        if (!isUnavailable(response.status)) throw cause;
        retry_after_ms = retryAfterOf(response);
      } catch (error) {
        if (error === cause) throw error;
        cause = error;
      }
      this.#endpoints.failed(root);
      const wait_ms = budget.next({ isClosedDoor: true, retry_after_ms });
      if (wait_ms === undefined)
        throw new LedgerError('Holdfast could not be asked about the task.', { cause });
      await sleep(wait_ms);
    }
  }
}

function refusalOf({ status }: Response, fields: Readonly<Record<string, unknown>> | undefined): LedgerError {
  const { message, code } = (fields?.error ?? {}) as { readonly message?: unknown; readonly code?: unknown };
  return new LedgerError(typeof message === 'string' ? message : `The answer was ${status}.`, {
    ...(typeof code === 'string' && { code }),
  });
}
