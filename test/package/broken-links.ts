import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { linksOf } from '../docs/links.ts';

/** The relative links in the documents of the package at `directory` that lead to none of its `files`. */
export function brokenLinks(directory: string, files: readonly string[]): string[] {
  const isThere = (path: string) => files.some((each) => each === path || each.startsWith(`${path}/`));
  return files
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) => {
      const page = { path, text: readFileSync(join(directory, path), 'utf8') };
      const targets = linksOf(page).map(({ target }) => target.replace(/#.*/, ''));
      const relative = targets.filter((target) => target !== '' && !/^[a-z]+:/.test(target));
      return relative
        .filter((target) => !isThere(posix.join(posix.dirname(path), target).replace(/\/$/, '')))
        .map((target) => `${path}: ${target}`);
    });
}
