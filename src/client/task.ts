import { Endpoints } from './endpoints.ts';
import { LedgerError, ResultNotKeptError, UnknownCallError } from './errors.ts';
import { type ResumableOptions, readOptions } from './options.ts';
import { type Place, placeOf } from './place.ts';
import { randomName } from './random-name.ts';
import { withPresentNames } from './renamed-options.ts';
import { resumable } from './resumable.ts';
import { sleep } from './retry-budget.ts';
import type { TaskProgress } from './seen-task.ts';
import { onSignals } from './signals.ts';
import type { TaskDocument, TaskTerms } from './task-documents.ts';
import { followProgress } from './task-progress.ts';
import { TaskRequests } from './task-requests.ts';
import { type ToolCall, toolCallOf } from './tool-call.ts';

export interface TaskOptions extends ResumableOptions, FormerTaskOptions {
  /** The name of this process among those that work on the task. Default: a random name. */
  readonly session?: string;
  /** The task that this one belongs to. */
  readonly parent?: string;
  /** How many steps it takes, as far as you know. For this and the following, the values of the task's first request apply. */
  readonly stepsTotal?: number;
  /** How long after its first request it accepts new steps. */
  readonly deadlineMs?: number;
  /** It accepts no new steps once its answers, with their prompts, have used this many tokens. */
  readonly budgetTokens?: number;
}

/** Former names of options of {@link TaskOptions}. They still work. */
interface FormerTaskOptions {
  /** @deprecated Use `stepsTotal`. */
  readonly steps_total?: number;
  /** @deprecated Use `deadlineMs`. */
  readonly deadline_ms?: number;
  /** @deprecated Use `budgetTokens`. */
  readonly budget_tokens?: number;
}

const PRESENT_TASK_NAMES = {
  steps_total: 'stepsTotal',
  deadline_ms: 'deadlineMs',
  budget_tokens: 'budgetTokens',
} as const satisfies Record<keyof FormerTaskOptions, keyof TaskOptions>;

export interface ToolOptions {
  /**
   * Whether the tool may run again if it's unknown whether it ran, because its process was lost or it threw.
   * `never`, the default: an {@link UnknownCallError} leaves that to you. `with_key`: it may, since it passes its
   * `idempotencyKey` to the service that has the effect. `always`: it has no effect, and runs every time.
   */
  readonly repeat?: 'never' | 'with_key' | 'always';
  /** How long the tool takes at most. After that, other processes treat its outcome as unknown. Default 60 000. */
  readonly holdMs?: number;
  /** @deprecated Use `holdMs`. */
  readonly hold_ms?: number;
}

export interface EndOptions {
  /** How long Holdfast keeps the ended task, in seconds, if less than others. The first call that ends the task decides. */
  readonly ttlS?: number;
  /** @deprecated Use `ttlS`. */
  readonly ttl_s?: number;
}

export interface ToolContext {
  /** The same in every process that runs this call, for a service that supports such keys. */
  readonly idempotencyKey: string;
}

/** `args`: the model's arguments, unchecked. */
export type Tool<Result, Args = unknown> = (args: Args, context: ToolContext) => Result | Promise<Result>;

export interface ProgressOptions {
  readonly signal?: AbortSignal;
}

/** A task that several processes work on, one after the other. */
export interface Task {
  readonly id: string;
  readonly session: string;
  /** Headers that make a request a step of the task, for a client that accepts headers but no `fetch`. */
  readonly headers: Readonly<Record<string, string>>;
  /** A {@link resumable} `fetch` whose requests are steps of the task. */
  readonly fetch: typeof globalThis.fetch;
  /**
   * Runs the tool unless another process of the task has, and resolves with its result, as JSON represents it. `call`: a call
   * from the answer to a request made with {@link fetch}. Rejects with an {@link UnknownCallError}, a
   * {@link ResultNotKeptError}, a {@link LedgerError} if Holdfast can't be asked, or the error that the tool throws.
   */
  tool<Result, Args = unknown>(
    call: ToolCall,
    run: Tool<Result, Args>,
    options?: ToolOptions,
  ): Promise<Result>;
  /**
   * The task's progress. This and the following methods reject with a {@link LedgerError} if Holdfast refuses or can't be asked,
   * and you can call them once you've made a request with {@link fetch}.
   */
  show(): Promise<TaskDocument>;
  /**
   * The task's progress at once, and whenever it changes, until the task is over. A deleted task ends as `cancelled`.
   * Leaving the loop closes the connection. So does `signal`, which also rejects with its reason.
   *
   * @example
   * for await (const { steps_done, steps_total } of invitations.progress()) bar.update(steps_done, steps_total);
   */
  progress(options?: ProgressOptions): AsyncGenerator<TaskProgress, void>;
  /** Until you resume the task, it accepts no new steps from any process. Its requests get a 423, unless their steps have answers. */
  pause(reason?: string): Promise<TaskDocument>;
  resume(): Promise<TaskDocument>;
  /** Ends the task: it accepts no new steps. */
  complete(reason?: string, options?: EndOptions): Promise<TaskDocument>;
  /** Ends the task, and cancels its answers under way. */
  cancel(reason?: string, options?: EndOptions): Promise<TaskDocument>;
  /** Replaces all of the task's terms with these. */
  setTerms(terms: TaskTerms): Promise<TaskDocument>;
  /**
   * Pauses the task on a signal, `SIGINT` and `SIGTERM` unless you name others, and then ends the process with the signal, unless
   * something else listens for it. Returns a function that undoes this. Throws a `TypeError` in a browser.
   */
  pauseOnSignals(...signals: string[]): () => void;
}

