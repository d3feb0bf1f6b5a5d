import type { Step } from './answer-step.ts';
import type { Place } from './fault.ts';

/** Finds the place of one fault in one answer. */
export class PlaceFinder {
  readonly #place: Place;
  /** The fault strikes before this count is exceeded. Infinite if the place isn't measured in characters. */
  readonly #characters_max: number;
  #characters = 0;
  #hasArguments = false;

  /** `typical_characters`: the length that percentages refer to. */
  constructor(place: Place, typical_characters: number) {
    this.#place = place;
    this.#characters_max = charactersAt(place, typical_characters);
  }

  /** Whether the fault strikes before the piece that `step` describes. Call it for each piece until it returns true. */
  isBefore(step: Step): boolean {
    if (this.#isAt(step)) return true;
    this.#characters += step.characters;
    this.#hasArguments ||= step.isArguments;
    return false;
  }

  #isAt({ characters, isContent, isFinish }: Step): boolean {
    switch (this.#place.kind) {
      case 'tool':
        return this.#hasArguments;
      case 'start':
        return isContent || isFinish;
      default:
        return isFinish || this.#characters + characters > this.#characters_max;
    }
  }
}

function charactersAt(place: Place, typical_characters: number): number {
  switch (place.kind) {
    case 'percent':
      return Math.floor((typical_characters * place.percent) / 100);
    case 'characters':
      return place.characters;
    default:
      return Number.POSITIVE_INFINITY;
  }
}
