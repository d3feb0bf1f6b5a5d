import type { Delta, Proof } from './delta.ts';
import { normalisedArguments, parses, proofOf, type ToolSchemas } from './tool-proof.ts';
import type { ToolCall, Transcript } from './transcript.ts';

const NONE: readonly Close[] = [];

type Close = Extract<Delta, { kind: 'tool_close' }>;

/**
 * Calls that are proven closed because something else begins after them, in the order in which they began: a call
 * waits for those before it. Providers may interleave the fragments of several calls, so it takes whole arguments
 * as well.
 */
export function closedBefore(
  next: Delta,
  transcript: Transcript,
  schemas: ToolSchemas,
  tool_proof: Proof,
): readonly Close[] {
  const followed = next.kind === 'text' ? 'text' : next.kind === 'tool_start' ? 'call' : undefined;
  const { openCalls } = transcript;
  if (!followed || openCalls.length === 0 || tool_proof > 2) return NONE;
  const unproven = openCalls.findIndex((call) => {
    // All calls may be started before the arguments of the first one come, even if those are only `{}`.
    const mayBegin = followed === 'call' && call.arguments.trim() === '';
    return mayBegin || proofOf({ ...call, followed }, schemas) === undefined;
  });
  const proven = unproven === -1 ? openCalls : openCalls.slice(0, unproven);
  return proven.map(({ index }) => ({ kind: 'tool_close', index, proof: 2 }));
}

/**
 * The finish reason closes every call, but it cannot make half a document whole: `broken` are the calls whose
 * arguments do not parse.
 */
export function closedByFinish(transcript: Transcript): {
  readonly closed: readonly Close[];
  readonly broken: readonly ToolCall[];
} {
  const broken = transcript.openCalls.filter((call) => !parses(normalisedArguments(call.arguments)));
  const closed = transcript.openCalls
    .filter((call) => !broken.includes(call))
    .map(({ index }): Close => ({ kind: 'tool_close', index, proof: 3 }));
  return { closed, broken };
}