const SIGNALS = ['SIGINT', 'SIGTERM'];
const NAME_CHARACTERS_MAX = 256;
const HOLD_MS = 60_000;
/** How often to ask whether another process has finished running the tool. */
const POLL_MS = 500;

/**
 * A task named `id`: if its process is lost, the next one doesn't repeat the finished work. Throws a `TypeError` that names the
 * wrong option.
 *
 * @example
 * const invitations = task('invitations-2026-11');
 * const openai = new OpenAI({ baseURL: 'http://127.0.0.1:8080/v1', fetch: invitations.fetch });
 * const sent = await invitations.tool(call, (args, { idempotencyKey }) => sendMail(args, idempotencyKey));
 */
export function task(id: string, options: TaskOptions = {}): Task {
  const present = withPresentNames(options, PRESENT_TASK_NAMES);
  const { session = randomName(), parent, stepsTotal, deadlineMs, budgetTokens, ...rest } = present;
  const settings = readOptions(rest);
  const requests = new TaskRequests(nameOf('id', id), settings, new Endpoints(settings.endpoints));
  const headers = {
    'holdfast-task': id,
    'holdfast-task-session': nameOf('session', session),
    ...(parent !== undefined && { 'holdfast-parent-task': nameOf('parent', parent) }),
    ...(stepsTotal !== undefined && { 'holdfast-task-steps-total': countOf('stepsTotal', stepsTotal) }),
    ...(deadlineMs !== undefined && { 'holdfast-task-deadline-ms': countOf('deadlineMs', deadlineMs) }),
    ...(budgetTokens !== undefined && {
      'holdfast-task-budget-tokens': countOf('budgetTokens', budgetTokens),
    }),
  };
  return new SteppedTask({ id, session, headers }, resumable(rest), requests);
}

/** The claim of a call whose tool is about to run, and where it was made. */
interface Claimed {
  readonly place: Place;
  readonly key: string;
  readonly claim: string;
}

class SteppedTask implements Task {
  readonly id: string;
  readonly session: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof globalThis.fetch;
  readonly #requests: TaskRequests;
  /** Where the last request went, and its credential. */
  #place: Place | undefined;
  /** By the digest of a call's content: which of the calls with the same content are taken. */
  readonly #taken = new Map<string, boolean[]>();
  /** The claims of calls whose tools threw, by their keys. */
  readonly #thrown = new Map<string, string>();

  constructor(
    { id, session, headers }: Pick<Task, 'id' | 'session' | 'headers'>,
    send: typeof globalThis.fetch,
    requests: TaskRequests,
  ) {
    this.id = id;
    this.session = session;
    this.headers = headers;
    this.#requests = requests;
    this.fetch = (input, init) => {
      const request = typeof input === 'object' && 'url' in input ? input : undefined;
      const headers = new Headers(init?.headers ?? request?.headers);
      this.#place = placeOf(request?.url ?? String(input), headers) ?? this.#place;
      for (const [name, value] of Object.entries(this.headers)) headers.set(name, value);
      return send(input, { ...init, headers });
    };
  }

