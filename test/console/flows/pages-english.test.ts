import { testEveryPage } from '../browser/every-page.ts';

testEveryPage('en', [
  [1280, 'light'],
  [320, 'dark'],
]);
