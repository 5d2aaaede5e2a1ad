import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { hasChromium, type PageOptions } from '../browser/browser.ts';
import { type ConsolePage, consolePages } from '../browser/pages.ts';
import { useScene } from '../browser/scene.ts';
import { toPalette } from './palette.ts';

/**
 * `npm run console-pictures` sets CONSOLE_PICTURES=docs and writes the pictures of the
 * documentation. If it is a folder, writes every page in every theme and language, for work on a
 * page.
 */
const { CONSOLE_PICTURES: target } = currentEnvironment();
const isRequested = target !== undefined && hasChromium;
const documents = join(import.meta.dirname, '../../../docs/images');
const maxBytes = 80_000;
/** Timeout. On a busy machine a page takes some seconds. */
const maxMs = 180_000;

const looks: Record<string, PageOptions> = {
  light: {},
  dark: { theme: 'dark' },
  chinese: { language: 'zh-CN' },
  phone: { language: 'zh-CN', width: 390 },
  narrow: { language: 'zh-CN', theme: 'dark', width: 320 },
};

describe.skipIf(!isRequested)('the pictures of the console', () => {
  const { login, showPage } = useScene();
  const show = async (page: Page, consolePage: ConsolePage) => {
    await showPage(page, consolePage);
    await page.waitForLoadState('networkidle');
  };

  test.skipIf(target !== 'docs')('of the documents are small', { timeout: maxMs }, async () => {
    const page = await login();
    await page.setViewportSize({ width: 1280, height: 720 });
    await mkdir(documents, { recursive: true });
    for (const consolePage of consolePages.filter(({ picture }) => picture !== undefined)) {
      await show(page, consolePage);
      const picture = await toPalette(page, await page.screenshot({ fullPage: true }));
      expect(picture.length, consolePage.name).toBeLessThan(maxBytes);
      await writeFile(join(documents, `console-${consolePage.picture}.png`), picture);
    }
  });

  test.skipIf(target === 'docs').for(Object.entries(looks))(
    'of every page, %s',
    { timeout: maxMs },
    async ([look, options]) => {
      const folder = join(target ?? '', look);
      await mkdir(folder, { recursive: true });
      const page = await login(options);
      for (const consolePage of consolePages) {
        await show(page, consolePage);
        const path = join(folder, `${consolePage.name.replaceAll(/\W+/g, '-')}.png`);
        await page.screenshot({ path, fullPage: true });
      }
    },
  );
});
