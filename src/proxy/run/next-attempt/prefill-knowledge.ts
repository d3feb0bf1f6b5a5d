import { sleep } from '../../../lib/time.ts';
import { PROBE, type PrefillManner, prefixOf, probedManner } from '../../../plans/seam/mode.ts';
import type { Splice } from '../../../plans/splice.ts';
import type { RunTarget } from '../../upstream/target.ts';
import { chatWire } from '../../wires/chunks/chat-wire.ts';
import { type Dialect, mannerOf, questionRequest } from '../../wires/common/dialect.ts';
import type { ChatRequest } from '../../wires/common/request.ts';
import { PrefillDoubt, refusesPrefill } from '../../wires/dialects/prefill-evidence.ts';
import type { PlannedAttempt } from '../context/attempt.ts';
import { type ProbeAnswer, probe } from '../context/probe.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import { dialectOf, modelOf } from './asked-conversation.ts';

/** Limit for a probe, because a client waits for it in the middle of its answer. */
export const PROBE_MAX_MS = 3000;
/** Enough for the next word, or for the first words of a new answer. */
const TOKENS_MAX = 24;

/** How a target treats a prefix, as far as known, and what the attempts of one run show about it. */
export class PrefillKnowledge {
  readonly #target: RunTarget;
  readonly #run: Run;
  readonly #context: RunContext;
  /** Set when a prefill was rejected as ambiguous. */
  #doubt: PrefillDoubt | undefined;

  constructor(target: RunTarget, run: Run, context: RunContext) {
    this.#target = target;
    this.#run = run;
    this.#context = context;
  }

  get model(): string {
    return modelOf(this.#target, this.#run);
  }

  get dialect(): Dialect {
    return dialectOf(this.#target, this.#run, this.#context);
  }

  /** What was learnt about this model takes precedence over what its dialect claims. */
  get manner(): PrefillManner | undefined {
    return this.#learnt ?? mannerOf(this.dialect, this.model);
  }

  /** The model has shown the manner itself, or its wire allows no other; otherwise only the dialect claims it. */
  get isProven(): boolean {
    return this.#learnt !== undefined || this.#run.wire.dialect !== undefined;
  }

  /**
   * If nothing is known, consults the other replicas; a slow store doesn't delay the client for long. Then probes the
   * target, if allowed. `first`: the first event of an answer from the target. `signal`: aborts when no client waits
   * any more.
   */
  async seek(mayProbe: boolean, first: object, signal: AbortSignal): Promise<void> {
    const { capabilities, configuration, time } = this.#context;
    if (this.manner !== undefined) return;
    await capabilities.consult(this.#target.name, this.model);
    if (!mayProbe || configuration.recovery.probe === 'off' || this.#run.wire.name !== 'chat_completions')
      return;
    if (this.manner !== undefined || signal.aborted) return;
    const settled = capabilities.probe(this.#target.name, this.model, () =>
      probePrefill(this.#target, this.model, this.dialect, first, this.#context),
    );
    await Promise.race([settled, sleep(time, PROBE_MAX_MS, signal)]);
  }

  /** A prefill failed: the target refused prefills, or this request, or the seam rejected the continuation. */
  reject(splice: Splice | undefined, by: 'target' | 'request' | 'seam'): void {
    const isBroken = this.manner === 'echo' && by === 'seam';
    const manner = by === 'target' || isBroken ? 'new_turn' : splice?.manner;
    if (manner) this.#remember(manner);
    else if (splice?.rejection === 'ambiguous')
      this.#doubt = new PrefillDoubt(splice.rejectedHead, splice.delivered);
  }

  /** Records that the continuation worked. `text`: the answer so far, which may show how the target treats a prefix. */
  confirm({ mode, splice }: PlannedAttempt, text: string): void {
    if (this.isProven) return;
    const isAnchored = mode === 'nudge' && splice?.seam === 'anchored';
    const manner = mode === 'prefill' ? splice?.manner : isAnchored ? this.#doubt?.resolve(text) : undefined;
    if (manner) this.#remember(manner);
  }

  /** What attempts have shown about this model; `undefined` if nothing. */
  get #learnt(): PrefillManner | undefined {
    if (this.#run.wire.dialect) return undefined;
    return this.#context.capabilities.prefill(this.#target.name, this.model);
  }

  #remember(prefill: PrefillManner): void {
    if (this.#run.wire.dialect) return;
    this.#context.capabilities.rememberPrefill(this.#target.name, this.model, prefill);
  }
}

/**
 * Finds out how a target treats a prefix, by asking it to continue the beginning of an answer; `undefined` if the probe
 * doesn't show it. `first`: the first event of an answer from the target, or an empty object.
 */
export async function probePrefill(
  { name, upstream, headers }: RunTarget,
  model: string,
  dialect: Dialect,
  first: object,
  context: RunContext,
): Promise<PrefillManner | undefined> {
  const request = questionRequest(model, PROBE.question, TOKENS_MAX, dialect);
  // No signal: several runs may wait for the probe, and the end of one of them must not end it.
  const answer = await probe(
    {
      upstream,
      headers,
      body: prefillBody(request, dialect, first, TOKENS_MAX),
      base_url: dialect.prefillUrl?.(upstream.base_url),
      attempt_max_ms: PROBE_MAX_MS,
      limit: { tokens: TOKENS_MAX, key: 'recovery.probe' },
    },
    context,
  );
  answer.account(context.metrics);
  const manner = mannerIn(answer);
  context.log.info({ upstream: name, manner: manner ?? 'unknown' }, 'prefill probed');
  return manner;
}

/** `request`, extended to a prefill that continues the partial answer of {@link PROBE}. */
export const prefillBody = (
  request: ChatRequest,
  dialect: Dialect,
  first: object,
  tokens_left: number,
): object =>
  chatWire.continuation({
    request,
    dialect,
    first: { ...first },
    mode: 'prefill',
    prefix: prefixOf(PROBE.said, false),
    reasoning: '',
    sealed: [],
    cutTools: [],
    insists: false,
    keepsCache: false,
    tokens_left,
  }).body;

function mannerIn({ interruption, text }: ProbeAnswer): PrefillManner | undefined {
  if (!interruption) return probedManner(text);
  const { cause, message = '' } = interruption;
  return cause === 'invalid_request' && refusesPrefill(message) ? 'new_turn' : undefined;
}
