import type { GuideFacts } from '../../contract/guide.ts';

/** Xiaomi's credentials (protocol/xiaomi.md#hosts). */
export const xiaomiGuide: GuideFacts = {
  name: 'xiaomi',
  example: {
    appId: '2882303761517000000',
    appSecret: 'QmFzZTY0TG9va2luZw==',
    packageName: 'com.example.app',
  },
  numericId: 'appId',
};
