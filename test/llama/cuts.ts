/** Short prefixes, of which it is hard to tell whether the model continued or began again. */
const FIRST = [1, 2, 3, 4, 5, 7, 9, 12, 15, 16, 17];
/** Places after white space that are taken of one text. */
const SPACES = 14;
const OTHERS = 5;

/** The characters of a text: with this model each of them comes in an event of its own. */
export const charactersOf = (text: string): string[] => [...text];

/**
 * Numbers of characters after which an answer is cut: few, after white space of any kind, and some in between. The last
 * character is not among them: an answer of which only the finish is missing has another test.
 */
export function cutsOf(text: string): number[] {
  const characters = charactersOf(text);
  const places = characters.map((_, index) => index + 1).slice(0, -1);
  const afterSpace = places.filter((place) => /\s/.test(String(characters[place - 1])));
  const others = places.filter((place) => !afterSpace.includes(place));
  const chosen = [...FIRST, ...spread(afterSpace, SPACES), ...spread(others, OTHERS)];
  return [...new Set(chosen)].filter((place) => place < characters.length).sort((one, other) => one - other);
}

/** That many of them at even intervals, or all. */
function spread(places: readonly number[], count: number): number[] {
  if (places.length <= count) return [...places];
  return Array.from(
    { length: count },
    (_, index) => places[Math.floor((index * places.length) / count)] ?? 0,
  );
}
