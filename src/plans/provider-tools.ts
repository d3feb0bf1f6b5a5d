import type { Delta } from './delta.ts';

/** A tool that the provider ran, or runs: it must not run again. */
export interface ProviderTool {
  readonly id: string;
  readonly name: string;
  /** `running`: its result has not come, so it is not known whether it has had its effect. */
  readonly state: 'running' | 'settled';
  /** UTF-16 units of the answer's text that came before it. */
  readonly offset: number;
  /** The configured name of the upstream whose provider ran it, where that is known. */
  readonly upstream?: string;
  /** Its use and its result as the provider takes them back; empty while it runs. */
  readonly items: readonly object[];
}

type Start = Extract<Delta, { kind: 'provider_tool_start' }>;
type End = Extract<Delta, { kind: 'provider_tool_end' }>;

export const isOfProviderTool = ({ kind }: Delta): boolean =>
  kind === 'provider_tool_start' || kind === 'provider_tool_end';

/**
 * Adds what a delta says to the tools that the provider ran for one answer, which are in the order in which they began. A
 * result whose use was never announced is one all the same.
 */
export function foldProviderTool(
  tools: ProviderTool[],
  delta: Start | End,
  offset: number,
  upstream: string | undefined,
): void {
  const { id, name } = delta;
  const ended = delta.kind === 'provider_tool_end' && ({ state: 'settled', items: delta.items } as const);
  const place = ended ? tools.findLastIndex((tool) => tool.id === id && tool.state === 'running') : -1;
  const begun = tools[place] ?? { id, name, offset, ...(upstream !== undefined && { upstream }) };
  tools.splice(place === -1 ? tools.length : place, 1, { state: 'running', items: [], ...begun, ...ended });
}

/** An answer as it is given back to its provider in parts, because tools ran in the middle of it. */
export interface AnswerGivenBack {
  /** In order: text, and what the provider takes back of a tool. */
  readonly before: readonly (string | readonly object[])[];
  /** The text after the last of the tools, which the rest continues. */
  readonly tail: string;
}

export function givenBack(text: string, tools: readonly ProviderTool[]): AnswerGivenBack {
  let from = 0;
  const before = tools.flatMap(({ offset, items }) => {
    const said = text.slice(from, offset);
    from = offset;
    return said.trim() === '' ? [items] : [said, items];
  });
  return { before, tail: text.slice(from) };
}