  async tool<Result, Args>(
    call: ToolCall,
    run: Tool<Result, Args>,
    options: ToolOptions = {},
  ): Promise<Result> {
    const { repeat = 'never', holdMs = HOLD_MS } = withPresentNames(options, { hold_ms: 'holdMs' });
    const { name, args, content } = toolCallOf(call);
    const said = await digestOf(content);
    const taken = this.#taken.get(said) ?? [];
    this.#taken.set(said, taken);
    // A process that starts the task over reaches calls with the same content in the same order.
    const free = taken.indexOf(false);
    const nth = free === -1 ? taken.length : free;
    taken[nth] = true;
    try {
      const key = await digestOf([said, nth]);
      const context = { idempotencyKey: await digestOf([this.id, key]) };
      if (repeat === 'always') return await run(args as Args, context);
      const claimed = { place: this.#placeFor(`run the tool '${name}'`), key, claim: randomName() };
      const told = await this.#claim(name, claimed, { hold_ms: holdMs, repeat });
      if (told) return told.result as Result;
      return await this.#run(claimed, () => run(args as Args, context), repeat);
    } catch (error) {
      taken[nth] = false;
      throw error;
    }
  }

  async show(): Promise<TaskDocument> {
    return this.#requests.show(this.#placeFor('show the task'));
  }

  async *progress({ signal }: ProgressOptions = {}): AsyncGenerator<TaskProgress, void> {
    yield* followProgress(this.#requests, this.#placeFor('watch the task'), signal);
  }

  pause(reason?: string): Promise<TaskDocument> {
    return this.#say('pause', reason);
  }

  resume(): Promise<TaskDocument> {
    return this.#say('resume');
  }

  complete(reason?: string, options?: EndOptions): Promise<TaskDocument> {
    return this.#say('complete', reason, options);
  }

  cancel(reason?: string, options?: EndOptions): Promise<TaskDocument> {
    return this.#say('cancel', reason, options);
  }

  async setTerms(terms: TaskTerms): Promise<TaskDocument> {
    return this.#requests.setTerms(this.#placeFor('set the terms of the task'), terms);
  }

  pauseOnSignals(...signals: string[]): () => void {
    return onSignals(signals.length > 0 ? signals : SIGNALS, (signal) => this.pause(signal));
  }

  async #say(verb: string, reason?: string, options: EndOptions = {}): Promise<TaskDocument> {
    const { ttlS } = withPresentNames(options, { ttl_s: 'ttlS' });
    return this.#requests.say(this.#placeFor(`${verb} the task`), verb, { reason, ttl_s: ttlS });
  }

  /** Undefined if the tool has to run. */
  async #claim(
    name: string,
    { place, key, claim }: Claimed,
    terms: { readonly hold_ms: number; readonly repeat: 'never' | 'with_key' },
  ): Promise<{ readonly result: unknown } | undefined> {
    const thrown = this.#thrown.get(key);
    if (thrown !== undefined) throw this.#unknown(name, place, key, thrown);
    for (;;) {
      const answer = await this.#requests.claim(place, key, { claim, ...terms });
      switch (answer.outcome) {
        case 'run':
          return undefined;
        case 'done':
          if (!('result' in answer)) throw new ResultNotKeptError(name);
          return { result: answer.result };
        case 'busy':
          await sleep(Math.min(Number(answer.retry_after_ms), POLL_MS));
          break;
        default:
          throw this.#unknown(name, place, key, String(answer.claim));
      }
    }
  }

  async #run<Result>(
    { place, key, claim }: Claimed,
    run: () => Result | Promise<Result>,
    repeat: 'never' | 'with_key',
  ): Promise<Result> {
    let result: Result;
    try {
      result = await run();
    } catch (error) {
      if (repeat === 'never') this.#thrown.set(key, claim);
      // If the release fails, other processes wait until the claim expires.
      else await this.#requests.release(place, key, claim).catch(() => {});
      throw error;
    }
    try {
      await this.#requests.keepResult(place, key, claim, { result: result ?? null });
    } catch (error) {
      const isTooLarge = error instanceof LedgerError && error.code === 'result_too_large';
      // The tool ran, and its result is valid. If recording it fails, other processes treat the call as unknown.
      if (isTooLarge) await this.#requests.keepResult(place, key, claim, {}).catch(() => {});
    }
    return result;
  }

  #unknown(name: string, place: Place, key: string, claim: string): UnknownCallError {
    return new UnknownCallError(name, async () => {
      await this.#requests.release(place, key, claim).catch((error: unknown) => {
        // It did run, so there's a result, and nothing to release.
        if (!(error instanceof LedgerError && error.code === 'call_done')) throw error;
      });
      this.#thrown.delete(key);
    });
  }

  #placeFor(what: string): Place {
    if (this.#place) return this.#place;
    throw new TypeError(`to ${what}, make a request with the fetch of the task first`);
  }
}

function nameOf(option: string, value: unknown): string {
  if (typeof value === 'string' && value !== '' && value.length <= NAME_CHARACTERS_MAX) return value;
  throw new TypeError(`${option} must be a text of 1 to ${NAME_CHARACTERS_MAX} characters`);
}

function countOf(option: string, value: unknown): string {
  if (Number.isSafeInteger(value) && (value as number) >= 1) return String(value);
  throw new TypeError(`${option} must be a whole number from 1 on`);
}

async function digestOf(value: unknown): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(JSON.stringify(value)));
  return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
