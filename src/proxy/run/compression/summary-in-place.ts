import type { Compression } from '../../../plans/delta.ts';
import type { WireRequest } from '../../wires/common/wire.ts';
import type { Run, RunCompression } from '../context/run.ts';
import type { RunContext } from '../context/run-context.ts';
import { charactersOf, compressionTo, type Omission } from './omission.ts';
import { Summariser, type SummaryWanted } from './summariser.ts';

/** A request in which a summary replaces part of the conversation. */
export interface CompressedRequest {
  readonly request: WireRequest;
  readonly compressed: Compression;
}

/** The same, including the new summary. */
export interface SummarisedRequest extends CompressedRequest {
  readonly summary: string;
}

interface Replacement extends Omit<SummaryWanted, 'sayings'> {
  readonly run: Run;
  readonly compression: RunCompression;
  readonly omission: Omission;
  /** The client's conversation. */
  readonly own: readonly unknown[];
  readonly instead_of: readonly unknown[];
}

/**
 * Summarises the omitted part and puts the summary in its place. `undefined` if that fails or the conversation is no
 * shorter with it; the log and the metric tell which. `signal`: aborts when the run no longer needs it.
 */
export async function summarised(
  { run, compression, omission, own, instead_of, ...wanted }: Replacement,
  signal: AbortSignal,
  context: RunContext,
): Promise<SummarisedRequest | undefined> {
  const log = context.log.child({ run: run.id });
  const summariser = new Summariser(compression, context, log);
  const summary = await summariser.summarise({ ...wanted, sayings: omission.sayings }, signal);
  if (signal.aborted) return undefined;
  const count = (outcome: 'compressed' | 'not_shorter' | 'failed') =>
    context.metrics.compressions.inc({ outcome });
  if (summary === undefined) {
    count('failed');
    return undefined;
  }
  const shorter = omission.withSummary(summary);
  const { name: upstream, model } = compression.target;
  const characters_before = charactersOf(instead_of);
  const characters_after = charactersOf(shorter);
  const sizes = { characters_before, characters_after, upstream, model };
  if (characters_after >= characters_before) {
    log.warn(sizes, 'the summary is no shorter');
    count('not_shorter');
    return undefined;
  }
  const compressed = compressionTo(shorter, own, omission, summary);
  log.info({ ...sizes, messages_left_out: compressed.messages }, 'context compressed');
  count('compressed');
  return { request: omission.requestWith(shorter), compressed, summary };
}
