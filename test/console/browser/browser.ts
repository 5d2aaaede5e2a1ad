import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { buildConsole } from '../../../ops/console/build.ts';

/** Chromium of Debian's package. `.ci/run` installs it where it can. */
const executablePath = '/usr/bin/chromium';
export const hasChromium = existsSync(executablePath);

// The background services of the browser would ask hosts that a closed network does not reach.
const args = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Script of the page: writes each violation of the policy on its console. */
const reportViolations = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI));`;

/** Heading of a page of which nothing loads. */
const shown = 'main:not(:has([aria-busy=true])) h1';

export interface PageOptions {
  language?: 'en' | 'zh-CN';
  theme?: 'light' | 'dark';
  width?: number;
}

/**
 * Browser of a test file. Every page reports what its policy refuses and what its scripts throw.
 */
export class ConsoleBrowser {
  #browser: Browser | undefined;
  #contexts: BrowserContext[] = [];
  /**
   * Violations of the policy, exceptions, and errors on the console of all pages, other than
   * refused calls.
   */
  readonly faults: string[] = [];

  async open(): Promise<void> {
    await buildConsole();
    this.#browser = await chromium.launch({ executablePath, args });
  }

  async close(): Promise<void> {
    await this.#browser?.close();
  }

  /** Opens a page with cookies of its own. */
  async page({ language = 'en', theme = 'light', width = 1280 }: PageOptions = {}): Promise<Page> {
    if (!this.#browser) throw new Error('the browser is not open');
    const context = await this.#browser.newContext({
      locale: language,
      colorScheme: theme,
      viewport: { width, height: 900 },
    });
    this.#contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    await page.addInitScript(reportViolations);
    page.on('pageerror', (error) => this.faults.push(error.message));
    page.on('console', (message) => {
      const text = message.text();
      // The browser itself writes this line for each reply with 4xx or 5xx.
      if (message.type() === 'error' && !text.startsWith('Failed to load resource'))
        this.faults.push(text);
    });
    return page;
  }

  /** Logs in with a token and waits for the frame of the pages. */
  async login(page: Page, url: string, token: string): Promise<void> {
    await page.goto(`${url}/console`);
    await page.locator('input[type=password]').fill(token);
    await page.locator('button[type=submit]').click();
    await page.locator('nav a').first().waitFor();
  }

  /** Opens an address and waits until the page has its data. */
  async show(page: Page, address: string): Promise<void> {
    await page.goto(address);
    await page.locator(shown).first().waitFor();
  }

  async closePages(): Promise<void> {
    // A page may repeat a request when its test has ended: a handler of its route that is not done
    // then has no page to answer.
    const pages = this.#contexts.flatMap((context) => context.pages());
    await Promise.all(pages.map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })));
    await Promise.all(this.#contexts.map((context) => context.close()));
    this.#contexts = [];
  }
}

/**
 * Opens a browser for a test file. After each test closes its pages and expects that none had a
 * fault.
 */
export function useBrowser(): ConsoleBrowser {
  const browser = new ConsoleBrowser();
  beforeAll(() => browser.open());
  afterAll(() => browser.close());
  afterEach(async () => {
    await browser.closePages();
    expect(browser.faults.splice(0)).toEqual([]);
  });
  return browser;
}
