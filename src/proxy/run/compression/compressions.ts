import type { Plan } from '../../../plans/decide.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { WireRequest } from '../../wires/common/wire.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import type { RunTargets } from '../targets/run-targets.ts';
import { omissionOf } from './omission.ts';
import { type CompressedRequest, summarised } from './summary-in-place.ts';

/** Per run. */
const COMPRESSIONS_MAX = 2;

/** A plan, and the targets that may be asked for it. */
export interface CompressedPlan {
  readonly plan: Plan;
  readonly left: readonly RunTarget[];
  /** The conversation was compressed for it. */
  readonly isCompressed: boolean;
}

/** The run's requests, as far as compression changes them. */
interface ComposedRequests {
  /** The current request, without the additions of a continuation. */
  readonly request: WireRequest;
  /** The request already contains a summary. */
  readonly isCompressed: boolean;
  /** Replaces the current request. */
  compress(compressed: CompressedRequest): void;
}

/**
 * Compresses a conversation that is too long for all targets of its run: a model summarises the middle, and the run
 * continues with that summary. If this fails or is not configured, the run ends as it would without compression.
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
   * Called if the conversation is too long for all targets. `plan`: the plan without compression; `choose`: decides
   * again, given whether the conversation can be compressed. `offset`: characters delivered so far. `signal`: aborts
   * when the run must stop on this replica.
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
    // The second summary also covers the first, so it must be shorter.
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
