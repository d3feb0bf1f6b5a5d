import { nudgeText } from './continuation.ts';

export interface ToolNudgeFacts {
  /** Text after the last tool, as it is sent. */
  readonly tail: string;
  /** Names of the tools that the provider ran for the answer. */
  readonly ran: readonly string[];
  readonly hasTools: boolean;
  /** Names of the calls that were cut and are to be made again. */
  readonly cutTools: readonly string[];
  /** The first wording was not followed. */
  readonly insists: boolean;
}

/**
 * The user turn that follows a partial answer. Where the provider ran tools for it, their results come before this turn,
 * and it says so: a model that takes the interruption for a failure of the tool runs it again.
 */
export function nudgeAfterTools({ tail, ran, hasTools, cutTools, insists }: ToolNudgeFacts): string {
  if (ran.length === 0) return nudgeText({ delivered: tail, hasTools, cutTools, insists });
  const names = listed(ran);
  const done = `What ${names} returned is in your answer above: do not run it again.`;
  if (tail !== '') return `${nudgeText({ delivered: tail, hasTools: false, cutTools, insists })} ${done}`;
  const again = `Your call to ${listed(cutTools)} was cut off and did not run: make it again, in full.`;
  return [
    `My connection dropped and your answer was cut off after ${names} had run.`,
    done,
    'Go straight on with your answer from there. Write nothing else: no preamble, no apology, same language, same formatting.',
    ...(cutTools.length > 0 ? [again] : []),
  ].join(' ');
}

const listed = (names: readonly string[]): string =>
  [...new Set(names)].map((name) => `\`${name}\``).join(', ');
