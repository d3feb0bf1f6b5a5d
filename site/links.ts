// Converts links from GitHub's form, relative to a file of the repository, to links of the site.
import { existsSync, statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/**
 * The target of a link: a page; a `file`, which is published unchanged; `nothing` if the site doesn't have it; another
 * site or place.
 */
export type Destination =
  | { readonly kind: 'page'; readonly href: string }
  | { readonly kind: 'file'; readonly file: string }
  | { readonly kind: 'nothing' | 'elsewhere' };

/** The URL of the page for a file of the repository: `docs/recovery.md#words` becomes `/docs/recovery#words`. */
export const pageLink = (path: string): string => `/${path.replace(/\.md(?=#|$)/, '')}`;

export function destination(root: string, page: string, href: string): Destination {
  if (/^([a-z]+:|#|\/)/.test(href)) return { kind: 'elsewhere' };
  const [path = ''] = href.split('#');
  const file = posix.join(dirname(page), path).replace(/\/$/, '');
  if (file.endsWith('.md')) return { kind: 'page', href };
  if (!existsSync(join(root, file))) throw new Error(`${page}: there is no ${file}`);
  if (!statSync(join(root, file)).isDirectory()) return { kind: 'file', file };
  return existsSync(join(root, file, 'README.md'))
    ? { kind: 'page', href: href.replace(/\/?(?=#|$)/, '/README.md') }
    : { kind: 'nothing' };
}

/** The anchor that GitHub gives a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Mark}\p{Number}\p{Connector_Punctuation} -]/gu, '')
    .replaceAll(' ', '-');
}
