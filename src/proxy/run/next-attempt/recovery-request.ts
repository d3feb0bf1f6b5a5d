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

/** What is to be asked for after an interruption. */
export interface WantedRest {
  readonly plan: Extract<Plan, { kind: 'R1' | 'R3' | 'R4' }>;
  readonly transcript: Transcript;
  /** What the client has of the transcript's reasoning. */
  readonly shown_reasoning: string;
  readonly tokens_left: number;
  /** What the client has of thoughts; see {@link AnswerWriter.thoughts}. */
  readonly thoughts?: AnswerWriter['thoughts'];
}

/** The same, of one target. */
export interface Rest extends WantedRest {
  /** Names of calls that were cut out of the answer and not made again yet. */
  readonly cutTools: readonly string[];
  /** What was said so far was said by this target. */
  readonly isAuthor: boolean;
}

/** Where it is asked only whether there is a way. */
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
  /** Thoughts are not given back: together with them it was too long, or refused. */
  #thinksAnew = false;
  /** A nudge was not followed, and is worded more strongly. */
  #insists = false;
  #knowledge: PrefillKnowledge | undefined;
  /** Where the provider may have the answer although the connection is lost. */
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

  /** The answer to the original request may be come back to. */
  keep(kept: KeptAnswer | undefined): ProviderResume {
    this.#resume ??= new ProviderResume(this.#target, this.#run, this.#context, this.#facts, kept);
    return this.#resume;
  }

  /** The provider may have the answer still when the connection is lost. */
  get mayResume(): boolean {
    return this.#resume !== undefined;
  }

  /** From now on this is asked for in place of what the client sent. */
  replaceConversation(conversation: AskedConversation): void {
    this.#conversation = conversation;
  }

  /** Takes what an attempt shows of its target, and what that will have back. */
  observe(planned: PlannedAttempt, report: AttemptReport): void {
    const { samples, phase, sealed = [], resume_path } = report;
    const resume = resume_path === undefined ? this.#resume : this.keep(undefined);
    resume?.observe(planned, report);
    this.#accepted ||= phase !== 'connect';
    this.#first ??= samples.events[0];
    // The answer rests on the thoughts of its beginning: those of a continuation are not shown.
    if (!asksForRest(planned.mode)) this.#sealed = sealed;
  }

  /** The request for the rest of the very answer that was interrupted, where its provider has it. */
  resumption(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#resume?.request(planned, report);
  }

  /** The request for what follows the end of an answer, where that matters and can be come back to. */
  tail(planned: PlannedAttempt, report: AttemptReport): PlannedAttempt | undefined {
    return this.#resume?.tail(planned, report);
  }

  /** The answer is not resumed any more. Resolves once its provider is stopped, or need not be. */
  async release(): Promise<void> {
    await this.#resume?.release();
  }

  /** `undefined` when no way of asking is left. */
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

  /** True if the way of asking was at fault, not the provider's health: the next one may do. */
  isRequestAtFault(planned: PlannedAttempt, interruption: Interruption): boolean {
    const { mode, splice } = planned;
    if (mode === 'resume') return this.#resume?.isGone(interruption) ?? true;
    if (this.#leaveThoughts(interruption)) return true;
    if (mode === 'first' || mode === 'restart') return false;
    const { cause, evidence, message = '' } = interruption;
    const isStatus = evidence.kind === 'status';
    if (cause === 'context_overflow') return this.#fitsWithLess(planned);
    // Where the model has answered before, what is not there is the address for prefills, or what they ask for besides.
    const hasModel = this.#accepted || (mode === 'prefill' && this.#prefill.dialect.prefillUrl !== undefined);
    const isMissing = isStatus && cause === 'model_not_found' && hasModel;
    // A target that has taken nothing of this run yet may refuse the request as it was, but is given one more chance.
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
   * True if the target has refused what another provider has thought in the conversation. From now on it is asked without: the
   * client sends it again with every request, and only the provider that has sealed it can open it.
   */
  #leaveThoughts({ cause, message = '' }: Interruption): boolean {
    const { id: run, wire } = this.#run;
    if (!isPermanent(cause) || !wire.refusesThoughts?.(message)) return false;
    const { refusedThoughts } = this.#context.capabilities;
    const asked = requestFor(this.#target, this.#conversation, this.#run, this.#context);
    const request = wire.withoutThoughts?.(asked, (seal) => {
      refusedThoughts.remember(this.#target.name, seal);
      // Which of them was refused is not said.
      return true;
    });
    if (!request) return false;
    this.#conversation = { ...this.#conversation, request, body: JSON.stringify(request) };
    this.#context.log.info({ run, upstream: this.#target.name }, 'thoughts of another provider left out');
    return true;
  }

  /**
   * A request of the run was not too long for the target: what was added to it to ask for the rest is. True if the rest can
   * be asked for with less: without the thoughts of a model that had said nothing yet, or with a lower limit, once.
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

  /** The answer continued, and is now `text`: the result of a trial is known. */
  confirm(planned: PlannedAttempt, text: string): void {
    this.#prefill.confirm(planned, text);
  }

  /** To be waited for before it is asked for the rest: finds out what the target makes of a prefix, where that matters. */
  prepare(mayProbe: boolean, signal: AbortSignal): Promise<void> {
    const { hasTools, onlyReplay } = this.#facts;
    const { dialect, model } = this.#prefill;
    const isOfUse = !onlyReplay && !this.#failed.has('prefill');
    const isAllowed = !hasTools || forModel(dialect.prefillWithTools, model);
    return this.#prefill.seek(mayProbe && isOfUse && isAllowed, this.#first ?? {}, signal);
  }

  /** True if it can be asked for the rest although the provider has run tools, with what these have done. */
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
      // What a tool has done satisfies a choice of tools, and a document that was not begun may be asked for.
      onlyReplay: tools.length === 0 ? onlyReplay : this.#facts.expectsJson && tail !== '',
      // In a replay the tools would run again.
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
