// `npm run shape` measures the shape of the source and prints every figure beside its target. With --list it also
// prints the details behind the figures; with --check it exits with 1 if a target is missed.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { spread } from '../../bench/statistics.ts';
import { circlesOf, folderPairs } from './circles.ts';
import { importsOf } from './imports.ts';
import { filesBeyond, filesOf, liveFigures, total } from './live-figures.ts';
import { orderViolations } from './order.ts';
import { circleText, figureTable, listing, surroundings } from './report.ts';
import { linesOf } from './sizes.ts';
import { sourceFiles } from './source-files.ts';
import { type Figure, isMet, TARGETS } from './targets.ts';

const { check, list } = parseArgs({
  options: { check: { type: 'boolean', default: false }, list: { type: 'boolean', default: false } },
}).values;

const files = sourceFiles(fileURLToPath(new URL('../..', import.meta.url)));
const lengths = files.map((file) => linesOf(file).all);
const imports = importsOf(files);
const pairs = folderPairs(imports);
const circles = circlesOf(pairs);
const violations = orderViolations(imports);
const live = await liveFigures();

const measured: Readonly<Record<Figure, number>> = {
  event_files: filesOf(live.event).size,
  event_calls: total(live.event),
  reset_files: filesBeyond(live.prefill.after, live.event).length,
  run_objects: Object.values(live.run).reduce((sum, count) => sum + count, 0),
  files: files.length,
  lines: lengths.reduce((sum, length) => sum + length, 0),
  median_lines: spread(lengths).median,
  circles: circles.length,
  order_violations: violations.length,
};

console.log(figureTable(measured));
console.log(surroundings(live, files));
for (const circle of circles) console.log(circleText(circle));
for (const { from, to } of violations) console.log(`against the order: ${from} → ${to}`);
if (list) console.log(listing({ live, files, imports, pairs }));

const isMissed = (figure: Figure) => !isMet(TARGETS[figure], measured[figure]);
if (check && Object.keys(measured).some((figure) => isMissed(figure as Figure))) process.exitCode = 1;
