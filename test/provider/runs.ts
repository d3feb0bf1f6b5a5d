import { type CompletionRequest, textOf } from './request.ts';
import type { Plan } from './script.ts';

/** How many runs are remembered; a soak test begins more than it should keep. */
const RUNS_MAX = 50_000;

interface Run {
  readonly plan: Plan;
  attempts: number;
  told: boolean;
}

/** Chooses the plan for a request that begins a run; `undefined` if there is none. */
export type Choose = (request: CompletionRequest) => Plan | undefined;

/**
 * Matches requests to concurrent runs: requests with the same model and the same first user message are attempts of the
 * same run. Give every run its own user message.
 */
export class Runs {
  readonly #choose: Choose;
  readonly #queue: Plan[] = [];
  readonly #runs = new Map<string, Run>();

  constructor(choose: Choose) {
    this.#choose = choose;
  }

  /** Queued plans are used in order, each by the next run that begins. */
  queue(plan: Plan): void {
    this.#queue.push(plan);
  }

  /** The plan for this request, and which attempt of its run it is; `plan` overrides the choice. */
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
    // A repeated question begins a new run only if its answer was sent to the end and another plan is queued.
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
