import { describe, test } from 'vitest';
import { hasChromium } from '../browser/browser.ts';
import { checkEveryPage, everyPageMs } from '../browser/every-page.ts';
import { useScene } from '../browser/scene.ts';

// The other language has the other two looks, because colours do not depend on the language. Each
// language has a file of its own, so that both run at the same time.
describe.skipIf(!hasChromium)('pages of the console in English', () => {
  const scene = useScene();

  test('have no WCAG 2.2 AA violation, and fit every screen', { timeout: everyPageMs }, () =>
    checkEveryPage(scene, 'en', [
      [1280, 'light'],
      [320, 'dark'],
    ]),
  );
});
