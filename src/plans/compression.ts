/** One message of a conversation, or one item where a wire has those, as far as it tells what may be left out. */
export interface Part {
  /** `pinned`: never left out, as instructions. `user`, `model`: who says it. `result`: of calls, and nothing else. */
  readonly kind: 'pinned' | 'user' | 'model' | 'result';
  /** Ids of the calls that it makes. */
  readonly calls: readonly string[];
  /** Ids of the calls that it has results of. */
  readonly results: readonly string[];
}

/** What of a conversation is left out for a summary, by position. */
export interface Middle {
  /** In order, at least one. */
  readonly left_out: readonly number[];
  /** The last message of the user, where only that is left before the end: the summary is added to it. */
  readonly joined_to: number | undefined;
}

/**
 * The part of a conversation that a summary may take the place of: everything but instructions, the last message of the
 * user, and the end. `undefined` where there is none.
 *
 * The end has at least `keep` messages. No call is parted from its result by it, nor what the model said in one turn. If
 * possible it begins with such a turn: roles then alternate after a summary that is spoken as the user.
 */
export function middleOf(parts: readonly Part[], keep: number): Middle | undefined {
  const last = parts.findLastIndex(({ kind }) => kind === 'user');
  // One that has results of calls in it can only stay together with the calls.
  const task = parts[last]?.results.length === 0 ? last : undefined;
  const end_max = Math.min(parts.length - keep, task === undefined && last >= 0 ? last : parts.length);
  const leftOutBefore = (end: number) =>
    [...parts.keys()].filter((index) => index < end && index !== task && parts[index]?.kind !== 'pinned');

  const isWhole = wholePlaces(parts);
  const endBefore = (fits: (place: number) => boolean): number => {
    for (let place = end_max; place > 0; place--) if (fits(place)) return place;
    return 0;
  };
  const ends = [
    endBefore((place) => isWhole(place) && parts[place]?.kind === 'model'),
    endBefore((place) => isWhole(place)),
  ];
  const end = ends.find((place) => leftOutBefore(place).length > 0);
  if (end === undefined) return undefined;
  return { left_out: leftOutBefore(end), joined_to: task !== undefined && task < end ? task : undefined };
}

/** Tells whether nothing that belongs together is torn apart where the end begins at a place. */
function wholePlaces(parts: readonly Part[]): (place: number) => boolean {
  const made = new Map<string, number>();
  /** Of each part: where the first of the calls was made that it has results of, if that is before it. */
  const calls = parts.map((part, index) => {
    for (const id of part.calls) made.set(id, index);
    // Some providers use an id again: a result is that of the last call before it.
    return part.results.reduce((first, id) => Math.min(first, made.get(id) ?? index), index);
  });
  const whole: boolean[] = [];
  let needed = parts.length;
  for (const [place, call] of [...calls.entries()].reverse()) {
    needed = Math.min(needed, call);
    const isWithinTurn = parts[place - 1]?.kind === 'model' && parts[place]?.kind === 'model';
    whole[place] = needed >= place && !isWithinTurn;
  }
  return (place) => whole[place] === true;
}
