// Draws the diagrams of the pages into site/diagrams/, light and dark, and removes drawings that no page uses any more.
// Needs Chromium; downloads Mermaid's npm package for its single-file bundle.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { pages, snippetsOf } from '../test/docs/pages.ts';
import { chromiumCommand, openPage } from '../test/e2e/browser/chromium.ts';
import { drawingName, SCHEMES, type Scheme } from './diagrams.ts';

const MERMAID = 'mermaid@12.3.0';
const CACHE = fileURLToPath(new URL('../node_modules/.cache/holdfast-site', import.meta.url));
const DRAWINGS = fileURLToPath(new URL('diagrams', import.meta.url));

const run = promisify(execFile);

/** The colours of the status page. */
const COLOURS: Readonly<Record<Scheme, Readonly<Record<string, string>>>> = {
  light: {
    text: '#182024',
    line: '#52606a',
    fill: '#e3f3f0',
    border: '#0b6e63',
    note: '#fdf1d8',
    noteBorder: '#7f4d00',
    page: '#ffffff',
  },
  dark: {
    text: '#e3e9ec',
    line: '#9dabb3',
    fill: '#143431',
    border: '#62d2c1',
    note: '#372a10',
    noteBorder: '#f2bf66',
    page: '#1b1b1f',
  },
};

function settings(scheme: Scheme): object {
  const { text, line, fill, border, note, noteBorder, page } = COLOURS[scheme];
  const fontFamily = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
  return {
    startOnLoad: false,
    look: 'classic',
    theme: 'base',
    // Some viewers don't draw foreign objects within an image.
    htmlLabels: false,
    fontFamily,
    deterministicIds: true,
    sequence: { mirrorActors: false },
    flowchart: { nodeSpacing: 32, rankSpacing: 36, wrappingWidth: 260 },
    themeVariables: {
      darkMode: scheme === 'dark',
      fontFamily,
      fontSize: '15px',
      background: page,
      textColor: text,
      lineColor: line,
      primaryColor: fill,
      primaryTextColor: text,
      primaryBorderColor: border,
      edgeLabelBackground: page,
      actorLineColor: line,
      signalColor: line,
      signalTextColor: text,
      noteBkgColor: note,
      noteTextColor: text,
      noteBorderColor: noteBorder,
    },
  };
}

/** The single-file bundle for browsers. */
async function mermaid(): Promise<string> {
  const directory = join(CACHE, MERMAID);
  const bundle = join(directory, 'package/dist/mermaid.min.js');
  if (!existsSync(bundle)) {
    mkdirSync(directory, { recursive: true });
    const { stdout } = await run('npm', ['pack', MERMAID, '--silent', '--pack-destination', directory]);
    await run('tar', ['--extract', '--gzip', '--file', stdout.trim()], { cwd: directory });
  }
  return readFileSync(bundle, 'utf8');
}

/** Mermaid fills its container, but an image needs a size of its own. */
const sized = (svg: string): string =>
  svg.replace(/width="100%"(.*?)viewBox="(\S+ \S+ (\S+) (\S+))"/, 'width="$3" height="$4"$1viewBox="$2"');

const chromium = await chromiumCommand();
if ('missing' in chromium) throw new Error(chromium.missing);
const sources = pages().flatMap((page) =>
  snippetsOf(page).flatMap(({ language, code }) => (language === 'mermaid' ? [code] : [])),
);

const page = openPage(chromium.command, 'about:blank');
const evaluate = async (expression: string): Promise<unknown> => {
  const answer = await page.command('Runtime.evaluate', {
    expression,
    awaitPromise: true,
    returnByValue: true,
  });
  const { result, exceptionDetails } = answer as {
    result: { value: unknown };
    exceptionDetails?: { exception?: { description?: string } };
  };
  if (exceptionDetails)
    throw new Error(exceptionDetails.exception?.description ?? 'a diagram cannot be drawn');
  return result.value;
};
const drawn = new Set<string>();
try {
  await Promise.race([page.opened, page.ended]);
  await evaluate(`${await mermaid()}; undefined`);
  for (const scheme of SCHEMES) {
    await evaluate(`mermaid.initialize(${JSON.stringify(settings(scheme))})`);
    for (const source of sources) {
      const name = drawingName(source, scheme);
      const svg = await evaluate(
        `mermaid.render('diagram', ${JSON.stringify(source)}).then(({ svg }) => svg)`,
      );
      writeFileSync(join(DRAWINGS, name), `${sized(String(svg))}\n`);
      drawn.add(name);
    }
  }
} finally {
  await page.close();
}
for (const name of readdirSync(DRAWINGS)) if (!drawn.has(name)) rmSync(join(DRAWINGS, name));
console.log(`${drawn.size} drawings of ${sources.length} diagrams`);
