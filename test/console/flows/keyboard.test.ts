import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { hasChromium } from '../browser/browser.ts';
import { everyPageMs } from '../browser/every-page.ts';
import { consolePages } from '../browser/pages.ts';
import { useScene } from '../browser/scene.ts';

/**
 * Script that marks everything a person without a mouse must reach: all visible elements that
 * accept a click or a text. In a group of radio buttons or tabs, Tab reaches the selected element
 * and the arrow keys reach the others.
 */
const markElements = `(() => {
  const all = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
  const isShown = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0;
  const isOfGroup = (one) =>
    (one.type === 'radio' && !one.checked) || (one.getAttribute('role') === 'tab' && one.ariaSelected !== 'true');
  for (const one of document.querySelectorAll(all))
    if (!one.disabled && isShown(one) && !isOfGroup(one) && !one.closest('[inert]')) one.dataset.unreached = '';
})()`;

/**
 * Script that describes the focused element and marks it as reached. Returns undefined after the
 * last element.
 */
const reach = `(() => {
  const one = document.activeElement;
  if (!one || one === document.body) return undefined;
  delete one.dataset.unreached;
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one);
  const ring = (element) => {
    const style = getComputedStyle(element);
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
  };
  // The focus ring of a field in a box is drawn around the box.
  const isRinged = ring(one) || [one.parentElement, one.parentElement?.parentElement].some((box) => box && ring(box));
  return { isRinged, html: one.outerHTML.slice(0, 160) };
})()`;

const unreached = `[...document.querySelectorAll('[data-unreached]')].map((one) => one.outerHTML.slice(0, 160))`;

describe.skipIf(!hasChromium)('the console by keyboard only', () => {
  const { login, showPage } = useScene();

  /**
   * Presses Tab until the focus leaves the page. Returns elements that are unreachable or show no
   * focus.
   */
  async function faultsOf(page: Page): Promise<string[]> {
    await page.evaluate(markElements);
    const faults: string[] = [];
    for (let presses = 0; ; presses += 1) {
      if (presses > 1500) return ['the focus does not leave the page'];
      await page.keyboard.press('Tab');
      const at = await page.evaluate<{ isRinged: boolean; html: string } | undefined>(reach);
      if (at === undefined) break;
      if (!at.isRinged) faults.push(`no focus to see: ${at.html}`);
    }
    const left = await page.evaluate<string[]>(unreached);
    return [...faults, ...left.map((html) => `not reached by Tab: ${html}`)];
  }

  test('reaches everything on every page, shows the focus, and can leave the page', {
    timeout: everyPageMs,
  }, async () => {
    const page = await login();
    const faults: string[] = [];
    for (const consolePage of consolePages) {
      await showPage(page, consolePage);
      faults.push(...(await faultsOf(page)).map((fault) => `${consolePage.name}: ${fault}`));
    }
    expect(faults).toEqual([]);
  });
});
