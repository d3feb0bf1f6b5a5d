import { ANSWER_OPENING } from './chat-template.ts';
import { END_OF_RECITAL, RECITAL_DISTANCE } from './reciting-model.ts';

/** The user's message that the model answers with `text`. */
export const chatPrompt = (text: string): string => sourceOf(text, Buffer.byteLength(ANSWER_OPENING));

/** The prompt that the model completes with `text`. */
export const completionPrompt = (text: string): string => sourceOf(text, 0);

/** The text and its end mark, padded so that the answer begins at the distance at which the model recites. */
function sourceOf(text: string, between_bytes: number): string {
  const source = `${text}${END_OF_RECITAL}`;
  const room_bytes = RECITAL_DISTANCE - between_bytes - Buffer.byteLength(source);
  if (room_bytes < 0) throw new Error(`the text is ${-room_bytes} bytes too long to be recited`);
  return source + '.'.repeat(room_bytes);
}
