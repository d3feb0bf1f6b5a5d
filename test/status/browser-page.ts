import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, onTestFinished } from 'vitest';
import { openPage, type Page } from '../e2e/browser/chromium.ts';

/** The longest that a page may take for a change, even on a busy machine. */
const CHANGE_MAX_MS = 60_000;

const KEYS = {
  Tab: { code: 'Tab', windowsVirtualKeyCode: 9 },
  Enter: { code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' },
  ' ': { code: 'Space', windowsVirtualKeyCode: 32, text: ' ' },
  ArrowDown: { code: 'ArrowDown', windowsVirtualKeyCode: 40 },
  ArrowUp: { code: 'ArrowUp', windowsVirtualKeyCode: 38 },
  ArrowRight: { code: 'ArrowRight', windowsVirtualKeyCode: 39 },
} as const;

export interface AxeViolation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** A page in a browser, seen as a user sees it and operated by keyboard. */
export class BrowserPage {
  readonly #page: Page;

  private constructor(page: Page) {
    this.#page = page;
  }

  /** Closed when the test ends. */
  static async open(
    command: string,
    url: string,
    size = { width: 1440, height: 1080 },
  ): Promise<BrowserPage> {
    const page = openPage(command, 'about:blank');
    onTestFinished(() => page.close());
    await Promise.race([page.opened, page.ended]);
    const opened = new BrowserPage(page);
    await page.command('Emulation.setDeviceMetricsOverride', {
      ...size,
      deviceScaleFactor: 1,
      mobile: false,
    });
    await page.command('Page.navigate', { url });
    return opened;
  }

  /** The errors on its console. */
  get errors(): readonly string[] {
    return this.#page.errors;
  }

  /** The value of an expression on the page, once it has settled. */
  async read<Value>(expression: string): Promise<Value> {
    const answer = await Promise.race([
      this.#page.command('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true }),
      this.#page.ended,
    ]);
    const { result, exceptionDetails } = answer as {
      result: { value: Value };
      exceptionDetails?: { exception?: { description?: string } };
    };
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? 'it failed');
    return result.value;
  }

  text(selector: string): Promise<string | undefined> {
    return this.read(`document.querySelector(${JSON.stringify(selector)})?.textContent`);
  }

  /** Resolves once an expression on the page has this value. */
  async until(expression: string, value: unknown = true): Promise<void> {
    await expect.poll(() => this.read(expression), { timeout: CHANGE_MAX_MS }).toEqual(value);
  }

  /** Types into the focused element. */
  async type(text: string): Promise<void> {
    await this.#page.command('Input.insertText', { text });
  }

  async reload(): Promise<void> {
    await this.#page.command('Page.reload');
  }

  /** Pastes the clipboard into the focused element. */
  async paste(): Promise<void> {
    const event = { key: 'v', code: 'KeyV', windowsVirtualKeyCode: 86, modifiers: 2, commands: ['paste'] };
    await this.#page.command('Input.dispatchKeyEvent', { type: 'keyDown', ...event });
    await this.#page.command('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
  }

  async press(key: keyof typeof KEYS): Promise<void> {
    const event = { key, ...KEYS[key] };
    await this.#page.command('Input.dispatchKeyEvent', { type: 'keyDown', ...event });
    await this.#page.command('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
  }

  /** Presses Tab until the element has the focus; throws if it can't be reached. */
  async tabTo(selector: string): Promise<void> {
    for (let count = 0; count < 100; count++) {
      await this.press('Tab');
      if (await this.read(`document.activeElement.matches(${JSON.stringify(selector)})`)) return;
    }
    throw new Error(`the keyboard does not get to ${selector}`);
  }

  /** Sets the colour scheme that the user's system prefers. */
  async prefer(scheme: 'light' | 'dark'): Promise<void> {
    const features = [
      { name: 'prefers-color-scheme', value: scheme },
      // Without transitions, colours are final at once.
      { name: 'prefers-reduced-motion', value: 'reduce' },
    ];
    await this.#page.command('Emulation.setEmulatedMedia', { features });
    await this.until(`matchMedia('(prefers-color-scheme: ${scheme})').matches`);
  }

  /** The accessibility violations that axe-core finds. */
  async violations(): Promise<readonly AxeViolation[]> {
    const { source } = createRequire(import.meta.url)('axe-core') as { source: string };
    await this.read(`${source}; undefined`);
    const { violations, passes } = await this.read<{
      violations: readonly AxeViolation[];
      passes: readonly unknown[];
    }>('axe.run(document, { resultTypes: ["violations", "passes"] })');
    if (passes.length < 20) throw new Error(`axe-core has checked ${passes.length} rules only`);
    return violations;
  }

  async screenshot(path: string): Promise<void> {
    const { data } = (await this.#page.command('Page.captureScreenshot', { format: 'png' })) as {
      data: string;
    };
    writeFileSync(path, Buffer.from(data, 'base64'));
  }
}
