// npm runs this before packing, and with --restore afterwards. In Markdown files, it makes links to files outside the
// package lead to the repository. Meanwhile .originals/ holds the originals, from which the next run undoes an
// interrupted one.
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const originals = join(root, '.originals');
const { files, repository, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/** npm always packs the last three. */
const packed = globSync([...files, 'README.md', 'LICENSE', 'package.json'], { cwd: root });
const isPacked = (path) => packed.some((each) => each === path || each.startsWith(`${path}/`));

/** In Markdown: code blocks, which stay unchanged, or the target of a link or image. */
const BLOCK_OR_TARGET = /^( *`{3,}).*\n[\s\S]*?^\1$|\]\((?![a-z]+:|#)([^)\s#]+)/gm;
const IMAGE = /\.(?:png|svg)$/;

function withPackageLinks(page, text) {
  const address = repository.url.replace(/^git\+|\.git$/g, '');
  return text.replace(BLOCK_OR_TARGET, (whole, _fence, target) => {
    if (target === undefined) return whole;
    const path = posix.join(posix.dirname(page), target).replace(/\/$/, '');
    const form = IMAGE.test(path) ? 'raw' : 'blob';
    return isPacked(path) ? whole : `](${address}/${form}/v${version}/${path}`;
  });
}

function restore() {
  if (!existsSync(originals)) return;
  cpSync(originals, root, { recursive: true });
  rmSync(originals, { recursive: true });
}

restore();
if (!process.argv.includes('--restore'))
  for (const page of packed.filter((path) => path.endsWith('.md'))) {
    const text = readFileSync(join(root, page), 'utf8');
    const original = join(originals, page);
    mkdirSync(dirname(original), { recursive: true });
    writeFileSync(original, text);
    writeFileSync(join(root, page), withPackageLinks(page, text));
  }
