import type { Interruption } from '../interrupts/interruption.ts';
import { chooseMode, MODES, type Mode, marginTokens, type Prefix, prefixOf } from '../plans/continuation.ts';
import type { Plan } from '../plans/decide.ts';
import type { Compression } from '../plans/segment.ts';
import { Splice } from '../plans/splice.ts';
import type { Transcript } from '../plans/transcript.ts';
import type { AttemptRequest } from './attempt.ts';
import type { Answer, AttemptReport } from './attempt-report.ts';
import { Comeback } from './comeback.ts';
import { type Dialect, forModel } from './dialects/dialect.ts';
import { refusesPrefill } from './dialects/prefill-refusal.ts';
import { DIALECTS } from './dialects/registry.ts';
import type { Run, RunContext, RunTarget } from './run.ts';
import { historyFor } from './targets/foreign-history.ts';
import { upstreamUrl } from './upstream-url.ts';
import type { RequestFacts } from './wires/request-facts.ts';
import type { WireRequest } from './wires/wire.ts';

/** One upstream request, and how its answer is joined to what was delivered. */
export interface PlannedAttempt {
  readonly target: RunTarget;
  readonly mode: 'first' | Mode;
  readonly request: AttemptRequest;
  /** Characters of each message added to the client's. */
  readonly added_messages: readonly number[];
  /** The conversation before it was put to the model in fewer words. */
  readonly compressed?: Compression;
  /** How the answer has ended already, where only what follows its end is asked for. */
  readonly ending?: Answer;
  /** Absent for the first attempt, whose output is the run's. */
  readonly splice?: Splice;
}

/** What is asked for, whichever target is asked. */
export interface AskedConversation {
  readonly request: WireRequest;
  /** The same, as it is sent. */
  readonly body: string;
  /** Set where it is not the client's own. */
  readonly compressed?: Compression;
}

/** What is to be asked for after an interruption. */
export interface Rest {
  readonly plan: Extract<Plan, { kind: 'R1' | 'R3' | 'R4' }>;
  readonly transcript: Transcript;
  readonly tokens_left: number;
  /** Names of calls that were cut out of the answer and not made again yet. */
  readonly cutTools: readonly string[];
  /** What was said so far was said by this target. */
  readonly isAuthor: boolean;
}

/**
 * Builds the requests of a run to one of its targets: the client's own, and after an interruption the one that asks
 * for the rest.
 */
export class TargetRequests {
  readonly #target: RunTarget;
  readonly #run: Run;
  readonly #context: RunContext;
  readonly #facts: RequestFacts;
  /** Of no use: the wire does not have them, or they failed in this run. */
  readonly #failed: Set<Mode>;
  #conversation: AskedConversation;
  /** It has taken a request of the run. */
  #accepted = false;
  /** The first event of the answer as it was begun. */
  #first: Readonly<Record<string, unknown>> | undefined;
  /** What the provider takes back only as it was. */
  #sealed: readonly object[] = [];
  /** Less is asked for by so much than is left of the client's limit. */
  #margin_tokens = 0;
  /** What was left of the client's limit when the rest was asked for last. */
  #tokens_left = Number.POSITIVE_INFINITY;
  /** Thoughts are not given back: together with them it was too long. */
  #thinksAnew = false;
  readonly #comeback: Comeback;

  constructor(target: RunTarget, run: Run, context: RunContext, facts: RequestFacts) {
    this.#target = target;
    this.#run = run;
    this.#conversation = run;
    this.#context = context;
    this.#facts = facts;
    this.#failed = new Set(MODES.filter((mode) => !run.wire.modes.includes(mode)));
    this.#comeback = new Comeback(target, run, context, facts);
  }

