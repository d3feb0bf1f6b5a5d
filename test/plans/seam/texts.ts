import fc from 'fast-check';

/** Answers of one kind. `repeats`: such text repeats itself by nature, so a client may see something twice. */
export interface TextKind {
  readonly repeats: boolean;
  readonly texts: fc.Arbitrary<string>;
}

const WORDS = fc.constantFrom(
  ...'amber bridge candle desert engine forest garden harbour island jungle kettle lantern meadow needle orchid'.split(
    ' ',
  ),
);
const lines = (line: fc.Arbitrary<string>, minLength = 3, maxLength = 14) =>
  fc.array(line, { minLength, maxLength });
const times = (text: fc.Arbitrary<string>, least = 2, most = 12) =>
  fc.tuple(text, fc.integer({ min: least, max: most })).map(([each, count]) => each.repeat(count));
const numbered = (line: fc.Arbitrary<(row: number) => string>) =>
  fc
    .tuple(line, fc.integer({ min: 3, max: 14 }))
    .map(([row, count]) => Array.from({ length: count }, (_, index) => row(index)).join(''));

/** Every word occurs once. */
const PROSE =
  'The holdfast of a kelp is not any root: it takes up nothing, but only grips. What grows above may be torn away by surge and storm, its stipe can snap; yet while this organ keeps hold on rock, everything returns from where it broke. Divers know places with forests hundreds old, swaying through winters that strip beaches bare, feeding otters, urchins, countless fish.\n\nSeamen named these anchors long before science described them: Zürich’s museum owns one sample, catalogued 1887, marked “北海”. Nobody else cared.';

