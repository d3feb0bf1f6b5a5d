import type { ChunkDelta } from './deltas.ts';
import type { CompletionRequest } from './request.ts';

export interface Utterance {
  readonly deltas: readonly ChunkDelta[];
  readonly finish: string;
  /** How many of the deltas repeat the prefix. They weren't generated, so they don't count. */
  readonly echoed?: number;
}

/**
 * Ends an utterance where the request's `stop` or `max_tokens` requires, as a provider would: it sees only its own
 * text.
 */
export function limited(utterance: Utterance, request: CompletionRequest): Utterance {
  const stopped = stoppedAt(utterance, stopsOf(request));
  const limit = request.max_completion_tokens ?? request.max_tokens ?? Number.POSITIVE_INFINITY;
  if (stopped.deltas.length <= limit) return stopped;
  return { deltas: stopped.deltas.slice(0, limit), finish: 'length' };
}

const stopsOf = ({ stop }: CompletionRequest): readonly string[] =>
  typeof stop === 'string' ? [stop] : (stop ?? []);

function stoppedAt(utterance: Utterance, stops: readonly string[]): Utterance {
  const text = utterance.deltas.map((delta) => delta.content ?? '').join('');
  const places = stops.map((stop) => text.indexOf(stop)).filter((place) => place >= 0);
  if (places.length === 0) return utterance;
  return { deltas: upTo(utterance.deltas, Math.min(...places)), finish: 'stop' };
}

function upTo(deltas: readonly ChunkDelta[], length: number): ChunkDelta[] {
  const kept: ChunkDelta[] = [];
  let room = length;
  for (const delta of deltas) {
    const { content } = delta;
    if (content !== undefined && content.length > room) {
      return room > 0 ? [...kept, { content: content.slice(0, room) }] : kept;
    }
    room -= content?.length ?? 0;
    kept.push(delta);
  }
  return kept;
}
