import type { SourceFile } from './imports.ts';

/** How many lines are what. */
export interface Lines {
  readonly all: number;
  readonly comment: number;
  readonly blank: number;
}

/** Biome's format begins every line of a block comment with an asterisk, and no line of code with one. */
const COMMENT = /^\s*(?:\/\/|\/\*|\*)/;

export function linesOf({ text }: Pick<SourceFile, 'text'>): Lines {
  const lines = text.split('\n').slice(0, -1);
  return {
    all: lines.length,
    comment: lines.filter((line) => COMMENT.test(line)).length,
    blank: lines.filter((line) => line.trim() === '').length,
  };
}
