import { describe, expect, test } from 'vitest';
import { accessibilityFaults } from './accessibility.ts';
import { hasChromium } from './browser.ts';
import { englishIn } from './languages.ts';
import { consolePages } from './pages.ts';
import { useScene } from './scene.ts';

/** Timeout of a test of all pages. On a busy machine a page takes four seconds. */
export const everyPageMs = 400_000;

/** Script that counts the tables that extend beyond the window. */
const wideTables = `[...document.querySelectorAll('main section:has(> table)')]
  .filter((box) => box.scrollWidth > box.clientWidth + 1).length`;

/** Width of the window in px, and theme. */
type Look = readonly [width: number, theme: 'light' | 'dark'];

/**
 * Tests every page of the console in a language. Each language has a test file of its own, so that
 * both run at the same time, and two of the four looks, because colours do not depend on it.
 */
export const testEveryPage = (language: 'en' | 'zh-CN', looks: readonly Look[]) =>
  describe.skipIf(!hasChromium)('pages of the console', () => {
    const scene = useScene();
    test('have no WCAG 2.2 AA violation, and fit every screen', { timeout: everyPageMs }, () =>
      checkEveryPage(scene, language, looks),
    );
  });

/**
 * Opens every page. Checks in each look that the page has no violation and fits the window, and in
 * Chinese that no text is English.
 */
async function checkEveryPage(
  { login, showPage }: ReturnType<typeof useScene>,
  language: 'en' | 'zh-CN',
  looks: readonly Look[],
): Promise<void> {
  const page = await login({ language });
  const faults: string[] = [];
  for (const consolePage of consolePages) {
    const { name } = consolePage;
    await showPage(page, consolePage);
    if (language === 'zh-CN')
      faults.push(...(await englishIn(page)).map((text) => `${name}: not Chinese: ${text}`));
    for (const [width, theme] of looks) {
      await page.emulateMedia({ colorScheme: theme });
      await page.setViewportSize({ width, height: 900 });
      const view = `${name}, ${theme}, ${width} px`;
      faults.push(...(await accessibilityFaults(page)).map((fault) => `${view}: ${fault}`));
      const overflow = await page.evaluate<number>(
        'document.documentElement.scrollWidth - innerWidth',
      );
      if (overflow > 0) faults.push(`${view}: wider than the window`);
      if (width === 320 && (await page.evaluate<number>(wideTables)) > 0)
        faults.push(`${view}: a table is wider than the window`);
    }
  }
  expect(faults).toEqual([]);
}
