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

/** A run before its first request to a provider. */
interface UnaskedRun {
  readonly run: Run;
  readonly facts: Pick<RequestFacts, 'promptSize'>;
  /** Time left until the run's deadline; infinite without one. */
  readonly left_ms: number;
  readonly signal: AbortSignal;
}

/** A summary may take one part in this many of the remaining time; the rest is for the answer. */
const DEADLINE_SHARE = 4;

/** Whether the request takes more of a context than its route allows. */
export function isTooLarge({ run, facts }: Pick<UnaskedRun, 'run' | 'facts'>): boolean {
  const { compression: { request_tokens_max } = {}, body } = run;
  return request_tokens_max !== undefined && takesMoreThan(request_tokens_max, body.length, facts.promptSize);
}

/**
 * Compresses the request of a run that {@link isTooLarge}: with the stored summary of its task if that is enough,
 * otherwise with a new one. `undefined` if the request is sent unchanged.
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
  // A part that is no longer than a summary may be isn't worth summarising.
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

/** A request with the stored summary of its task. */
interface KnownRequest extends CompressedRequest, Pick<TaskSummary, 'end' | 'summary'> {
  readonly messages: readonly unknown[];
  readonly own: readonly unknown[];
}

/** `undefined` if the conversation does not begin with the summarised part. */
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

/** Tokens in the omitted part that no summary covers yet. */
const tokensLeftOut = ({ messages }: TakenApart, left_out: readonly number[], told_before: number): number =>
  estimatedPromptTokens(
    promptSize(left_out.filter((index) => index >= told_before).map((index) => messages[index])),
  );
