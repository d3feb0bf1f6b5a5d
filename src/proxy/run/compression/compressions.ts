import type { Plan } from '../../../plans/decide.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { WireRequest } from '../../wires/common/wire.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import type { RunTargets } from '../targets/run-targets.ts';
import { omissionOf } from './omission.ts';
import { type CompressedRequest, summarised } from './summary-in-place.ts';

/** Of one run. */
const COMPRESSIONS_MAX = 2;

/** The plan to carry out, and the targets that may be asked for it. */
export interface CompressedPlan {
  readonly plan: Plan;
  readonly left: readonly RunTarget[];
  /** The conversation was put in fewer words for it. */
  readonly isCompressed: boolean;
}

/** The requests of the run, as far as a shorter conversation changes them. */
interface ComposedRequests {
  /** What is asked for, without what is added to it to ask for the rest. */
  readonly request: WireRequest;
  /** It has a summary in it already. */
  readonly isCompressed: boolean;
  /** From now on this is asked for in its place. */
  compress(compressed: CompressedRequest): void;
}

/**
 * Shortens a conversation that has become too long for all targets of its run: a model summarises the middle, and the
 * run continues with the summary in its place. If that is not configured, or fails, the run ends as it would without.
 */
export class Compressions {
  readonly #run: Run;
  readonly #requests: ComposedRequests;
  readonly #targets: RunTargets;
  readonly #context: RunContext;
  #asked: number;

  constructor(run: Run, requests: ComposedRequests, targets: RunTargets, context: RunContext) {
    this.#run = run;
    this.#requests = requests;
    this.#asked = requests.isCompressed ? 1 : 0;
    this.#targets = targets;
    this.#context = context;
  }

  /**
   * To be asked when the conversation is too long for all targets. `plan` is what is done about that as it is; `choose` decides
   * on another one, given whether the conversation could be shorter. `offset`: characters delivered so far. `signal` aborts
   * when the run must not continue here.
   */
  async planOrCompress(
    plan: Plan,
    choose: (compressible: boolean) => Plan,
    offset: number,
    signal: AbortSignal,
  ): Promise<CompressedPlan> {
    const asItIs = { plan, left: [], isCompressed: false };
    if (goesOn(plan)) return asItIs;
    const other = choose(true);
    if (!goesOn(other) || !(await this.#compress(signal))) return asItIs;
    return { plan: other, left: this.#targets.compressed(offset), isCompressed: true };
  }

  /** True if the conversation is shorter now. */
  async #compress(signal: AbortSignal): Promise<boolean> {
    const run = this.#run;
    const { compression, wire } = run;
    const { request } = this.#requests;
    if (!compression || !wire.conversation || this.#asked >= COMPRESSIONS_MAX) return false;
    const omission = omissionOf(wire.conversation, request, compression.keep_messages);
    if (!omission) return false;
    // A second summary, of the first, has to be a shorter one.
    const tokens_max = Math.ceil(compression.summary_tokens / 2 ** this.#asked++);
    const { messages: instead_of } = omission;
    const own = wire.conversation.messagesOf(run.request) ?? instead_of;
    const replacement = { run, compression, omission, own, instead_of, tokens_max };
    const shorter = await summarised(replacement, signal, this.#context);
    if (!shorter) return false;
    this.#requests.compress(shorter);
    return true;
  }
}

const goesOn = ({ kind }: Plan): boolean => kind === 'R1' || kind === 'R3' || kind === 'R4';
