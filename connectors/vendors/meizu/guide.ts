import type { CredentialGuide } from '../../contract/guide.ts';

/** Meizu's credentials (protocol/meizu.md#hosts). */
export const meizuGuide: CredentialGuide = {
  source: 'Meizu (Flyme) push platform: the page of the app shows App ID and App Secret.',
  members: {
    appId: 'the App ID, digits',
    appSecret: 'the App Secret',
    receiptToken: 'the token that was entered in the console beside the address for receipts',
  },
  example: { appId: '100999', appSecret: '0123456789abcdef0123456789abcdef' },
  files: [],
  numericId: 'appId',
};
