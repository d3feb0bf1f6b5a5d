import type { Interruption } from '../interrupts/interruption.ts';
import { chooseMode, type Mode, type Prefix, prefixOf } from '../plans/continuation.ts';
import type { Plan } from '../plans/decide.ts';
import { Splice } from '../plans/splice.ts';
import type { Transcript } from '../plans/transcript.ts';
import type { AttemptRequest } from './attempt.ts';
import type { Dialect } from './dialects/dialect.ts';
import { refusesPrefill } from './dialects/prefill-refusal.ts';
import { DIALECTS } from './dialects/registry.ts';
import type { Run, RunContext } from './run.ts';
import { continuationOf } from './wires/chat-continuation.ts';
import type { ChatFacts } from './wires/chat-facts.ts';

/** One upstream request, and how its answer is joined to what was delivered. */
export interface PlannedAttempt {
  readonly mode: 'first' | Mode;
  readonly request: AttemptRequest;
  /** Characters of each message added to the client's. */
  readonly added_messages: readonly number[];
  /** Absent for the first attempt, whose output is the run's. */
  readonly splice?: Splice;
}

const CHAT_COMPLETIONS = '/chat/completions';

/** Builds the requests of a run: the client's own, and after an interruption the one that asks for the rest. */
export class RecoveryRequests {
  readonly #run: Run;
  readonly #context: RunContext;
  readonly #facts: ChatFacts;
  readonly #dialect: Dialect;
  readonly #failed = new Set<Mode>();
  /** Names of calls that were cut out of the answer and not made again yet. */
  readonly #cutTools = new Set<string>();

  constructor(run: Run, context: RunContext, facts: ChatFacts) {
    this.#run = run;
    this.#context = context;
    this.#facts = facts;
    this.#dialect = DIALECTS[run.target.upstream.dialect];
  }

  original(): PlannedAttempt {
    return { mode: 'first', request: this.#request(this.#originalBody()), added_messages: [] };
  }

  /** `undefined` when no way of asking is left. */
  recovery(
    plan: Extract<Plan, { kind: 'R1' | 'R3' | 'R4' }>,
    transcript: Transcript,
    tokens_left: number,
  ): PlannedAttempt | undefined {
    if (plan.kind === 'R3') for (const { name } of plan.cancel) this.#cutTools.add(name);
    else if (plan.kind === 'R4') this.#cutTools.clear();
    const mode = this.#modeFor(plan, transcript);
    if (!mode) return undefined;
    const prefix = prefixOf(transcript.text);
    const splice = this.#splice(mode, prefix, transcript);
    if (mode === 'replay' || mode === 'restart') {
      return { mode, request: this.#request(this.#originalBody()), added_messages: [], splice };
    }
    const { body, added_messages } = continuationOf({
      request: this.#run.request,
      dialect: this.#dialect,
      mode,
      prefix,
      reasoning: transcript.reasoning,
      cutTools: [...this.#cutTools],
      tokens_left,
    });
    const base_url =
      mode === 'prefill' ? this.#dialect.prefillUrl?.(this.#run.target.upstream.base_url) : undefined;
    return { mode, request: this.#request(this.#withModel(body), base_url), added_messages, splice };
  }

  /** True if the way of asking was at fault, not the provider's health: the next one may do. */
  blames({ mode, splice }: PlannedAttempt, interruption: Interruption): boolean {
    if (mode === 'first' || mode === 'restart') return false;
    const refused = interruption.evidence.kind === 'status' && interruption.cause === 'invalid_request';
    if (!refused && interruption.evidence.kind !== 'seam_rejected') return false;
    this.#failed.add(mode);
    const noPrefill = refused ? refusesPrefill(interruption.message ?? '') : splice?.rejection === 'diverged';
    if (mode === 'prefill' && noPrefill) this.#remember(false);
    return true;
  }

  /** The answer went on: what was only tried is known now. */
  confirm({ mode, splice }: PlannedAttempt): void {
    if (mode === 'prefill' && splice && this.#dialect.prefill === undefined)
      this.#remember(splice.seam !== 'restart');
  }

  #modeFor(plan: Extract<Plan, { kind: 'R1' | 'R3' | 'R4' }>, transcript: Transcript): Mode | undefined {
    const { continuesReasoning, prefillWithTools } = this.#dialect;
    const { hasTools, onlyReplay } = this.#facts;
    if (plan.kind === 'R4') {
      const onlyReasoned = transcript.reasoning !== '' && transcript.text === '' && plan.cancel.length === 0;
      const canThinkOn = continuesReasoning && (prefillWithTools || !hasTools) && !onlyReplay;
      return onlyReasoned && canThinkOn && !this.#failed.has('prefill') ? 'prefill' : 'restart';
    }
    return chooseMode({
      plan: this.#cutTools.size > 0 ? 'R3' : 'R1',
      prefill:
        this.#dialect.prefill ?? this.#context.capabilities.prefill(this.#run.target.name, this.#model),
      prefillWithTools,
      characters: prefixOf(transcript.text).sent.length,
      hasTools,
      onlyReplay,
      failed: this.#failed,
    });
  }

  #splice(mode: Mode, prefix: Prefix, transcript: Transcript): Splice {
    return new Splice({
      mode,
      delivered: { text: transcript.text, reasoning: transcript.reasoning },
      prefix,
      echoes: this.#dialect.echoes && mode === 'prefill',
      continuesReasoning: this.#dialect.continuesReasoning && mode === 'prefill',
      stops: this.#facts.stops,
    });
  }

  get #model(): string {
    return this.#run.target.model ?? this.#run.request.model;
  }

  #remember(prefill: boolean): void {
    this.#context.capabilities.rememberPrefill(this.#run.target.name, this.#model, prefill);
  }

  /** As it came, unless the target knows the model by another name. */
  #originalBody(): string {
    return this.#run.target.model === undefined ? this.#run.body : this.#withModel(this.#run.request);
  }

  #withModel(body: object): string {
    return JSON.stringify({ ...body, model: this.#model });
  }

  #request(body: string, base_url = this.#run.target.upstream.base_url): AttemptRequest {
    return { url: base_url.replace(/\/$/, '') + CHAT_COMPLETIONS, headers: this.#run.headers, body };
  }
}
