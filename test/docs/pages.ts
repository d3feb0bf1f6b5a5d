import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A documentation page; `path` is relative to the repository. */
export interface Page {
  readonly path: string;
  readonly text: string;
}

/** A fenced code block. */
export interface Snippet {
  readonly page: string;
  /** The number of its first line of code. */
  readonly line: number;
  readonly language: string;
  readonly code: string;
}

/** All pages written for people. */
export function pages(): Page[] {
  const packages = [
    'clients/*/README.md',
    'helm/*/README.md',
    'packages/*/README.md',
    'examples/*/README.md',
  ];
  const paths = globSync(['*.md', 'docs/**/*.md', ...packages], { cwd: ROOT });
  return paths.sort().map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
}

export function snippetsOf({ path, text }: Page): Snippet[] {
  const snippets: Snippet[] = [];
  const lines = text.split('\n');
  for (let at = 0; at < lines.length; at++) {
    // The indent allows for code blocks within list items.
    const [, indent = '', fence, language = ''] = /^( *)(`{3,}|~{3,})(.*)$/.exec(lines[at] ?? '') ?? [];
    if (fence === undefined) continue;
    const end = lines.indexOf(indent + fence, at + 1);
    if (end === -1) throw new Error(`${path}:${at + 1}: this block has no end`);
    const code = lines.slice(at + 1, end).map((line) => line.slice(indent.length));
    snippets.push({ page: path, line: at + 2, language, code: `${code.join('\n')}\n` });
    at = end;
  }
  return snippets;
}

/** Blanks out code blocks but keeps line numbers. */
export function withoutCode(text: string): string {
  const fences = text.replace(/^( *(?:`{3,}|~{3,})).*\n[\s\S]*?^\1$/gm, (block) =>
    block.replace(/[^\n]/g, ''),
  );
  return fences.replace(/<!--[\s\S]*?-->/g, (comment) => comment.replace(/[^\n]/g, ''));
}

/** The code of the page's first block in this language that contains `words`. */
export function snippet(page: string, language: string, words = ''): string {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const found = snippetsOf({ path: page, text }).find(
    (each) => each.language === language && each.code.includes(words),
  );
  if (!found) throw new Error(`${page} has no block of ${language} with ${words}`);
  return found.code;
}
