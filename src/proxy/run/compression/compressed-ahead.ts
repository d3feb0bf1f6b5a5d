import { middleOf } from '../../../plans/compression.ts';
import { takesMoreThan } from '../../../plans/request-share.ts';
import { estimatedPromptTokens } from '../../../plans/tokens.ts';
import { promptSize } from '../../wires/common/prompt-size.ts';
import type { RequestFacts } from '../../wires/common/request.ts';
import type { WireRequest } from '../../wires/common/wire.ts';
import type { Run } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import { charactersOf, compressionTo, omissionAt, type TakenApart, takenApart } from './omission.ts';
import { type CompressedRequest, summarised } from './summary-in-place.ts';
import {
  keepForTask,
  middleOfSummary,
  summaryOfTask,
  type TaskSummary,
  taskSummary,
} from './task-summary.ts';

/** A run for which this replica has asked no provider yet. */
interface UnaskedRun {
  readonly run: Run;
  readonly facts: Pick<RequestFacts, 'promptSize'>;
  /** Until the deadline of the run; infinite without one. */
  readonly left_ms: number;
  readonly signal: AbortSignal;
}

/** A summary takes no more than this part of the time that is left: the rest is for the answer. */
const DEADLINE_SHARE = 4;

/** Whether the request takes more of a context than its route allows. */
export function isTooLarge({ run, facts }: Pick<UnaskedRun, 'run' | 'facts'>): boolean {
  const { compression: { request_tokens_max } = {}, body } = run;
  return request_tokens_max !== undefined && takesMoreThan(request_tokens_max, body.length, facts.promptSize);
}

/**
 * The request of a run that {@link isTooLarge}, with a summary in it: the one that is kept for its task, where that makes the
 * request small enough, or else a new one. `undefined` where it goes out as it came.
 */
export async function compressedAhead(
  { run, left_ms, signal }: UnaskedRun,
  context: RunContext,
): Promise<CompressedRequest | undefined> {
  const { compression, wire, request } = run;
  const taken = wire.conversation && takenApart(wire.conversation, request);
  if (!compression || !taken) return undefined;
  const { keep_messages, summary_tokens: tokens_max, request_tokens_max = 0 } = compression;
  const kept = await summaryOfTask(run, context);
  const known = kept && withKept(kept, taken, keep_messages);
  if (known && tokensOf(run, known.request) <= request_tokens_max) return reused(run, known, context);
  const middle = middleOf(taken.parts, keep_messages);
  const told_before = known ? known.end : 0;
  // What says no more than a summary may say is left as it is.
  if (middle && tokensLeftOut(taken, middle.left_out, told_before) > tokens_max) {
    const replacement = {
      run,
      compression,
      omission: omissionAt(taken, middle, told_before),
      own: taken.messages,
      instead_of: known?.messages ?? taken.messages,
      tokens_max,
      before: known?.summary,
      within_ms: left_ms / DEADLINE_SHARE,
    };
    const shorter = await summarised(replacement, signal, context);
    if (shorter) {
      await keepForTask(run, taskSummary(shorter.summary, taken, middle), context);
      return shorter;
    }
  }
  return known && reused(run, known, context);
}

/** A request with the summary that is kept for its task. */
interface KnownRequest extends CompressedRequest, Pick<TaskSummary, 'end' | 'summary'> {
  readonly messages: readonly unknown[];
  readonly own: readonly unknown[];
}

/** `undefined` where the conversation does not begin with what was summarised. */
function withKept(kept: TaskSummary, taken: TakenApart, keep_messages: number): KnownRequest | undefined {
  const middle = middleOfSummary(kept, taken, keep_messages);
  if (!middle) return undefined;
  const { end, summary } = kept;
  const { messages: own } = taken;
  const omission = omissionAt(taken, middle);
  const messages = omission.withSummary(summary);
  const compressed = compressionTo(messages, own, omission, summary);
  return { request: omission.requestWith(messages), compressed, messages, own, end, summary };
}

function reused(run: Run, { request, compressed, messages, own }: KnownRequest, context: RunContext) {
  const characters_before = charactersOf(own);
  const characters_after = charactersOf(messages);
  const sizes = { characters_before, characters_after, messages_left_out: compressed.messages };
  context.log.info({ run: run.id, ...sizes, reused: true }, 'context compressed');
  context.metrics.compressions.inc({ outcome: 'reused' });
  return { request, compressed };
}

const tokensOf = ({ wire }: Run, request: WireRequest): number =>
  estimatedPromptTokens(wire.facts(request).promptSize());

/** In the part of what is left out that no summary has been made of. */
const tokensLeftOut = ({ messages }: TakenApart, left_out: readonly number[], told_before: number): number =>
  estimatedPromptTokens(
    promptSize(left_out.filter((index) => index >= told_before).map((index) => messages[index])),
  );
