import type { Logger } from 'pino';
import { middleOf, type Saying, summaryMessage } from '../../../plans/compression.ts';
import type { Plan } from '../../../plans/decide.ts';
import type { Compression } from '../../../plans/delta.ts';
import type { RunTarget } from '../../upstream/target.ts';
import type { Conversation } from '../../wires/common/conversation.ts';
import type { WireRequest } from '../../wires/common/wire.ts';
import type { Run, RunCompression } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import type { RunTargets } from '../targets/run-targets.ts';
import { Summariser } from './summariser.ts';

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
  /** From now on this is asked for in its place. */
  compress(request: WireRequest, compressed: Compression): void;
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
  #asked = 0;
  /** The client's own conversation, once a part of it was left out. */
  #own: readonly unknown[] | undefined;

  constructor(run: Run, requests: ComposedRequests, targets: RunTargets, context: RunContext) {
    this.#run = run;
    this.#requests = requests;
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
    const { compression, wire } = this.#run;
    const { request } = this.#requests;
    if (!compression || !wire.conversation || this.#asked >= COMPRESSIONS_MAX) return false;
    const omission = omissionOf(wire.conversation, request, compression.keep_messages);
    if (!omission) return false;
    // A second summary, of the first, has to be a shorter one.
    const tokens_max = Math.ceil(compression.summary_tokens / 2 ** this.#asked++);
    const summariser = new Summariser(compression, this.#context, this.#log);
    const summary = await summariser.summarise(omission.sayings, tokens_max, signal);
    if (signal.aborted) return false;
    const outcome = summary === undefined ? 'failed' : this.#replace(omission, summary, compression.target);
    this.#context.metrics.compressions.inc({ outcome });
    return outcome === 'compressed';
  }

  /** Puts the summary in the place of what is left out, unless that would not be shorter. */
  #replace(
    omission: Omission,
    summary: string,
    { name: upstream, model }: RunCompression['target'],
  ): 'compressed' | 'not_shorter' {
    const shorter = omission.withSummary(summary);
    const characters_before = charactersOf(omission.messages);
    const characters_after = charactersOf(shorter);
    const sizes = { characters_before, characters_after, upstream, model };
    if (characters_after >= characters_before) {
      this.#log.warn(sizes, 'the summary is no shorter');
      return 'not_shorter';
    }
    const compressed = this.#compressionTo(shorter, omission, summary);
    this.#requests.compress(omission.requestWith(shorter), compressed);
    this.#log.info({ ...sizes, messages_left_out: compressed.messages }, 'context compressed');
    return 'compressed';
  }

  /** Hardly any run needs one. */
  get #log(): Logger {
    return this.#context.log.child({ run: this.#run.id });
  }

  /** What is missing of the client's own conversation, whatever was left out before. */
  #compressionTo(shorter: readonly unknown[], omission: Omission, summary: string): Compression {
    this.#own ??= omission.messages;
    const stays = new Set([...shorter, omission.joined]);
    const left_out = this.#own.filter((message) => !stays.has(message));
    return {
      messages: left_out.length,
      characters: charactersOf(left_out),
      summary_characters: summary.length,
    };
  }
}

const goesOn = ({ kind }: Plan): boolean => kind === 'R1' || kind === 'R3' || kind === 'R4';

/** What of the conversation in a request is to be left out. */
interface Omission {
  /** The conversation as it is. */
  readonly messages: readonly unknown[];
  /** What was said in the part that is left out. */
  readonly sayings: readonly Saying[];
  /** The conversation with a summary in the place of that part. */
  withSummary(summary: string): readonly unknown[];
  /** The same request with such a conversation. */
  requestWith(messages: readonly unknown[]): WireRequest;
  /** The message that stays with the summary added to it, if there is one. */
  readonly joined: unknown;
}

/** `undefined` where nothing can be left out. */
export function omissionOf(
  conversation: Conversation,
  request: WireRequest,
  keep_messages: number,
): Omission | undefined {
  const messages = conversation.messagesOf(request);
  if (!messages) return undefined;
  const parts = messages.map((message) => conversation.partOf(message));
  const middle = middleOf(parts, keep_messages);
  if (!middle) return undefined;
  const { joined_to } = middle;
  const left_out = new Set(middle.left_out);
  const told = parts.filter((_, index) => left_out.has(index) || index === joined_to);
  return {
    messages,
    sayings: told.flatMap(({ sayings }) => sayings),
    requestWith: (shorter) => conversation.withMessages(request, shorter),
    joined: joined_to === undefined ? undefined : messages[joined_to],
    withSummary(summary) {
      const text = summaryMessage(summary);
      return messages.flatMap((message, index) => {
        if (index === joined_to) return [conversation.joined(message, text)];
        if (!left_out.has(index)) return [message];
        const isPlace = joined_to === undefined && index === middle.left_out[0];
        return isPlace ? [conversation.messageOf(text)] : [];
      });
    },
  };
}

/** As they are written in a request. */
const charactersOf = (messages: readonly unknown[]): number => JSON.stringify(messages).length;
