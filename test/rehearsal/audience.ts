import { setTimeout as pause } from 'node:timers/promises';
import type { Deployment } from '../e2e/deployment.ts';
import type { Plan } from '../provider/script.ts';
import type { Ask, Heard } from './clients.ts';
import { answerOf } from './questions.ts';

export interface AudienceOptions {
  readonly deployment: Deployment;
  /** The members use these in turn. */
  readonly clients: readonly { readonly kind: string; readonly ask: Ask }[];
  /** The number of members. Each keeps one stream open, and asks the next question when it ends. */
  readonly streams: number;
  readonly answer_ms_min: number;
  readonly answer_ms_max: number;
  readonly event_ms: number;
  /** The period during which the members arrive. */
  readonly arrival_ms: number;
}

/** One answer to a member; times are those of `performance.now()`. */
export interface Answer extends Heard {
  readonly kind: string;
  readonly question: string;
  readonly plan: Plan;
  readonly ended_ms: number;
}

/** Many clients with one long stream each. */
export class Audience {
  readonly answers: Answer[] = [];
  readonly #options: AudienceOptions;
  readonly #seats = new Set<number>();
  readonly #seated = Promise.withResolvers<void>();
  readonly #members: Promise<void>[];
  #open = 0;
  #serial = 0;
  #isLeaving = false;

  constructor(options: AudienceOptions) {
    this.#options = options;
    this.#members = Array.from({ length: options.streams }, (_, index) => this.#attend(index));
  }

  /** The number of streams under way. */
  get open(): number {
    return this.#open;
  }

  /** Resolves once each member's first stream has begun. */
  seated(): Promise<void> {
    return this.#seated.promise;
  }

  /** Stops asking. Resolves once all answers have ended. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    await Promise.all(this.#members);
  }

  async #attend(index: number): Promise<void> {
    const { clients, streams, arrival_ms } = this.#options;
    const client = clients[index % clients.length];
    if (!client) throw new Error('an audience needs clients');
    await pause((arrival_ms * index) / streams);
    while (!this.#isLeaving) await this.#ask(index, client.kind, client.ask);
  }

  async #ask(index: number, kind: string, ask: Ask): Promise<void> {
    const { deployment, answer_ms_min, answer_ms_max, event_ms } = this.#options;
    const serial = this.#serial++;
    const question = `question ${serial}`;
    const plan = answerOf(serial, answer_ms_min + (answer_ms_max - answer_ms_min) * spread(serial), event_ms);
    deployment.plan(question, plan);
    let isOpen = false;
    const heard = await ask(question, () => {
      isOpen = true;
      this.#open++;
      if (this.#seats.add(index).size === this.#options.streams) this.#seated.resolve();
    });
    if (isOpen) this.#open--;
    this.answers.push({ ...heard, kind, question, plan, ended_ms: performance.now() });
  }
}

/** Distributes numbers evenly between 0 and 1, by the golden ratio. */
const spread = (serial: number): number => (serial * 0.618_033_988_749_895) % 1;
