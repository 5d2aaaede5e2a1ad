import type { GuideFacts } from '../../contract/guide.ts';

/** Meizu's credentials (protocol/meizu.md#hosts). */
export const meizuGuide: GuideFacts = {
  name: 'meizu',
  example: { appId: '100999', appSecret: '0123456789abcdef0123456789abcdef' },
  numericId: 'appId',
};