  original(): PlannedAttempt {
    const request = this.#comeback.prepared(this.#request(this.#originalBody()));
    return { target: this.#target, mode: 'first', request, added_messages: [] };
  }

  /** From now on this is asked for in place of what the client sent. */
  goOnWith(conversation: AskedConversation): void {
    this.#conversation = conversation;
  }

  /** Takes what an attempt shows of the server it came from, and what that will have back. */
  hear(planned: PlannedAttempt, report: AttemptReport): void {
    const { mode } = planned;
    const { traces, phase, sealed = [] } = report;
    this.#comeback.hear(planned, report);
    this.#accepted ||= phase !== 'connect';
    this.#first ??= traces.events[0];
    // The answer rests on the thoughts it was begun with: those of who goes on with it are not shown.
    if (mode !== 'prefill' && mode !== 'nudge') this.#sealed = sealed;
    this.#context.capabilities.recognise(this.#target, this.#model, traces);
  }

  /** The request for the rest of the very answer that was interrupted, where its provider has it. */
  resumption(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#comeback.request(planned, report);
  }

  /** The request for what follows the end of an answer, where that matters and can be come back to. */
  tail(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#comeback.tail(planned, report);
  }

  /** Nobody comes back to the answer any more. Resolves once its provider knows, or is not to be told. */
  release(): Promise<void> {
    return this.#comeback.release();
  }

  /** `undefined` when no way of asking is left. */
  recovery(rest: Rest): PlannedAttempt | undefined {
    const { transcript, cutTools, isAuthor } = rest;
    this.#tokens_left = rest.tokens_left;
    const mode = this.#modeFor(rest);
    if (!mode) return undefined;
    const prefix = prefixOf(transcript.text);
    const { compressed } = this.#conversation;
    const splice = this.#splice(mode, prefix, rest);
    const planned = { target: this.#target, mode, ...(compressed && { compressed }), splice };
    if (mode === 'replay' || mode === 'restart') {
      return { ...planned, request: this.#request(this.#originalBody()), added_messages: [] };
    }
    const { body, added_messages } = this.#run.wire.continuation({
      request: this.#asked,
      dialect: this.#dialect,
      first: this.#first ?? {},
      mode,
      prefix,
      reasoning: isAuthor ? transcript.reasoning : '',
      sealed: isAuthor ? this.#sealed : [],
      cutTools,
      tokens_left: rest.tokens_left - this.#margin_tokens,
    });
    const base_url =
      mode === 'prefill' ? this.#dialect.prefillUrl?.(this.#target.upstream.base_url) : undefined;
    return { ...planned, request: this.#request(this.#withModel(body), base_url), added_messages };
  }

  /** True if the way of asking was at fault, not the provider's health: the next one may do. */
  blames(planned: PlannedAttempt, interruption: Interruption): boolean {
    const { mode, splice } = planned;
    if (mode === 'first' || mode === 'restart') return false;
    if (mode === 'resume') return this.#comeback.isGone(interruption);
    const { cause, evidence, message = '' } = interruption;
    const isStatus = evidence.kind === 'status';
    if (cause === 'context_overflow') return this.#fitsWithLess(planned);
    // Where the model has answered before, what is not there is the address for prefills, or what they ask for besides.
    const hasModel = this.#accepted || (mode === 'prefill' && this.#dialect.prefillUrl !== undefined);
    const isMissing = isStatus && cause === 'model_not_found' && hasModel;
    // A target that has taken nothing of this run yet may refuse the request as it was, but is given one more chance.
    const mayBeMode = this.#accepted || mode === 'prefill';
    const refused = isMissing || (isStatus && cause === 'invalid_request' && mayBeMode);
    if (!refused && evidence.kind !== 'seam_rejected') return false;
    this.#failed.add(mode);
    const noPrefill = refused ? isMissing || refusesPrefill(message) : splice?.rejection === 'diverged';
    if (mode === 'prefill' && noPrefill) this.#remember(false);
    return true;
  }

  /**
   * A request of the run was not too long for the target: what was added to it to ask for the rest is. True if the rest can
   * be asked for with less: without the thoughts of a model that had said nothing yet, or with a lower limit, once.
   */
  #fitsWithLess({ mode, added_messages }: PlannedAttempt): boolean {
    if (!this.#accepted || (mode !== 'prefill' && mode !== 'nudge')) return false;
    const added = added_messages.reduce((sum, characters) => sum + characters, 0);
    if (added === 0) {
      const wasTried = this.#thinksAnew;
      this.#thinksAnew = true;
      return !wasTried;
    }
    if (this.#margin_tokens > 0) return false;
    const margin_tokens = marginTokens(added);
    if (!Number.isFinite(this.#tokens_left) || this.#tokens_left <= margin_tokens) return false;
    this.#margin_tokens = margin_tokens;
    return true;
  }

  /** The answer went on: what was only tried is known now. */
  confirm({ mode, splice }: PlannedAttempt): void {
    if (mode === 'prefill' && splice && forModel(this.#dialect.prefill, this.#model) === undefined)
      this.#remember(splice.seam !== 'restart');
  }

  #modeFor({ plan, transcript, cutTools, isAuthor }: Rest): Mode | undefined {
    const { continuesReasoning } = this.#dialect;
    const prefillWithTools = forModel(this.#dialect.prefillWithTools, this.#model);
    const { hasTools, onlyReplay } = this.#facts;
    if (plan.kind === 'R4') {
      const onlyReasoned = transcript.reasoning !== '' && transcript.text === '' && plan.cancel.length === 0;
      const canThinkOn = isAuthor && continuesReasoning && (prefillWithTools || !hasTools) && !onlyReplay;
      const mayThinkOn = canThinkOn && !this.#thinksAnew && !this.#failed.has('prefill');
      return onlyReasoned && mayThinkOn ? 'prefill' : 'restart';
    }
    return chooseMode({
      plan: cutTools.length > 0 ? 'R3' : 'R1',
      prefill: this.#prefill,
      prefillWithTools,
      characters: prefixOf(transcript.text).sent.length,
      hasTools,
      onlyReplay,
      failed: this.#failed,
    });
  }

  #splice(mode: Mode, prefix: Prefix, { transcript, isAuthor }: Rest): Splice {
    return new Splice({
      mode,
      delivered: { text: transcript.text, reasoning: transcript.reasoning },
      prefix,
      echoes: mode === 'prefill' && forModel(this.#dialect.echoes, this.#model) === true,
      continuesReasoning: isAuthor && this.#dialect.continuesReasoning && mode === 'prefill',
      stops: this.#facts.stops,
      ordered: this.#run.wire.isOrdered === true,
    });
  }

  get #dialect(): Dialect {
    const { wire } = this.#run;
    return wire.dialect ?? this.#context.capabilities.dialect(this.#target, this.#model) ?? DIALECTS.generic;
  }

  /**
   * Whether the model goes on from a prefix. Where it may repeat the prefix first, a short one would not tell whether it
   * has: that is as good as not known.
   */
  get #prefill(): boolean | undefined {
    // What was learnt of this model comes before what is said of all.
    const known = this.#learnt ?? forModel(this.#dialect.prefill, this.#model);
    const mayEcho = forModel(this.#dialect.echoes, this.#model) === undefined;
    return known && mayEcho ? undefined : known;
  }

  /** Whether the model continues a prefix, as far as it was tried. */
  get #learnt(): boolean | undefined {
    if (this.#run.wire.dialect) return undefined;
    return this.#context.capabilities.prefill(this.#target.name, this.#model);
  }

  get #model(): string {
    return this.#target.model ?? this.#run.request.model;
  }

  #remember(prefill: boolean): void {
    if (this.#run.wire.dialect) return;
    this.#context.capabilities.rememberPrefill(this.#target.name, this.#model, prefill);
  }

  /** As it came, unless this target is to have it in another form. */
  #originalBody(): string {
    const asked = this.#asked;
    const { request, body } = this.#conversation;
    const isAsItCame = asked === request && this.#target.model === undefined;
    return isAsItCame ? body : this.#withModel(asked);
  }

  /** The client's request; where several providers take part in a conversation, as this one takes it. */
  get #asked(): WireRequest {
    const { request } = this.#conversation;
    return this.#run.targets ? historyFor(this.#dialect.name, request) : request;
  }

  #withModel(body: object): string {
    return JSON.stringify({ ...body, model: this.#model });
  }

  #request(body: string, base_url = this.#target.upstream.base_url): AttemptRequest {
    return { url: upstreamUrl(base_url, this.#run.wire.path), headers: this.#target.headers, body };
  }
}
