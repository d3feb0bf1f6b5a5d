// Records a real run of the demo's first act as docs/demo.svg, with the original text and timing.
// Viewers without animation show the last frame.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const COMMAND = '$ npm run demo -- 1';
/** How long the last frame stays before the animation restarts. */
const REST_S = 8;

const FONT_PX = 14;
const COLUMN_PX = 8.43;
const ROW_PX = 20;
const MARGIN_PX = 18;
const COLOURS = { text: '#c9d1d9', 31: '#ff7b72', 32: '#3fb950', 33: '#d29922', 36: '#56d4dd' };
const BACKGROUND = '#0d1117';

/** The output of the demo in the chunks in which it arrived: `{at_s, text}`. */
async function record() {
  const demo = spawn(join(root, 'node_modules/.bin/node'), ['demo/demo.ts', '1'], {
    cwd: root,
    env: { PATH: process.env.PATH, FORCE_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const pieces = [];
  const exited = once(demo, 'exit');
  let began_ms;
  for await (const text of demo.stdout.setEncoding('utf8')) {
    // The recording skips the time in which the processes start.
    began_ms ??= performance.now();
    pieces.push({ at_s: (performance.now() - began_ms) / 1000 + 0.5, text });
  }
  const [status] = await exited;
  if (status !== 0) throw new Error(`the demo exited with status ${status}`);
  return pieces;
}

const ESCAPE = '\u001b';
const STYLE = new RegExp(`^${ESCAPE}\\[(\\d+)m$`);
const PARTS = new RegExp(`(${ESCAPE}\\[\\d+m|\n)`);

/** Places the chunks on rows and columns: `{at_s, row, column, text, style}`. */
function layOut(pieces) {
  const spans = [];
  let row = 0;
  let column = 0;
  let style = {};
  for (const { at_s, text } of pieces) {
    for (const part of text.split(PARTS)) {
      const code = STYLE.exec(part)?.[1];
      if (code !== undefined) style = styled(style, Number(code));
      else if (part === '\n') {
        row++;
        column = 0;
      } else if (part !== '') {
        // Viewers collapse runs of blanks, so the words between them are positioned separately.
        for (const { 0: words, index } of part.matchAll(/\S+(?: \S+)*/g)) {
          spans.push({ at_s, row, column: column + index, text: words, style });
        }
        column += part.length;
      }
    }
  }
  return spans;
}

function styled(style, code) {
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  return { ...style, colour: COLOURS[code] };
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function element({ at_s, row, column, text, style }) {
  const attributes = [
    `x="${(MARGIN_PX + column * COLUMN_PX).toFixed(1)}" y="${MARGIN_PX + (row + 1) * ROW_PX - 6}"`,
    // The width of characters varies with the font, but columns must line up.
    text.length > 1 && `textLength="${(text.length * COLUMN_PX).toFixed(1)}"`,
    style.colour && `fill="${style.colour}"`,
    style.bold && 'font-weight="bold"',
    style.dim && 'opacity="0.6"',
  ];
  const hidden = `<set attributeName="visibility" to="hidden" begin="loop.begin" dur="${at_s.toFixed(2)}s"/>`;
  return `<text ${attributes.filter(Boolean).join(' ')}>${escaped(text)}${at_s > 0 ? hidden : ''}</text>`;
}

function render(spans) {
  const width =
    Math.ceil(Math.max(...spans.map((span) => span.column + span.text.length)) * COLUMN_PX) + 2 * MARGIN_PX;
  const height = (Math.max(...spans.map((span) => span.row)) + 1) * ROW_PX + 2 * MARGIN_PX;
  const duration_s = Math.max(...spans.map((span) => span.at_s)) + REST_S;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    '<title>An answer that is cut three times reaches the client whole</title>',
    '<!-- Recorded by scripts/record-demo.mjs. -->',
    `<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"><animate id="loop" attributeName="rx" to="8" begin="0s;loop.end" dur="${duration_s.toFixed(2)}s"/></rect>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${FONT_PX}" fill="${COLOURS.text}">`,
    ...spans.map(element),
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

const prompt = { at_s: 0, text: `${COMMAND}\n` };
writeFileSync(join(root, 'docs/demo.svg'), render(layOut([prompt, ...(await record())])));
