import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { buildConsole } from '../../../ops/console/build.ts';

/** Chromium of Debian's package. `.ci/run` installs it if possible. */
const executablePath = '/usr/bin/chromium';
export const hasChromium = existsSync(executablePath);

// Disabled, because the browser's background services would call hosts that a closed network cannot
// reach.
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

/** Options with which tests start Chromium. */
export const chromiumOptions = { executablePath, args };

/** Script that logs each violation of the page's policy to its console. */
const reportViolations = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI));`;

/** Selector for the heading of a page that has finished loading. */
const loadedPage = 'main:not(:has([aria-busy=true])) h1';

export interface PageOptions {
  language?: 'en' | 'zh-CN';
  theme?: 'light' | 'dark';
  width?: number;
}

/** Browser of a test file. It records policy violations and script errors of every page. */
export class ConsoleBrowser {
  #browser: Browser | undefined;
  #contexts: BrowserContext[] = [];
  /** Policy violations, exceptions and console errors of all pages, except refused calls. */
  readonly faults: string[] = [];

  async open(): Promise<void> {
    await buildConsole();
    this.#browser = await chromium.launch(chromiumOptions);
  }

  async close(): Promise<void> {
    await this.#browser?.close();
  }

  /** Opens a page with its own cookies. */
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

  /** Logs in with a token and waits for the page frame. */
  async login(page: Page, url: string, token: string): Promise<void> {
    await page.goto(`${url}/console`);
    await page.locator('input[type=password]').fill(token);
    await page.locator('button[type=submit]').click();
    // On a phone the navigation is closed.
    await page.locator('nav a').first().waitFor({ state: 'attached' });
  }

  /** Opens a URL and waits until the page has its data. */
  async show(page: Page, address: string): Promise<void> {
    await page.goto(address);
    await page.locator(loadedPage).first().waitFor();
  }

  async closePages(): Promise<void> {
    // A page may repeat a request after its test has ended. An unfinished route handler would then
    // have no page to answer.
    const pages = this.#contexts.flatMap((context) => context.pages());
    await Promise.all(pages.map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })));
    await Promise.all(this.#contexts.map((context) => context.close()));
    this.#contexts = [];
  }
}

/**
 * Opens a browser for a test file. After each test, closes its pages and checks that none had an
 * error.
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
