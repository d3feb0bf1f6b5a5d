/** Prefixes so short that it is hard to see whether the model continued or started over. */
const FIRST = [1, 2, 3, 4, 5, 7, 9, 12, 15, 16, 17];
/** The number of cuts after white space in one text. */
const SPACES = 14;
const OTHERS = 5;

/** The characters of a text. With this model, each one arrives in its own event. */
export const charactersOf = (text: string): string[] => [...text];

/**
 * Numbers of characters after which to cut an answer: short ones, some after white space of any kind, and some in
 * between. The last character is left out because a separate test covers an answer that lacks only its finish.
 */
export function cutsOf(text: string): number[] {
  const characters = charactersOf(text);
  const places = characters.map((_, index) => index + 1).slice(0, -1);
  const afterSpace = places.filter((place) => /\s/.test(String(characters[place - 1])));
  const others = places.filter((place) => !afterSpace.includes(place));
  const chosen = [...FIRST, ...spread(afterSpace, SPACES), ...spread(others, OTHERS)];
  return [...new Set(chosen)].filter((place) => place < characters.length).sort((one, other) => one - other);
}

/** Picks `count` places at even intervals, or all. */
function spread(places: readonly number[], count: number): number[] {
  if (places.length <= count) return [...places];
  return Array.from(
    { length: count },
    (_, index) => places[Math.floor((index * places.length) / count)] ?? 0,
  );
}
