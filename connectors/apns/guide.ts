import type { GuideFacts } from '../contract/guide.ts';

/** Apple's credentials (protocol/apns.md#hosts). */
export const apnsGuide: GuideFacts = {
  name: 'apns',
  example: {
    auth: 'token',
    teamId: 'ABCDE12345',
    keyId: 'KEY1234567',
    privateKey: '-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n',
    topics: ['com.example.app'],
  },
  takesKeyFiles: true,
};
