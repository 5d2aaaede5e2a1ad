import type { CredentialGuide } from '../../contract/guide.ts';

/** vivo's credentials (protocol/vivo.md#host). */
export const vivoGuide: CredentialGuide = {
  source:
    'vivo developer platform (dev.vivo.com.cn), "Push": the page of the app shows App ID, App Key and App Secret.',
  members: {
    appId: 'the App ID, digits',
    appKey: 'the App Key',
    appSecret: 'the App Secret',
  },
  example: {
    appId: '10004',
    appKey: '25509283-0000-4b9e-83fe-b6e55ac6243e',
    appSecret: '01234567-89ab-4cde-8f01-23456789abcd',
  },
  files: [],
  numericId: 'appId',
};
