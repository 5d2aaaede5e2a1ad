import type { GuideFacts } from '../../contract/guide.ts';

/** Honor's credentials (protocol/honor.md#access-token). */
export const honorGuide: GuideFacts = {
  name: 'honor',
  example: {
    appId: '104000000',
    clientId: '0123456789abcdef0123456789abcdef',
    clientSecret: '0123456789abcdef0123456789abcdef',
  },
  numericId: 'appId',
};
