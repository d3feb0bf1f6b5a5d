import { isObject } from '../../../lib/json.ts';
import type { ChatChunk } from './chat-chunk.ts';

const TEXT_FIELD = /"content"\s*:\s*("(?:[^"\\]|\\.)*")/;
const PROBE = 'probe';

/**
 * The chunks of an answer differ in their text alone, so what surrounds it is parsed once and from then on compared.
 * To parse every chunk costs 1.5 µs of CPU and most of the garbage that an event makes.
 */
export class ChunkTemplate {
  /** The chunk that was parsed: all that fit are the same but for `content`. */
  readonly chunk: ChatChunk;
  readonly #before: string;
  readonly #after: string;

  private constructor(chunk: ChatChunk, before: string, after: string) {
    this.chunk = chunk;
    this.#before = before;
    this.#after = after;
  }

  /** `chunk` is what `data` parses to, and has text. None if its place in `data` is not certain. */
  static of(data: string, chunk: ChatChunk): ChunkTemplate | undefined {
    const match = TEXT_FIELD.exec(data);
    if (!match?.[1]) return undefined;
    const end = match.index + match[0].length;
    const before = data.slice(0, end - match[1].length);
    const after = data.slice(end);
    // Other fields may have that name as well, and the last one of a name counts: only another text proves it.
    const probe = JSON.parse(`${before}"${PROBE}"${after}`) as ChatChunk;
    return textOf(probe) === PROBE ? new ChunkTemplate(chunk, before, after) : undefined;
  }

  /** The text of an event that fits, else undefined. */
  read(data: string): string | undefined {
    const start = this.#before.length;
    const end = data.length - this.#after.length;
    // Comparing slices: `startsWith` and `endsWith` take longer than the parsing that is to be saved.
    if (data.slice(0, start) !== this.#before || data.slice(end) !== this.#after) return undefined;
    try {
      // One JSON string in the place of another: whatever else parses there is no text, or more than it.
      const text: unknown = JSON.parse(data.slice(start, end));
      return typeof text === 'string' ? text : undefined;
    } catch {
      return undefined;
    }
  }
}

function textOf({ choices }: ChatChunk): unknown {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) && isObject(choice.delta) ? choice.delta.content : undefined;
}
