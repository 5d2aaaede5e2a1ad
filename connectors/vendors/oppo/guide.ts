import type { CredentialGuide } from '../../contract/guide.ts';

/** OPPO's credentials (protocol/oppo.md#hosts). */
export const oppoGuide: CredentialGuide = {
  source:
    'OPPO push platform (push.oppo.com; abroad the HeyTap developer console), "Configuration": AppKey and MasterSecret. The AppSecret beside them belongs into the app.',
  members: {
    appKey: 'the AppKey',
    masterSecret: 'the MasterSecret (not the AppSecret)',
  },
  example: {
    appKey: '0123456789abcdef0123456789abcdef',
    masterSecret: '0123456789abcdef0123456789abcdef',
  },
  files: [],
};
