import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

const INDENT = '  ';
const WIDTH_MIN = 40;
const WIDTH_MAX = 84;
/** For pipes, and for terminals of unknown size. */
const WIDTH_WITHOUT_TTY = 80;
/** Room for the rest of a word: its length is unknown when its first part is shown. */
const OVERHANG = 6;

/** Append-only output, identical on a terminal, in a pipe and in a log file, with optional colours. */
export class Terminal {
  readonly #stream: NodeJS.WriteStream;
  #column = 0;
  /** Column of the text when an aside interrupted it. */
  #paused_at: number | undefined;

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
  }

  heading(text: string): void {
    this.#paused_at = undefined;
    this.#freshLine();
    this.#write(`\n${this.#styled('bold', text)}\n`);
  }

  line(text: string, style?: Style): void {
    this.#paused_at = undefined;
    this.#freshLine();
    this.#write(`${INDENT}${style ? this.#styled(style, text) : text}\n`);
  }

  /** Running text, wrapped as it arrives. After an aside, it continues at the same column. */
  text(piece: string): void {
    if (this.#paused_at !== undefined) {
      this.#write(' '.repeat(this.#paused_at));
      this.#column = this.#paused_at;
      this.#paused_at = undefined;
    }
    if (this.#column === 0) this.#indent();
    let rest = piece;
    if (/^\s/.test(piece) && this.#column + piece.length > this.#width) {
      this.#freshLine();
      this.#indent();
      rest = piece.trimStart();
    }
    this.#write(rest);
    this.#column += rest.length;
  }

  /** A remark on its own line in the middle of the text. */
  aside({ text, style }: { readonly text: string; readonly style: Style }): void {
    this.#paused_at ??= this.#column;
    this.#freshLine();
    this.#write(`${INDENT}${this.#styled(style, `╎ ${text}`)}\n`);
  }

  get #width(): number {
    const columns = this.#stream.columns || WIDTH_WITHOUT_TTY;
    return Math.max(WIDTH_MIN, Math.min(columns, WIDTH_MAX)) - OVERHANG;
  }

  #indent(): void {
    this.#write(INDENT);
    this.#column = INDENT.length;
  }

  #freshLine(): void {
    if (this.#column > 0) this.#write('\n');
    this.#column = 0;
  }

  #styled(style: Style, text: string): string {
    return styleText(style, text, { stream: this.#stream });
  }

  #write(text: string): void {
    this.#stream.write(text);
  }
}
