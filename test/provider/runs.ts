import { type CompletionRequest, textOf } from './request.ts';
import type { Plan } from './script.ts';

/** Runs remembered at once; a soak test begins more than it should keep. */
const RUNS_MAX = 50_000;

interface Run {
  readonly plan: Plan;
  attempts: number;
  told: boolean;
}

/** Chooses the plan for a request that begins a run; `undefined` if there is none for it. */
export type Choose = (request: CompletionRequest) => Plan | undefined;

/**
 * Tells the requests of concurrent runs apart: those that ask the same model and begin with the same user message
 * are attempts of one run. Give every run a user message of its own.
 */
export class Runs {
  readonly #choose: Choose;
  readonly #queue: Plan[] = [];
  readonly #runs = new Map<string, Run>();

  constructor(choose: Choose) {
    this.#choose = choose;
  }

  /** Queued plans are taken in order, each by the next run that begins. */
  queue(plan: Plan): void {
    this.#queue.push(plan);
  }

  /** The plan this request belongs to, and which of its run's attempts it is; `plan` overrides the choice. */
  attempt(
    request: CompletionRequest,
    plan?: Plan,
  ): { plan: Plan; attempt: number; told: () => void } | undefined {
    const run = this.#runOf(request, plan);
    if (!run) return undefined;
    run.attempts += 1;
    const told = () => {
      run.told = true;
    };
    return { plan: plan ?? run.plan, attempt: run.attempts, told };
  }

  #runOf(request: CompletionRequest, override: Plan | undefined): Run | undefined {
    const key = keyOf(request);
    const known = this.#runs.get(key);
    // A repeated question begins a new run only if its answer was told to the end and another plan is waiting.
    if (known && (override || !(known.told && this.#queue.length > 0))) return known;
    const plan = override ?? this.#queue.shift() ?? this.#choose(request);
    if (!plan) return undefined;
    const run = { plan, attempts: 0, told: false };
    this.#runs.delete(key);
    this.#runs.set(key, run);
    const oldest = this.#runs.keys().next();
    if (this.#runs.size > RUNS_MAX && !oldest.done) this.#runs.delete(oldest.value);
    return run;
  }
}

function keyOf(request: CompletionRequest): string {
  const question = textOf(request.messages.find((message) => message.role === 'user'));
  return JSON.stringify([request.model, question]);
}
