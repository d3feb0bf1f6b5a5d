/** Texts to recite in which a guessed seam goes wrong. Each fits into the recital distance. */
export const TEXTS = {
  prose: `A holdfast is the organ with which kelp grips the rock. It has no roots; it drinks nothing from the stone. When the surge comes, the blade gives way, the stipe bends, and what holds fast holds fast.

"And then?" she asked. "Then the tide goes out again," he said, "and the kelp is where it was."`,

  python: `def tides(places, days=3):
    """Yields the tides of each place."""
    for place in places:
        for day in range(days):
            if day % 2 == 0:
                yield place, day, "high"
            else:
                yield place, day, "low"


class Gauge:
    def __init__(self):
        self.rows = []

    def read(self):
        for row in self.rows:
            if row:
                return row
        return None
`,

  table: `| place   | high  | low   |
|---------|-------|-------|
| Brest   | 04:12 | 10:31 |
| Brest   | 16:40 | 22:58 |
| Brest   | 04:12 | 10:31 |
| Brest   | 16:40 | 22:58 |
| Brest   | 04:12 | 10:31 |
| Brest   | 16:40 | 22:58 |
`,

  matrix:
    '0 0 0 0 0 0 0 0\n0 1 0 0 0 0 1 0\n0 0 0 0 0 0 0 0\n0 0 0 0 0 0 0 0\n0 1 0 0 0 0 1 0\n0 0 0 0 0 0 0 0\n',

  rows: '[{"id":1,"ok":true},{"id":2,"ok":true},{"id":3,"ok":true},{"id":3,"ok":true},{"id":3,"ok":true}]',

  chorus: `Hold fast, hold fast,
  the tide will turn at last.

Hold fast, hold fast,
  the tide will turn at last.

The rock is old, the rope is new.
Hold fast, hold fast,
  the tide will turn at last.`,

  scripts:
    '潮が満ちて、潮が引く。潮が満ちて、潮が引く。\nน้ำขึ้นให้รีบตัก น้ำขึ้นให้รีบตัก\n🌊🌊🌊 🪨🌊🌊 déjà vu, déjà vu\n',

  spaces: 'one  two   three    four\n\n\n\tfive\t\tsix  \n   \nseven',
} as const;

export type TextName = keyof typeof TEXTS;
