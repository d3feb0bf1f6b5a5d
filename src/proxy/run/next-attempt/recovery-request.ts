import { type Interruption, isPermanent } from '../../../interrupts/interruption.ts';
import { anchorTokens, marginTokens } from '../../../plans/continuation.ts';
import type { Plan } from '../../../plans/decide.ts';
import {
  asksForRest,
  chooseMode,
  MODES,
  type Mode,
  type Prefix,
  prefixOf,
} from '../../../plans/seam/mode.ts';
import { Splice } from '../../../plans/splice.ts';
import { givenBack, type Transcript } from '../../../plans/transcript.ts';
import type { RunTarget } from '../../upstream/target.ts';
import { forModel } from '../../wires/common/dialect.ts';
import type { RequestFacts } from '../../wires/common/request.ts';
import type { AnswerWriter } from '../../wires/common/wire.ts';
import { refusesPrefill } from '../../wires/dialects/prefill-evidence.ts';
import type { AttemptReport, PlannedAttempt } from '../context/attempt.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import { takesBack } from '../targets/targets-of-run.ts';
import {
  type AskedConversation,
  bodyFor,
  originalRequest,
  requestFor,
  requestTo,
} from './asked-conversation.ts';
import { PrefillKnowledge } from './prefill-knowledge.ts';
import { type KeptAnswer, ProviderResume } from './provider-resume.ts';

/** What to ask for after an interruption. */
export interface WantedRest {
  readonly plan: Extract<Plan, { kind: 'R1' | 'R3' | 'R4' }>;
  readonly transcript: Transcript;
  /** The part of the transcript's reasoning that the client has. */
  readonly shown_reasoning: string;
  readonly tokens_left: number;
  /** The thoughts that the client has; see {@link AnswerWriter.thoughts}. */
  readonly thoughts?: AnswerWriter['thoughts'];
}

/** What to ask one target for. */
export interface Rest extends WantedRest {
  /** Names of calls that were cut out of the answer and not made again yet. */
  readonly cutTools: readonly string[];
  /** The whole answer so far came from this target. */
  readonly isAuthor: boolean;
}

/** Stands in if the only question is whether there is a way to ask. */
const ANY_REST = {
  plan: { kind: 'R1' },
  shown_reasoning: '',
  tokens_left: 1,
  cutTools: [],
  isAuthor: true,
} as const;

/** Builds the requests that ask one target for the rest of an answer. */
export class TargetRequests {
  readonly #target: RunTarget;
  readonly #run: Run;
  readonly #context: RunContext;
  readonly #facts: RequestFacts;
  /** Modes that the wire doesn't support, or that failed in this run. */
  readonly #failed: Set<Mode>;
  #conversation: AskedConversation;
  /** The target has accepted a request of the run. */
  #accepted = false;
  /** The first event of the target's first answer in this run. */
  #first: Readonly<Record<string, unknown>> | undefined;
  /** Parts of the answer that the provider accepts back only verbatim. */
  #sealed: readonly object[] = [];
  /** Subtracted from what is left of the client's limit, so that the request fits. */
  #margin_tokens = 0;
  /** What was left of the client's limit when the rest was last requested. */
  #tokens_left = Number.POSITIVE_INFINITY;
  /** Continuations omit the thoughts, because the request with them was too long or was refused. */
  #thinksAnew = false;
  /** A nudge was ignored, so the next one is worded more strongly. */
  #insists = false;
  #knowledge: PrefillKnowledge | undefined;
  /** Set if the provider may still have the answer after a lost connection. */
  #resume: ProviderResume | undefined;

  constructor(
    target: RunTarget,
    conversation: AskedConversation,
    run: Run,
    context: RunContext,
    facts: RequestFacts,
  ) {
    this.#target = target;
    this.#conversation = conversation;
    this.#run = run;
    this.#context = context;
    this.#facts = facts;
    this.#failed = new Set(MODES.filter((mode) => !run.wire.modes.includes(mode)));
  }

  /** Prepares to resume the answer. `kept`: the answer to the original request, if its provider may keep that. */
  keep(kept: KeptAnswer | undefined): ProviderResume {
    this.#resume ??= new ProviderResume(this.#target, this.#run, this.#context, this.#facts, kept);
    return this.#resume;
  }

  /** The provider may still have the answer after a lost connection. */
  get mayResume(): boolean {
    return this.#resume !== undefined;
  }

  /** Replaces the current request. */
  replaceConversation(conversation: AskedConversation): void {
    this.#conversation = conversation;
  }

  /** Records what an attempt shows about its target, and the parts that the target accepts back only verbatim. */
  observe(planned: PlannedAttempt, report: AttemptReport): void {
    const { samples, phase, sealed = [], resume_path } = report;
    const resume = resume_path === undefined ? this.#resume : this.keep(undefined);
    resume?.observe(planned, report);
    this.#accepted ||= phase !== 'connect';
    this.#first ??= samples.events[0];
    // The client never sees the thoughts of a continuation, so only those of the beginning count.
    if (!asksForRest(planned.mode)) this.#sealed = sealed;
  }