export const TEXT_KINDS: Readonly<Record<string, TextKind>> = {
  prose: {
    repeats: false,
    texts: fc
      .tuple(fc.nat(180), fc.integer({ min: 60, max: 400 }))
      .map(([from, length]) => PROSE.slice(from, from + length)),
  },
  'words that come once': {
    repeats: false,
    texts: fc
      .tuple(
        fc.shuffledSubarray(
          'apple butter cedar dahlia elbow fennel ginger hazel ivory jasmine kelp lemon mango nutmeg olive pepper quartz river saddle timber umbrella velvet window yellow zephyr Ödland 北京 東京 🙂 €42'.split(
            ' ',
          ),
          { minLength: 14 },
        ),
        fc.array(fc.constantFrom(' ', ' ', ' ', ', ', '.\n', '\n\n', '\n- ', ' — '), {
          minLength: 31,
          maxLength: 31,
        }),
      )
      .map(([words, separators]) => words.map((word, index) => word + separators[index]).join('')),
  },
  'JSON rows with a counter': {
    repeats: true,
    texts: numbered(
      fc.tuple(WORDS, fc.boolean()).map(
        ([word, spaced]) =>
          (row) =>
            spaced
              ? `{"id": ${row}, "name": "${word}", "tags": ["a", "a"], "value": ${row % 3}},\n`
              : `{"id":${row},"name":"${word}"}\n`,
      ),
    ),
  },
  'the same row': {
    repeats: true,
    texts: times(
      fc.constantFrom(
        '{"name": "amber", "value": 0}\n',
        'null\n',
        '0,0,0\n',
        '| a | a |\n',
        '- [ ] item\n',
        '{"status": "ok", "message": "nothing to report today", "retry": false}\n',
      ),
      2,
      14,
    ),
  },
  CSV: {
    repeats: true,
    texts: lines(
      fc
        .tuple(WORDS, fc.nat(9), fc.constantFrom('yes', 'no'), fc.nat(3))
        .map(([word, a, b, c]) => `${word},${a},${b},${c}.00\n`),
    ).map((rows) => `name,count,open,price\n${rows.join('')}`),
  },
  'a Markdown table': {
    repeats: true,
    texts: lines(
      fc.tuple(WORDS, fc.nat(3)).map(([word, count]) => `| ${word} | ${count} | ${count} |\n`),
    ).map((rows) => `| name | count | count |\n|------|-------|-------|\n${rows.join('')}`),
  },
  'a number matrix': {
    repeats: true,
    texts: lines(
      fc
        .array(fc.constantFrom('0', '0', '1', '0.00'), { minLength: 3, maxLength: 8 })
        .map((row) => `[${row.join(', ')}]`),
    ).map((rows) => `[${rows.join(',\n ')}]`),
  },
  'a nested list': {
    repeats: true,
    texts: lines(
      fc.tuple(fc.constantFrom('', '  ', '    '), WORDS).map(([indent, word]) => `${indent}- ${word}\n`),
    ).map((all) => all.join('')),
  },
  Python: {
    repeats: true,
    texts: lines(
      fc
        .tuple(WORDS, fc.constantFrom('x', 'y', 'value'), fc.constantFrom('    ', '        '))
        .map(
          ([name, argument, indent]) =>
            `def ${name}(${argument}):\n${indent}if ${argument} is None:\n${indent}${indent}return None\n${indent}return ${argument}\n\n\n`,
        ),
      2,
      6,
    ).map((all) => `\`\`\`python\n${all.join('')}\`\`\`\n`),
  },
  TypeScript: {
    repeats: true,
    texts: lines(
      fc
        .tuple(WORDS, WORDS)
        .map(([a, b]) => `  if (${a} === undefined) {\n    throw new RangeError('${b}');\n  }\n`),
    ).map((all) => `function check() {\n${all.join('')}}\n`),
  },
  'a diff': {
    repeats: true,
    texts: lines(
      fc.tuple(fc.constantFrom('+', '-', ' '), WORDS).map(([sign, word]) => `${sign}  const ${word} = 0;\n`),
    ).map((all) => `@@ -1,7 +1,7 @@\n${all.join('')}`),
  },
  'a song with a chorus': {
    repeats: true,
    texts: fc
      .tuple(lines(WORDS, 3, 8), fc.integer({ min: 2, max: 4 }), fc.boolean())
      .map(([words, verses, first]) => {
        const chorus = 'Hold fast, hold fast, the sea is wide,\nhold fast, hold fast, against the tide.\n\n';
        const verse = (index: number) => `The ${words[index % words.length]} fell, the ${words[0]} rose.\n\n`;
        const all = Array.from({ length: verses }, (_, index) => verse(index) + chorus);
        return (first ? chorus : '') + all.join('') + chorus;
      }),
  },
  laughter: {
    repeats: true,
    texts: times(fc.constantFrom('ha', 'ha ha ', 'la, ', '-', '=', '. ', 'na na '), 4, 60),
  },
  'Chinese without spaces': {
    repeats: true,
    texts: lines(
      fc.constantFrom(
        '海带的固着器不是根，',
        '它只是抓住岩石。',
        '潮水涨了又退，退了又涨，',
        '看看，',
        '慢慢地',
      ),
    ).map((all) => all.join('')),
  },
  'Thai without spaces': {
    repeats: true,
    texts: lines(fc.constantFrom('สาหร่ายเกาะหิน', 'มากๆ', 'คลื่นซัดมาแล้วก็ไป', 'แล้วก็กลับมา')).map((all) =>
      all.join(''),
    ),
  },
  emoji: {
    repeats: true,
    texts: lines(fc.constantFrom('🙂', '🙃', '👩‍👩‍👧', '🇨🇭', '🙂🙂', ' ', 'x'), 4, 40).map((all) =>
      all.join(''),
    ),
  },
  'prose with fenced code and a table': {
    repeats: true,
    texts: fc
      .tuple(WORDS, WORDS, fc.integer({ min: 1, max: 5 }))
      .map(
        ([a, b, count]) =>
          `Here is the ${a}:\n\n\`\`\`ts\nconst ${a} = '${b}';\n\`\`\`\n\nand here is the ${b}:\n\n\`\`\`ts\nconst ${b} = '${a}';\n\`\`\`\n\n| ${a} | ${b} |\n|---|---|\n${`| ${b} | ${a} |\n`.repeat(count)}\nHere is the ${a} again.`,
      ),
  },
};
