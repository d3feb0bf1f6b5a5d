import { type AnswerPart, type Delta, partOf, type Segment } from '../plans/delta.ts';

/** A segment and what a journal has of it. */
export interface FoldedSegment extends Segment {
  /** Ordinals of the first and the last event that show something of it. */
  readonly from: number;
  readonly to: number;
  /** What was shown of it, in UTF-16 units: of calls, cut ones too, their arguments. */
  readonly characters: Readonly<Record<AnswerPart, number>>;
  /** The answer was begun anew after it. */
  readonly discarded: boolean;
}

interface OpenSegment extends Segment {
  readonly from: number;
  to: number;
  readonly characters: Record<AnswerPart, number>;
  discarded: boolean;
}

/** Puts together who said what of an answer. What comes before the first segment is nobody's. */
export class SegmentFold {
  readonly #segments: OpenSegment[] = [];

  get folded(): readonly FoldedSegment[] {
    return this.#segments;
  }

  /** `seq`: the ordinal of the event that says `delta`. */
  add(delta: Delta, seq: number): void {
    if (delta.kind === 'segment') {
      this.#begin(delta, seq);
      return;
    }
    const segment = this.#segments.at(-1);
    const part = partOf(delta);
    if (!segment || !part) return;
    segment.to = seq;
    if ('text' in delta) segment.characters[part] += delta.text.length;
  }

  #begin({ kind: _, ...segment }: Segment & { readonly kind: 'segment' }, seq: number): void {
    if (segment.mode === 'restart') for (const before of this.#segments) before.discarded = true;
    const characters = { text: 0, refusal: 0, reasoning: 0, calls: 0 };
    this.#segments.push({ ...segment, from: seq, to: seq, characters, discarded: false });
  }
}
