import type { GuideFacts } from '../../contract/guide.ts';

/** OPPO's credentials (protocol/oppo.md#hosts). */
export const oppoGuide: GuideFacts = {
  name: 'oppo',
  example: {
    appKey: '0123456789abcdef0123456789abcdef',
    masterSecret: '0123456789abcdef0123456789abcdef',
  },
};
