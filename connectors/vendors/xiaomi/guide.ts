import type { CredentialGuide } from '../../contract/guide.ts';

/** Xiaomi's credentials (protocol/xiaomi.md#hosts). */
export const xiaomiGuide: CredentialGuide = {
  source:
    'Xiaomi developer platform (dev.mi.com; abroad global.developer.mi.com), "Push": the page of the app shows AppID, AppSecret and the package name. The AppKey belongs into the app.',
  members: {
    appId: 'the AppID',
    appSecret: 'the AppSecret',
    packageName: 'the package name of the Android app',
    region: 'china, russia, india, europe or global, where all devices of the profile are in one',
  },
  example: {
    appId: '2882303761517000000',
    appSecret: 'QmFzZTY0TG9va2luZw==',
    packageName: 'com.example.app',
  },
  files: [],
  numericId: 'appId',
};
