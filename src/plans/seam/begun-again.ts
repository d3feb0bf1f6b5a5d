/** As long a common beginning with the answer's own is no coincidence … */
const CHARACTERS = 48;
/** … in an answer shorter than this, already half as much. */
const SHORT_ANSWER_CHARACTERS = 200;
/** So much of it is reason enough to ask again, as long as there is a better way to ask. */
const SUSPICIOUS_CHARACTERS = 12;

/** Whether a continuation with so many characters in common with the beginning of the answer begins it again. */
export function beginsAgain(common_characters: number, delivered: string, suspicious: boolean): boolean {
  const certain = delivered.length < SHORT_ANSWER_CHARACTERS ? CHARACTERS / 2 : CHARACTERS;
  return common_characters >= (suspicious ? SUSPICIOUS_CHARACTERS : certain);
}
