import { callsOf, textOf } from '../e2e/situations.ts';
import type { Plan } from '../provider/script.ts';
import { readStream } from '../simulation/stream-reading.ts';

/** What one client received of one answer, across all its connections. */
export interface Received {
  /** Up to the last complete event. */
  readonly body: string;
  /** Empty if no replica has named the run. */
  readonly run: string;
  /** Set if the application knows that the answer is incomplete: a status, or the error while reading. */
  readonly error: string | undefined;
  /** The pauses between events that were longer than {@link SILENCE_MS}. */
  readonly silences_ms: readonly number[];
}

/** A busy machine causes shorter pauses. */
export const SILENCE_MS = 1000;

/** These lines appear only on request, and a plain client of the wire ignores them. */
const ID_LINES = /^id: .*\n/gm;
/** Limits the text of an error in a report. */
const WORDS_MAX = 300;

/**
 * `exact`: the provider's whole script, once. `honest`: a prefix of it, and the application knows that it is
 * incomplete. `wrong`: anything else.
 */
export interface Verdict {
  readonly kind: 'exact' | 'honest' | 'wrong';
  /** What the application sees: a code, or the error. */
  readonly told: string;
  readonly why: string;
}

/** Reads an answer until it ends or breaks. */
export async function receive(ask: () => Promise<Response>): Promise<Received> {
  const silences_ms: number[] = [];
  let text = '';
  let run = '';
  const got = (error: string | undefined): Received => {
    const end = text.lastIndexOf('\n\n');
    const body = end < 0 ? '' : text.slice(0, end + 2).replaceAll(ID_LINES, '');
    return { body, run, error, silences_ms };
  };
  try {
    const response = await ask();
    run = response.headers.get('holdfast-run-id') ?? '';
    if (!response.ok || !response.body) return got(`${response.status} ${await response.text()}`);
    let heard_ms = performance.now();
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      text += piece;
      if (!piece.includes('data: ')) continue;
      const silence_ms = performance.now() - heard_ms;
      heard_ms += silence_ms;
      if (silence_ms > SILENCE_MS) silences_ms.push(silence_ms);
    }
    return got(undefined);
  } catch (error) {
    return got(String(error));
  }
}

/**
 * Compares what a client received with the provider's script. `essence` reduces both texts to the part that has to
 * match.
 */
export function judge(
  { body, error: thrown }: Pick<Received, 'body' | 'error'>,
  plan: Plan,
  essence: (text: string) => string = (text) => text,
): Verdict {
  const { text: shown, toolCalls, finish, done, error = thrown, violations } = readStream(body);
  const text = essence(shown);
  const calls = callsOf(plan);
  const said = toolCalls.map(({ id, name, arguments: words }) => ({ id, name, arguments: words }));
  const told = typeof error === 'object' ? String(error.code) : String(error).slice(0, WORDS_MAX);
  const why = JSON.stringify({ told, violations, finish, done, text: difference(text, textOf(plan)) });
  const areCallsRight = said.every((call, index) => JSON.stringify(call) === JSON.stringify(calls[index]));
  if (!textOf(plan).startsWith(text) || !areCallsRight) return { kind: 'wrong', told, why };
  const isWhole = text.length === textOf(plan).length && said.length === calls.length;
  const isEnded = done && finish === (calls.length > 0 ? 'tool_calls' : 'stop');
  if (isWhole && isEnded && error === undefined && violations.length === 0)
    return { kind: 'exact', told, why };
  return { kind: error !== undefined && !done ? 'honest' : 'wrong', told, why };
}

/** Answers of thousands of characters are too long for a report. */
function difference(text: string, expected: string): string {
  let at = 0;
  while (at < expected.length && text[at] === expected[at]) at++;
  return `${text.length} of ${expected.length} characters, the same up to ${at}`;
}

/** The verdicts of one campaign, for its report. */
export class Tally {
  readonly #name: string;
  readonly #verdicts: (Verdict & { readonly question: string })[] = [];
  readonly #silences_ms: number[] = [];

  constructor(name: string) {
    this.#name = name;
  }

  add(question: string, verdict: Verdict, { silences_ms }: Pick<Received, 'silences_ms'>): void {
    this.#verdicts.push({ ...verdict, question });
    this.#silences_ms.push(...silences_ms);
  }

  of(kind: Verdict['kind']): readonly string[] {
    return this.#verdicts
      .filter((each) => each.kind === kind)
      .map(({ question, why }) => `${question}: ${why}`);
  }

  /** Returns the figures, the reasons for honest answers, and every wrong answer. */
  report(): string {
    const silences = this.#silences_ms.toSorted((one, other) => one - other);
    const at = (share: number) => Math.round(silences[Math.floor(silences.length * share)] ?? 0);
    const counts = (['exact', 'honest', 'wrong'] as const).map((kind) => `${this.of(kind).length} ${kind}`);
    const figures = `${this.#name}: ${this.#verdicts.length} answers, ${counts.join(', ')}; ${silences.length} silences, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
    const honest = this.#verdicts.filter(({ kind }) => kind === 'honest');
    const reasons = Object.entries(Object.groupBy(honest, ({ told }) => told));
    return [
      figures,
      ...reasons.map(([told, each = []]) => `  ${each.length} times ${told}`),
      ...this.of('wrong'),
    ].join('\n');
  }
}
