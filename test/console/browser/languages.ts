import type { Page } from 'playwright-core';
import { sceneTexts } from './scene.ts';

/** Words without a translation: names of products, formats and protocols. */
const names =
  /\b(APNs|FCM|Carillon|English|JSON|CSV|UTC|curl|Shop|Test app|ios|android|_default|vendor_g|Increment|Ctrl|OPPO|vivo|Web Push|npx carillon.*)\b/gi;

/** Matches JSON, names of members and values (one lower-case word), ids and addresses. */
const isData = /^\{|^\s*(?:[a-z][\w.-]*|\S*[\d/]\S*)\s*$/;

/**
 * Script that lists texts and labels of the page, except data: ids, JSON, commands and texts of
 * pushes. Guides are articles, whose translations have tests of their own.
 */
const script = `(() => {
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { parentElement, data } = walker.currentNode;
    if (!parentElement.closest('article, code, pre, time, [lang=en], [translate=no]')) texts.push(data);
  }
  for (const element of document.querySelectorAll('[aria-label], [placeholder], [title]'))
    for (const name of ['aria-label', 'placeholder', 'title']) {
      const value = element.getAttribute(name);
      if (value && element.tagName !== 'TIME' && !element.closest('article')) texts.push(value);
    }
  return texts;
})()`;

/**
 * Script that lists English server texts without a Chinese text next to them. English texts stay
 * visible so that they can be searched for, but must not be alone.
 */
const alone = `[...document.querySelectorAll('[lang=en]')]
  .filter((element) => !/\\p{Script=Han}/u.test(element.parentElement.closest('td, li, dd, p, div')?.textContent ?? ''))
  .map((element) => element.textContent)`;

/** Returns the English texts of a Chinese page. */
export async function englishIn(page: Page): Promise<string[]> {
  const texts = await page.evaluate<string[]>(script);
  const own = texts.filter((text) => !isData.test(text) && !sceneTexts.test(text));
  const english = own.filter(
    (text) => /[A-Za-z]{3,}/.test(text.replaceAll(names, '')) && !/\p{Script=Han}/u.test(text),
  );
  return [...new Set([...english, ...(await page.evaluate<string[]>(alone))])];
}
