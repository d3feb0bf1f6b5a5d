/** Prompt tokens read from the cache, and written to it. */
export interface CachedTokens {
  readonly read: number;
  readonly written: number;
}

/** How many parts before a mark the cache looks for a known prefix. */
const LOOKBACK_PARTS = 20;
const CHARACTERS_PER_TOKEN = 4;

type Fields = Readonly<Record<string, unknown>>;

interface Part {
  readonly text: string;
  readonly isMarked: boolean;
}

/**
 * Anthropic's prompt cache: it keeps what comes before a mark, and serves it to later requests with the same prefix.
 * Different tools invalidate everything; a different tool choice or thinking setting invalidates the messages.
 * https://platform.claude.com/docs/en/build-with-claude/prompt-caching
 */
export class PromptCache {
  readonly #kept = new Set<string>();

  /** Returns `undefined` for a request without a mark. */
  read(body: unknown): CachedTokens | undefined {
    const parts = partsOf(body as Fields);
    const last = parts.findLastIndex(({ isMarked }) => isMarked);
    if (last === -1) return undefined;
    const upTo = (index: number): string => JSON.stringify(parts.slice(0, index + 1).map(({ text }) => text));
    const marks = parts.flatMap(({ isMarked }, index) => (isMarked ? [index] : []));
    const candidates = marks.flatMap((mark) =>
      Array.from({ length: LOOKBACK_PARTS }, (_, back) => mark - back).filter((index) => index >= 0),
    );
    const found = Math.max(-1, ...candidates.filter((index) => this.#kept.has(upTo(index))));
    for (const mark of marks) this.#kept.add(upTo(mark));
    const read = tokensIn(parts.slice(0, found + 1));
    return { read, written: tokensIn(parts.slice(0, last + 1)) - read };
  }
}

const tokensIn = (parts: readonly Part[]): number =>
  parts.reduce((sum, { text }) => sum + Math.ceil(text.length / CHARACTERS_PER_TOKEN), 0);

function partsOf(body: Fields): Part[] {
  const { model, tools, system, thinking, tool_choice, messages } = body;
  const settings = { thinking: thinking ?? null, tool_choice: tool_choice ?? null };
  return [
    partOf('model', { model }),
    ...listOf(tools).map((tool) => partOf('tool', tool)),
    ...blocksOf(system).map((block) => partOf('system', block)),
    partOf('settings', settings),
    ...listOf(messages).flatMap(({ role, content }) =>
      blocksOf(content).map((block) => partOf(String(role), block)),
    ),
  ];
}

function partOf(role: string, { cache_control, ...block }: Fields): Part {
  return { text: JSON.stringify([role, block]), isMarked: cache_control !== undefined };
}

const listOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? (value as Fields[]) : []);

const blocksOf = (content: unknown): readonly Fields[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content);
