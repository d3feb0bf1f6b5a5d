import type { Wire } from '../cases.ts';

/** A turn of the conversation that a request brings, as text. */
interface Turn {
  readonly role: string;
  readonly text: string;
}

/** How much of the answer the model has said already, by the request, and with which words of it the reply is to begin. */
export interface Situation {
  /** Characters of the answer's text; 0 is an original request, or one that the model takes for an original one. */
  readonly said: number;
  /** The assistant's own words, if the request ends with them. */
  readonly prefill: string | undefined;
}

const QUOTED = /"(?:[^"\\\n]|\\.)+"|`[^`\n]+`|«[^»\n]+»|“[^”\n]+”/g;

/**
 * A model that is given the beginning of its answer continues right behind it. If a user turn follows that asks for the
 * rest, it does as that turn says: it begins with the words that are quoted there if the beginning ends with them. What it
 * never said is no beginning: the answer is given from its start.
 */
export function situationOf(wire: Wire, body: unknown, text: string): Situation {
  const turns = turnsOf(wire, body);
  const last = turns.at(-1);
  if (last?.role === 'assistant') return { said: saidIn(last.text, text), prefill: last.text };
  const before = turns.at(-2);
  const said = before?.role === 'assistant' ? saidIn(before.text, text) : 0;
  const beginning = text.slice(0, said);
  const anchor = quotedIn(last?.text ?? '').find((words) => beginning.trimEnd().endsWith(words.trimEnd()));
  return { said: anchor === undefined ? said : beginning.lastIndexOf(anchor.trimEnd()), prefill: undefined };
}

const saidIn = (beginning: string, text: string): number =>
  text.startsWith(beginning) ? beginning.length : 0;

function quotedIn(text: string): string[] {
  return (text.match(QUOTED) ?? []).map((quoted) => {
    try {
      return String(JSON.parse(quoted));
    } catch {
      return quoted.slice(1, -1);
    }
  });
}

function turnsOf(wire: Wire, body: unknown): Turn[] {
  const turns = fieldOf(body, wire === 'responses' ? 'input' : 'messages');
  if (!Array.isArray(turns)) return [];
  return turns.map((turn) => ({
    role: String(fieldOf(turn, 'role')),
    text: textIn(fieldOf(turn, 'content')),
  }));
}

function textIn(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => fieldOf(part, 'text') ?? '').join('');
}

export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