  /** The request for the rest of the interrupted answer, if its provider has it. */
  resumption(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#resume?.request(planned, report);
  }

  /** The request for what follows the end of an answer, if that matters and the provider has it. */
  tail(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#resume?.tail(planned, report);
  }

  /** Gives up resuming the answer. Resolves once the provider is stopped, or doesn't have to be. */
  async release(): Promise<void> {
    await this.#resume?.release();
  }

  /** The request for the rest; `undefined` if no mode is left. */
  recovery(rest: Rest): PlannedAttempt | undefined {
    const { transcript, cutTools, isAuthor } = rest;
    this.#tokens_left = rest.tokens_left;
    const mode = this.#modeFor(rest);
    if (!mode) return undefined;
    const { before, tail } = givenBack(transcript.text, transcript.providerTools);
    const keepsCache = mode === 'nudge' && this.#nudgeIsCached(rest);
    const prefix = prefixOf(tail, mode === 'nudge' || this.#prefill.dialect.keepsSpace);
    const { compressed } = this.#conversation;
    const delivered_tokens = this.#facts.max_tokens - rest.tokens_left;
    const repeats = mode === 'nudge' && Number.isFinite(delivered_tokens);
    const repeated_tokens = repeats ? anchorTokens(tail, transcript.text.length, delivered_tokens) : 0;
    const splice = this.#splice(mode, tail, prefix, rest, repeated_tokens > 0);
    const planned = { target: this.#target, mode, ...(compressed && { compressed }), keepsCache, splice };
    if (mode === 'replay' || mode === 'restart') {
      const request = originalRequest(this.#target, this.#conversation, this.#run, this.#context);
      return { ...planned, request, added_messages: [] };
    }
    const { body, ...added } = this.#run.wire.continuation({
      request: requestFor(this.#target, this.#conversation, this.#run, this.#context),
      dialect: this.#prefill.dialect,
      first: this.#first ?? {},
      mode,
      prefix,
      ...(before.length > 0 && { ran: { names: transcript.providerTools.map(({ name }) => name), before } }),
      reasoning: isAuthor ? transcript.reasoning : '',
      sealed: isAuthor && !this.#thinksAnew ? this.#sealed : [],
      cutTools,
      insists: this.#insists,
      keepsCache,
      tokens_left: rest.tokens_left + repeated_tokens - this.#margin_tokens,
    });
    const base_url =
      mode === 'prefill' ? this.#prefill.dialect.prefillUrl?.(this.#target.upstream.base_url) : undefined;
    const sent = bodyFor(this.#target, this.#run, body);
    return { ...planned, request: requestTo(this.#target, this.#run, sent, base_url), ...added };
  }

  /** True if the form of the request was at fault, not the provider's health, so that another form may work. */
  isRequestAtFault(planned: PlannedAttempt, interruption: Interruption): boolean {
    const { mode, splice } = planned;
    if (mode === 'resume') return this.#resume?.isGone(interruption) ?? true;
    if (this.#leaveThoughts(interruption)) return true;
    if (mode === 'first' || mode === 'restart') return false;
    const { cause, evidence, message = '' } = interruption;
    const isStatus = evidence.kind === 'status';
    if (cause === 'context_overflow') return this.#fitsWithLess(planned);
    // A model that has answered before exists, so prefills lack their address or something else they need.
    const hasModel = this.#accepted || (mode === 'prefill' && this.#prefill.dialect.prefillUrl !== undefined);
    const isMissing = isStatus && cause === 'model_not_found' && hasModel;
    // A target that has accepted nothing in this run may refuse the original request too, but gets one more chance.
    const mayBeMode = this.#accepted || mode === 'prefill';
    const refused = isMissing || (isStatus && cause === 'invalid_request' && mayBeMode);
    if (!refused && evidence.kind !== 'seam_rejected') return false;
    if (mode === 'nudge' && refused && ((planned.added_reasoning ?? 0) > 0 || planned.keepsCache)) {
      this.#thinksAnew = true;
      return true;
    }
    if (mode === 'nudge' && !refused && !this.#insists) {
      this.#insists = true;
      return true;
    }
    this.#failed.add(mode);
    if (mode !== 'prefill') return true;
    const isRefused = isMissing || (refused && refusesPrefill(message));
    this.#prefill.reject(splice, isRefused ? 'target' : refused ? 'request' : 'seam');
    return true;
  }

  /**
   * True if the target has refused another provider's thoughts in the conversation. From now on they're left out: the
   * client sends them with every request, and only the provider that sealed them can open them.
   */
  #leaveThoughts({ cause, message = '' }: Interruption): boolean {
    const { id: run, wire } = this.#run;
    if (!isPermanent(cause) || !wire.refusesThoughts?.(message)) return false;
    const { refusedThoughts } = this.#context.capabilities;
    const asked = requestFor(this.#target, this.#conversation, this.#run, this.#context);
    const request = wire.withoutThoughts?.(asked, (seal) => {
      refusedThoughts.remember(this.#target.name, seal);
      // The refusal doesn't say which of them it means.
      return true;
    });
    if (!request) return false;
    this.#conversation = { ...this.#conversation, request, body: JSON.stringify(request) };
    this.#context.log.info({ run, upstream: this.#target.name }, 'thoughts of another provider left out');
    return true;
  }

  /**
   * True if a smaller request may fit: without the thoughts if nothing else was added, or with a lower token limit.
   * Each is tried once. The target has accepted a request of the run, so only the additions can be too long.
   */
  #fitsWithLess({ mode, added_messages }: PlannedAttempt): boolean {
    if (!this.#accepted || !asksForRest(mode)) return false;
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

  /** Records that the continuation worked. `text`: the answer so far, which may show how the target treats a prefix. */
  confirm(planned: PlannedAttempt, text: string): void {
    this.#prefill.confirm(planned, text);
  }

  /** Await this before {@link recovery}: it finds out how the target treats a prefix, if that matters. */
  prepare(mayProbe: boolean, signal: AbortSignal): Promise<void> {
    const { hasTools, onlyReplay } = this.#facts;
    const { dialect, model } = this.#prefill;
    const isOfUse = !onlyReplay && !this.#failed.has('prefill');
    const isAllowed = !hasTools || forModel(dialect.prefillWithTools, model);
    return this.#prefill.seek(mayProbe && isOfUse && isAllowed, this.#first ?? {}, signal);
  }

  /** True if the target can be asked for the rest after the provider has run tools, including their results. */
  carries(transcript: Transcript): boolean {
    return this.#modeFor({ ...ANY_REST, transcript }) !== undefined;
  }

  #modeFor(rest: Rest): Mode | undefined {
    const { plan, transcript, cutTools, isAuthor } = rest;
    const { continuesReasoning } = this.#prefill.dialect;
    const prefillWithTools = forModel(this.#prefill.dialect.prefillWithTools, this.#prefill.model);
    const { hasTools, onlyReplay } = this.#facts;
    if (plan.kind === 'R4') {
      const onlyReasoned = transcript.reasoning !== '' && transcript.text === '' && plan.cancel.length === 0;
      const canThinkOn = isAuthor && continuesReasoning && (prefillWithTools || !hasTools) && !onlyReplay;
      const mayThinkOn = canThinkOn && !this.#thinksAnew && !this.#failed.has('prefill');
      return onlyReasoned && mayThinkOn ? 'prefill' : 'restart';
    }
    if (plan.kind === 'R3' && plan.repeats) return this.#failed.has('replay') ? undefined : 'replay';
    const tools = transcript.providerTools;
    if (tools.length > 0 && !takesBack(this.#target, tools, this.#run)) return undefined;
    const { tail } = givenBack(transcript.text, tools);
    return chooseMode({
      plan: cutTools.length > 0 ? 'R3' : 'R1',
      prefill: this.#prefill.manner,
      prefillWithTools,
      characters: tail.trimEnd().length,
      hasTools,
      callsComeNext: transcript.callsComeNext,
      nudgeIsCached: this.#nudgeIsCached(rest),
      strict: this.#isStrict,
      // A tool that has run satisfies a forced choice, and a document that hasn't started can still be requested.
      onlyReplay: tools.length === 0 ? onlyReplay : this.#facts.expectsJson && tail !== '',
      // A replay would run the tools again.
      failed: tools.length === 0 ? this.#failed : new Set([...this.#failed, 'replay']),
    });
  }

  #nudgeIsCached({ tokens_left, isAuthor }: Rest): boolean {
    const { wire } = this.#run;
    if (!wire.keepsCache || !isAuthor || this.#thinksAnew) return false;
    const { request } = this.#conversation;
    return wire.keepsCache({ request, first: this.#first ?? {}, sealed: this.#sealed, tokens_left });
  }

  /** `tail`: the text that the rest is joined to. */
  #splice(mode: Mode, tail: string, prefix: Prefix, rest: Rest, allowsMore: boolean): Splice {
    const { plan, transcript, shown_reasoning, isAuthor, tokens_left, thoughts } = rest;
    const isRepeated = plan.kind === 'R3' && plan.repeats;
    const calls = isRepeated ? transcript.toolCalls.filter(({ state }) => state !== 'cancelled') : undefined;
    return new Splice({
      mode,
      delivered: { text: tail, reasoning: shown_reasoning },
      prefix,
      manner: this.#prefill.manner,
      isProven: this.#prefill.isProven,
      thoughts,
      lastResort: mode === 'nudge' ? this.#insists : this.#failed.has('nudge'),
      strict: this.#isStrict,
      continuesReasoning: isAuthor && this.#prefill.dialect.continuesReasoning && mode === 'prefill',
      stops: this.#facts.stops,
      ...(allowsMore && { token_limit: tokens_left }),
      ...(calls && { calls }),
      ordered: this.#run.wire.isOrdered === true,
    });
  }

  get #prefill(): PrefillKnowledge {
    this.#knowledge ??= new PrefillKnowledge(this.#target, this.#run, this.#context);
    return this.#knowledge;
  }

  get #isStrict(): boolean {
    return this.#context.configuration.recovery.seam === 'strict';
  }
}
