import type { CredentialGuide } from '../../contract/guide.ts';

/** Honor's credentials (protocol/honor.md#access-token). */
export const honorGuide: CredentialGuide = {
  source:
    'Honor Developers (developer.honor.com), "Push service": the page of the app shows App ID, Client ID and Client Secret. The App Secret is not used.',
  members: {
    appId: 'the App ID, digits',
    clientId: 'the Client ID',
    clientSecret: 'the Client Secret',
    badgeClass: 'full name of the entry activity; without it no badge is shown',
  },
  example: {
    appId: '104000000',
    clientId: '0123456789abcdef0123456789abcdef',
    clientSecret: '0123456789abcdef0123456789abcdef',
  },
  files: [],
  numericId: 'appId',
};
