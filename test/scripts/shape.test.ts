import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { circlesOf, folderPairs } from '../../scripts/shape/circles.ts';
import { type Import, importerCounts, importsOf } from '../../scripts/shape/imports.ts';
import { linterOverrides, orderViolations } from '../../scripts/shape/order.ts';
import { linesOf } from '../../scripts/shape/sizes.ts';
import { sourceFiles } from '../../scripts/shape/source-files.ts';
import { isMet, rangeText } from '../../scripts/shape/targets.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The given file, and empty files that import nothing. */
const beside = (path: string, text: string, ...others: string[]) => [
  { path, text },
  ...others.map((other) => ({ path: other, text: '' })),
];

describe('imports', () => {
  it('include types, exports, statements of several lines and modules loaded on demand', () => {
    const text = [
      "import { one } from './one.ts';",
      "import type { Two } from '../two.ts';",
      'import {\n  three,\n  type Three,\n} from "fastify";',
      "import {\n  four,\n  type Four,\n} from '../b/four.ts';",
      "export * from './five.ts';",
      "export type { Six } from './six.ts';",
      "import './seven.ts';",
      "export const load = () => import('./eight.ts');",
      "export type Nine = import('./nine.ts').Nine;",
      "import { readFileSync } from 'node:fs';",
    ].join('\n');
    const others = ['src/two.ts', 'src/b/four.ts'].concat(
      ['one', 'five', 'six', 'seven', 'eight', 'nine'].map((name) => `src/a/${name}.ts`),
    );
    const imports = importsOf(beside('src/a/file.ts', text, ...others));
    expect(imports.map(({ from }) => from)).toEqual(others.map(() => 'src/a/file.ts'));
    expect(new Set(imports.map(({ to }) => to))).toEqual(new Set(others));
    expect(imports).toHaveLength(others.length);
  });

  it('count once for each pair of files', () => {
    const text = "import type { A } from './a.ts';\nimport { a } from './a.ts';\n";
    const imports = importsOf(beside('src/b.ts', text, 'src/a.ts'));
    expect(imports).toEqual([{ from: 'src/b.ts', to: 'src/a.ts' }]);
    expect(importerCounts(imports)).toEqual(new Map([['src/a.ts', 1]]));
  });

  it('must lead to a source file', () => {
    expect(() => importsOf(beside('src/b.ts', "import './a.ts';\n"))).toThrow('src/b.ts imports ./a.ts');
  });

  it('are not read from comments', () => {
    expect(importsOf(beside('src/b.ts', " * import { a } from './a.ts';\n"))).toEqual([]);
  });
});

/** Parses imports written as `a/file > b/file`. */
const graph = (...edges: string[]): Import[] =>
  edges.map((edge) => {
    const [from = '', to = ''] = edge.split(' > ');
    return { from: `src/${from}.ts`, to: `src/${to}.ts` };
  });

describe('circles', () => {
  const circlesIn = (...edges: string[]) => circlesOf(folderPairs(graph(...edges)));

  it('join folders that reach each other, by whichever files', () => {
    const [circle, ...more] = circlesIn(
      'a/one > b/two',
      'b/three > c/four',
      'c/five > a/six',
      'd/it > a/one',
    );
    expect(more).toEqual([]);
    expect(circle?.folders.toSorted()).toEqual(['src/a', 'src/b', 'src/c']);
    expect(circle?.pairs.map(({ from, to }) => `${from} > ${to}`)).toEqual([
      'src/a > src/b',
      'src/b > src/c',
      'src/c > src/a',
    ]);
  });

  it('are apart where imports lead from one to the other only', () => {
    const circles = circlesIn('a/x > b/x', 'b/x > a/x', 'b/x > c/x', 'c/x > d/x', 'd/x > c/x');
    expect(circles.map(({ folders }) => folders.toSorted())).toEqual([
      ['src/a', 'src/b'],
      ['src/c', 'src/d'],
    ]);
  });

  it('list the pairs with the fewest imports first', () => {
    const [circle] = circlesIn('a/x > b/x', 'a/y > b/x', 'b/x > a/x');
    expect(circle?.pairs.map(({ imports }) => imports.length)).toEqual([1, 2]);
  });

  it('may consist of a folder and one inside it', () => {
    expect(circlesIn('a/x > a/b/x', 'a/b/x > a/y')).toHaveLength(1);
  });

  it('are none in the source', () => {
    const circles = circlesOf(folderPairs(importsOf(sourceFiles(ROOT))));
    const pairs = circles.flatMap((circle) => circle.pairs);
    expect(pairs.map(({ from, to, imports }) => `${from} → ${to}: ${imports.length}`)).toEqual([]);
  });

  it('are none where imports stay in a folder or point one way', () => {
    expect(circlesIn('a/x > a/y', 'a/y > a/x', 'a/x > b/x', 'b/x > c/x', 'a/x > c/x')).toEqual([]);
  });
});

describe('the order of the layers', () => {
  const layers = [['src/top'], ['src/left', 'src/right'], ['src/bottom']];
  const violationsIn = (...edges: string[]) => orderViolations(graph(...edges), layers);

  it('allows imports of the own layer, of later ones and of folders that are not listed', () => {
    const edges = ['top/x > bottom/x', 'top/x > left/x', 'left/x > right/x', 'left/x > left/a/x'];
    expect(violationsIn(...edges, 'bottom/x > other/x', 'other/x > top/x')).toEqual([]);
  });

  it('forbids imports of earlier layers, from folders inside a layer as well', () => {
    const edges = ['bottom/x > top/x', 'right/a/x > top/b/x', 'bottom/x > left/x'];
    expect(violationsIn(...edges)).toEqual(graph(...edges));
  });

  it('distinguishes folders whose names begin alike', () => {
    expect(violationsIn('bottom/x > topmost/x', 'bottoms/x > top/x')).toEqual([]);
  });

  it('holds in the source', () => {
    expect(orderViolations(importsOf(sourceFiles(ROOT)))).toEqual([]);
  });

  it('is what the linter enforces', () => {
    const { overrides } = JSON.parse(readFileSync(`${ROOT}/biome.json`, 'utf8')) as { overrides: unknown };
    expect(overrides).toEqual(linterOverrides());
  });
});

it('lines are code, comment or blank', () => {
  const text = '/**\n * A comment.\n */\n\nexport const a = 1; // one\n// b\n';
  expect(linesOf({ text })).toEqual({ all: 6, comment: 4, blank: 1 });
});

it('a target is a range with its bounds', () => {
  const target = { name: 'median', min: 60, max: 120 };
  expect([59, 60, 120, 121].map((measured) => isMet(target, measured))).toEqual([false, true, true, false]);
  expect(rangeText(target)).toBe('60–120');
  expect(rangeText({ name: 'files', max: 18 })).toBe('≤ 18');
});
