import { testEveryPage } from '../browser/every-page.ts';

testEveryPage('zh-CN', [
  [1280, 'dark'],
  [320, 'light'],
]);
