import type { Delta, Proof } from './delta.ts';
import { normalisedArguments, parses, proofOf, type ToolSchemas } from './tool-proof.ts';
import type { ToolCall, Transcript } from './transcript.ts';

type Close = Extract<Delta, { kind: 'tool_close' }>;

/**
 * Calls that are proven closed because something else began after them. Providers may interleave the fragments of
 * several calls, so it takes whole arguments as well.
 */
export function closedByLaterOutput(
  transcript: Transcript,
  schemas: ToolSchemas,
  tool_proof: Proof,
): readonly Close[] {
  if (tool_proof > 2) return [];
  return transcript.openCalls
    .filter((call) => proofOf(call, schemas, true) !== undefined)
    .map(({ index }) => ({ kind: 'tool_close', index, proof: 2 }));
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
