import type { SourceFile } from './imports.ts';

/** Number of lines by kind. */
export interface Lines {
  readonly all: number;
  readonly comment: number;
  readonly blank: number;
}

/** In Biome's format, every line of a block comment starts with an asterisk, and no line of code does. */
const COMMENT = /^\s*(?:\/\/|\/\*|\*)/;

export function linesOf({ text }: Pick<SourceFile, 'text'>): Lines {
  const lines = text.split('\n').slice(0, -1);
  return {
    all: lines.length,
    comment: lines.filter((line) => COMMENT.test(line)).length,
    blank: lines.filter((line) => line.trim() === '').length,
  };
}
