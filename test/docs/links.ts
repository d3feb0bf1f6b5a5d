import { type Page, withoutCode } from './pages.ts';

export interface Link {
  readonly target: string;
  readonly line: number;
}

const INLINE_CODE = /(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g;
const INLINE = /!?\[(?:[^[\]]|\[[^[\]]*\])*\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g;
const REFERENCE = /^\s{0,3}\[[^\]]+\]:\s+<?(\S+?)>?$/gm;
const BARE = /<(https?:[^>\s]+)>/g;

/** Links and images, in every Markdown notation. */
export function linksOf({ text }: Page): Link[] {
  // Keep one character for inline code within a link, and keep its newlines, so that line numbers stay right.
  const prose = withoutCode(text).replace(
    INLINE_CODE,
    (code) => `\`${code.replace(/[^\n]/g, 'x').slice(2)}\``,
  );
  return [INLINE, REFERENCE, BARE].flatMap((pattern) =>
    [...prose.matchAll(pattern)].map(({ 1: target = '', index }) => ({
      target,
      line: prose.slice(0, index).split('\n').length,
    })),
  );
}

/** The anchors that links can point to: headings, named as GitHub names them, and anchors set by hand. */
export function anchorsOf({ text }: Page): Set<string> {
  const anchors = new Set<string>();
  const prose = withoutCode(text);
  for (const { 1: heading = '' } of prose.matchAll(/^#{1,6} +(.+?) *#*$/gm)) {
    const slug = slugOf(heading);
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  for (const { 1: id = '' } of prose.matchAll(/<a (?:id|name)="([^"]+)"/g)) anchors.add(id);
  return anchors;
}

function slugOf(heading: string): string {
  const shown = heading.replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/<[^>]+>/g, '');
  return shown
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Mark}\p{Number}\p{Connector_Punctuation} -]/gu, '')
    .replaceAll(' ', '-');
}
